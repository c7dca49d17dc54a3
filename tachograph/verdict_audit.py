"""Explain the verdict of a run: its rule, its facts, what was ruled out, whether it follows.

Judges nothing anew and records nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph import evidence
from tachograph.audit_words import change_text, check_text, missing_text
from tachograph.domain import reasons, whatif
from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import MEANINGS
from tachograph.domain.outcome import is_terminal
from tachograph.explaining import who

if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.gate import Judgement
    from tachograph.domain.policy import Rule
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.recounting import Recount
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]


def nothing() -> Fields:
    """Return what is told of a run whose events cannot be read."""
    lists = ("facts", "excerpts", "ruled_out", "what_if")
    return {"judged": None, "check": None, "expected": None, **{name: [] for name in lists}}


def audit(
    recount: Recount,
    repository: RunRepository,
    payloads: Payloads,
    *,
    decided: bool,
    ended: bool,
) -> Fields:
    """Return what explains a verdict, or what the gate would conclude where there is none.

    `decided` says that the run ended by its verdict, `ended` that it has ended at all.
    """
    policy, judgement = recount.policy, recount.judgement
    rule = None if policy is None or judgement is None else policy.rule(judgement.rule)
    decided_by = rule if decided else None
    judged = _judged(recount)
    return {
        "judged": judged,
        "facts": evidence.facts(recount, repository),
        "excerpts": evidence.excerpts(recount, repository, payloads, whole=not decided),
        "expected": _expected(recount.run),
        "ruled_out": [] if decided_by is None else _ruled_out(recount, decided_by),
        "what_if": [] if decided_by is None else _what_if(recount),
        "check": _check(recount, judged, ended=ended),
    }


def _judged(recount: Recount) -> Fields | None:
    """Return the recorded verdict, its rule in words and condition by condition."""
    verdict = recount.verdict
    if verdict is None:
        return None
    names = ("outcome", "rule", "rule_version", "reason_code", "reason", "gate")
    rule = None if recount.policy is None else recount.policy.rule(verdict["rule"])
    return {
        **{name: verdict[name] for name in names},
        "meaning": reasons.meaning(verdict["reason_code"]),
        "rule_text": None if rule is None else rule.text,
        "conditions": [] if rule is None else _conditions(rule, recount),
        "policy": {
            **{name: verdict["policy"][name] for name in ("id", "version", "digest")},
            "problem": recount.policy_problem,
        },
        "by": who(verdict["by"]),
        **{name: verdict[name] for name in ("version", "position", "time_us")},
    }


def _expected(run: Run) -> Fields | None:
    """Return what the run is measured by, as it was declared."""
    if run.expectations is None:
        return None
    known = Expectations.from_fields(run.expectations)
    made = {artifact["path"] for artifact in run.artifacts.values()}
    return {
        "inputs": known.inputs,
        "extracted": known.extracted,
        "minimum_fraction": known.minimum_fraction,
        "deadline_us": known.deadline_us,
        "files": [{"path": path, "recorded": path in made} for path in known.files],
        "version": run.expectations_version,
    }


def _conditions(rule: Rule, recount: Recount) -> list[Fields]:
    return [
        {
            "condition": condition.text,
            "value": recount.facts.value(condition.fact),
            "against": condition.against(recount.facts) if len(condition.facts) > 1 else None,
            "state": condition.judge(recount.facts),
        }
        for condition in rule.conditions
    ]


def _ruled_out(recount: Recount, decided: Rule) -> list[Fields]:
    """Return the rules that came before the one that decided, and why each did not hold."""
    found: list[Fields] = []
    texts: set[str] = set()
    rules: tuple[Rule, ...] = () if recount.policy is None else recount.policy.rules
    for rule in rules:
        if rule.id == decided.id:
            break
        obstacle = rule.obstacle(recount.facts)
        text = rule.ruled_out(recount.facts)
        if obstacle is None:
            continue
        found.append(
            {
                "rule": rule.id,
                "outcome": rule.outcome,
                "reason_code": rule.reason_code,
                "condition": obstacle.text,
                "value": recount.facts.value(obstacle.fact),
                "text": None if text in texts else text,
            }
        )
        texts.add(text or "")
    return found


def _what_if(recount: Recount) -> list[Fields]:
    if recount.policy is None:
        return []
    return [
        {
            **change.to_fields(),
            "text": change_text(change.fact, change.was, change.to, change.judgement.outcome),
        }
        for change in whatif.changes(recount.facts, recount.policy)
    ]


def _check(recount: Recount, judged: Fields | None, *, ended: bool) -> Fields:
    """Return whether the verdict follows from the evidence, and what the gate says now."""
    judgement = recount.judgement
    check: Fields = {
        "follows": recount.follows,
        "problem": _problem(recount),
        "would_be": None if judgement is None else _would_be(judgement, recount, ended=ended),
        "stated": [] if judged is None else recount.stated,
        "differences": [
            {
                "fact": each.fact,
                "meaning": MEANINGS[each.fact][1],
                "recorded": each.recorded,
                "counted": each.counted,
                "stated": each.stated,
            }
            for each in recount.differences
        ],
    }
    return {**check, "text": check_text(check, judged)}


def _problem(recount: Recount) -> str | None:
    """Say why the verdict does not follow, or why nobody can tell."""
    if recount.verdict is None:
        return None
    if recount.policy_problem is not None:
        return recount.policy_problem
    if not recount.evidence_agrees:
        facts = ", ".join(each.fact for each in recount.differences if not each.stated)
        return f"the events before it do not say what it says of {facts}"
    judgement = recount.judgement
    if recount.follows or judgement is None:
        return None
    return (
        f"its facts lead to {judgement.outcome} by rule {judgement.rule}, "
        f"not to {recount.verdict['outcome']} by rule {recount.verdict['rule']}"
    )


def _would_be(judgement: Judgement, recount: Recount, *, ended: bool) -> Fields:
    unjudged = recount.verdict is None
    had = reasons.otherwise(recount.run.reason_code) if unjudged and ended else None
    missing = int(recount.facts.number("batches_missing") or 0)
    # A run is never judged to be through while a planned batch is missing.
    refused = unjudged and missing and is_terminal(judgement.outcome, judgement.reason_code)
    return {
        **judgement.to_fields(),
        "had": had,
        "refused": missing_text(missing) if refused else None,
    }
