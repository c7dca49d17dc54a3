"""Take ended jobs out of the lists, after their events are in an archive. Loses none.

The order is: which jobs are about to go is noted, the archive is on disk and read back, one
commit says of all of them where they are, and only then digests take the place of bodies in the
log. Whatever kills it, each body is in the log or in an archive that its job names, and the next
pruning takes up what was begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.errors import StoreExistsError
from tachograph.domain.queue_errors import JobStatusError
from tachograph.domain.queue_events import JobPruned
from tachograph.domain.records import Record, _Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import Protocol

    from tachograph.domain.errors import TachographError
    from tachograph.domain.event import Cause
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.offloading import BodyLog
    from tachograph.queues.queueing import Queueing

    Bodies = Iterable[tuple[int, bytes]]
    Check = Callable[[QueuedJob], None]
    """Raises what speaks against pruning a job, as it is within the commit."""

    class Shelf(Protocol):
        """Where the archives of jobs are written."""

        def lock(self) -> AbstractContextManager[object]:
            """Keep everybody else from writing or removing archives."""
            ...

        def name(self, number: int) -> str:
            """Return the file name of an archive."""
            ...

        def exists(self, number: int) -> bool:
            """Say whether there is an archive of that number."""
            ...

        def write(self, number: int, jobs: Sequence[tuple[str, Bodies]]) -> int:
            """Write an archive, durable and read back; return its size."""
            ...

        def remove(self, number: int) -> None:
            """Remove an archive that nothing refers to."""
            ...

        def bodies(self, number: int, job_id: str) -> dict[int, bytes]:
            """Return the bodies that an archive holds of a job; none of one that is damaged."""
            ...

        def note(self, number: int, job_ids: Sequence[str]) -> None:
            """Note, durably, which jobs are about to go into an archive."""
            ...

        def forget(self, number: int) -> None:
            """Remove that note."""
            ...

        def noted(self) -> dict[int, list[str]]:
            """Return the notes that killed processes left, and remove their temporary files."""
            ...


PAGE = 500
"""Bodies that one commit replaces by digests."""


class Pruned(_Fields):
    """The jobs that were pruned, why others were not, and the archive, None where there is none."""

    __slots__ = ("archive", "done", "refused", "written")

    def __init__(
        self, done: list[QueuedJob], refused: dict[str, TachographError], archive: str | None
    ) -> None:
        self.done = done
        self.refused = refused
        self.archive = archive
        self.written = 0
        """Bytes of the archive."""


class Pruner:
    """Prunes jobs of a store."""

    def __init__(self, queueing: Queueing, log: BodyLog, shelf: Shelf) -> None:
        self._queueing = queueing
        self._repository = queueing.repository
        self._log = log
        self._shelf = shelf

    def prune(
        self, job_ids: Sequence[str], reason: str, repair: str | None, check: Check
    ) -> Pruned:
        """Prune up to 1,000 jobs in one commit; what is refused of one does not concern others.

        A job that changed after its events were copied stays. Raises StoreFailedError, and
        StoreFullError, before anything was changed.
        """
        with self._shelf.lock():
            self._take_up()
            found = {job_id: self._records(job_id) for job_id in job_ids}
            # The head is in no earlier name: each archive is named by events after it.
            number = self._log.head().position
            written = self._archive(number, found)
            name = self._shelf.name(number)

            def command(job: QueuedJob, cause: Cause) -> None:
                check(job)
                records = found.get(job.id)
                if not records or job.version != records[-1].version:
                    raise JobStatusError(job.id, job.status, "pruned", "It has just changed.")
                job.prune(cause, reason, name, repair=repair)

            changed = self._queueing.change(list(found), command)
            if changed.done:
                going = [record for job in changed.done for record in _inline(found[job.id])]
                self._move(going, number)
            else:
                self._shelf.remove(number)
            self._shelf.forget(number)
        pruned = Pruned(changed.done, changed.refused, name if changed.done else None)
        pruned.written = written if changed.done else 0
        return pruned

    def take_up(self) -> None:
        """Finish what a killed process has begun."""
        with self._shelf.lock():
            self._take_up()

    def _archive(self, number: int, found: dict[str, list[Record]]) -> int:
        """Write the archive of some jobs; return its size."""
        if self._shelf.exists(number) and number in self._log.archives():
            raise StoreExistsError(self._shelf.name(number))  # it may hold the only copy of bodies
        self._shelf.note(number, list(found))
        try:
            return self._write(number, found)
        except BaseException:
            self._shelf.remove(number)
            self._shelf.forget(number)
            raise

    def _write(self, number: int, found: dict[str, list[Record]]) -> int:
        bodies = {job_id: _inline(records) for job_id, records in found.items()}
        return self._shelf.write(
            number,
            [
                (job_id, [(record.position, record.body) for record in records])
                for job_id, records in bodies.items()
                if records
            ],
        )

    def _move(self, records: Sequence[Record], number: int) -> None:
        positions = [record.position for record in records]
        for place in range(0, len(positions), PAGE):
            self._log.move_bodies(positions[place : place + PAGE], number)

    def _records(self, job_id: str) -> list[Record]:
        return list(self._repository.records(job_id))

    def _take_up(self) -> None:
        for number, job_ids in self._shelf.noted().items():
            going = {job_id: self._announced(job_id, number) for job_id in job_ids}
            going = {job_id: records for job_id, records in going.items() if records}
            if going:
                self._finish(number, going)
            elif self._shelf.exists(number) and number not in self._log.archives():
                self._shelf.remove(number)
            self._shelf.forget(number)

    def _finish(self, number: int, going: dict[str, list[Record]]) -> None:
        """Move the bodies that an archive holds; write it anew where it has gone since."""
        if not self._shelf.exists(number):
            self._write(number, going)
        for job_id, records in going.items():
            held = self._shelf.bodies(number, job_id)
            self._move([each for each in records if held.get(each.position) == each.body], number)

    def _announced(self, job_id: str, number: int) -> list[Record]:
        """Return what is in the log of a job before the event that names an archive."""
        name = self._shelf.name(number)
        records = self._records(job_id)
        for place in range(len(records) - 1, -1, -1):
            record = records[place]
            if record.topic == JobPruned.TOPIC and self._names(record, name):
                return _inline(records[:place])
        return []

    def _names(self, record: Record, name: str) -> bool:
        return type(record) is Record and self._repository.fields(record).get("archive") == name


def _inline(records: Sequence[Record]) -> list[Record]:
    """Return those of some records whose bodies are in the log."""
    return [each for each in records if type(each) is Record and not each.absent]
