"""Bring the artifact files of runs up to the log at their end, where the settings want them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output


def at_end(services: Services, run_ids: Iterable[str], out: Output) -> None:
    """Write the files of runs that have ended; what is wrong with them ends nothing else.

    Costs nothing where the settings name no folder.
    """
    if services.settings.artifacts_folder is None:
        return
    from tachograph.artifact_trees import follower

    for run_id in run_ids:
        if not services.log.stream_version(run_id):
            continue  # it could not be recorded, and that was said
        found = follower(services, run_id, lambda text: out.warn(f"tacho: {text}"))
        if found is not None:
            found.stop()
