"""The project's file that a command works with. Decides nothing about what it says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.bootstrap import find
from tachograph.infra import project_file, project_place

if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.infra.project_file import ProjectFile


def project_path(params: Params, out: Output) -> str:
    """Return the path of the project's file that counts. Raises ProjectFileNotFoundError."""
    store, _ = find(out.store)
    return project_place.find(params.config, os.environ, str(Path.cwd()), store)


def project(params: Params, out: Output) -> ProjectFile:
    """Return what that file says. Raises ProjectFileNotFoundError, ProjectFileError."""
    return project_file.load(project_path(params, out))
