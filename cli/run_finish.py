"""`tacho run finish`: end the attempt and print what came of the run."""

from __future__ import annotations

from tachograph.cli.artifact_following import at_end
from tachograph.cli.opening import EPOCH, RUN, open_store, which_attempt
from tachograph.cli.options import Option, Spec
from tachograph.domain.outcome import OUTCOMES, traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "End the attempt, by the gate's verdict or an outcome of yours.",
    Option("--outcome", "How it ended; the gate decides without it.", choices=OUTCOMES),
    Option("--reason", "Why.", metavar="TEXT"),
    Option(
        "--reason-code",
        "Why, as a code, such as stopped_by_budget or waits_for_approval.",
        metavar="CODE",
    ),
    RUN,
    EPOCH,
    details="""Prints the outcome and ends with the exit code of the outcome: 0 when it is a good
one, 1 for failed, 7 for failed_semantic_empty, 75 for partial.""",
)


def run(params: Params, out: Output) -> int:
    """End the attempt."""
    return finish(params, out, params.outcome, params.reason_code)


def finish(params: Params, out: Output, outcome: str | None, reason_code: str | None = None) -> int:
    """End the attempt with an outcome, print it and return its exit code."""
    run, epoch = which_attempt(params)
    services = open_store(out)
    session = services.session(run, epoch)
    result = session.finish(outcome, reason=params.reason, reason_code=reason_code)
    ended = session.run
    at_end(services, [run], out)
    if out.json:
        out.document(
            {
                "jobRunId": ended.id,
                "outcome": result,
                "reasonCode": ended.reason_code,
                "reason": ended.reason,
            }
        )
    else:
        out.line(result)
        if ended.reason:
            out.note(ended.reason)
    return traits(result, ended.reason_code).exit_code
