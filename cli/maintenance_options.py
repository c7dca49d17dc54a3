"""The options that the commands of maintenance share, as plain data. Imports nothing heavy."""

from __future__ import annotations

from tachograph.cli.options import FLAG, NUMBER, Option, flag

CONFIG = Option("--config", "The project's tachograph.toml.", metavar="FILE", complete="path")
BOUNDS = (
    CONFIG,
    flag("--dry-run", "Say what would be run; run and record nothing."),
    flag("--force", "Run steps whose guard has not expired, too."),
    flag("--full", "The same as --force."),
    Option("--verbose", "Say of each step what became of it.", kind=FLAG, short="-v"),
    Option("--max-runtime-min", "Begin no step after so long.", kind=NUMBER, metavar="MINUTES"),
    Option(
        "--summary-out",
        "Write the summary as JSON there; HM_SUMMARY without it.",
        metavar="FILE",
        complete="path",
    ),
    flag("--allow-skip", "With --force: a step asked for by name may be passed over."),
)
TIER_OPTIONS = (
    *BOUNDS,
    Option("--include", "Only these steps.", multiple=True, metavar="A,B"),
    Option("--exclude", "Not these steps.", multiple=True, metavar="A,B"),
)

DETAILS = """Ends with 0 when all went well, 1 when a step failed, 2 when one is still to be done
(no time left, a rate limit), and 3 when a step that was forced by name did not run. See
docs/maintenance.md.

A run that was cut off is continued by the same command with the same HM_RUN_ID, or by `tacho run
resume`: steps that did their work are not repeated."""
