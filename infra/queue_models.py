"""What `tachograph.toml` can say of queues, as models. Imports pydantic; reads no file."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from tachograph.domain.errors import InvalidSpanError, InvalidValueError
from tachograph.domain.queue_settings import DAY_US, SECOND_US
from tachograph.domain.queued_job import MOST_ATTEMPTS, check_name
from tachograph.infra.clock import parse_span
from tachograph.infra.model_parts import Limit, Span, Table, Words, between

MOST_RATED = 1_000_000
"""Leases of a rate: so many times of leases have to be looked at."""


def _name(text: str) -> str:
    try:
        check_name("name", text)
    except InvalidValueError as error:
        raise ValueError(f"{text!r} is no name: {error.args[2]}") from None
    return text


def _rate(value: object) -> object:
    """Return the number and the microseconds of a rate such as `100/1m`."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\S.*)", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f'{value!r} is no rate such as "100/1m", "10/s" or "5/h"')
    count, span = int(found[1]), found[2].strip()
    try:
        period_us = parse_span(span if span[0].isdigit() else f"1{span}")
    except InvalidSpanError as error:
        raise ValueError(f'{span!r} is no length of time such as "1m": {error.args[1]}') from None
    if not 1 <= count <= MOST_RATED:
        raise ValueError(f"its number has to be from 1 to {MOST_RATED}")
    if not 1_000 <= period_us <= 31 * DAY_US:
        raise ValueError("its time has to be from 1ms to 31d")
    return count, period_us


def _code(text: str) -> str:
    name = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
    if not re.fullmatch(f"{name}:{name}", text):
        raise ValueError(f"{text!r} names no code: write module:name")
    return text


QueueName = Annotated[str, AfterValidator(_name)]
Code = Annotated[str, AfterValidator(_code)]
Attempts = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
Count = Annotated[int, Field(ge=1)]
Lease = Annotated[Span, between(10 * SECOND_US, DAY_US, "a time from 10s to 1d")]
Poll = Annotated[Span, between(SECOND_US // 10, 60 * SECOND_US, "a time from 100ms to 60s")]
Rated = Annotated[tuple[int, int], BeforeValidator(_rate), WithJsonSchema({"type": "string"})]


class BackoffModel(Table):
    """How long a job waits after it failed."""

    base: Limit = Field(SECOND_US, description="After the first failure; doubled by each further.")
    cap: Limit = Field(30 * SECOND_US, description="At most.")
    jitter: Span = Field(SECOND_US // 2, description="Up to so much more, at random.")

    @model_validator(mode="after")
    def _growing(self) -> Self:
        if self.cap < self.base:
            raise ValueError("its cap is less than its base: give a longer cap, or a shorter base")
        return self


class JobTypeModel(Table):
    """A type of jobs of a queue."""

    model: Code | None = Field(
        None, description="The pydantic model of their payloads: module:Class."
    )
    handler: Code | None = Field(None, description="What does the work: module:function.")
    command: Words | None = Field(None, description="Or an executable: a list of words, no shell.")
    timeout: Limit | None = Field(None, description="How long an attempt may take.")
    max_attempts: Attempts | None = Field(
        None, description="Attempts of these jobs; the queue's without."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.handler is not None and self.command is not None:
            raise ValueError("give either a handler or a command, not both")
        return self


class QueueModel(Table):
    """A queue of jobs."""

    max_attempts: Attempts = Field(3, description="Attempts until a job is dead.")
    lease: Lease = Field(
        300 * SECOND_US, description="How long a worker may be silent before its job is released."
    )
    poll: Poll = Field(2 * SECOND_US, description="How often an idle worker looks for jobs.")
    concurrency: Count | None = Field(
        None, description="Jobs at work at once, by all workers together."
    )
    per_key: Count = Field(1, description="Jobs of one concurrency key at work at once.")
    rate: Rated | None = Field(None, description='Jobs begun within a time, such as "100/1m".')
    backoff: BackoffModel = Field(
        default_factory=lambda: BackoffModel.model_validate({}),
        description="How long a job waits after it failed.",
    )
    keep_completed: Limit = Field(14 * DAY_US, description="How long completed jobs are kept.")
    keep_dead: Limit = Field(30 * DAY_US, description="How long dead jobs are kept.")
    types: dict[QueueName, JobTypeModel] = Field({}, description="Types of its jobs.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        for name, each in self.types.items():
            if (each.max_attempts or 0) > self.max_attempts:
                raise ValueError(
                    f"types.{name}.max_attempts is {each.max_attempts}, but its queue allows "
                    f"{self.max_attempts}: give the queue more, or the type fewer"
                )
        return self
