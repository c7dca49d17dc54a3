"""Runs that are cut off, watched and resumed, without processes and clocks. Holds no test.

Real rules, log, views, plans and watchdog; the processes of the machine, its clocks and the
adapters are made by hand.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from workbench import Workbench

from tachograph import projecting
from tachograph.domain.ages import Moment
from tachograph.domain.errors import AdapterNotFoundError, DependenciesWaitingError
from tachograph.domain.liveness import ALIVE, Lease, Liveness, Observer, judge, judge_attempt
from tachograph.domain.owner import Owner
from tachograph.domain.recovery import Recovery
from tachograph.infra.memory_views import MemoryViews
from tachograph.planning import Planner
from tachograph.resuming import Dispatcher
from tachograph.session import Actor, Session
from tachograph.signals import Report
from tachograph.starting import Start, Starter
from tachograph.watching import Orders, Watchdog, run_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tachograph.domain.run import Run
    from tachograph.resuming import Outputs

HOUR_US = 3_600_000_000
START_US = 1_700_000_000_000_000
DISPATCHER = 7
"""The pid of whoever resumes."""
LEASE_SECONDS = 30.0
AUTO = Recovery(adapter="jobs:resume", auto_resume=True)
"""What a job says that a watchdog may resume."""


class FakeOutputs:
    """What an adapter wrote."""

    def __init__(self) -> None:
        self.stdout = "stdout"
        self.stderr = "stderr"
        self.checkpoint = "checkpoint"
        self.said: tuple[bytes, bytes] = b"", b""
        self.removed = False

    def read(self) -> tuple[bytes, bytes]:
        return self.said

    def remove(self) -> None:
        self.removed = True


class FakeEnd:
    """How an adapter ended: well, unless told otherwise."""

    def __init__(self, **said: Any) -> None:
        self.exit_code: int | None = said.get("exit_code", 0)
        self.signal: int | None = said.get("signal")
        self.seconds: float = said.get("seconds", 1.25)
        self.timed_out: bool = said.get("timed_out", False)
        self.too_large: str | None = said.get("too_large")
        self.left_running: tuple[int, ...] = said.get("left_running", ())
        self.asked: tuple[str, ...] = ()


class FakeAdapters:
    """Runs `work` where an adapter would be run, as process 100, 101, …"""

    def __init__(self, bench: Recovering) -> None:
        self.bench = bench
        self.work: Callable[[Session], FakeEnd | None] = one_batch
        self.calls: list[dict[str, Any]] = []
        self.variables: list[dict[str, str]] = []
        self.files: dict[tuple[str, int], FakeOutputs] = {}
        self.says: tuple[bytes, bytes] = b"{}", b""
        """What is on its stdout and stderr."""
        self.beaten = 0

    def outputs(self, run_id: str, epoch: int) -> FakeOutputs:
        return self.files.setdefault((run_id, epoch), FakeOutputs())

    def run(
        self,
        execute: Mapping[str, Any],
        variables: Mapping[str, str],
        outputs: Outputs,
        on_started: Callable[[int], None],
    ) -> FakeEnd:
        self.calls.append(dict(execute))
        self.variables.append(dict(variables))
        pid = 99 + len(self.calls)
        self.bench.processes[pid] = pid
        run_id, epoch = variables["TACHO_RUN_ID"], int(variables["TACHO_EPOCH"])
        self.outputs(run_id, epoch).said = self.says
        on_started(pid)
        try:
            return self.work(self.bench.attempt(run_id, epoch)) or FakeEnd()
        finally:
            del self.bench.processes[pid]

    def owner(self, pid: int | None = None) -> Owner:
        return process(DISPATCHER if pid is None else pid)

    @contextlib.contextmanager
    def heartbeat(self, beat: Callable[[], None]) -> Iterator[None]:
        self.beaten += 1
        beat()
        yield


class FakePresence:
    """Leases by the clock of the bench."""

    def __init__(self, bench: Recovering) -> None:
        self.bench = bench
        self.leases: dict[str, Lease] = {}
        self.unsettled: set[str] = set()
        self.noted: list[Moment] = []

    def beat(self, stream: str, epoch: int, note: Mapping[str, Any] | None = None) -> None:
        now = self.bench
        self.leases[stream] = Lease(epoch, "boot", now.boot_us, now.now, LEASE_SECONDS)
        self.unsettled.add(stream)

    def expired(self) -> list[str]:
        end_us = round(LEASE_SECONDS * 1_000_000)
        return [
            stream
            for stream in sorted(self.unsettled)
            if self.leases[stream].boottime_us + end_us < self.bench.boot_us
        ]


class Recovering(Workbench):
    """A workbench whose runs can be cut off and resumed.

    `processes` are those that live: start time by pid. A run that `start` begins belongs to the
    process of its number: 1001 for the first, and so on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = START_US
        self.boot_us = HOUR_US
        self.awake_us = HOUR_US
        self.processes: dict[int, int] = {DISPATCHER: DISPATCHER}
        self.lasting = FakePresence(self)
        self.views = MemoryViews(self.codec)
        self.adapters = FakeAdapters(self)
        self.missing: str | None = None
        """Why there is no adapter."""
        self.checked: list[tuple[list[str], str, str | None]] = []
        self.check_says: str | None = None
        self.begun = 0
        self.loads: list[str] = []
        self.stopped: list[str] = []
        self.stop_fails: str | None = None
        self.shared: list[str] = []
        self.here = Observer("here", "boot")
        self.actor = Actor("tester", "here", DISPATCHER, self.tick)
        self.starter = Starter(
            self.repository,
            self.payloads,
            self.lasting.beat,
            self.actor,
            self.live_owner,
            lambda process, owner: None if process["pid"] == owner.pid else "process on here",
        )
        self.planner = Planner(
            self.repository, self.liveness, lambda: self.now, self.locate, self.check_file
        )
        self.dispatcher = Dispatcher(
            self.repository,
            self.payloads,
            self.planner,
            self.lasting.beat,
            self.actor,
            self.adapters,
        )
        self.around = FakeSurroundings(self)

    # Runs.

    def begin(
        self, run_id: str = "job", recovery: Recovery | None = AUTO, **options: Any
    ) -> Session:
        """Start a run in a process of its own, which lives."""
        self.begun += 1
        pid = 1000 + self.begun
        self.processes[pid] = pid
        want = Start("work", run_id=run_id, recovery=recovery, **options)
        return self.starter.start(want, process(pid))

    def cut_off(self, run_id: str = "job", recovery: Recovery | None = AUTO) -> Session:
        """Start a run with one batch of three done, and kill its process."""
        session = self.cut_off_alive(recovery, run_id)
        self.kill(run_id)
        return session

    def cut_off_alive(self, recovery: Recovery | None, run_id: str = "job") -> Session:
        """Start a run with one batch of three done, whose process lives and does nothing."""
        session = self.begin(run_id, recovery)
        session.start_phase("parse")
        session.plan_batches("parse", 3, 1, None)
        session.complete_batch("parse", 0)
        return session

    def ask_approval(self, name: str, digest: str, run_id: str = "job") -> None:
        """Let a run ask for an approval, and wait for it: in an attempt that ends with that."""
        run = self.repository.get(run_id)
        session = self.begin(run_id) if run is None or not run.attempt_open else self.attempt()
        session.execute(
            lambda run, why: run.request_approval(why, name, subject=1, subject_digest=digest)
        )
        session.finish("partial", reason_code="waits_for_approval")

    def wait_for(self, run_id: str, runs: list[str]) -> None:
        """Make a run that may be started unattended, and waits for others."""
        with contextlib.suppress(DependenciesWaitingError):
            self.begin(run_id, AUTO, depends_on=runs)

    def kill(self, run_id: str = "job") -> None:
        """End the process that owns a run."""
        owner = self.run(run_id).owner
        del self.processes[owner["pid"]]

    def run(self, run_id: str = "job") -> Run:
        """Return a run as it is now."""
        run = self.repository.get(run_id)
        assert run is not None
        return run

    def attempt(self, run_id: str = "job", epoch: int | None = None) -> Session:
        """Return a session of an attempt, the present one by default; 0 is a person."""
        number = self.run(run_id).epoch if epoch is None else epoch
        return Session(
            self.repository, self.payloads, self.lasting.beat, self.actor, run_id, number
        )

    def person(self, run_id: str = "job") -> Session:
        """Return a session that belongs to no attempt."""
        return self.attempt(run_id, 0)

    # The machine.

    def passes(self, seconds: float) -> None:
        """Let time pass, while the machine is awake."""
        self.sleeps(seconds)
        self.awake_us += round(seconds * 1_000_000)

    def sleeps(self, seconds: float) -> None:
        """Suspend the machine for so long."""
        self.sets_clock(seconds)
        self.boot_us += round(seconds * 1_000_000)

    def sets_clock(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self.now += round(seconds * 1_000_000)

    def process_start(self, pid: int) -> int | None:
        return self.processes.get(pid)

    def liveness(self, run: Run) -> Liveness:
        return judge_attempt(
            Owner.from_fields(run.owner or {}),
            None if run.worker is None else Owner.from_fields(run.worker),
            here=self.here,
            process_start=self.process_start,
            lease=self.lasting.leases.get(run.id),
            boottime_us=self.boot_us,
            epoch=run.epoch,
        )

    def live_owner(self, run: Run) -> str | None:
        alive = run.attempt_open and self.liveness(run).state == ALIVE
        return "a living process" if alive else None

    def locate(self, run_id: str, declared: Recovery) -> dict[str, Any]:
        if self.missing is not None:
            raise AdapterNotFoundError(declared.adapter, self.missing)
        return {
            "kind": "function" if declared.adapter else "command",
            "name": declared.adapter or " ".join(declared.command or ()),
            "argv": [*(declared.command or ["run", str(declared.adapter)]), run_id],
            "folder": declared.working_folder,
            "code_path": None,
            "timeout_seconds": declared.timeout_seconds,
        }

    def check_file(self, command: list[str], path: str, folder: str | None) -> str | None:
        self.checked.append((command, path, folder))
        return self.check_says

    # Watching.

    def watch(
        self,
        *,
        spawn: Callable[[str, Callable[[], None]], bool] = run_at_once,
        auto_resume: bool = True,
        **orders: Any,
    ) -> Report:
        """Let a watchdog look once, and return all that it says."""
        dog = Watchdog(self.around, Orders(auto_resume=auto_resume, **orders), spawn)
        return dog.count(dog.tick(Report(self.now)))


class FakeSurroundings:
    """What a watchdog sees of the bench."""

    def __init__(self, bench: Recovering) -> None:
        self._bench = bench

    def ask(self, question: Callable[[Any], Any]) -> Any:
        bench = self._bench
        return projecting.ask(bench.log, bench.codec, bench.views, question)

    def load(self, run_id: str) -> Run | None:
        self._bench.loads.append(run_id)
        return self._bench.repository.get(run_id)

    def session(self, run_id: str) -> Session:
        return self._bench.person(run_id)

    def liveness(self, run: Run) -> Liveness:
        return self._bench.liveness(run)

    def sharing(self, run: Run) -> list[str]:
        return self._bench.shared

    def process_state(self, process: dict[str, Any]) -> str:
        return judge(
            Owner.from_fields(process),
            here=self._bench.here,
            process_start=self._bench.process_start,
            lease=None,
            boottime_us=self._bench.boot_us,
        ).state

    def expired(self) -> list[str]:
        return self._bench.lasting.expired()

    def settle(self, run_id: str) -> None:
        self._bench.lasting.unsettled.discard(run_id)

    def now(self) -> Moment:
        return Moment(self._bench.now, self._bench.boot_us, self._bench.awake_us)

    def moments(self) -> list[Moment]:
        return list(self._bench.lasting.noted)

    def note_moment(self, moment: Moment) -> None:
        self._bench.lasting.noted.append(moment)

    def stop(self, run: Run) -> str | None:
        if self._bench.stop_fails is None:
            self._bench.stopped.append(run.id)
            self._bench.kill(run.id)
        return self._bench.stop_fails

    def planner(self) -> Planner:
        return self._bench.planner

    def dispatcher(self) -> Dispatcher:
        return self._bench.dispatcher


def process(pid: int) -> Owner:
    """Return a process of this machine; its start time is its pid."""
    return Owner("here", "boot", pid, pid)


# What adapters do.


def one_batch(session: Session) -> None:
    """Take the run one batch further, and end."""
    phase = session.run.phases["parse"]
    if phase.epoch != session.epoch:
        session.start_phase("parse")
    session.complete_batch("parse", phase.missing()[0])


def to_the_end(session: Session) -> None:
    """Do all that is left, and finish."""
    one_batch(session)
    for index in session.run.phases["parse"].missing():
        session.complete_batch("parse", index)
    session.end_phase("parse")
    session.finish("success")


def nothing(session: Session) -> None:
    """End well, and do nothing."""


def fails(session: Session) -> FakeEnd:
    """Do nothing, and end badly."""
    return FakeEnd(exit_code=3)
