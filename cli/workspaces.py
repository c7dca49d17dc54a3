"""The workspace that a command works on, and its tasks. Changes neither."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.dropin.places import Workspace
    from tachograph.dropin.tasks import Tasks


def find_workspace(params: Params) -> Workspace:
    """Return the workspace that is meant. Raises WorkspaceNotFoundError, NoWorkspaceError."""
    import os
    from pathlib import Path

    from tachograph.dropin.places import find

    return find(params.workspace, os.environ, Path.cwd())


def open_workspace(params: Params, out: Output, *, create: bool = True) -> Tasks:
    """Return the tasks of the workspace, in the store of `--store` or its own.

    They belong to nobody's attempt. The store is closed when the command ends.
    """
    from tachograph.cli.opening import ACTOR
    from tachograph.dropin.callers import Caller
    from tachograph.dropin.opening import open_services
    from tachograph.dropin.tasks import Tasks

    workspace = find_workspace(params)
    services = open_services(workspace, create=create, store=out.store, actor=ACTOR)
    out.keep(services)
    return Tasks(services, workspace, Caller.outside())
