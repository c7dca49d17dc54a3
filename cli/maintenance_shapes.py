"""The JSON of the commands of maintenance and schedules, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.artifact_shapes import OrchestratorStep
from tachograph.cli.reading_shapes import Moment, Shape
from tachograph.cli.timer_shapes import TimerChange


class DoneStep(OrchestratorStep):
    """A step of the run."""


class MaintenanceCounts(Shape):
    """How many steps ended how."""

    ok: int
    skipped: int
    deferred: int
    failed: int = Field(description="Those that a rate limit stopped included.")
    rate_limited: int


class MaintenanceDone(Shape):
    """`maintenance cycle`, `nightly`, `full` and `step`: the summary of the run."""

    schema_version: Literal[1]
    run_id: str = Field(description="`dry-run` for one that was not run.")
    job: str | None = Field(None, description="HM_JOB.")
    tier_label: Literal["cycle", "nightly", "full"]
    started_at: Moment
    finished_at: Moment
    duration_ms: int
    exit_code: Literal[0, 1, 2]
    summary_line: str
    steps: list[DoneStep]
    counts: MaintenanceCounts
    run_digest: str | None = Field(
        None, description="Digest of the run's first event; none of a run that was not run."
    )


class MaintenanceStepRow(Shape):
    """A maintenance step, in `maintenance steps`."""

    name: str
    tier: Literal["cycle", "nightly"]
    guard_interval_ms: int
    cadence: str
    llm_tier: str
    depends_on: list[str]
    feature_gate: bool = Field(description="Whether it has a gate that can shut it.")
    last_run_at: Moment | None = Field(description="When it did its work the last time.")
    next_eligible_at: Moment | None = Field(description="Null: at once, or never again.")
    eligible_now: bool


class DueTime(Shape):
    """A time at which a schedule is due."""

    local: str = Field(description="In the time zone of the schedule, with its offset.")
    utc: Moment
    clock_change: str | None = Field(description="What a change of the clocks did to it.")


class DueSchedule(Shape):
    """A schedule, and when it is due."""

    name: str
    cron: str
    timezone: str
    job: str
    times: list[DueTime]


class CronNext(Shape):
    """`cron next`."""

    since: Moment = Field(alias="from")
    schedules: list[DueSchedule]


class ScheduleChange(TimerChange):
    """What was done with a schedule, or would be."""

    schedule: str = Field(description="Its name; its mark when nothing says its name any more.")


class SchedulesChanged(Shape):
    """`cron install` and `cron uninstall`."""

    changes: list[ScheduleChange]


MAINTENANCE: dict[str, TypeAdapter[Any]] = {
    "maintenance-cycle": TypeAdapter(MaintenanceDone),
    "maintenance-nightly": TypeAdapter(MaintenanceDone),
    "maintenance-full": TypeAdapter(MaintenanceDone),
    "maintenance-step": TypeAdapter(MaintenanceDone),
    "maintenance-steps": TypeAdapter(list[MaintenanceStepRow]),
    "cron-next": TypeAdapter(CronNext),
    "cron-install": TypeAdapter(SchedulesChanged),
    "cron-uninstall": TypeAdapter(SchedulesChanged),
}
