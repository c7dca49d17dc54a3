"""What another policy says of runs, for people and as JSON. Decides no content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.rejudging import DIFFERENT, LEFT_ALONE, REVISED, SAME, STATES, UNJUDGEABLE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.gate import Judgement
    from tachograph.domain.policy import Policy
    from tachograph.rejudging import Rejudged

_COLUMNS = ("RUN", "RECORDED", "RULE", "WOULD BE", "RULE", "WHY")
_APPLIED = ("RUN", "RECORDED", "RULE", "REVISED", "RULE", "WHY")


def show(found: Sequence[Rejudged], policy: Policy, out: Output, *, applied: bool) -> None:
    """Print what changes and what cannot be judged; the rest is counted."""
    counts = {state: sum(each.state == state for each in found) for state in STATES}
    if out.json:
        out.document(
            {
                "policy": policy.named(),
                "applied": applied,
                "counts": counts,
                "runs": [_shape(each) for each in found],
            }
        )
        return
    changed = [
        _row(each, each.judgement)
        for each in found
        if each.state in (DIFFERENT, REVISED) and each.judgement is not None
    ]
    if changed:
        out.table(_APPLIED if applied else _COLUMNS, changed)
    for each in found:
        if each.state in (UNJUDGEABLE, LEFT_ALONE):
            verb = "cannot be judged" if each.state == UNJUDGEABLE else "is skipped"
            out.note(f"{each.run_id} {verb}: {each.why}.")
    others = sum(each.other_rules for each in found)
    if others:
        out.warn(
            f"Other rules that are called {policy.id} {policy.version} too have judged {others} of "
            "these runs before. Give changed rules another version."
        )
    parts = [f"{count} {state}" for state, count in counts.items() if count or state == SAME]
    hint = " Add --apply and --reason to record it." if counts[DIFFERENT] and not applied else ""
    out.note(f"By policy {policy.id} {policy.version}: {', '.join(parts)}.{hint}")


def _row(each: Rejudged, judgement: Judgement) -> tuple[str, ...]:
    recorded = each.recorded or {}
    before = [str(recorded.get(name) or "-") for name in ("outcome", "rule")]
    after = [judgement.outcome, judgement.rule]
    if before == after:  # the reason code is all that differs
        before[0] += f" ({recorded.get('reason_code') or '-'})"
        after[0] += f" ({judgement.reason_code or '-'})"
    return (each.run_id, *before, *after, judgement.reason)


def _shape(each: Rejudged) -> dict[str, Any]:
    recorded, judgement = each.recorded, each.judgement
    return {
        "jobRunId": each.run_id,
        "state": each.state,
        "why": each.why,
        "otherRules": each.other_rules,
        "recorded": None
        if recorded is None
        else {
            "outcome": recorded["outcome"],
            "rule": recorded["rule"],
            "reasonCode": recorded["reason_code"],
            "reason": recorded["reason"],
            "version": recorded["version"],
        },
        "judged": None
        if judgement is None
        else {
            "outcome": judgement.outcome,
            "rule": judgement.rule,
            "ruleVersion": judgement.rule_version,
            "reasonCode": judgement.reason_code,
            "reason": judgement.reason,
        },
    }
