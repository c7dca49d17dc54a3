"""`tacho run block`: say that a run waits for something outside it."""

from __future__ import annotations

import os

from tachograph.cli.exact import exact_run
from tachograph.cli.opening import EPOCH, RUN, open_store
from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError
from tachograph.cli.task_cards import follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Say that a run waits for something outside it.",
    Argument("run", "The run, by its whole id.", complete="run"),
    Option("--reason", "What it waits for.", metavar="TEXT"),
    Option(
        "--epoch",
        "The attempt that says so; that of TACHO_EPOCH when RUN is TACHO_RUN_ID.",
        kind=WHOLE,
        metavar="N",
    ),
    details="Blocked again with another reason, it waits for that instead. It is blocked until "
    "work goes on: at its next event of work, or the next attempt.",
)


def run(params: Params, out: Output) -> None:
    """Record what the run waits for."""
    if params.reason is None:
        raise UsageError("What does it wait for? Say so with --reason.")
    services = open_store(out)
    run_id = exact_run(services, params.run, out)
    session = services.session(run_id, _epoch(params))
    session.execute(lambda run, why: run.block(why, params.reason))
    follow(services, [run_id], out)
    if out.json:
        out.document({"jobRunId": run_id, "blocked": params.reason})
    else:
        out.note(f"Blocked {run_id}.")


def _epoch(params: Params) -> int:
    """Return the attempt that asks: a job that was superseded must not block its run (G5)."""
    if params.epoch is not None:
        return int(params.epoch)
    if os.environ.get(str(RUN.env)) != params.run:
        return 0
    text = os.environ.get(str(EPOCH.env), "")
    return int(text) if text.isdecimal() else 0
