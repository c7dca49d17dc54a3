"""Processes are told apart by their start time; real children are started, killed and reaped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tachograph.domain.errors import ProcessNotFoundError
from tachograph.domain.liveness import UNSEEN, Liveness, judge
from tachograph.domain.owner import Owner
from tachograph.infra import clock, processes
from tachograph.infra.host import this_host

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
BOOT = "5a8d0f0e-0000-4000-8000-000000000001"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its standard input is closed."""
    code = "import sys; sys.stdout.write('up\\n'); sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()


def verdict(owner: Owner) -> Liveness:
    return judge(
        owner,
        here=processes.observer(),
        process_start=processes.process_start,
        lease=None,
        boottime_us=clock.boottime_us(),
    )


def test_a_child_is_alive_until_it_is_killed(child: subprocess.Popen[bytes]) -> None:
    owner = processes.describe(child.pid)
    before = verdict(owner)
    child.kill()
    child.wait()
    after = verdict(owner)

    assert (before.state, after.state) == ("alive", "gone")


@on_linux
def test_a_killed_child_that_nobody_reaped_is_gone(child: subprocess.Popen[bytes]) -> None:
    """A zombie keeps its pid and start time, yet does nothing any more."""
    owner = processes.describe(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert Path(f"/proc/{child.pid}/stat").exists()
    assert verdict(owner).state == "gone"


@on_linux
def test_a_stopped_process_is_alive(child: subprocess.Popen[bytes]) -> None:
    owner = processes.describe(child.pid)
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)

    assert verdict(owner).state == "alive"


def test_a_later_process_with_the_same_pid_is_not_the_owner(
    child: subprocess.Popen[bytes],
) -> None:
    owner = processes.describe(child.pid)
    assert owner.started is not None
    owner.started -= 1

    assert verdict(owner).state == "gone"


def test_this_process_describes_itself() -> None:
    owner = processes.describe(os.getpid())

    assert owner.host == this_host() != ""
    assert owner.boot_id == processes.boot_id()
    assert owner.pid_namespace == processes.pid_namespace()
    assert (owner.pid, owner.kind) == (os.getpid(), "process")
    assert owner == processes.describe(os.getpid())


def test_two_processes_differ(child: subprocess.Popen[bytes]) -> None:
    assert processes.describe(child.pid) != processes.describe(os.getpid())


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**40])
def test_a_process_that_does_not_exist_cannot_own(pid: int) -> None:
    with pytest.raises(ProcessNotFoundError, match=f"no process {pid}") as caught:
        processes.describe(pid)

    assert caught.value.args == (pid,)


def test_nobody_owns_without_a_pid() -> None:
    owner = processes.nobody()

    assert (owner.kind, owner.pid, owner.boot_id) == ("unowned", None, processes.boot_id())


def test_the_parent_of_a_child_is_this_process() -> None:
    code = "from tachograph.infra.processes import parent_pid; print(parent_pid())"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert int(answer.stdout) == os.getpid()


def test_a_parent_outside_the_namespace_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getppid", lambda: 0)

    assert processes.parent_pid() is None


@on_linux
@pytest.mark.parametrize("mount", [["--mount-proc"], []], ids=["own /proc", "foreign /proc"])
def test_a_process_in_a_container_is_not_judged_by_its_pid(mount: list[str]) -> None:
    """Inside it has pid 1 or 2, which out here is somebody else."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork", *mount]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"]).returncode:
        pytest.skip("this machine allows no namespaces")
    code = (
        "import json, os; from tachograph.infra import processes;"
        "print(json.dumps(processes.describe(os.getpid()).to_fields()))"
    )
    answer = subprocess.run([*unshare, sys.executable, "-c", code], capture_output=True)
    owner = Owner.from_fields(json.loads(answer.stdout))
    judged = verdict(owner)

    assert owner.pid in (1, 2)
    assert owner.boot_id == processes.boot_id()
    assert (owner.started is None) == (not mount)
    assert (judged.state, "no heartbeat" in judged.reason) == ("unknown", True)


def fake_proc(folder: Path, *, status: bytes | None, itself: int | None = None) -> str:
    """Lay out the files of /proc that are read; `status` is the stat file of process 17."""
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text(f"{BOOT}\n")
    me = folder / str(os.getpid() if itself is None else itself)
    (me / "ns").mkdir(parents=True)
    (me / "ns/pid").symlink_to("pid:[4026531836]")
    (folder / "self").symlink_to(me.name)
    if status is not None:
        (folder / "17").mkdir()
        (folder / "17/stat").write_bytes(status)
    return str(folder)


def stat_line(name: bytes = b"python", state: bytes = b"S") -> bytes:
    return b"17 (%b) %b %b 4711 99 99\n" % (name, state, b" ".join([b"1"] * 18))


@on_linux
@pytest.mark.parametrize("name", [b"python", b"a b", b"a) S 1 (b", b"\xff\xfe", b")"])
def test_a_process_name_may_hold_anything(tmp_path: Path, name: bytes) -> None:
    assert processes.process_start(17, fake_proc(tmp_path, status=stat_line(name))) == 4711


@on_linux
@pytest.mark.parametrize("state", [b"Z", b"X"])
def test_an_ended_process_has_no_start(tmp_path: Path, state: bytes) -> None:
    proc = fake_proc(tmp_path, status=stat_line(state=state))

    assert processes.process_start(17, proc) is None


@on_linux
def test_the_boot_and_the_namespace_come_from_proc(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, status=stat_line())
    here = processes.observer(proc)

    assert (here.boot_id, here.pid_namespace) == (BOOT, "4026531836")
    assert processes.describe(17, proc).started == 4711


@on_linux
@pytest.mark.parametrize(
    ("status", "itself"),
    [(None, None), (b"garbage", None), (b"", None), (b"1 (x) S 1", 1)],
    ids=["hidden", "garbage", "empty", "/proc of another namespace"],
)
def test_a_process_that_cannot_be_looked_at_is_unseen(
    tmp_path: Path, status: bytes | None, itself: int | None
) -> None:
    """It exists all the same: our own pid, which this /proc does not show properly."""
    proc = fake_proc(tmp_path, status=None, itself=1 if itself else None)
    me = tmp_path / str(os.getpid())
    me.mkdir(exist_ok=True)
    if status is not None:
        (me / "stat").write_bytes(status)

    assert processes.process_start(os.getpid(), proc) == UNSEEN
    assert processes.describe(os.getpid(), proc).started is None


@on_linux
def test_a_process_of_another_user_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)

    assert processes.process_start(17, fake_proc(tmp_path, status=None)) == UNSEEN


@on_linux
def test_without_proc_nothing_is_known_and_nothing_fails(tmp_path: Path) -> None:
    here = processes.observer(str(tmp_path))

    assert (here.boot_id, here.pid_namespace) == (None, None)
    assert processes.process_start(os.getpid(), str(tmp_path)) == UNSEEN


# What a worker leaves


class Worker:
    """The leader of a session, which has started one process in it, and told its pid."""

    LEADER = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"], {how})
print(child.pid, flush=True)
sys.stdin.read()
"""

    def __init__(self, how: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", self.LEADER.format(how=how)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout
        self.child = int(self.process.stdout.readline())
        self.owner = processes.describe(self.process.pid)

    def kill(self) -> None:
        """End the leader alone."""
        self.process.kill()
        self.process.wait()

    def end_child(self) -> None:
        """End what it has started, and return when that is over."""
        child = psutil.Process(self.child)
        child.kill()
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            os.sched_yield()


@pytest.fixture(params=["", "process_group=0"], ids=["its group", "its session"])
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    worker = Worker(request.param)
    yield worker
    for pid in (worker.child, worker.process.pid):
        if processes.process_start(pid) is not None:
            os.kill(pid, signal.SIGKILL)
    worker.process.communicate()


def test_a_worker_counts_as_there_while_anything_of_its_session_lives(worker: Worker) -> None:
    started = worker.owner.started
    seen = [processes.worker_start(worker.owner)]
    worker.kill()
    seen.append(processes.worker_start(worker.owner))
    left = processes.leaves_members(worker.process.pid)
    worker.end_child()
    seen.append(processes.worker_start(worker.owner))

    assert seen == [started, started, None]
    assert (left, processes.leaves_members(worker.process.pid)) == (True, False)


def test_what_left_the_session_is_nothing_that_a_worker_leaves() -> None:
    worker = Worker("start_new_session=True")
    worker.kill()
    found = processes.worker_start(worker.owner)
    os.kill(worker.child, signal.SIGKILL)
    worker.process.communicate()

    assert found is None


def test_many_questions_about_leftovers_take_one_look(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of a thousand interrupted runs must not look at all processes a thousand times."""
    looks: list[str] = []
    look = processes._led

    def counted(proc: str) -> set[int]:
        looks.append(proc)
        return look(proc)

    monkeypatch.setattr(processes, "_led", counted)
    monkeypatch.setattr(processes.Leftovers, "SECONDS", 3600.0)
    worker.kill()
    leftovers = processes.Leftovers()
    found = [leftovers(worker.process.pid), leftovers(2**22 + 1), leftovers(worker.process.pid)]

    assert found == [True, False, True]
    assert len(looks) == (1 if sys.platform == "linux" else 0)


def test_a_worker_without_a_pid_is_nowhere() -> None:
    assert processes.worker_start(Owner("ada", kind="unowned")) is None


@on_linux
@pytest.mark.parametrize(
    ("group", "session", "state", "left"),
    [
        (b"9", b"9", b"S", True),
        (b"9", b"8", b"S", True),
        (b"8", b"9", b"S", True),
        (b"8", b"8", b"S", False),
        (b"9", b"9", b"Z", False),
        (b"9", b"9", b"X", False),
        (b"99", b"19", b"S", False),
    ],
)
def test_who_is_left_is_seen_by_group_and_session(
    tmp_path: Path, group: bytes, session: bytes, state: bytes, left: bool
) -> None:
    """The parent, and a number elsewhere in the line, say nothing."""
    line = b"17 (a) 9 (9) %b 9 %b %b 9 9\n" % (state, group, session)

    assert processes.leaves_members(9, fake_proc(tmp_path, status=line)) is left


@on_linux
@pytest.mark.parametrize("status", [b"", b"garbage", b"17 (x) S"])
def test_a_process_that_cannot_be_read_is_nothing_left(tmp_path: Path, status: bytes) -> None:
    assert not processes.leaves_members(9, fake_proc(tmp_path, status=status))


@on_linux
def test_where_proc_shows_others_the_group_alone_counts(tmp_path: Path, worker: Worker) -> None:
    """Such as none at all, or that of another namespace, whose numbers mean somebody else."""
    worker.kill()
    in_group = os.getpgid(worker.child) == worker.process.pid
    line = b"17 (a) S 1 %d %d 9" % (worker.process.pid, worker.process.pid)
    foreign = fake_proc(tmp_path / "foreign", status=line, itself=1)
    found = [
        processes.leaves_members(worker.process.pid, proc) for proc in (foreign, str(tmp_path))
    ]
    worker.end_child()

    assert found == [in_group] * 2
    assert not processes.leaves_members(2**22 + 1, str(tmp_path))
    assert not processes.leaves_members(2**40, str(tmp_path))


@on_linux
def test_a_group_of_another_user_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refuse)

    assert processes.leaves_members(9, str(tmp_path))


class TestElsewhere:
    """What runs where there is no /proc; psutil answers the same on this machine."""

    @pytest.fixture(autouse=True)
    def _elsewhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "freebsd14")

    def test_a_child_is_alive_until_it_is_killed(self, child: subprocess.Popen[bytes]) -> None:
        owner = processes.describe(child.pid)
        before = verdict(owner)
        child.kill()
        child.wait()

        assert (before.state, verdict(owner).state) == ("alive", "gone")

    def test_a_worker_counts_as_there_while_anything_of_its_session_lives(
        self, worker: Worker
    ) -> None:
        worker.kill()
        left = processes.worker_start(worker.owner)
        worker.end_child()

        assert (left, processes.worker_start(worker.owner)) == (worker.owner.started, None)

    def test_the_boot_keeps_its_name(self) -> None:
        first = processes.boot_id()

        assert first == processes.boot_id()
        assert first

    def test_there_is_one_set_of_pids(self) -> None:
        assert processes.pid_namespace() is None

    @pytest.mark.parametrize(
        ("error", "started"),
        [(psutil.NoSuchProcess(17), None), (psutil.AccessDenied(17), UNSEEN)],
    )
    def test_what_psutil_refuses(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception, started: int | None
    ) -> None:
        def refuse(pid: int) -> None:
            raise error

        monkeypatch.setattr(psutil, "Process", refuse)

        assert processes.process_start(17) == started

    def test_a_machine_without_process_1_goes_by_boot_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(psutil, "pid_exists", lambda pid: False)
        monkeypatch.setattr(psutil, "boot_time", lambda: 1_700_000_001.5)

        assert processes.boot_id() == "boot-1700000000"
