"""`tacho run batch`: record a finished batch, or say which ones are left."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError, flag
from tachograph.continuing import batch_output, complete_batch, pending_batches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Record a finished batch, or list the unfinished ones.",
    Argument("phase", "The phase.", complete="phase"),
    Argument("index", "Number of the batch, from 0.", kind=WHOLE, required=False),
    Option("--inputs", "Items that went in.", kind=WHOLE, metavar="N"),
    Option("--parsed", "Items that came out usable.", kind=WHOLE, metavar="N"),
    Option("--output", "The result, as text or @file.", metavar="TEXT"),
    Option("--output-json", "The result, as JSON or @file.", metavar="JSON"),
    flag("--next", "Print the first unfinished batch, or nothing."),
    flag("--pending", "Print every unfinished batch, one a line."),
    flag("--show", "Print the recorded output of the batch, as JSON."),
    RUN,
    EPOCH,
)


def run(params: Params, out: Output) -> None:
    """Record, or list, or show."""
    if params.next or params.pending:
        if params.index is not None or params.show or _records(params):
            raise UsageError("--next and --pending take a phase and nothing else.")
        _print_pending(pending_batches(attempt(params, out), params.phase), params, out)
        return
    if params.index is None:
        raise UsageError("Which batch? Give its number, or --next or --pending.")
    if params.show:
        if _records(params):
            raise UsageError("--show records nothing: leave out what is to be recorded.")
        out.document(batch_output(attempt(params, out), params.phase, params.index))
        return
    output = None if params.output is None and params.output_json is None else _output(params)
    counts = {"inputs": params.inputs, "parsed": params.parsed}
    complete_batch(attempt(params, out), params.phase, params.index, output=output, **counts)
    if out.json:
        out.document({"phase": params.phase, "index": params.index})


def _output(params: Params) -> Any:
    from tachograph.cli.values import read_json, read_text

    if params.output is None:
        return read_json(params.output_json, "--output-json")
    if params.output_json is not None:
        raise UsageError("--output and --output-json exclude each other.")
    return read_text(params.output)


def _print_pending(pending: list[int], params: Params, out: Output) -> None:
    shown = pending[:1] if params.next else pending
    if out.json:
        out.document({"phase": params.phase, "pending": shown})
    else:
        for index in shown:
            out.line(str(index))


def _records(params: Params) -> bool:
    given = (params.inputs, params.parsed, params.output, params.output_json)
    return any(value is not None for value in given)
