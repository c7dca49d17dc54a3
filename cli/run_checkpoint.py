"""`tacho run checkpoint`: save where a resume may go on, or print what was saved last."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, anybody, attempt
from tachograph.cli.options import WHOLE, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Save where a resume may go on, or show it.",
    Option("--phase", "The phase it belongs to.", metavar="NAME", complete="phase"),
    Option("--offset", "Units that are done.", kind=WHOLE, metavar="N"),
    Option("--total", "Units there are.", kind=WHOLE, metavar="M"),
    Option("--counter", "A count of your own, with --offset.", multiple=True, metavar="K=N"),
    Option("--state", "A state of your own, as JSON or @file.", metavar="JSON"),
    flag("--show", "Print the state that was saved last, as JSON; nothing when there is none."),
    RUN,
    EPOCH,
)


def run(params: Params, out: Output) -> None:
    """Save or show the checkpoint."""
    if params.show:
        _show(params, out)
        return
    kind, state = _state(params)
    session = attempt(params, out)
    session.save_checkpoint(state, kind=kind, phase=params.phase)
    if out.json:
        out.document({"kind": kind, "phase": params.phase, "version": session.run.version})


def _state(params: Params) -> tuple[str, Any]:
    if params.state is not None:
        if params.offset is not None or params.total is not None or params.counter:
            raise UsageError("--state and --offset, --total or --counter exclude each other.")
        from tachograph.cli.values import read_json

        return "state", read_json(params.state, "--state")
    if params.offset is None or params.total is None:
        raise UsageError("What is to be saved? Give --offset and --total, or --state.")
    state = {"offset": params.offset, "total": params.total}
    if params.counter:
        from tachograph.cli.values import counters

        state = {**counters(params.counter), **state}
    return "offset", state


def _show(params: Params, out: Output) -> None:
    given = (params.phase, params.offset, params.total, params.state)
    if params.counter or any(value is not None for value in given):
        raise UsageError("--show saves nothing: leave out what is to be saved.")
    from tachograph.continuing import checkpoint

    saved = checkpoint(anybody(params, out, read_only=True))
    if out.json:
        out.document(saved)
    elif saved is not None:
        out.document_line(saved["state"])
