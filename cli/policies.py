"""What the commands about gate policies share: which one is meant, and how it is shown."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.policy import Policy, Rule

COLUMNS = ("RULE", "V", "WHEN", "OUTCOME", "REASON CODE")
ALWAYS = "always"


def meant(file: str | None, out: Output) -> tuple[Policy, str]:
    """Return the policy of a file, or the one in force, and where it comes from.

    Needs no store. Raises PolicyError and SettingError.
    """
    from tachograph.bootstrap import policy_in_force
    from tachograph.infra.policies import policy_of

    if file is not None:
        return policy_of(file), file
    return policy_in_force(out.store)


def rows(policy: Policy) -> list[tuple[str, ...]]:
    """Return a policy's rules as rows of COLUMNS."""
    return [
        (rule.id, str(rule.version), condition(rule), rule.outcome, rule.reason_code)
        for rule in policy.rules
    ]


def condition(rule: Rule) -> str:
    """Return when a rule holds, in one line."""
    return ", ".join(each.text for each in rule.conditions) or ALWAYS


def document(policy: Policy, origin: str) -> dict[str, Any]:
    """Return a policy for JSON."""
    return {
        **policy.named(),
        "origin": origin,
        "rules": [
            {
                "id": rule.id,
                "version": rule.version,
                "when": [each.text for each in rule.conditions],
                "outcome": rule.outcome,
                "reasonCode": rule.reason_code,
                "text": rule.text,
                "otherwise": rule.otherwise,
            }
            for rule in policy.rules
        ],
    }
