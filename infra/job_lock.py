"""Keep two runs of one cron job apart: a lock that dies with its holder. Judges no liveness."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tachograph.infra.locks import FileLock

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class JobLock:
    """A `with` block in which this process is the only one that starts runs of a job.

    `taken` says that another process has the lock, and `last_run` is the run that it has named.
    Else `last_runs` are those that were named in the lock before, the latest first: the command
    of one may outlive the process that held the lock. They are forgotten by `name`.

    A `run_id` is named as soon as the lock is had, so that whoever comes next is told no other.
    """

    def __init__(self, folder: str, job: str, run_id: str | None = None) -> None:
        self.taken = False
        self.last_runs: list[str] = []
        self._path = _path(folder, job)
        self._run_id = run_id
        self._lock: FileLock | None = None

    @property
    def last_run(self) -> str | None:
        """The run that was named last."""
        return self.last_runs[0] if self.last_runs else None

    def __enter__(self) -> Self:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        lock = FileLock(self._path, wait=False)
        try:
            lock.__enter__()
        except BlockingIOError:
            self.taken = True
        else:
            self._lock = lock
        self.last_runs = _named(self._path)
        if self._run_id is not None and not self.taken:
            self._write([self._run_id, *self.last_runs])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.__exit__(kind, error, trace)

    def name(self, run_id: str) -> None:
        """Say which run works under the lock, and that none of the earlier ones does."""
        self._write([run_id])

    def _write(self, run_ids: list[str]) -> None:
        data = "".join(f"{each}\n" for each in dict.fromkeys(run_ids)).encode()
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(handle, data, 0)  # at no time is the file empty for others
            os.ftruncate(handle, len(data))
        finally:
            os.close(handle)


def named_run(folder: str, job: str) -> str | None:
    """Return the run that was named last in the lock of a job; None when there is none."""
    try:
        names = _named(_path(folder, job))
    except OSError:
        return None
    return names[0] if names else None


def _path(folder: str, job: str) -> str:
    return os.path.join(folder, f"{job}.running")


def _named(path: str) -> list[str]:
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file.read().split("\n") if line.strip()]
