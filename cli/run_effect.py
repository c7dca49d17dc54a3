"""`tacho run effect`: do a side effect at most once, or say what became of it."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, anybody, attempt
from tachograph.cli.options import Argument, Option, Params, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.output import Output

COMMAND = Argument("argv", "The command.", required=False, multiple=True, metavar="[-- COMMAND...]")
SPEC = Spec(
    "Do a side effect at most once.",
    Argument("key", "Name of the effect, unique in the run.", complete="effect"),
    COMMAND,
    flag("--idempotent", "Doing it twice does no harm."),
    Option("--describe", "What it does, for people.", metavar="TEXT"),
    flag("--intend", "Only record that it is about to happen."),
    flag("--done", "Only record that it happened."),
    flag("--retry", "It may be done again although it may have happened; needs --reason."),
    Option("--result", "What came of it, with --done, as JSON or @file.", metavar="JSON"),
    Option("--reason", "Why you say so.", metavar="TEXT"),
    RUN,
    EPOCH,
    details="""With a command: records the intent, runs the command, records its result. When the
result is recorded already, prints its output and runs nothing. When only the intent is recorded,
the effect may have happened: ends with 8, and a person decides with --done or --retry.

\b
  tacho run effect mail-42 -- sendmail -t < mail-42.txt""",
)


def run(params: Params, out: Output) -> int | None:
    """Do, or only record."""
    _check(params)
    if params.retry:
        anybody(params, out).allow_effect_retry(params.key, params.reason)
    if params.argv:
        from tachograph.cli.effects import perform

        return perform(attempt(params, out), params, out)
    if params.done:
        _record_done(params, out)
    elif params.intend:
        attempt(params, out).intend_effect(
            params.key, idempotent=params.idempotent, description=params.describe
        )
    if out.json:
        status = "done" if params.done else "intended" if params.intend else "retryAllowed"
        out.document({"key": params.key, "status": status})
    return None


def _record_done(params: Params, out: Output) -> None:
    result = None
    if params.result is not None:
        from tachograph.cli.values import read_json

        result = read_json(params.result, "--result")
    who = attempt if params.reason is None else anybody
    who(params, out).complete_effect(params.key, result, reason=params.reason)


def _check(params: Params) -> None:
    """Refuse what does not go together."""
    if params.intend + params.done + params.retry > 1:
        raise UsageError("--intend, --done and --retry exclude each other.")
    if params.argv and (params.intend or params.done):
        raise UsageError("--intend and --done record only: leave out the command.")
    if not (params.argv or params.intend or params.done or params.retry):
        raise UsageError("What about it? Give -- and a command, or --intend, --done or --retry.")
    if params.done:
        if params.idempotent or params.describe is not None:
            raise UsageError("--idempotent and --describe belong to the intent, not to --done.")
    elif params.result is not None:
        raise UsageError("--result goes with --done.")
    elif params.retry != (params.reason is not None):
        raise UsageError("--retry and --reason go together: say why it may be done again.")
