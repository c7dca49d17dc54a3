"""Leases and heartbeats: which attempts are here now. Never fails a job, never holds history.

Kept without syncing: worth nothing after a reboot, when files that were not synced may be
damaged besides. So each boot has a folder of its own, and no file of an earlier one is opened.
"""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
from threading import Lock

from tachograph.domain.errors import (
    MalformedValueError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreNotFoundError,
)
from tachograph.domain.liveness import Lease
from tachograph.infra import clock, processes
from tachograph.infra.codec import Codec
from tachograph.infra.layout import U64, stream_key
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_files import identity
from tachograph.infra.locks import FileLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    import lmdb

    from tachograph.domain.ages import Moment
    from tachograph.domain.records import StreamId
    from tachograph.infra.lmdb_environment import Environment

    T = TypeVar("T")
    Transaction = lmdb.Transaction[bytes]

MAP_SIZE = 1024 * 1024
MOST_MOMENTS = 2_000
"""What the clocks showed, kept for the ages of events: more than a day of ticks each minute."""
_EXPIRY = b"\0x"
"""Begins the key of an entry of the index of leases by their end; the end (8 bytes) and the
stream's key (16 bytes) follow. A lease's own key has 16 bytes."""
_EXPIRY_LENGTH = 26
_MOMENT = b"\0m"
"""Begins the key of a moment; microseconds since boot (8 bytes) follow. The key of a lease may
begin so too."""
_MOMENT_LENGTH = 10
_NO_BOOT = "unknown-boot"
_TRIES = 5


class Presence:
    """The leases in a store's `presence` folder. Safe between threads and processes.

    Anything that is wrong with the folder is mended by making it anew, or makes beats do nothing
    and leases be absent: presence is a hint, the log decides (G5).
    """

    def __init__(
        self,
        folder: str,
        *,
        lease_seconds: float = 30,
        read_only: bool = False,
        boot_id: str | None = None,
    ) -> None:
        self._boot_id = processes.boot_id() if boot_id is None else boot_id
        self._folder = folder
        self._path = os.path.join(folder, self._boot_id or _NO_BOOT)
        self._mending = os.path.join(folder, "lock")
        self._lease_seconds = lease_seconds
        self._read_only = read_only
        self._codec = Codec()
        self._environment: Environment | None = None
        self._is_writable = False
        self._lock, self._pid = Lock(), os.getpid()

    @property
    def path(self) -> str:
        """The folder of this boot."""
        return self._path

    def beat(
        self,
        stream: StreamId,
        epoch: int,
        note: Mapping[str, Any] | None = None,
        *,
        lease_seconds: float | None = None,
        ago_us: int = 0,
    ) -> None:
        """Renew the lease of an attempt; the lease of a later one (higher epoch) stays.

        The lease says itself how long it is good for, so that no reader's settings shorten it.
        `ago_us` is how long ago the sign of life was that it stands for.
        Raises UnstorableValueError for a note that has no stored form, and nothing else.
        """
        seconds = self._lease_seconds if lease_seconds is None else lease_seconds
        noted = None if note is None else dict(note)
        boottime_us = clock.boottime_us() - ago_us
        fields = [stream, epoch, boottime_us, clock.now_us() - ago_us, seconds, noted]
        value = self._codec.pack(fields, "note")
        key = stream_key(stream)[0]

        def renew(txn: Transaction) -> None:
            present = self._unpack(txn.get(key))
            if present is None or present[1].epoch <= epoch:
                _forget_end(txn, key, present)
                txn.put(key, value)
                txn.put(_end_key(Lease(epoch, None, boottime_us, 0, seconds), key), b"")

        self._write(renew)

    def lease(self, stream: StreamId) -> Lease | None:
        """Return the last heartbeat of a run in this boot, fresh or not; None if there is none."""
        key = stream_key(stream)[0]
        found = self._read(lambda txn: self._unpack(txn.get(key)))
        return found[1] if found else None

    def clear(self, stream: StreamId, epoch: int | None = None) -> None:
        """Remove the lease of a run, but not that of an attempt later than `epoch`."""
        key = stream_key(stream)[0]

        def remove(txn: Transaction) -> None:
            present = self._unpack(txn.get(key))
            if epoch is None or present is None or present[1].epoch <= epoch:
                _forget_end(txn, key, present)
                txn.delete(key)

        self._write(remove)

    def expired(self, boottime_us: int) -> list[StreamId]:
        """Return the runs whose lease has ended by then, the longest ended first.

        Costs what has ended, not what there is. `settle` takes a run off this list.
        """

        def find(txn: Transaction) -> list[StreamId]:
            found = []
            high = _EXPIRY + U64.pack(max(0, boottime_us))
            for key, _ in _between(txn, _EXPIRY, high):
                entry = self._unpack(txn.get(key[-16:])) if len(key) == _EXPIRY_LENGTH else None
                # An older Tachograph renews a lease and leaves its former end behind.
                if entry is not None and key == _end_key(entry[1], key[-16:]):
                    found.append(entry[0])
            return found

        return self._read(find) or []

    def settle(self, stream: StreamId) -> None:
        """Take a run off the list of expired leases, until it beats again; its lease stays."""
        key = stream_key(stream)[0]
        self._write(lambda txn: _forget_end(txn, key, self._unpack(txn.get(key))))

    def note_moment(self, moment: Moment) -> None:
        """Keep what the clocks show."""
        value = self._codec.pack([moment.wall_us, moment.boot_us, moment.awake_us], "moment")

        def keep(txn: Transaction) -> None:
            txn.put(_MOMENT + U64.pack(moment.boot_us), value)
            for key in [key for key, _ in _moments(txn)][:-MOST_MOMENTS]:
                txn.delete(key)

        self._write(keep)

    def moments(self) -> list[Moment]:
        """Return what the clocks showed in this boot, in order."""
        from tachograph.domain.ages import Moment

        values = self._read(lambda txn: [value for _, value in _moments(txn)])
        found = []
        for value in values or ():
            try:
                found.append(Moment(*self._codec.unpack(value)))
            except (MalformedValueError, TypeError):
                continue
        return found

    def leases(self) -> list[tuple[StreamId, Lease]]:
        """Return every run with a lease in this boot."""
        values = (
            self._read(lambda txn: [value for key, value in txn.cursor() if len(key) == 16]) or ()
        )
        found = (self._unpack(value) for value in values)
        return [entry for entry in found if entry is not None]

    def close(self) -> None:
        """Close the files; a later use opens them again."""
        with self._guard():
            self._close()

    def _unpack(self, value: bytes | None) -> tuple[StreamId, Lease] | None:
        if value is None:
            return None
        try:
            stream, epoch, boottime_us, time_us, seconds, note = self._codec.unpack(value)
        except (MalformedValueError, TypeError, ValueError):
            return None
        if not (isinstance(epoch, int) and isinstance(boottime_us, int)):
            return None
        if not isinstance(seconds, int | float):
            return None
        return stream, Lease(epoch, self._boot_id, boottime_us, time_us, seconds, note)

    def _write(self, work: Callable[[Transaction], None]) -> None:
        if self._read_only:
            return
        for _ in range(_TRIES):
            try:
                self._opened(write=True).update(work)
            except StoreCorruptError:
                self._mend(work)
            except (StoreNotFoundError, StoreClosedError):
                continue  # somebody deleted, mended or closed it at this very moment
            except (StoreError, OSError):
                return  # no room, no permission, a network disk: the log will say so
            else:
                return

    def _read(self, work: Callable[[Transaction], T]) -> T | None:
        try:
            environment = self._opened(write=False)
            if not environment.locked:
                return None  # without locks a writer may overwrite what is being read
            with environment.read() as txn:
                return work(txn)
        except (StoreError, OSError):
            return None

    def _guard(self) -> Lock:
        """Return the lock for opening; a fork may have copied it while a thread held it."""
        if self._pid != os.getpid():
            self._lock, self._pid = Lock(), os.getpid()
        return self._lock

    def _opened(self, *, write: bool) -> Environment:
        """Return the open environment of the folder that is there now."""
        with self._guard():
            found = identity(self._path)
            environment = self._environment
            if environment is not None and (
                environment.key != found  # deleted, and perhaps made anew
                or write > self._is_writable
            ):
                self._close()
            if self._environment is None:
                self._environment = self._open(write=write)
                self._is_writable = write
            return self._environment

    def _open(self, *, write: bool) -> Environment:
        if not write:
            return self._open_files(write=False)
        os.makedirs(self._folder, exist_ok=True)
        # LMDB makes a data file where it finds none. Were the folder put aside between our look
        # and LMDB's, there would be two, and the beats in the first one would be lost.
        with FileLock(self._mending, shared=True):
            is_new = not os.path.isdir(self._path)
            environment = self._open_files(write=True)
            if is_new:
                self._remove_others()
            return environment

    def _open_files(self, *, write: bool) -> Environment:
        return open_environment(
            self._path, readonly=not write, create=write, map_size=MAP_SIZE, sync=False
        )

    def _close(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            environment.close()

    def _mend(self, work: Callable[[Transaction], None]) -> None:
        """Put the damaged folder aside, unless another process has just done so."""
        with self._guard():
            self._close()
            try:
                with FileLock(self._mending):
                    if self._is_damaged(work):
                        aside = os.path.join(self._folder, f"damaged-{os.urandom(8).hex()}")
                        os.rename(self._path, aside)
                        self._remove_others()
            except OSError:
                return

    def _is_damaged(self, work: Callable[[Transaction], None]) -> bool:
        """Try once more, while nobody can mend it: the number of a file may be used again."""
        try:
            environment = self._open_files(write=True)
            try:
                environment.update(work)
            finally:
                environment.close()
        except StoreError as error:
            return isinstance(error, StoreCorruptError)
        return False

    def _remove_others(self) -> None:
        """Remove what earlier boots left, and what was damaged."""
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if path != self._path and os.path.isdir(path):
                import shutil

                shutil.rmtree(path, ignore_errors=True)


def _end_key(lease: Lease, key: bytes) -> bytes:
    """Return the key of a lease in the index by end."""
    seconds = max(0, min(1e12, lease.seconds))  # whatever it is: it must not fail a beat
    end_us = lease.boottime_us + round(seconds * 1_000_000)
    return _EXPIRY + U64.pack(max(0, end_us)) + key


def _forget_end(txn: Transaction, key: bytes, present: tuple[StreamId, Lease] | None) -> None:
    """Remove the entry of a lease in the index by end."""
    if present is not None:
        txn.delete(_end_key(present[1], key))


def _moments(txn: Transaction) -> Iterator[tuple[bytes, bytes]]:
    for key, value in _between(txn, _MOMENT, _MOMENT + b"\xff"):
        if len(key) == _MOMENT_LENGTH:
            yield key, value


def _between(txn: Transaction, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys with `low` <= key < `high` and their values, in order."""
    cursor = txn.cursor()
    if not cursor.set_range(low):
        return
    for key, value in cursor:
        if key >= high:
            return
        yield key, value
