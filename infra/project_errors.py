"""Say what is wrong with `tachograph.toml`: where, and what was meant perhaps. Refuses nothing."""

from __future__ import annotations

import difflib
import typing
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tachograph.infra.project_models import ProjectModel

if TYPE_CHECKING:
    from pydantic import ValidationError


def sentence(text: str) -> str:
    """Return a text with a full stop."""
    return text if text.endswith((".", "?")) else f"{text}."


def explained(table: dict[str, Any], error: ValidationError) -> str:
    """Say the first problem: where it is, what is wrong, and what was meant perhaps."""
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    where = _place(table, problem["loc"])
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        known = _fields_at(problem["loc"][:-1])
        near = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        return f"{where}: there is no {name!r}. {hint}There are {', '.join(known)}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {message}"


def _place(table: Any, loc: tuple[int | str, ...]) -> str:
    """Return where a problem is, with the name of the step instead of its number.

    The parts that pydantic adds for the branches of a union are in no file, and left out.
    """
    parts, found = [], table
    for part in loc:
        if isinstance(found, dict) and part in found:
            found = found[part]
            parts.append(str(part))
        elif isinstance(found, list) and isinstance(part, int) and part < len(found):
            found = found[part]
            named = found.get("name") if isinstance(found, dict) else None
            parts[-1:] = [f"{parts[-1]}[{part + 1}]" + (f" ({named})" if named else "")]
        elif part in _known_names():
            parts.append(str(part))  # it is missing there
    return ".".join(parts) or "the file"


@cache
def _known_names() -> frozenset[str]:
    models: list[type[BaseModel]] = [ProjectModel]
    for model in models:  # grows on the way
        for field in model.model_fields.values():
            models += [each for each in _models_in(field.annotation) if each not in models]
    return frozenset(name for model in models for name in model.model_fields)


def _fields_at(loc: tuple[int | str, ...]) -> list[str]:
    """Return the names that are known where a problem is."""
    model: type[BaseModel] = ProjectModel
    named = False
    for part in loc:
        field = None if named else model.model_fields.get(str(part))
        named = field is not None and typing.get_origin(field.annotation) is dict
        if field is not None:
            model = next(iter(_models_in(field.annotation)), model)
    return list(model.model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in typing.get_args(annotation) for model in _models_in(each)]
