"""Read and validate `tachograph.toml`. Imports pydantic: only for commands that need it."""

from __future__ import annotations

import difflib
import os
import tomllib
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tachograph.domain.errors import PlanError, ProjectFileError, ScheduleError
from tachograph.domain.maintenance_plan import Gate, MaintenancePlan, MaintenanceStep
from tachograph.domain.schedule import Schedule
from tachograph.infra.declared_queues import queue_plan, repair_policy, thresholds
from tachograph.infra.guarded_reading import read_guarded
from tachograph.infra.project_errors import explained, sentence
from tachograph.infra.project_models import ProjectModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.domain.queue_thresholds import HealthThresholds
    from tachograph.domain.repair_policy import RepairPolicy
    from tachograph.infra.project_models import MaintenanceModel, ScheduleModel, StepModel

MOST_READ = 16 << 20
"""Bytes of the largest file that is taken for a project's."""


class ProjectFile:
    """What a project has declared, as plain objects."""

    __slots__ = ("folder", "health", "maintenance", "path", "queues", "repair", "schedules")

    def __init__(
        self,
        path: str,
        maintenance: MaintenancePlan,
        schedules: Mapping[str, Schedule],
        queues: QueuePlan,
        health: HealthThresholds,
        repair: RepairPolicy,
    ) -> None:
        self.path = path
        self.folder = os.path.dirname(path)
        self.maintenance = maintenance
        self.schedules = dict(schedules)
        self.queues = queues
        self.health = health
        self.repair = repair


def load(path: str) -> ProjectFile:
    """Read a project's file. Raises ProjectFileError, which names the place and what is wrong."""
    try:
        content = read_guarded(path, MOST_READ, follow_links=True)
    except OSError as error:
        raise ProjectFileError(path, f"it cannot be read: {error.strerror}.") from error
    return parse(path, content)


def parse(path: str, content: bytes) -> ProjectFile:
    """Return what the content of a project's file says. Raises ProjectFileError."""
    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProjectFileError(path, f"it is not TOML: {error}.") from error
    try:
        model = ProjectModel.model_validate(table)
    except ValidationError as error:
        raise ProjectFileError(path, sentence(explained(table, error))) from error
    folder = os.path.dirname(os.path.abspath(path))
    try:
        plan = _plan(model.maintenance, folder)
        schedules = _schedules(model.schedules)
        queues = queue_plan(model.queues)
        health = thresholds(model.health, queues)
    except (PlanError, ScheduleError) as error:
        raise ProjectFileError(path, sentence(str(error))) from error
    path = os.path.abspath(path)
    return ProjectFile(path, plan, schedules, queues, health, repair_policy(model.repair))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, for editors."""
    return ProjectModel.model_json_schema()


def _plan(model: MaintenanceModel, folder: str) -> MaintenancePlan:
    names = {step.name for step in model.steps}
    for name in model.guards:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise PlanError(f"maintenance.guards: {name!r} is no step.{hint}")
    return MaintenancePlan(
        [_step(step, model.guards.get(step.name), folder) for step in model.steps],
        max_runtime_seconds=_seconds(model.max_runtime),
        rate_limit_max_retries=model.rate_limit_max_retries,
        cooldown_seconds=model.cooldown / 1_000_000,
        auto_resume=model.auto_resume,
    )


def _step(model: StepModel, guard_us: int | None, folder: str) -> MaintenanceStep:
    gate = model.gate
    return MaintenanceStep(
        model.name,
        model.tier,
        guard_us=model.guard if guard_us is None else guard_us,
        llm=model.llm,
        depends_on=model.depends_on,
        gate=Gate(opened=gate)
        if isinstance(gate, bool)
        else Gate(variable=gate.env, equals=gate.equals),
        once=model.once,
        timeout_seconds=_seconds(model.timeout),
        command=model.command,
        job=model.job,
        working_folder=os.path.normpath(
            os.path.join(folder, os.path.expanduser(model.working_folder))
        ),
        environment=model.environment,
        expect_output=model.expect_output,
    )


def _schedules(models: Mapping[str, ScheduleModel]) -> dict[str, Schedule]:
    found = {name: _schedule(name, each) for name, each in models.items()}
    by_job: dict[str, str] = {}
    for name, schedule in found.items():
        other = by_job.setdefault(schedule.job, name)
        if other != name:  # they would share log, ledger, guard and lock
            raise ScheduleError(
                name,
                f"its job is called {schedule.job!r}, as that of schedule {other!r}: give one of "
                "them another name, or a command, or put both times into one schedule",
            )
    return found


def _schedule(name: str, model: ScheduleModel) -> Schedule:
    from tachograph.infra import cron_times

    if (model.command is None) == (model.maintenance is None):
        raise ScheduleError(name, "give either a command or maintenance")
    made = Schedule(
        name,
        model.cron,
        timezone=model.timezone,
        command=model.command,
        maintenance=model.maintenance,
        catch_up=model.catch_up,
    )
    cron_times.check(made)
    return made


def _seconds(span_us: int | None) -> float | None:
    return None if span_us is None else span_us / 1_000_000
