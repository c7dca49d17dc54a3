"""`tacho cron install`: let the machine call what is scheduled, by systemd or cron."""

from __future__ import annotations

from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.options import Argument, Option, Spec, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.schedule import Schedule
    from tachograph.infra.timers import Change

KINDS = ("auto", "systemd", "cron")
KIND = Option("--kind", "What calls it.", choices=KINDS, default="auto")
APPLY = flag("--apply", "Do it; without it, it is only said what would be done.")

SPEC = Spec(
    "Let the machine call what is scheduled.",
    Argument("name", "The schedule; all without it.", required=False, metavar="NAME"),
    KIND,
    APPLY,
    CONFIG,
    details="""Writes systemd timers of your own, or lines of your crontab where there is no
systemd; each calls `tacho cron exec --job NAME`. Without a NAME, what was installed from the same
file and is declared no more is removed. Nothing else is changed, and doing it again changes
nothing.

A crontab knows no time zones: a schedule of another zone than the machine's is refused there.
systemd knows them.""",
)


def run(params: Params, out: Output) -> None:
    """Install them, and say what was done, or would be."""
    import os

    from tachograph.bootstrap import find
    from tachograph.cli.cron_scheduling import called, meant
    from tachograph.cli.projects import project
    from tachograph.infra import clock, schedule_timers, timers

    declared = project(params, out)
    store, _ = find(out.store)
    now_us, dry_run = clock.now_us(), not params.apply
    schedules = meant(declared, params.name)
    kind = schedule_timers.choose(params.kind, os.environ)
    # All plans first: what one schedule is refused for leaves nothing half installed.
    plans = [
        schedule_timers.plan(
            kind,
            schedule,
            called(schedule, store, declared.path),
            os.environ,
            config=declared.path,
            now_us=now_us,
        )
        for schedule in schedules
    ]
    changes = [
        (schedule.name, timers.install(planned, dry_run=dry_run))
        for schedule, planned in zip(schedules, plans, strict=True)
    ]
    if params.name is None:
        keeping = {planned.mark for planned in plans}
        for mark in schedule_timers.installed(os.environ, declared.path):
            if mark not in keeping:
                name = schedule_timers.name_of(os.environ, declared.path, mark) or mark
                gone = schedule_timers.remove("auto", mark, os.environ, dry_run=dry_run)
                changes += [(name, change) for change in gone]
    show(changes, out, dry_run=dry_run)
    for schedule in schedules:
        for text in _warnings(schedule, kind, now_us):
            out.note(text)
        for other in schedule_timers.elsewhere(os.environ, declared.path, schedule, kind):
            out.note(
                f"{schedule.name}: it is called by {other} as well: "
                f"tacho cron uninstall {schedule.name} --kind {other} --apply"
            )
    if any(change.action == timers.INSTALLED for _, change in changes) and kind == timers.SYSTEMD:
        out.note(timers.LINGER)


def show(changes: list[tuple[str, Change]], out: Output, *, dry_run: bool) -> None:
    """Print changes, by the name of their schedule."""
    import shlex

    if out.json:
        out.document({"changes": [_as_json(*each, dry_run=dry_run) for each in changes]})
        return
    would = "would be " if dry_run else ""
    for name, change in changes:
        out.line(f"{name}: {change.kind}: {would}{change.action}")
        for text in (*change.files, *change.lines, *map(shlex.join, change.commands)):
            out.line(f"  {text}")
    if not changes:
        out.note("There is nothing to change.")
    elif dry_run:
        out.note("Nothing was changed: add --apply.")


def _as_json(name: str, change: Change, *, dry_run: bool) -> dict[str, Any]:
    from tachograph.cli.watchdog_install import as_json

    return {"schedule": name, **as_json(change, dry_run=dry_run)}


def _warnings(schedule: Schedule, kind: str, now_us: int) -> list[str]:
    """Say what the machine's timers do otherwise than `tacho cron next` says."""
    from tachograph.infra import cron_times, timers

    found = []
    if schedule.catch_up and kind == timers.CRON:
        found.append(f"{schedule.name}: cron makes up for no time that the machine was off.")
    # A time that comes twice needs no word: all of them take the first.
    skipped = [each for each in cron_times.clock_changes(schedule, now_us) if each.skipped]
    for change in skipped[:1]:
        due = f"{cron_times.local(schedule, change.due_us):%H:%M %Z}"
        leaves_out = "a systemd timer leaves" if kind == timers.SYSTEMD else "some crons leave"
        found.append(
            f"{schedule.name}: {change.wanted:%Y-%m-%d %H:%M} does not exist in "
            f"{cron_times.zone_of(schedule)}: it is due at {due}, and {leaves_out} it out. "
            "A time that every day has is safer."
        )
    return found
