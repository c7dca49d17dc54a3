"""Where things are in an OpenClaw workspace, and what paths in a card mean. Writes nothing."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain.errors import TachographError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "OPENCLAW_WORKSPACE"
MARK = "AGENTS.md"
"""The file that makes a folder a workspace."""
RESUME_SCRIPT = "task_runtime_resume.py"
NO_COLON = frozenset("/\\.")


class WorkspaceNotFoundError(TachographError):
    """No folder says that it is a workspace."""

    template = (
        "There is no OpenClaw workspace: no AGENTS.md in {0} or above it. "
        "Set OPENCLAW_WORKSPACE, or name the workspace with --workspace."
    )


class NoWorkspaceError(TachographError):
    """The workspace that was named is no folder."""

    template = "{0} is no folder ({1}). Name the folder of an OpenClaw workspace."


class Workspace:
    """A workspace: a folder with AGENTS.md, scripts, cards and a store."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def cards(self) -> Path:
        """The folder of the card files."""
        return self.root / "data" / "task-runs"

    @property
    def scripts(self) -> Path:
        """The folder of the scripts."""
        return self.root / "scripts"

    @property
    def heartbeat(self) -> Path:
        """The file that says what to do at each heartbeat."""
        return self.root / "HEARTBEAT.md"

    @property
    def store(self) -> Path:
        """The folder of the workspace's own store."""
        return self.root / "data" / "tachograph"

    @property
    def resume_runner(self) -> str:
        """The script that runs an adapter."""
        return str(self.scripts / RESUME_SCRIPT)

    def card_file(self, task_id: str) -> Path:
        """Return where the card of a task is."""
        return self.cards / f"{task_id}.json"

    def path(self, written: str) -> Path:
        """Return what a path in a card means: `~` and variables expanded, relative to the root."""
        expanded = Path(os.path.expandvars(written.strip())).expanduser()
        return expanded if expanded.is_absolute() else self.root / expanded

    def adapter(self, written: str | None) -> str | None:
        """Return the absolute path of an adapter; a Python adapter (`module:function`) as it is."""
        if not written or not written.strip():
            return None
        name = written.strip()
        if ":" in name and not NO_COLON.intersection(name.partition(":")[2]):
            return name
        return str(self.path(name).resolve())


def find(named: str | Path | None, environment: Mapping[str, str], cwd: Path) -> Workspace:
    """Return the workspace: the named one, that of OPENCLAW_WORKSPACE, else the nearest upwards.

    Raises NoWorkspaceError or WorkspaceNotFoundError.
    """
    said, origin = (named, "--workspace") if named else (environment.get(VARIABLE), VARIABLE)
    if said:
        root = Path(said).expanduser().resolve()
        if not root.is_dir():
            raise NoWorkspaceError(str(root), origin)
        return Workspace(root)
    for folder in (cwd, *cwd.parents):
        if (folder / MARK).exists():
            return Workspace(folder)
    raise WorkspaceNotFoundError(str(cwd))


def of_store(folder: str, environment: Mapping[str, str]) -> Workspace | None:
    """Return the workspace that a store belongs to, None when it belongs to none.

    It does when it is in the place of a workspace's own store, or OPENCLAW_WORKSPACE names one.
    """
    root = Path(folder).parent.parent
    if Workspace(root).store == Path(folder) and (root / MARK).exists():
        return Workspace(root)
    named = environment.get(VARIABLE)
    if named and Path(named).expanduser().is_dir():
        return Workspace(Path(named).expanduser().resolve())
    return None


def runs_dispatcher(command: str | None) -> bool:
    """Say whether a resume command is the dispatcher itself, which needs an adapter.

    >>> runs_dispatcher("python3 /w/scripts/task_runtime_resume.py --task-id a")
    True
    """
    return command is not None and RESUME_SCRIPT in command


def expanded_words(command: str) -> list[str]:
    """Return the words of a command, with `~` and variables expanded. Raises ValueError."""
    words = shlex.split(command)
    return [os.path.expandvars(os.path.expanduser(word)) for word in words]  # noqa: PTH111
