"""Continue a run that was cut off: by its plan, in a new attempt, through its adapter (DESIGN §5).

Knows the order of things, not how programs are run: that comes in as functions.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from tachograph.domain import attention, errors
from tachograph.domain import plan as plans
from tachograph.domain.outcome import WAITS_FOR_APPROVAL
from tachograph.domain.records import _Fields
from tachograph.refusing import refusal
from tachograph.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, Protocol

    from tachograph.domain.event import Cause
    from tachograph.domain.owner import Owner
    from tachograph.domain.plan import Plan
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.planning import Planner
    from tachograph.runs import RunRepository
    from tachograph.session import Actor, Beat

    class End(Protocol):
        """How an adapter ended."""

        exit_code: int | None
        signal: int | None
        seconds: float
        timed_out: bool
        too_large: str | None
        left_running: tuple[int, ...]
        asked: tuple[str, ...]

    class Outputs(Protocol):
        """The files that the adapter of an attempt writes to, and reads a long checkpoint from."""

        stdout: str
        stderr: str
        checkpoint: str

        def read(self) -> tuple[bytes, bytes]:
            """Return what is in them, each up to its bound; nothing where there is no file."""
            ...

        def remove(self) -> None:
            """Remove them."""
            ...

    class Adapters(Protocol):
        """Runs adapters."""

        def outputs(self, run_id: str, epoch: int) -> Outputs:
            """Return the files for an attempt."""
            ...

        def run(
            self,
            execute: Mapping[str, Any],
            variables: Mapping[str, str],
            outputs: Outputs,
            on_started: Callable[[int], None],
        ) -> End:
            """Run an adapter to its end. Raises OSError when it cannot be run at all."""
            ...

        def owner(self, pid: int | None = None) -> Owner:
            """Describe a process, this one by default."""
            ...

        def heartbeat(self, beat: Callable[[], None]) -> Any:
            """Return a `with` block in which `beat` is called again and again."""
            ...


LONGEST_CHECKPOINT = 32 * 1024
"""Bytes of a checkpoint that fit into a variable; a longer one is read from its file."""


class Resumption(_Fields):
    """What came of a resume.

    `execute` is what was run, `from_version` where it went on. `progressed` says whether the run
    got further, `outcome` how it stands now (None while it is unfinished). `error` says what went
    wrong, None when nothing did. `reply` is what the adapter said, `result` what is recorded of
    it. `fenced` says that another attempt took the run over meanwhile.
    """

    __slots__ = (
        "epoch",
        "error",
        "execute",
        "fenced",
        "from_version",
        "outcome",
        "progressed",
        "reply",
        "result",
    )

    def __init__(
        self,
        execute: Mapping[str, Any],
        from_version: int,
        epoch: int,
        result: Mapping[str, Any],
        *,
        progressed: bool,
        outcome: str | None,
        fenced: bool = False,
    ) -> None:
        self.execute = dict(execute)
        self.from_version = from_version
        self.epoch = epoch
        self.result = dict(result)
        self.reply: dict[str, Any] = self.result.get("reply") or {}
        self.error: str | None = self.result.get("error")
        self.progressed = progressed
        self.outcome = outcome
        self.fenced = fenced


class Dispatcher:
    """Resumes runs."""

    def __init__(
        self,
        repository: RunRepository,
        payloads: Payloads,
        planner: Planner,
        beat: Beat,
        actor: Actor,
        adapters: Adapters,
    ) -> None:
        self._repository = repository
        self._payloads = payloads
        self._planner = planner
        self._beat = beat
        self._actor = actor
        self._adapters = adapters

    def resume(
        self,
        run_id: str,
        *,
        unattended: bool = False,
        timeout_seconds: float | None = None,
        despite: Collection[str] = (),
        takeover: bool = False,
        reason: str | None = None,
        agreed: str | None = None,
    ) -> Resumption:
        """Resume a run by its plan, wait for its adapter, and return what came of it.

        `despite` names obstacles that a person disregards and `takeover` robs a living owner,
        both with a `reason`; `agreed` is the digest of the plan that was agreed to.
        Raises what stands in the way, before anything is changed: RunFinishedError,
        RunOwnedError, EffectInDoubtError, ApprovalPendingError, DependenciesWaitingError,
        PersonNeededError, TryLaterError, PlanChangedError or NotResumableError.
        """
        while True:
            self.adopt(run_id)
            run = self._planner.load(run_id)
            plan = self._planner.plan_of(
                run, unattended=unattended, timeout_seconds=timeout_seconds
            )
            if agreed is not None and agreed != self.digest(plan):
                raise errors.PlanChangedError(run_id, agreed, self.digest(plan))
            self._refuse(run, plan, despite, takeover=takeover)
            try:
                session = self._begin(run, plan, reason)
            except errors.VersionConflictError:
                continue  # something happened meanwhile: the plan is made anew
            return self._dispatch(session, plan)

    def digest(self, plan: Plan) -> str:
        """Return what stands for a plan: any difference in what it would do changes it."""
        return self._payloads.digest(plan.to_fields(), "plan")

    def adopt(self, run_id: str, *, given_up: bool = False) -> Resumption | None:
        """Record what the adapter of a dispatcher that was killed left behind.

        Returns what came of that resume; None when there is none to be adopted, or it is still
        at work. `given_up` says that its dispatcher is this one, and has no hand in it any more.
        """
        while True:
            run = self._planner.load(run_id)
            if run.dispatch is None:
                return None
            ours = given_up and run.owner == self._adapters.owner().to_fields()
            if not ours and self._planner.is_alive(run):
                return None
            try:
                return self._adopt(run, ours=ours)
            except errors.VersionConflictError:
                continue  # somebody else did something: look again

    # Before.

    def _refuse(self, run: Run, plan: Plan, despite: Collection[str], *, takeover: bool) -> None:
        for obstacle in plan.without(despite):
            if obstacle.code == plans.OWNED and takeover:
                continue
            raise refusal(run, obstacle)

    def _begin(self, run: Run, plan: Plan, reason: str | None) -> Session:
        """Take the run over and record the resume, all in one, at the version of the plan."""
        epoch = run.start_attempt(
            self._actor.cause(),
            self._adapters.owner().to_fields(),
            live_owner=None,
            reason=reason,
        )
        cause = self._actor.cause(epoch)
        for key in plan.decided(plans.COUNT_AS_DONE):
            run.complete_effect(cause, key, None, reason="the job says: skip what is in doubt")
        for key in plan.decided(plans.DO_AGAIN):
            if run.effects[key]["status"] == "intended" and not run.effects[key]["idempotent"]:
                run.allow_effect_retry(cause, key, "the job says: retry what is in doubt")
        execute = plan.execute or {}
        run.dispatch_resume(cause, str(execute.get("name")), self._stored(plan))
        self._repository.save(run)
        self._beat(run.id, epoch, None)
        return Session(
            self._repository, self._payloads, self._beat, self._actor, run.id, epoch, run
        )

    def _stored(self, plan: Plan) -> dict[str, Any]:
        fields = plan.to_fields()
        digest = self.digest(plan)
        stored = {name: self._payloads.store(value, name) for name, value in fields.items()}
        return {**stored, "digest": digest}

    # The adapter.

    def _dispatch(self, session: Session, plan: Plan) -> Resumption:
        outputs = self._adapters.outputs(session.run_id, session.epoch)
        execute = plan.execute or {}

        def started(pid: int) -> None:
            worker = self._adapters.owner(pid).to_fields()
            session.execute(lambda run, why: run.start_worker(why, worker))

        result: dict[str, Any]
        try:
            with self._adapters.heartbeat(session.beat):
                end = self._adapters.run(execute, self._variables(session), outputs, started)
            result = self._result(execute, end, *outputs.read())
            result["left_running"] = _first_living(end.left_running, started)
        except errors.FencedError as error:
            result = {"error": str(error)}
        except OSError as error:
            result = {"error": f"it could not be run: {error}"}
        except Exception as error:  # noqa: BLE001  # else this living process would seem to work
            result = {"error": f"{type(error).__name__}: {error}"}
        resumption = self._returned(session, plan, result)
        outputs.remove()
        return resumption

    def _variables(self, session: Session) -> dict[str, str]:
        """Return what tells the adapter where to go on."""
        saved = session.run.checkpoint
        state = None if saved is None else self._payloads.load(saved["state"])
        return {
            "TACHO_RUN_ID": session.run_id,
            "TACHO_EPOCH": str(session.epoch),
            "TACHO_CHECKPOINT": json.dumps(state, default=str),  # ASCII: any text gets through
        }

    def _reply(self, execute: Mapping[str, Any], stdout: bytes) -> dict[str, Any]:
        """Return what an adapter said; a command that is no adapter owes no reply."""
        if execute.get("kind") == "command":
            text = stdout.decode("utf-8", "replace")
            return {"raw_stdout": text} if text else {}
        from tachograph.replies import read_reply

        return read_reply(stdout).to_fields()

    def _result(
        self, execute: Mapping[str, Any], end: End, stdout: bytes, stderr: bytes
    ) -> dict[str, Any]:
        """Return what is recorded of an adapter that has ended."""
        reply = self._reply(execute, stdout)
        result = {
            "exit_code": end.exit_code,
            "signal": end.signal,
            "seconds": round(end.seconds, 3),
            "timed_out": end.timed_out,
            "too_large": end.too_large,
            "left_running": list(end.left_running),
            "reply": self._payloads.store(reply, "reply"),
            "stderr": self._payloads.store(stderr.decode("utf-8", "replace"), "stderr"),
        }
        wrong = _wrong(end, reply)
        return result if wrong is None else {**result, "error": wrong}

    def _returned(self, session: Session, plan: Plan, result: Mapping[str, Any]) -> Resumption:
        asks = _asks_for(self._payloads.load(result.get("reply")))
        came = partial(Resumption, plan.execute or {}, plan.from_version, session.epoch)

        def record(run: Run, why: Cause) -> bool:
            progressed = run.return_resume(why, result)
            if asks is not None and not run.finished:
                run.raise_attention(why, attention.ADAPTER_ASKS, asks)
            return progressed

        try:
            if session.reload().reason_code == WAITS_FOR_APPROVAL:  # no failure, whatever it said
                result = {name: value for name, value in result.items() if name != "error"}
            progressed = session.execute(record)
        except errors.FencedError:
            return came(result, progressed=False, outcome=None, fenced=True)
        run = session.run
        loaded = {**result, "reply": self._payloads.load(result.get("reply"))}
        return came(loaded, progressed=progressed, outcome=run.outcome or run.ended)

    # What a killed dispatcher left.

    def _adopt(self, run: Run, *, ours: bool) -> Resumption:
        """Record the return of a resume that nobody waits for any more."""
        dispatch = run.dispatch or {}
        outputs = self._adapters.outputs(run.id, dispatch["epoch"])
        stdout, stderr = outputs.read()
        reply = self._reply({"kind": dispatch.get("kind")}, stdout)
        result = {
            "adopted": True,
            "left_running": self._left_running(run) if ours else [],
            "reply": self._payloads.store(reply, "reply"),
            "stderr": self._payloads.store(stderr.decode("utf-8", "replace"), "stderr"),
            "error": "how it ended could not be recorded; what it had done by then is kept"
            if ours
            else "its dispatcher was killed; what the adapter had done by then is kept",
        }
        progressed = run.return_resume(self._actor.cause(), result)
        self._repository.save(run)
        outputs.remove()
        return Resumption(
            {"kind": dispatch.get("kind"), "name": dispatch["adapter"]},
            dispatch["progress_version"],
            dispatch["epoch"],
            {**result, "reply": reply},
            progressed=progressed,
            outcome=run.outcome or run.ended,
        )

    def _left_running(self, run: Run) -> list[int]:
        """Return the worker if it lives: the next try must not work beside it."""
        worker = run.worker or {}
        try:
            lives = bool(worker) and self._adapters.owner(worker["pid"]).to_fields() == worker
        except errors.ProcessNotFoundError:
            lives = False
        return [worker["pid"]] if lives else []


def _first_living(pids: Collection[int], started: Callable[[int], None]) -> list[int]:
    """Record the first of these processes that is still there as the worker; return what is."""
    for number, pid in enumerate(pids):
        try:
            started(pid)
        except errors.ProcessNotFoundError:
            continue  # it has ended meanwhile
        return list(pids)[number:]
    return []


def _wrong(end: End, reply: Mapping[str, Any]) -> str | None:
    """Return what is wrong with how an adapter ended, None when nothing is."""
    if end.timed_out:
        return f"it was stopped at its time limit, after {end.seconds:.0f} s"
    if end.too_large is not None:
        return f"it was stopped: its {end.too_large} grew too large"
    if end.signal is not None:
        return f"it was killed by signal {end.signal}"
    said = reply.get("error")
    if end.exit_code:
        return f"exit code {end.exit_code}" + (f": {said}" if said else "")
    if reply.get("ok") is False:
        return str(said or reply.get("message") or "it says that it failed")
    return None


def _asks_for(reply: Any) -> str | None:
    """Return what an adapter wants of a person, None when nothing."""
    if not isinstance(reply, dict):
        return None
    if reply.get("needs_attention"):
        return str(reply["needs_attention"])
    if reply.get("status") == "needs_attention":
        return str(reply.get("message") or reply.get("reason") or "it does not say why")
    return None
