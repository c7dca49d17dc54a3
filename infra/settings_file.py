"""Read and validate a configuration file. Imports pydantic: only for a file that has changed."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from tachograph.domain.errors import SettingError
from tachograph.infra.settings import SETTINGS, Setting, refused, unknown


def parse(path: str, content: bytes) -> dict[str, Any]:
    """Return the settings of a TOML file.

    Raises SettingError, which names the file, the line or key, and what is allowed there.
    """
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(
            path, f"it is not TOML: {error}", "Write lines such as lease_seconds = 30."
        ) from error
    try:
        return model().model_validate(table).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise _explain(path, table, error) from error


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file, for editors."""
    return model().model_json_schema()


@cache
def model() -> type[BaseModel]:
    """Return the pydantic model of a configuration file, made from the table of settings."""
    fields: dict[str, Any] = {
        name: (_annotation(setting), Field(setting.default, description=setting.meaning))
        for name, setting in SETTINGS.items()
    }
    config = ConfigDict(strict=True, extra="forbid", title="Tachograph settings")
    return create_model("ConfigurationFile", __config__=config, **fields)


def _annotation(setting: Setting) -> Any:
    if setting.kind == "choice":
        return Literal[setting.choices]
    if setting.kind == "texts":
        return list[str]
    if setting.kind == "file":
        return str
    number = int if setting.kind == "whole" else int | float
    return Annotated[number, Field(ge=setting.lowest, le=setting.highest)]


def _explain(path: str, table: dict[str, Any], error: ValidationError) -> SettingError:
    """Say the first problem of the file in the words of the table of settings."""
    name = str(error.errors()[0]["loc"][0])
    if name not in SETTINGS:
        return unknown(path, name)
    return refused(path, SETTINGS[name], table[name])
