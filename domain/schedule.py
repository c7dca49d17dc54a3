"""When something is to be called again and again, as a project has declared it. Knows no clock."""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Schedule(_Fields):
    """A schedule.

    `cron` are the five fields of a crontab line, read in `timezone` (a name such as
    `Europe/Berlin`; None for the machine's own). What is called is `command`, or a run of
    maintenance: `maintenance` is `cycle`, `nightly` or `full`.
    """

    __slots__ = ("catch_up", "command", "cron", "maintenance", "name", "timezone")

    def __init__(
        self,
        name: str,
        cron: str,
        *,
        timezone: str | None = None,
        command: Sequence[str] | None = None,
        maintenance: str | None = None,
        catch_up: bool = False,
    ) -> None:
        self.name = name
        self.cron = " ".join(cron.split())
        self.timezone = timezone
        self.command = None if command is None else list(command)
        self.maintenance = maintenance
        self.catch_up = catch_up
        """Whether a time that the machine was off is made up for, once, where that is possible."""

    @property
    def job(self) -> str:
        """The name of the cron job, as the harness and its files know it."""
        return f"maintenance-{self.maintenance}" if self.maintenance is not None else self.name
