"""Join the writes of many threads into one commit. Knows no database."""

from __future__ import annotations

from _thread import allocate_lock  # threading costs a short command 3 ms
from time import monotonic

from tachograph.domain.errors import TachographError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Lock

    import lmdb

    Transaction = lmdb.Transaction[bytes]
    Run = Callable[[Callable[[Transaction], None], Callable[[], None]], None]

_LONGEST_WAIT = 0.001


class Request:
    """One thread's part of a commit.

    A subclass says in `apply` what to write. `apply` may run several times, in transactions
    that were never committed; it must refuse (raise a TachographError) before its first write
    or not at all, so that a refusal concerns nobody else. `committed` runs after the commit
    that made the last `apply` durable.
    """

    __slots__ = ("done", "error", "leads", "wake")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.done = False
        """The commit has ended, well or badly."""
        self.leads = False
        """Its thread is the one that commits."""
        self.wake: Lock | None = None
        """Held while its thread waits for a leader; None if it never had to."""

    def apply(self, txn: Transaction) -> None:
        """Write, in a transaction that others share."""
        raise NotImplementedError

    def committed(self) -> None:
        """Learn that what was written is durable now."""


class GroupCommit:
    """A queue of requests whose first waiting thread commits for all (leader and followers).

    A single thread leads at once: no other thread takes part, and nothing is waited for.
    """

    __slots__ = ("_busy", "_expected", "_full", "_lock", "_queue", "_run", "_seconds", "_wanted")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = allocate_lock()
        self._queue: list[Request] = []
        self._busy = False
        self._expected = 1
        """Requests that the next commit may get: as many as the last had, and who came since."""
        self._seconds = 0.0
        """How long the last commit took."""
        self._wanted = 0
        """A queue of this length releases `_full`; 0 while no leader waits for it."""
        self._full = allocate_lock()
        self._full.acquire()

    def submit(self, request: Request) -> None:
        """Return when the request is durable.

        Raises what the request refused with, or what made the whole commit fail.
        """
        try:
            self._join(request)
            if request.wake is not None:
                request.wake.acquire()
            if request.leads:
                self._lead(request)
        except BaseException:
            self._withdraw(request)
            raise
        if request.error is not None:
            raise request.error

    def _join(self, request: Request) -> None:
        with self._lock:
            if self._busy:
                request.wake = allocate_lock()
                request.wake.acquire()
            else:
                self._busy = request.leads = True
            self._queue.append(request)
            if len(self._queue) == self._wanted:
                self._wanted = 0
                self._full.release()

    def _lead(self, leader: Request) -> None:
        """Commit everything that waits, then wake its threads and the next leader."""
        batch = self._gather()
        outcome = _Batch(batch)
        started = monotonic()
        try:
            self._run(outcome.apply, outcome.committed)
        except Exception as error:  # noqa: BLE001  raised again in every thread that waits
            outcome.fail(error)
        finally:
            self._seconds = monotonic() - started
            self._finish(leader, batch)

    def _gather(self) -> list[Request]:
        """Take the queue, after waiting for threads that the last commit woke.

        Those that do nothing but append are back in microseconds. They then share this commit
        instead of waiting for it, which makes commits twice as large. The others are waited for
        at most half as long as the last commit took.
        """
        with self._lock:
            if len(self._queue) >= self._expected:
                return self._take()
            self._wanted = self._expected
        try:
            self._full.acquire(timeout=min(self._seconds / 2, _LONGEST_WAIT))
        finally:
            with self._lock:
                if not self._wanted:
                    self._full.acquire(blocking=False)  # released just after the time was over
                self._wanted = 0
        with self._lock:
            return self._take()

    def _take(self) -> list[Request]:
        batch, self._queue = self._queue, []
        return batch

    def _finish(self, leader: Request, batch: list[Request]) -> None:
        """Wake whom the commit served. If the leader was interrupted before it, another leads."""
        leader.leads = False
        with self._lock:
            if not leader.done:
                self._queue[:0] = [each for each in batch if each is not leader]
            self._expected = len(batch) + len(self._queue)
            self._promote()
        for each in batch:
            if each.done and each.wake is not None and each is not leader:
                each.wake.release()

    def _promote(self) -> None:
        """Make the first of the queue the leader. The caller holds the lock."""
        self._busy = bool(self._queue)
        if self._queue:
            self._queue[0].leads = True
            wake = self._queue[0].wake
            if wake is not None:
                wake.release()

    def _withdraw(self, request: Request) -> None:
        """Take back a request whose thread was interrupted, and what it was to lead."""
        with self._lock:
            if request in self._queue:
                self._queue.remove(request)
            if request.leads:
                request.leads = False
                self._promote()


class _Batch:
    """The requests of one commit and what became of them."""

    __slots__ = ("_requests",)

    def __init__(self, requests: list[Request]) -> None:
        self._requests = requests

    def apply(self, txn: Transaction) -> None:
        """Write every request that does not refuse."""
        for request in self._requests:
            request.error = None
            try:
                request.apply(txn)
            except TachographError as refusal:
                request.error = refusal

    def committed(self) -> None:
        """Tell every request that its writes are durable."""
        for request in self._requests:
            if request.error is None:
                request.committed()
            request.done = True

    def fail(self, error: Exception) -> None:
        """Give every request an error of its own: threads must not share a traceback."""
        for request in self._requests:
            if not request.done:
                request.error = _copy(error)
                request.done = True


def _copy(error: Exception) -> Exception:
    if not isinstance(error, TachographError):
        return error
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy
