"""`tacho policy try`: what a policy would conclude from facts, and what would change it."""

from __future__ import annotations

from tachograph.cli.fact_values import FACT, read_facts
from tachograph.cli.options import Spec
from tachograph.cli.policy_show import FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.whatif import Change

SPEC = Spec(
    "Say what a policy concludes from facts, and what would change that.",
    FILE,
    FACT,
    details="""Records nothing.

\b
  tacho policy try --fact inputs=3 --fact outputs=0
  tacho policy try policy.toml --fact inputs=3 --fact declared='all up to date'""",
)


def run(params: Params, out: Output) -> None:
    """Print the conclusion, and the nearest changes that lead to another."""
    from tachograph.cli import policies
    from tachograph.domain import checks
    from tachograph.domain.facts import Facts
    from tachograph.domain.gate import judge
    from tachograph.domain.whatif import changes

    facts = Facts(**read_facts(params.fact))
    checks.facts(facts)
    policy, _origin = policies.meant(params.file, out)
    judgement, others = judge(facts, policy), changes(facts, policy)
    if out.json:
        out.document(
            {
                "policy": policy.named(),
                "facts": facts.said(),
                **_concluded(judgement),
                "changes": [
                    {
                        "fact": each.fact,
                        "was": each.was,
                        "to": each.to,
                        **_concluded(each.judgement),
                    }
                    for each in others
                ],
            }
        )
        return
    out.line(judgement.outcome)
    out.line(f"rule {judgement.rule}: {judgement.reason}")
    if others:
        out.line()
        columns = ("WERE IT", "INSTEAD OF", "OUTCOME", "RULE")
        out.table(columns, [_row(each) for each in others])


def _concluded(judgement: Any) -> dict[str, Any]:
    return {
        "outcome": judgement.outcome,
        "rule": judgement.rule,
        "ruleVersion": judgement.rule_version,
        "reasonCode": judgement.reason_code,
        "reason": judgement.reason,
    }


def _row(change: Change) -> tuple[str, ...]:
    was = "unsaid" if change.was is None else str(change.was)
    to = f"{change.fact} unsaid" if change.to is None else f"{change.fact}={change.to}"
    return to, was, change.judgement.outcome, change.judgement.rule
