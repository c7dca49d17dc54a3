"""Read and validate a gate policy in TOML. Imports pydantic: only for a file that has changed."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tachograph.domain.default_policy import ID, default_policy
from tachograph.domain.errors import PolicyError
from tachograph.domain.outcome import OUTCOMES
from tachograph.domain.policy import Policy

_Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=100)]
_Code = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$", max_length=100)]
_Text = Annotated[str, Field(min_length=1, max_length=1_000)]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class RuleModel(_Model):
    """A rule: when all its conditions hold, it decides."""

    id: _Name = Field(description="What tells the rule from the others.")
    version: int = Field(1, ge=1, description="Raise it with every change of the rule.")
    when: list[str] = Field([], description="Conditions, such as `inputs >= 1`; all have to hold.")
    outcome: str = Field(
        description="One of the seven outcomes.", json_schema_extra={"enum": list(OUTCOMES)}
    )
    reason_code: _Code = Field(description="The reason for machines.")
    text: _Text = Field(description="The reason for people; {fact} is replaced by the fact.")
    otherwise: _Text | None = Field(None, description="What is said when it does not hold.")


class PolicyModel(_Model):
    """A gate policy."""

    id: _Name = Field(description="Name of the policy.")
    version: int = Field(ge=1, description="Raise it with every change of the rules.")
    extends: Literal["default", "nothing"] = Field(
        "default", description="`default`: the rules of Tachograph come after these."
    )
    without: list[str] = Field([], description="Rules of the default policy that do not count.")
    rules: list[RuleModel] = Field(min_length=1, description="The first rule that holds decides.")


def parse(path: str, content: bytes) -> dict[str, Any]:
    """Return a policy as plain values, those of the default policy included where it extends it.

    Raises PolicyError, which names the file, the rule and what is wrong.
    """
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PolicyError(path, f"it is not TOML: {error}") from error
    try:
        model = PolicyModel.model_validate(table)
    except ValidationError as error:
        raise PolicyError(path, _explained(table, error)) from error
    fields = {"id": model.id, "version": model.version, "rules": _rules(path, model)}
    return Policy.from_fields(fields, path).to_fields()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file, for editors."""
    return PolicyModel.model_json_schema()


def _rules(path: str, model: PolicyModel) -> list[dict[str, Any]]:
    if model.id == ID:
        raise PolicyError(path, f"the id {ID!r} belongs to the policy of Tachograph")
    own = [rule.model_dump() for rule in model.rules]
    if model.extends == "nothing":
        if model.without:
            raise PolicyError(path, "it extends nothing, so there is nothing to go without")
        return own
    base = default_policy()
    for rule_id in model.without:
        if base.rule(rule_id) is None:
            known = ", ".join(rule.id for rule in base.rules)
            raise PolicyError(path, f"the default policy has no rule {rule_id!r}: it has {known}")
    left_out = {*model.without, *(rule["id"] for rule in own)}
    return own + [rule.to_fields() for rule in base.rules if rule.id not in left_out]


def _explained(table: dict[str, Any], error: ValidationError) -> str:
    """Say the first problem, with the id of the rule that it is about."""
    problem = error.errors()[0]
    place = [str(part) for part in problem["loc"]]
    if len(place) > 1 and place[0] == "rules":
        rule, name = table["rules"][int(place[1])], f"number {int(place[1]) + 1}"
        if isinstance(rule, dict):
            name = rule.get("id", name)
        place = [f"rule {name!r}", *place[2:]]
    return f"{', '.join(place)}: {problem['msg']}"
