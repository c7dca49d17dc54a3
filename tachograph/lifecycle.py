"""Build what archiving and cleaning need: what bootstrap is to recording."""

from __future__ import annotations

import os
from contextlib import suppress
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any

from tachograph import archiving
from tachograph.advising import status_shape
from tachograph.cleaning import Cleaner, clean
from tachograph.domain.errors import ArchiveDamagedError, StoreExistsError
from tachograph.infra import archive_writing, archives, removing, store_lines
from tachograph.infra.clock import now_us
from tachograph.infra.codec import Codec
from tachograph.infra.store_records import StoreRecords
from tachograph.looking import summary_of
from tachograph.storekeeping import line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tachograph.archiving import Planned, RunPlan
    from tachograph.bootstrap import Services
    from tachograph.cleaning import Cleaning, Kept
    from tachograph.domain.run import Run
    from tachograph.ports import Progress
    from tachograph.projections.views import ViewReader

    Fields = dict[str, Any]

FOLDER = "archives"
"""Where archives go unless told otherwise: a folder of the store."""
SUFFIX = ".tar.zst"


def planner(services: Services, to_json: Callable[[Any], str]) -> archiving.Planner:
    """Return what says what belongs in an archive. `to_json` gives the text of a run's card."""

    def card_of(run_id: str) -> tuple[str, str]:
        found = summary_of(services, run_id, report=lambda _error: None)
        return to_json(status_shape(found)) + "\n", found["status"]

    return archiving.Planner(
        services.log,
        StoreRecords(services.environment),
        Codec(keep_custom=True),
        services.blobs,
        to_line=lambda copy: store_lines.to_text(line(copy)),
        card=card_of,
        read_file=archive_writing.read_file,
    )


def archive(
    services: Services,
    plans: Sequence[RunPlan],
    folder: str | None = None,
    progress: Progress | None = None,
) -> tuple[str, str]:
    """Write one archive of all the runs, record it in each, and return its path and SHA-256.

    Never writes over a file: one of the same content, left by a killed process, is taken as it
    is, and where another one has the name of a run, the run's version is added to it. Raises
    StoreExistsError when that is taken, too, and FileChangedError.
    """
    folder = os.path.realpath(folder or os.path.join(services.folder, FOLDER))  # noqa: PTH118
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    names = file_names(plans, now_us())
    paths = [os.path.join(folder, name) for name in names]  # noqa: PTH118

    def write(manifest: bytes, members: Sequence[Planned]) -> tuple[str, str]:
        sources = [_source(member) for member in members]
        for path in paths:
            if _holds(path, manifest):
                return path, archives.sha256_of(path, progress)
            with suppress(StoreExistsError):
                return path, archive_writing.write(path, manifest, sources, progress=progress)
        raise StoreExistsError(paths[-1])

    return archiving.archive(plans, write, _execute(services))


def file_names(plans: Sequence[RunPlan], time_us: int) -> list[str]:
    """Return the names that an archive may have, the first that is free counts.

    Of one run it has the id, of several it says when it was made and how many there are.
    """
    if len(plans) == 1:
        run_id, version = plans[0].run_id, plans[0].fields["version"]
        return [f"{run_id}{SUFFIX}", f"{run_id}-{version}{SUFFIX}"]
    stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(time_us // 1_000_000))
    return [f"archive-{stamp}-{len(plans)}-runs{SUFFIX}"]


def _holds(path: str, manifest: bytes) -> bool:
    """Say whether there is a whole archive of this content."""
    try:
        return archives.read_manifest(path) == manifest and not problems(path)
    except (ArchiveDamagedError, OSError):
        return False


def contents(path: str) -> Fields:
    """Return what an archive says that it holds. Raises ArchiveDamagedError."""
    return archiving.from_manifest(path, archives.read_manifest(path))


def problems(path: str, progress: Progress | None = None) -> list[str]:
    """Return everything that is wrong with an archive; reads all of it."""
    try:
        manifest = archiving.from_manifest(path, archives.read_manifest(path, cut_off=True))
    except ArchiveDamagedError as error:
        return [str(error.args[1])]
    members = {
        member["name"]: archives.Member(member["name"], member["size"], member["sha256"])
        for member in manifest["members"]
    }
    return list(archives.problems(path, members, progress))


def plan_cleaning(
    services: Services,
    view: ViewReader,
    cards: Sequence[Fields],
    *,
    without_archive: bool = False,
    other_files: Callable[[Run], Iterable[str]] = lambda _run: (),
    progress: Progress | None = None,
) -> list[Cleaning]:
    """Return what cleaning would do to runs. Removes nothing."""
    cleaner = Cleaner(
        services.repository,
        check=removing.problem_with,
        contents=None if without_archive else _Contents(),
        other_files=other_files,
    )
    return cleaner.plan(view, cards, progress)


def apply_cleaning(
    services: Services,
    plans: Sequence[Cleaning],
    *,
    reason: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Remove what may go, and record it; return how many files could not be removed."""
    return clean(
        plans,
        remove=removing.remove,
        execute=_execute(services),
        reason=reason,
        progress=progress,
    )


class _Contents:
    """What the archives hold that runs say they are in; each is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Kept | str] = {}

    def __call__(self, location: str, sha256: str) -> Kept | str:
        key = (location, sha256)
        if key not in self._known:
            self._known[key] = _read(location, sha256)
        return self._known[key]


def _read(location: str, sha256: str) -> Kept | str:
    try:
        if archives.sha256_of(location) != sha256:
            return "is not what was written"
        return archiving.kept_files(contents(location))
    except ArchiveDamagedError:
        return "is damaged"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _source(member: Planned) -> archive_writing.Source:
    checked = archives.Member(member.name, member.size, member.sha256)
    return archive_writing.Source(checked, member.chunks, member.time_us)


def _execute(services: Services) -> Callable[[str, Callable[[Run, Any], None]], None]:
    def execute(run_id: str, command: Callable[[Run, Any], None]) -> None:
        services.session(run_id, 0).execute(command)

    return execute
