"""Kinds of values of `tachograph.toml`, for its models. Imports pydantic; reads no file."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tachograph.domain.errors import InvalidSpanError
from tachograph.domain.maintenance_plan import LONGEST_SECONDS
from tachograph.infra.clock import parse_span


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


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Text = Annotated[str, AfterValidator(_text)]
Path = Annotated[str, Field(min_length=1), AfterValidator(_text)]
Variable = Annotated[str, AfterValidator(_variable)]
Words = Annotated[list[Text], Field(min_length=1), AfterValidator(_program)]
Span = Annotated[int, BeforeValidator(_span)]
"""Microseconds, written as a text such as `20h`, or as seconds."""
Limit = Annotated[int, Field(gt=0), BeforeValidator(_span)]


def between(lowest_us: int, highest_us: int, words: str) -> AfterValidator:
    """Return what refuses lengths of time outside of these; `words` say which may be given."""

    def check(span_us: int) -> int:
        if not lowest_us <= span_us <= highest_us:
            raise ValueError(f"give {words}")
        return span_us

    return AfterValidator(check)


class Table(BaseModel):
    """A table of the file: nothing in it that is not known, and no type but the one meant."""

    model_config = ConfigDict(strict=True, extra="forbid")
