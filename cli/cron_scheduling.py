"""What the commands of schedules share: which are meant, and what the machine is to call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain.errors import ScheduleNotFoundError

if TYPE_CHECKING:
    from tachograph.domain.schedule import Schedule
    from tachograph.infra.project_file import ProjectFile


def meant(declared: ProjectFile, name: str | None) -> list[Schedule]:
    """Return the schedule of a name, or all. Raises ScheduleNotFoundError."""
    known = declared.schedules
    if name is None:
        return list(known.values())
    if name not in known:
        there_are = ", ".join(known) or "none"
        raise ScheduleNotFoundError(name, declared.path, there_are)
    return [known[name]]


def called(schedule: Schedule, store: str, config: str) -> list[str]:
    """Return the command line of a schedule: it needs no PATH, folder or variable of ours."""
    # -P: nothing that lies in the folder it is called in stands in for a module of ours.
    ours = [sys.executable, "-P", "-m", "tachograph", "--store", str(Path(store).absolute())]
    harness = [*ours, "cron", "exec", "--job", schedule.job]
    if schedule.command is not None:
        return [*harness, "--", *schedule.command]
    # Steps that wait are no failure, and a call that comes while the last one is at work neither.
    maintenance = [*ours, "maintenance", str(schedule.maintenance), "--config", config]
    return [*harness, "--allow-skip", "--", *maintenance]
