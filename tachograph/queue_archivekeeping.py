"""Build what keeps the archives of pruned jobs. Knows no rule of a queue."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain.errors import StoreFailedError
from tachograph.infra import body_archive_writing, store_folder
from tachograph.infra.body_archives import BodyArchives, DamagedError, name_of
from tachograph.infra.durable import sync_folder
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.queue_rows import id_key
from tachograph.infra.writing import write_atomically
from tachograph.queues.pruning import Pruner

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tachograph.bootstrap import Services
    from tachograph.infra.locks import FileLock
    from tachograph.queues.queueing import Queueing

    Bodies = Iterable[tuple[int, bytes]]

_NOTE = "pruning-"
"""Begins the name of a note, in the archive folder; the number of the archive follows."""


def pruner_of(services: Services, queueing: Queueing) -> Pruner:
    """Return what prunes jobs of an open store."""
    return Pruner(queueing, services.log, JobShelf(services.folder))


class JobShelf:
    """The archives of a store, by job id. Satisfies the Shelf port of `queues.pruning`."""

    def __init__(self, folder: str) -> None:
        self._files = BodyArchives(store_folder.archive_folder(folder))

    def lock(self) -> FileLock:
        """Keep everybody else from writing or removing archives."""
        return body_archive_writing.lock(self._files)

    def name(self, number: int) -> str:
        """Return the file name of an archive."""
        return name_of(number)

    def exists(self, number: int) -> bool:
        """Say whether there is an archive of that number."""
        return Path(self._files.path(number)).exists()

    def write(self, number: int, jobs: Sequence[tuple[str, Bodies]]) -> int:
        """Write an archive, durable and read back; return its size. One that is there goes."""
        keyed = [(id_key(job_id), bodies) for job_id, bodies in jobs]
        try:
            body_archive_writing.write(self._files, number, keyed)
            return Path(self._files.path(number)).stat().st_size
        except OSError as error:
            raise translate(error, self._files.folder) from error
        except DamagedError as error:
            raise StoreFailedError(self._files.path(number), str(error)) from error

    def remove(self, number: int) -> None:
        """Remove an archive that nothing refers to."""
        body_archive_writing.remove(self._files, number)
        self._files.forget()

    def bodies(self, number: int, job_id: str) -> dict[int, bytes]:
        """Return the bodies that an archive holds of a job; none of one that is damaged."""
        try:
            section = self._files.section(number, id_key(job_id))
            return {} if section is None else dict(self._files.bodies(number, section))
        except (DamagedError, OSError):
            return {}

    def note(self, number: int, job_ids: Sequence[str]) -> None:
        """Note, durably, which jobs are about to go into an archive."""
        try:
            write_atomically(self._note(number), "\n".join(job_ids) + "\n")
        except OSError as error:
            raise translate(error, self._files.folder) from error

    def forget(self, number: int) -> None:
        """Remove that note."""
        self._note(number).unlink(missing_ok=True)
        sync_folder(self._files.folder)

    def noted(self) -> dict[int, list[str]]:
        """Return the notes that killed processes left, and remove their temporary files."""
        folder = Path(self._files.folder)
        killed = [Path(path) for path in body_archive_writing.temporary_files(self._files)]
        for path in (*killed, *folder.glob(f".{_NOTE}*")):
            path.unlink(missing_ok=True)
        found = {}
        for path in sorted(folder.glob(f"{_NOTE}*")):
            with suppress(ValueError):
                found[int(path.name.removeprefix(_NOTE))] = path.read_text("utf-8").split()
        return found

    def _note(self, number: int) -> Path:
        return Path(self._files.folder) / f"{_NOTE}{number:012d}"
