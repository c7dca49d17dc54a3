"""What `tachograph.toml` can say, as models. Imports pydantic; reads no file.

A new part of the file is a model, a field of ProjectModel, and what makes plain objects of it in
`project_file`; nothing else has to know of it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tachograph.infra.health_models import HealthModel
from tachograph.infra.model_parts import Limit, Name, Path, Span, Table, Text, Variable, Words
from tachograph.infra.queue_models import QueueModel, QueueName
from tachograph.infra.repair_models import RepairModel

Tier = Literal["cycle", "nightly"]
Queues = dict[QueueName, QueueModel]
LlmTier = Literal["none", "local", "nano", "maintenance", "default", "heavy", "embed"]


def _kind_of_gate(value: object) -> str | None:
    if isinstance(value, bool):
        return "switch"
    return "table" if isinstance(value, dict | GateModel) else None


class GateModel(Table):
    """When a step is switched on, by an environment variable."""

    env: Variable = Field(description="Name of the variable.")
    equals: str | None = Field(
        None, description="Its value; without it, the variable has to be set and not empty."
    )


_Gate = Annotated[
    Annotated[bool, Tag("switch")] | Annotated[GateModel, Tag("table")],
    Discriminator(
        _kind_of_gate,
        custom_error_type="gate",
        custom_error_message='Give true, false, or a table such as { env = "NAME" }',
    ),
]


class StepModel(Table):
    """A maintenance step."""

    name: Name = Field(description="What tells the step from the others.")
    tier: Tier = Field(description="Which runs it is part of.")
    guard: Span = Field(0, description="How long it is not due again; 0: always due.")
    llm: LlmTier = Field("none", description="The language model it asks.")
    depends_on: list[Name] = Field([], description="Steps that have to be done before.")
    gate: _Gate = Field(default=True, description="When it is switched on.")
    once: bool = Field(default=False, description="Done for good when it is done.")
    timeout: Limit | None = Field(None, description="How long it may take.")
    command: Words | None = Field(None, description="What is run: a list of words, no shell.")
    job: Path | None = Field(
        None, description="Or a Python function: module:function, or an entry point."
    )
    working_folder: Path = Field(".", description="Where it is run; counts from the file.")
    environment: dict[Variable, Text] = Field({}, description="Variables for it.")
    expect_output: list[Path] = Field([], description="Files it has to write.")


class MaintenanceModel(Table):
    """Maintenance: steps, and the bounds of a run."""

    max_runtime: Limit | None = Field(None, description="When no further step is begun.")
    rate_limit_max_retries: int = Field(
        2, ge=1, description="Steps in a row that a rate limit stops before providers are left."
    )
    cooldown: Span = Field(30_000_000, description="Pause between steps that ask a provider.")
    auto_resume: bool = Field(
        default=False, description="Whether the watchdog takes up a run that was cut off."
    )
    guards: dict[Name, Span] = Field({}, description="Other guard intervals, by step.")
    steps: list[StepModel] = Field([], description="The steps.")


class ScheduleModel(Table):
    """When something is called."""

    cron: str = Field(description="Five fields: minute, hour, day, month, day of the week.")
    timezone: str | None = Field(None, description="Such as Europe/Berlin; the machine's without.")
    command: Words | None = Field(None, description="What is called.")
    maintenance: Literal["cycle", "nightly", "full"] | None = Field(
        None, description="Or the maintenance that is run."
    )
    catch_up: bool = Field(
        default=False, description="Make up for a time that the machine was off (systemd only)."
    )


class ProjectModel(Table):
    """tachograph.toml."""

    maintenance: MaintenanceModel = Field(
        default_factory=lambda: MaintenanceModel.model_validate({}), description="Its maintenance."
    )
    schedules: dict[Name, ScheduleModel] = Field({}, description="What is called, and when.")
    queues: Queues = Field(
        {}, description="Its queues of jobs; memory and summary where it declares none."
    )
    health: HealthModel = Field(
        default_factory=lambda: HealthModel.model_validate({}),
        description="When health suffers.",
    )
    repair: RepairModel = Field(
        default_factory=lambda: RepairModel.model_validate({}),
        description="What maintenance may repair.",
    )
