"""Build what moves bodies out of the log: what bootstrap is to recording.

No light command imports it.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph import offloading
from tachograph.domain.errors import StoreExistsError, StoreFailedError
from tachograph.domain.records import ArchivedRecord, Problem
from tachograph.infra import body_archive_writing, store_folder
from tachograph.infra.body_archives import BodyArchives, DamagedError, name_of, number_of
from tachograph.infra.layout import digest_body, name_key, stream_key
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.lmdb_log import LMDBLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.run import Run
    from tachograph.infra.body_archives import Section
    from tachograph.infra.locks import FileLock
    from tachograph.offloading import Bodies, Offload, Offloaded, Written
    from tachograph.ports import EventLog, Progress


class Shelf:
    """The archives of bodies of a store, by run id. Satisfies the Archives port."""

    def __init__(self, folder: str) -> None:
        self.files = BodyArchives(store_folder.archive_folder(folder))

    def lock(self) -> FileLock:
        """Keep everybody else from writing or removing archives."""
        return body_archive_writing.lock(self.files)

    def write(self, number: int, runs: Sequence[tuple[str, Bodies]]) -> dict[str, Written]:
        """Write an archive, durable and read back; return the section of each run."""
        if Path(self.files.path(number)).exists():  # it may hold the only copy of some bodies
            raise StoreExistsError(self.files.path(number))
        keyed = [(name_key(run_id), bodies) for run_id, bodies in runs]
        try:
            written = body_archive_writing.write(self.files, number, keyed)
        except OSError as error:
            raise translate(error, self.files.folder) from error
        except DamagedError as error:
            raise StoreFailedError(self.files.path(number), str(error)) from error
        return {run_id: written[name_key(run_id)] for run_id, _ in runs}

    def section(self, name: str, run_id: str) -> dict[int, bytes] | None:
        """Return the digests of the bodies that an archive holds of a run, by position."""
        number = number_of(name)
        try:
            section = None if number is None else self.files.section(number, name_key(run_id))
            if number is None or section is None:
                return None
            return {at: digest_body(body) for at, body in self.files.bodies(number, section)}
        except (DamagedError, OSError):
            return None

    def name(self, number: int) -> str:
        """Return the file name of an archive."""
        return name_of(number)

    def number(self, name: str) -> int | None:
        """Return the number of the archive of that name."""
        return number_of(name)

    def clean(self, needed: set[int]) -> None:
        """Remove what killed writers left, and archives that are not needed."""
        for path in body_archive_writing.temporary_files(self.files):
            Path(path).unlink(missing_ok=True)
        for number in self.files.numbers():
            if number not in needed:
                body_archive_writing.remove(self.files, number)


def offload(
    services: Services,
    plans: Sequence[Offload],
    reason: str | None = None,
    progress: Progress | None = None,
) -> Offloaded:
    """Move the bodies of runs, as planned, into archives of an open store."""
    shelf = Shelf(services.folder)
    return offloading.apply(
        services.repository,
        services.log,
        shelf,
        plans,
        executing(services),
        reason=reason,
        progress=progress,
    )


def needed_archives(log: LMDBLog) -> list[int]:
    """Return the numbers of the archives that hold bodies of a log."""
    return sorted(log.archives())


def problems(store: str, log: LMDBLog) -> Iterator[Problem]:
    """Yield what is wrong with the archives that hold bodies of a log, each in itself."""
    files = BodyArchives(store_folder.archive_folder(store))
    for number in needed_archives(log):
        if not Path(files.path(number)).exists():
            yield Problem("archive", 0, f"{files.path(number)} is missing")
            continue
        for text in body_archive_writing.problems(files, number):
            yield Problem("archive", 0, f"{files.path(number)}: {text}")


def quick_look(services: Services) -> tuple[int, list[str], list[str]]:
    """Return how many archives there are, what is wrong at their ends, and which nobody needs."""
    files = BodyArchives(store_folder.archive_folder(services.folder))
    needed = services.log.archives()
    wrong = []
    for number, bodies in needed.items():
        try:
            files.sections(number)
        except (DamagedError, OSError) as error:
            problem = "is missing" if isinstance(error, FileNotFoundError) else str(error)
            wrong.append(f"{files.path(number)} {problem}: {bodies} bodies are lost")
    announced = offloading.needed(services.repository, services.log, Shelf(services.folder))
    unneeded = [files.path(number) for number in files.numbers() if number not in announced]
    return len(needed), wrong, unneeded


def surplus(store: str, log: EventLog) -> Iterator[tuple[str, str, int]]:
    """Yield what archives hold of streams whose bodies there the log says were erased.

    Each is the path of the archive, the stream's id, and how many bodies. An older copy of the
    file was put back, or it was never written anew. Archives that cannot be read hold nothing
    here.
    """
    files = BodyArchives(store_folder.archive_folder(store))
    for number in files.numbers():
        try:
            sections = files.sections(number)
        except (DamagedError, OSError):
            continue
        for section in sections.values():
            stream = _erased_stream(log, section)
            if stream is not None:
                yield files.path(number), stream, section.records


def _erased_stream(log: EventLog, section: Section) -> str | None:
    """Return the stream of a section if it is erased in the log, where frames of it begin."""
    for frame in section.frames:
        for record in log.read(after=frame.first - 1, up_to=frame.first):
            own = stream_key(record.stream)[0] == section.key
            if own and record.absent and not isinstance(record, ArchivedRecord):
                return str(record.stream)
    return None


@contextmanager
def open_log(folder: str, bodies: BodyArchives | None = None) -> Iterator[LMDBLog]:
    """Open the log in a folder for reading, with the archives of the store it belongs to."""
    environment = open_environment(folder, create=False, readonly=True)
    try:
        yield LMDBLog(environment, bodies=bodies)
    finally:
        environment.close()


def executing(services: Services) -> Callable[[str, Callable[[Run, Any], None]], None]:
    """Return what gives a command to a run, again where another writer was first."""

    def execute(run_id: str, command: Callable[[Run, Any], None]) -> None:
        services.session(run_id, 0).execute(command)

    return execute
