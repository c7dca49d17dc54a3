"""Three queues on SQLite, set up alike: an acknowledged job is synced to the disk.

All keep their journal as a write-ahead log, as they do by themselves, with `synchronous=FULL`:
litequeue's own setting, NORMAL, does not sync a commit. Imports each library when it is opened.
"""

from __future__ import annotations

import fcntl
import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FULL = 2
"""What `PRAGMA synchronous` gives where every commit is synced."""
BUSY_SECONDS = 60
"""How long a process waits for another one's commit before it gives up."""


class HueyQueue:
    """huey. Taking a job deletes it, so one that was taken by a killed worker is gone."""

    NAME = "huey"

    def __init__(self, folder: Path) -> None:
        from huey import SqliteHuey

        logging.getLogger("huey").setLevel(logging.CRITICAL)
        path = str(folder / "huey.db")
        self._huey = SqliteHuey("bench", filename=path, fsync=True, timeout=BUSY_SECONDS)
        self._task = self._huey.task(name="work")(_work)
        _require_full(self._huey.storage.conn)

    def put(self, payload: dict[str, Any]) -> None:
        """Enqueue a job."""
        self._task(payload)

    def take(self) -> Any:
        """Return the next job, None when there is none."""
        return self._huey.dequeue()

    def number(self, taken: Any) -> int:
        """Return which job was taken."""
        return int(taken.args[0]["number"])

    def end(self, taken: Any) -> None:
        """Do the job as its worker does; it returns nothing, so no result is kept."""
        self._huey.execute(taken)

    def take_back(self) -> None:
        """Free the jobs of dead workers: there are none left."""


class PersistQueue:
    """persist-queue with acknowledgements.

    `get` reads, then writes, and nothing keeps another process from reading the same job
    between: without the lock file here, four processes do some jobs twice.
    """

    NAME = "persist-queue"

    def __init__(self, folder: Path) -> None:
        from persistqueue import SQLiteAckQueue

        self._queue = SQLiteAckQueue(
            str(folder / "persist-queue"),
            auto_resume=False,
            multithreading=True,
            timeout=BUSY_SECONDS,
        )
        self._lock = folder / "persist-queue.lock"
        connections: list[Any] = [self._queue._getter, self._queue._putter]
        for connection in connections:
            connection.execute(f"PRAGMA synchronous = {FULL}")
            _require_full(connection)

    def put(self, payload: dict[str, Any]) -> None:
        """Enqueue a job."""
        self._queue.put(payload)

    def take(self) -> Any:
        """Return the next job, None when there is none."""
        from persistqueue import Empty

        with _locked(self._lock):
            try:
                return self._queue.get(block=False, raw=True)
            except Empty:
                return None

    def number(self, taken: Any) -> int:
        """Return which job was taken."""
        return int(taken["data"]["number"])

    def end(self, taken: Any) -> None:
        """Acknowledge the job."""
        self._queue.ack(id=taken["pqid"])

    def take_back(self) -> None:
        """Free the jobs of dead workers, and of living ones: it cannot tell them apart."""
        self._queue.resume_unack_tasks()


class LiteQueue:
    """litequeue."""

    NAME = "litequeue"

    def __init__(self, folder: Path) -> None:
        import litequeue

        self._queue = litequeue.LiteQueue(str(folder / "litequeue.db"), timeout=BUSY_SECONDS)
        self._queue.conn.execute(f"PRAGMA synchronous = {FULL}")
        _require_full(self._queue.conn)

    def put(self, payload: dict[str, Any]) -> None:
        """Enqueue a job."""
        self._queue.put(json.dumps(payload))

    def take(self) -> Any:
        """Return the next job, None when there is none."""
        return self._queue.pop()

    def number(self, taken: Any) -> int:
        """Return which job was taken."""
        return int(json.loads(taken.data)["number"])

    def end(self, taken: Any) -> None:
        """Mark the job as done."""
        self._queue.done(taken.message_id)

    def take_back(self) -> None:
        """Free the jobs of dead workers, and of living ones: it cannot tell them apart."""
        for message in list(self._queue.list_locked(-1)):
            self._queue.retry(message.message_id)


PEERS = {each.NAME: each for each in (HueyQueue, PersistQueue, LiteQueue)}


def _work(_payload: dict[str, Any]) -> None:
    """Do nothing."""


def _require_full(connection: Any) -> None:
    (found,) = tuple(connection.execute("PRAGMA synchronous").fetchone())
    if found != FULL:
        raise RuntimeError(f"PRAGMA synchronous is {found}: commits are not synced")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
