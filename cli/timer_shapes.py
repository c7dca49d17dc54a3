"""The JSON of the commands that install and remove the watchdog, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Shape


class TimerChange(Shape):
    """What was done in one place, or would be."""

    kind: Literal["systemd", "cron", "auto"] = Field(
        description='Where; "auto" when nothing was found in any place.'
    )
    action: Literal["installed", "updated", "unchanged", "removed", "absent"]
    dry_run: bool = Field(description="Whether nothing was done, only told.")
    files: list[str] = Field(description="Unit files that were written or removed.")
    lines: list[str] = Field(description="Lines of the crontab that were written or removed.")
    commands: list[list[str]] = Field(description="Programs that were run.")


class WatchdogInstalled(TimerChange):
    """`watchdog install`."""

    interval_seconds: int
    command: list[str] = Field(description="The command line that is called.")


class WatchdogUninstalled(Shape):
    """`watchdog uninstall`."""

    changes: list[TimerChange]


TIMERS: dict[str, TypeAdapter[Any]] = {
    "watchdog-install": TypeAdapter(WatchdogInstalled),
    "watchdog-uninstall": TypeAdapter(WatchdogUninstalled),
}
"""Shape of what each command prints, by its words joined with dashes."""
