"""Open the store of a workspace for a program of the drop-in, and say how its errors end it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tachograph.bootstrap import open_store
from tachograph.domain.errors import FencedError, RunOwnedError, StoreNotFoundError
from tachograph.dropin.callers import Caller
from tachograph.dropin.tasks import Tasks

if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.dropin.places import Workspace

ACTOR = "drop-in"
"""Who the events of the drop-in say caused them."""
FAILURE = 1
RESUME_FAILED = 2
FENCED = 6
LOCAL = ".tachograph"


def open_services(
    workspace: Workspace, *, create: bool = True, store: str | None = None, actor: str = ACTOR
) -> Services:
    """Open the store of a workspace: the named one, else that of TACHO_STORE, else its own."""
    if store is None and not os.environ.get("TACHO_STORE"):
        local = workspace.root / LOCAL
        folder = local if local.is_dir() else workspace.store
        if create:
            folder.parent.mkdir(parents=True, exist_ok=True)
        elif not folder.parent.is_dir():
            raise StoreNotFoundError(str(folder))
        store = str(folder)
    return open_store(store, create=create, actor=actor)


def open_tasks(workspace: Workspace, *, create: bool = True) -> Tasks:
    """Open the tasks of a workspace for whoever called this process."""
    services = open_services(workspace, create=create)
    return Tasks(services, workspace, Caller.of_this_process(os.environ))


def exit_code(error: BaseException, otherwise: int = FAILURE) -> int:
    """Return the exit code of an error: another attempt is at work, or something else."""
    return FENCED if is_fenced(error) else otherwise


def is_fenced(error: BaseException) -> bool:
    """Say whether an error means that another attempt owns the task."""
    return isinstance(error, FencedError | RunOwnedError)
