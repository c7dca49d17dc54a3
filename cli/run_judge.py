"""`tacho run judge`: let the semantic gate judge what the run did."""

from __future__ import annotations

from tachograph.cli.exit_codes import GATE_FAILED, OK
from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import WHOLE, Option, Spec
from tachograph.domain.gate import Facts
from tachograph.domain.outcome import traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Let the semantic gate judge what the run did.",
    Option("--inputs", "Items there were to work on.", kind=WHOLE, metavar="N"),
    Option("--outputs", "Usable items that came out.", kind=WHOLE, metavar="N"),
    Option("--declared", "Why there was nothing to do.", metavar="TEXT"),
    Option("--stopped", "Why it stopped early, such as deadline.", metavar="TEXT"),
    Option("--faults", "Failures of model or parser on the way.", kind=WHOLE, metavar="N"),
    RUN,
    EPOCH,
    details="""Prints the outcome. Ends with 7 when the gate fails: items went in, none came out,
and nobody declared that there was nothing to do. The last judgement decides how the run
finishes.""",
)


def run(params: Params, out: Output) -> int:
    """Judge, and print the outcome."""
    facts = Facts(
        params.inputs, params.outputs, params.declared, params.stopped, params.faults or 0
    )
    session = attempt(params, out)
    outcome = session.execute(lambda run, why: run.judge(why, facts))
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
