"""`tacho run retry`: record that something failed and will be tried again."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import NUMBER, WHOLE, Argument, Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Record that something failed and will be tried again.",
    Argument("kind", "What is tried again, such as transient or parse."),
    Argument("attempt", "Which try comes next, from 1.", kind=WHOLE),
    Option("--delay", "Seconds until then.", kind=NUMBER, default=0.0, metavar="SECONDS"),
    Option("--error", "What went wrong.", metavar="TEXT"),
    Option("--model", "The model that was asked.", metavar="NAME"),
    RUN,
    EPOCH,
    details="Records only; waiting and trying again are yours.",
)


def run(params: Params, out: Output) -> None:
    """Record the retry."""
    attempt(params, out).execute(
        lambda run, why: run.schedule_retry(
            why,
            params.kind,
            params.attempt,
            delay_seconds=params.delay,
            error=params.error,
            model=params.model,
        )
    )
    if out.json:
        out.document({"kind": params.kind, "attempt": params.attempt, "delaySeconds": params.delay})
