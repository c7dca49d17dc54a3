"""Which processes there are on this machine, and which boot it is in. Never signals any of them.

On Linux the answers come from /proc, because importing psutil costs 50 ms at the start of a
command; elsewhere from psutil.
"""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
import sys
import time

from tachograph.domain.errors import ProcessNotFoundError
from tachograph.domain.liveness import UNSEEN, Observer
from tachograph.domain.owner import Owner
from tachograph.infra.host import this_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROC = "/proc"


def boot_id(proc: str = PROC) -> str | None:
    """Return a text that differs after each start of the machine, None when there is none."""
    if sys.platform == "linux":
        found = _read(f"{proc}/sys/kernel/random/boot_id")
        return found.decode("ascii", "replace").strip() or None if found else None
    return _boot_id_elsewhere()


def pid_namespace(proc: str = PROC) -> str | None:
    """Return which set of processes pids count in here; None where there is one set only."""
    if sys.platform != "linux":
        return None
    try:
        return os.readlink(f"{proc}/self/ns/pid").removeprefix("pid:[").removesuffix("]")
    except OSError:
        return None


def process_start(pid: int, proc: str = PROC) -> int | None:
    """Return the start time of a process, in a unit that is only good for comparison.

    On Linux that is clock ticks since boot. None: there is no such process, or it has ended and
    only waits to be reaped. UNSEEN: there is one, but it may not be looked at.
    """
    if pid <= 0:
        return None
    if sys.platform != "linux":
        return _process_start_elsewhere(pid)
    status = _read(f"{proc}/{pid}/stat") if _is_our_view(proc) else None
    if status is None:
        return UNSEEN if _exists(pid) else None
    # The name, in brackets, may hold spaces and brackets: count fields from its end (proc(5)).
    fields = status[status.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return UNSEEN
    return None if fields[0] in b"ZX" else int(fields[19])


def worker_start(
    worker: Owner, proc: str = PROC, *, leaves: Callable[[int], bool] | None = None
) -> int | None:
    """Return the start time of a worker, also when it has ended and left something behind.

    That is what lives in the session or group that it led. The kernel gives its pid to no other
    process as long as there is any of these. `leaves` says whether there is.
    """
    if worker.pid is None:
        return None
    started = process_start(worker.pid, proc)
    if started is not None:
        return started
    left = leaves_members(worker.pid, proc) if leaves is None else leaves(worker.pid)
    return worker.started if left else None


class Leftovers:
    """Says whether ended processes have left something behind; looks at most every 200 ms.

    A list judges many runs, and one look at all processes takes a millisecond or more.
    """

    SECONDS = 0.2

    def __init__(self) -> None:
        self._looked = 0.0
        self._led: frozenset[int] = frozenset()

    def __call__(self, leader: int) -> bool:
        """Say whether anything lives in the session or group of a process that has ended."""
        if sys.platform != "linux" or not _is_our_view(PROC):
            return leaves_members(leader)
        now = time.monotonic()
        if not self._looked or now - self._looked > self.SECONDS:
            self._looked, self._led = now, frozenset(_led(PROC))
        return leader in self._led


def leaves_members(leader: int, proc: str = PROC) -> bool:
    """Say whether anything lives in the session or group of a process that has ended."""
    if sys.platform != "linux":
        return _leaves_members_elsewhere(leader)
    if not _is_our_view(proc):  # its numbers are others', or there are none
        return _leaves_group(leader)
    return leader in _led(proc)


def _led(proc: str) -> set[int]:
    """Return the numbers of all groups and sessions in which something lives."""
    found: set[int] = set()
    for name in os.listdir(proc):
        if name.isdecimal():
            status = _read(f"{proc}/{name}/stat") or b""
            fields = status[status.rfind(b")") + 2 :].split()
            # State, parent, group, session (proc(5)).
            if len(fields) > 3 and fields[0] not in b"ZX":
                found.update(map(int, fields[2:4]))
    return found


def _leaves_group(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def _leaves_members_elsewhere(leader: int) -> bool:
    import psutil

    for pid in psutil.pids():
        try:
            if leader in (os.getpgid(pid), os.getsid(pid)) and process_start(pid) is not None:
                return True
        except OSError:  # it has ended, or belongs to somebody else
            continue
    return False


def describe(pid: int, proc: str = PROC) -> Owner:
    """Return a process as an owner. Raises ProcessNotFoundError when there is no such process."""
    started = process_start(pid, proc)
    if started is None:
        raise ProcessNotFoundError(pid)
    return Owner(
        this_host(),
        boot_id(proc),
        pid,
        None if started == UNSEEN else started,
        pid_namespace(proc),
    )


def nobody(proc: str = PROC) -> Owner:
    """Return the owner of an attempt that no process stands for."""
    return Owner(this_host(), boot_id(proc), kind="unowned")


def parent_pid() -> int | None:
    """Return the process that started this one; None when it is outside this pid namespace."""
    return os.getppid() or None


def observer(proc: str = PROC) -> Observer:
    """Return where this process stands when it judges owners."""
    return Observer(this_host(), boot_id(proc), pid_namespace(proc))


def _read(path: str) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(handle, 4096)
    except OSError:  # the process ended between open and read
        return None
    finally:
        os.close(handle)


def _is_our_view(proc: str) -> bool:
    """Whether this /proc shows our own pid namespace, not that of whoever mounted it."""
    try:
        return os.readlink(f"{proc}/self") == str(os.getpid())
    except OSError:
        return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it exists and belongs to somebody else
        return True
    return True


def _process_start_elsewhere(pid: int) -> int | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return round(process.create_time() * 1_000_000)
    except (psutil.NoSuchProcess, psutil.ZombieProcess, OverflowError):
        return None
    except psutil.AccessDenied:
        return UNSEEN


def _boot_id_elsewhere() -> str | None:
    if sys.platform == "darwin":
        session = _darwin_boot_session()
        if session is not None:
            return session
    import psutil

    # The first process starts once per boot and keeps its start time, while the boot time is
    # computed backwards from the clock, and moves with it.
    if psutil.pid_exists(1):
        return f"first-process-{psutil.Process(1).create_time():.2f}"
    return f"boot-{round(psutil.boot_time(), -1):.0f}"


def _darwin_boot_session() -> str | None:
    """Return macOS's own boot id: its boot *time* moves when the clock is set."""
    import ctypes

    text = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(64)
    try:
        failed = ctypes.CDLL(None).sysctlbyname(
            b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0
        )
    except (AttributeError, OSError):
        return None
    return None if failed else text.value.decode("ascii", "replace") or None
