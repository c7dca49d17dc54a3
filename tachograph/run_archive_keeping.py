"""Take a run out of the archives that `tacho run archive` put into a store.

Like bootstrap it knows both sides. The archives as they were stay until the new ones are whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph import archiving
from tachograph.domain.errors import ArchiveDamagedError
from tachograph.infra import archive_rewriting, archives, remains
from tachograph.infra.durable import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tachograph.bootstrap import Services
    from tachograph.domain.run import Run

    Execute = Callable[[str, Callable[[Run, Any], None]], None]

_PART = ".part"
_ERASED = "erased"
"""Status of a run that was erased before it was archived: there is nothing of it in the archive."""


def look(store: str, run_ids: Collection[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return which of some runs each archive in a store holds, and which archives are damaged."""
    holding: dict[str, list[str]] = {}
    damaged: list[str] = []
    for path in remains.run_archives(store):
        try:
            manifest = _manifest(path)
        except (ArchiveDamagedError, OSError):
            damaged.append(path)
            continue
        held = [
            run["jobRunId"]
            for run in manifest["runs"]
            if run["jobRunId"] in run_ids and run["status"] != _ERASED
        ]
        if held:
            holding[path] = held
    return holding, damaged


def leave(services: Services, run_id: str, execute: Execute) -> None:
    """Write the archives of runs in the store anew without a run, or remove them.

    The other runs record the new SHA-256 before the new file takes the place of the old one.
    """
    for path in look(services.folder, {run_id})[0]:
        manifest = _manifest(path)
        others = [run for run in manifest["runs"] if run["jobRunId"] != run_id]
        if others:
            _replace(services, Path(path), manifest, run_id, others, execute)
        else:
            remains.remove(path)


def _manifest(path: str) -> dict[str, Any]:
    return archiving.from_manifest(path, archives.read_manifest(path))


def _replace(
    services: Services,
    path: Path,
    manifest: dict[str, Any],
    run_id: str,
    others: list[dict[str, Any]],
    execute: Execute,
) -> None:
    mine = f"runs/{archiving.safe_name(run_id)}/"
    members = [each for each in manifest["members"] if not each["name"].startswith(mine)]
    document = {**manifest, "runs": others, "members": members}
    part = path.with_name(path.name + _PART)
    part.unlink(missing_ok=True)
    sha256 = archive_rewriting.write_part(
        str(path),
        str(part),
        (json.dumps(document, indent=1) + "\n").encode(),
        [archives.Member(each["name"], each["size"], each["sha256"]) for each in members],
    )
    for other in others:
        if services.log.stream_version(other["jobRunId"]):
            execute(other["jobRunId"], lambda run, why: run.archive(why, str(path), sha256))
    part.replace(path)
    sync_folder(str(path.parent))
