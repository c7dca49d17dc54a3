"""`tacho watchdog install`: let the machine call the watchdog, by systemd or cron."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec, UsageError, flag
from tachograph.cli.watch_options import WATCHING, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.infra.timers import Change

KINDS = ("auto", "systemd", "cron")
KIND = Option("--kind", "What calls it.", choices=KINDS, default="auto")
DRY_RUN = flag("--dry-run", "Say what would be done, and do nothing.")
LEAST_SECONDS = 1

SPEC = Spec(
    "Let the machine call the watchdog for this store, again and again.",
    Option(
        "--interval", "Time between calls: seconds, or such as 5m.", default="60", metavar="TIME"
    ),
    KIND,
    DRY_RUN,
    *WATCHING,
    details="""Writes a systemd timer of your own, or a line of your crontab where there is no
systemd. Doing it again changes nothing, or what you ask for differently. Each store has its own.
Nothing else in the crontab is changed.

What is named here, or in the variables of `watchdog run`, becomes part of the command line that
is called; the secret of a webhook does not: name its file.""",
)


def run(params: Params, out: Output) -> None:
    """Install it, and say what was done."""
    import os

    from tachograph.infra import timers

    seconds = _interval(params.interval)
    store = open_store(out, read_only=True).folder
    command = watchdog_command(store, words(params))
    planned = timers.plan(params.kind, seconds, command, os.environ, store=store)
    change = timers.install(planned, dry_run=params.dry_run)
    if out.json:
        shown = {"intervalSeconds": seconds, "command": command}
        out.document({**as_json(change, dry_run=params.dry_run), **shown})
        return
    tell(change, out, dry_run=params.dry_run)
    others = [kind for kind in timers.where(os.environ, store=store) if kind != change.kind]
    for kind in others:
        out.note(f"It is called by {kind} as well: tacho watchdog uninstall --kind {kind}")
    if change.kind == timers.SYSTEMD and change.action == timers.INSTALLED:
        out.note(timers.LINGER)


def watchdog_command(store: str, options: list[str]) -> list[str]:
    """Return the command line that is installed: it needs no PATH, folder or variable."""
    import sys

    called = ["--store", store, "watchdog", "run", "--once", "--no-wait", *options]
    # -P: nothing that lies in the folder it is called in stands in for a module of ours.
    return [sys.executable, "-P", "-m", "tachograph", *called]


def as_json(change: Change, *, dry_run: bool) -> dict[str, Any]:
    """Return a change as it is printed."""
    return {
        "kind": change.kind,
        "action": change.action,
        "dryRun": dry_run,
        "files": change.files,
        "lines": change.lines,
        "commands": change.commands,
    }


def tell(change: Change, out: Output, *, dry_run: bool) -> None:
    """Print a change for people."""
    import shlex

    would = "would be " if dry_run else ""
    out.line(f"{change.kind}: {would}{change.action}")
    for text in (*change.files, *change.lines, *map(shlex.join, change.commands)):
        out.line(f"  {text}")


def _interval(text: str) -> int:
    from tachograph.infra.clock import parse_span

    seconds, rest = divmod(parse_span(text), 1_000_000)
    if rest or seconds < LEAST_SECONDS:
        raise UsageError(f"--interval is {text}: give whole seconds, at least {LEAST_SECONDS}.")
    return seconds
