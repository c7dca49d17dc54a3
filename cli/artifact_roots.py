"""Where the artifact files of a store are, for commands that show, write or remove them."""

from __future__ import annotations

import os

from tachograph.cli.options import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.bootstrap import Services
    from tachograph.domain.run import Run


def root_of(services: Services, named: str | None = None) -> str | None:
    """Return the folder that was named, else the one of the setting `artifacts`; None for none."""
    if named is None:
        return services.settings.artifacts_folder
    if not named:
        raise UsageError("The folder for artifact files has no name.")
    return os.path.abspath(os.path.expanduser(named))  # noqa: PTH100, PTH111


def needed(services: Services) -> str:
    """Return the folder of the setting `artifacts`. Raises UsageError when it names none."""
    root = root_of(services)
    if root is None:
        raise UsageError(
            "Where are the artifact files? The setting `artifacts` names no folder: set it in "
            "the store's config file or as TACHO_ARTIFACTS."
        )
    return root


def finder(services: Services, run: Run) -> Callable[[str], str | None]:
    """Return what turns the name of a run's file into its path; None for one that is not there.

    It is looked for where the setting `artifacts` says, where a cron line was told to leave its
    files, and where those of cron lines are that were told nothing.
    """
    from tachograph.artifact_trees import roots
    from tachograph.infra.artifact_files import ArtifactFolder

    folders = [ArtifactFolder(root) for root in roots(services, run)]

    def find(name: str) -> str | None:
        return next((each.path(name) for each in folders if each.stamp(name) is not None), None)

    return find
