"""What `tachograph.toml` can say, as models. Imports pydantic; reads no file.

A new part of the file is a model, a field of ProjectModel, and what makes plain objects of it in
`project_file`; nothing else has to know of it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from tachograph.domain.errors import InvalidSpanError
from tachograph.domain.maintenance_plan import LONGEST_SECONDS
from tachograph.infra.clock import parse_span

Tier = Literal["cycle", "nightly"]
LlmTier = Literal["none", "local", "nano", "maintenance", "default", "heavy", "embed"]


def _span(value: object) -> object:
    """Return a length of time in microseconds; what makes no sense is left to pydantic."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value <= LONGEST_SECONDS:
            raise ValueError("give seconds from 0 on, at most 100 years of them")
        return round(value * 1_000_000)
    if isinstance(value, str):
        try:
            span_us = parse_span(value)
        except InvalidSpanError as error:
            raise ValueError(
                f'{value!r} is no length of time such as "20h": {error.args[1]}'
            ) from None
        if span_us > LONGEST_SECONDS * 1_000_000:
            raise ValueError(f"{value!r} is longer than 100 years")
        return span_us
    raise ValueError('give a length of time such as "20h", or seconds')  # pydantic's


def _text(value: str) -> str:
    """Refuse what no program can be given: the kernel ends every text at a NUL character."""
    if "\0" in value:
        raise ValueError("it holds a NUL character, which no program can be given")
    return value


def _variable(value: str) -> str:
    if not value.strip() or "=" in value:
        raise ValueError(f"{value!r} is no name of an environment variable")
    return _text(value)


def _program(words: list[str]) -> list[str]:
    if not words[0].strip():
        raise ValueError("its first word has to be a program")
    return words


def _kind_of_gate(value: object) -> str | None:
    if isinstance(value, bool):
        return "switch"
    return "table" if isinstance(value, dict | GateModel) else None


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
_Text = Annotated[str, AfterValidator(_text)]
_Path = Annotated[str, Field(min_length=1), AfterValidator(_text)]
_Variable = Annotated[str, AfterValidator(_variable)]
_Words = Annotated[list[_Text], Field(min_length=1), AfterValidator(_program)]
_Span = Annotated[int, BeforeValidator(_span)]
"""Microseconds, written as a text such as `20h`, or as seconds."""
_Limit = Annotated[int, Field(gt=0), BeforeValidator(_span)]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class GateModel(_Model):
    """When a step is switched on, by an environment variable."""

    env: _Variable = Field(description="Name of the variable.")
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


class StepModel(_Model):
    """A maintenance step."""

    name: _Name = Field(description="What tells the step from the others.")
    tier: Tier = Field(description="Which runs it is part of.")
    guard: _Span = Field(0, description="How long it is not due again; 0: always due.")
    llm: LlmTier = Field("none", description="The language model it asks.")
    depends_on: list[_Name] = Field([], description="Steps that have to be done before.")
    gate: _Gate = Field(default=True, description="When it is switched on.")
    once: bool = Field(default=False, description="Done for good when it is done.")
    timeout: _Limit | None = Field(None, description="How long it may take.")
    command: _Words | None = Field(None, description="What is run: a list of words, no shell.")
    job: _Path | None = Field(
        None, description="Or a Python function: module:function, or an entry point."
    )
    working_folder: _Path = Field(".", description="Where it is run; counts from the file.")
    environment: dict[_Variable, _Text] = Field({}, description="Variables for it.")
    expect_output: list[_Path] = Field([], description="Files it has to write.")


class MaintenanceModel(_Model):
    """Maintenance: steps, and the bounds of a run."""

    max_runtime: _Limit | None = Field(None, description="When no further step is begun.")
    rate_limit_max_retries: int = Field(
        2, ge=1, description="Steps in a row that a rate limit stops before providers are left."
    )
    cooldown: _Span = Field(30_000_000, description="Pause between steps that ask a provider.")
    auto_resume: bool = Field(
        default=False, description="Whether the watchdog takes up a run that was cut off."
    )
    guards: dict[_Name, _Span] = Field({}, description="Other guard intervals, by step.")
    steps: list[StepModel] = Field([], description="The steps.")


class ScheduleModel(_Model):
    """When something is called."""

    cron: str = Field(description="Five fields: minute, hour, day, month, day of the week.")
    timezone: str | None = Field(None, description="Such as Europe/Berlin; the machine's without.")
    command: _Words | None = Field(None, description="What is called.")
    maintenance: Literal["cycle", "nightly", "full"] | None = Field(
        None, description="Or the maintenance that is run."
    )
    catch_up: bool = Field(
        default=False, description="Make up for a time that the machine was off (systemd only)."
    )


class ProjectModel(_Model):
    """tachograph.toml."""

    maintenance: MaintenanceModel = Field(
        default_factory=lambda: MaintenanceModel.model_validate({}), description="Its maintenance."
    )
    schedules: dict[_Name, ScheduleModel] = Field({}, description="What is called, and when.")
