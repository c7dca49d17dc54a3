"""`tacho run judge`: let the semantic gate judge what the run did."""

from __future__ import annotations

from tachograph.cli.exit_codes import GATE_FAILED, OK
from tachograph.cli.fact_values import FACT, read_facts
from tachograph.cli.opening import EPOCH, RUN, attempt, policy_in
from tachograph.cli.options import WHOLE, Option, Spec, UsageError
from tachograph.domain.facts import Facts
from tachograph.domain.outcome import traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let the semantic gate judge what the run did.",
    Option("--inputs", "Items there were to work on.", kind=WHOLE, metavar="N"),
    Option("--outputs", "Usable items that came out.", kind=WHOLE, metavar="N"),
    Option("--declared", "Why there was nothing to do.", metavar="TEXT"),
    Option("--stopped", "Why it stopped early, such as deadline.", metavar="TEXT"),
    Option("--faults", "Failures of model or parser on the way.", kind=WHOLE, metavar="N"),
    FACT,
    Option(
        "--policy",
        "Judge by the gate policy of this file, instead of the one in force.",
        metavar="FILE",
        complete="path",
    ),
    RUN,
    EPOCH,
    details="""Prints the outcome. Ends with 7 when the gate fails: items went in, none came out,
and nobody declared that there was nothing to do. What no option states is counted from what the
run recorded. The last judgement decides how the run finishes.

The policy in force is named by TACHO_POLICY or by the setting `policy`; without either it is the
one that comes with Tachograph (see `tacho policy show`).""",
)

NAMED = ("inputs", "outputs", "declared", "stopped", "faults")


def run(params: Params, out: Output) -> int:
    """Judge, and print the outcome."""
    facts = Facts(**_stated(params))
    session = attempt(params, out)
    outcome = session.judge(facts, by=policy_in(params.policy))
    verdict = session.run.verdict or {}
    if out.json:
        out.document(
            {
                "outcome": outcome,
                "rule": verdict["rule"],
                "reasonCode": verdict["reason_code"],
                "reason": verdict["reason"],
            }
        )
    else:
        out.line(outcome)
        out.note(verdict["reason"])
    return GATE_FAILED if traits(outcome, verdict["reason_code"]).fails_step else OK


def _stated(params: Params) -> dict[str, Any]:
    given = {name: getattr(params, name) for name in NAMED}
    stated = {name: value for name, value in given.items() if value is not None}
    for name, value in read_facts(params.fact).items():
        if name in stated:
            raise UsageError(f"--{name} and --fact {name} state the same fact: give one of them.")
        stated[name] = value
    return stated
