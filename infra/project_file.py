"""Find, read and validate `tachograph.toml`. Imports pydantic: only for commands that need it."""

from __future__ import annotations

import difflib
import os
import tomllib
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tachograph.domain.errors import (
    PlanError,
    ProjectFileError,
    ProjectFileNotFoundError,
    ScheduleError,
)
from tachograph.domain.maintenance_plan import Gate, MaintenancePlan, MaintenanceStep
from tachograph.domain.schedule import Schedule
from tachograph.infra.guarded_reading import read_guarded
from tachograph.infra.project_errors import explained, sentence
from tachograph.infra.project_models import ProjectModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.infra.project_models import MaintenanceModel, ScheduleModel, StepModel

NAME = "tachograph.toml"
VARIABLE = "TACHO_CONFIG"
MOST_READ = 16 << 20
"""Bytes of the largest file that is taken for a project's."""


class ProjectFile:
    """What a project has declared, as plain objects."""

    __slots__ = ("folder", "maintenance", "path", "schedules")

    def __init__(
        self, path: str, maintenance: MaintenancePlan, schedules: Mapping[str, Schedule]
    ) -> None:
        self.path = path
        self.folder = os.path.dirname(path)
        self.maintenance = maintenance
        self.schedules = dict(schedules)


def find(named: str | None, environment: Mapping[str, str], here: str, store: str | None) -> str:
    """Return the absolute path of the project's file.

    The first of these counts: the one that is named, TACHO_CONFIG, the nearest one from the
    folder `here` upwards, the one beside the store. Raises ProjectFileNotFoundError.
    """
    given = named or environment.get(VARIABLE)
    if given:
        path = os.path.join(here, os.path.expanduser(given))
        if not os.path.isfile(path):
            raise ProjectFileNotFoundError(path, "there, as it was named")
        return os.path.abspath(path)
    folder = os.path.abspath(here)
    while True:
        path = os.path.join(folder, NAME)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    looked = f"in {here} and the folders above"
    if store is not None:
        beside = os.path.join(os.path.dirname(os.path.abspath(store)), NAME)
        if os.path.isfile(beside):
            return beside
        looked += f", and beside the store {store}"
    raise ProjectFileNotFoundError(NAME, looked)


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
    except (PlanError, ScheduleError) as error:
        raise ProjectFileError(path, sentence(str(error))) from error
    return ProjectFile(os.path.abspath(path), plan, schedules)


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
