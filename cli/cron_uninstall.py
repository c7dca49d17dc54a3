"""`tacho cron uninstall`: remove what `cron install` made for a project's file."""

from __future__ import annotations

from tachograph.cli.cron_install import APPLY, KIND
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let the machine no longer call what is scheduled.",
    Argument("name", "The schedule; all without it.", required=False, metavar="NAME"),
    KIND,
    APPLY,
    CONFIG,
    details="""Removes what `tacho cron install` made from the same file, and nothing else: also
schedules that are declared no more.""",
)


def run(params: Params, out: Output) -> None:
    """Remove it, and say what was removed, or would be."""
    import os

    from tachograph.cli.cron_install import show
    from tachograph.cli.projects import project_path
    from tachograph.infra import schedule_timers

    config = project_path(params, out)  # not read: what it says may be wrong by now
    marks = schedule_timers.installed(os.environ, config)
    if params.name is not None:
        wanted = schedule_timers.mark_of(config, params.name)
        marks = [mark for mark in marks if mark == wanted]
    # Before they are removed: what is installed says what it is.
    names = {mark: schedule_timers.name_of(os.environ, config, mark) or mark for mark in marks}
    changes = [
        (names[mark], change)
        for mark in marks
        for change in schedule_timers.remove(
            params.kind, mark, os.environ, dry_run=not params.apply
        )
    ]
    show(changes, out, dry_run=not params.apply)
