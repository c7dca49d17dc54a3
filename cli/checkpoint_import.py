"""`tacho checkpoint import`: take over checkpoint files that jobs kept by themselves."""

from __future__ import annotations

from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Take over checkpoint files that jobs kept by themselves.",
    Argument("files", "Files to take over.", multiple=True, metavar="FILE", complete="path"),
    Option("--command", "The command; else the file's name says it.", metavar="NAME"),
    Option("--fingerprint", "Of the inputs that are current; others are refused.", metavar="TEXT"),
    Option("--batch-size", "Items in a batch, as it is now.", kind=WHOLE, metavar="N"),
    Option("--total", "Batches, or units of an offset, there are now.", kind=WHOLE, metavar="N"),
    Option("--inputs", "The inputs, as JSON or @file; they must have the fingerprint.",
           metavar="JSON"),
    Option("--run", "The run to take it into, by its id.", metavar="ID", complete="run"),
    Option("--reason", "Why; kept with the run.", metavar="TEXT"),
    flag("--apply", "Record them; without it, only show what would be."),
    details="""Knows m3-batches-FINGERPRINT.json, reinforcement-batches-FINGERPRINT.json and
.reindex_checkpoint.json. The checkpoint goes into the unfinished run of that command and
fingerprint, or makes one; a resume then goes on from it. With --inputs that is a run as if it had
been recorded here: the same command with the same inputs and this id takes it up.

A file of another version, fingerprint, batch size or total is named with the reason, and left
alone. A file that was taken before records nothing.

Ends with 1 when a file was refused.""",
)  # fmt: skip


def run(params: Params, out: Output) -> int:
    """Show what would be taken over, or take it over."""
    from tachograph.cli.exit_codes import FAILURE, OK
    from tachograph.cli.run_import import show, store_of
    from tachograph.importing_checkpoints import Expected
    from tachograph.taking_over import import_checkpoints

    expected = Expected(
        command=params.command,
        fingerprint=params.fingerprint,
        batch_size=params.batch_size,
        total=params.total,
        inputs=None if params.inputs is None else _inputs(params.inputs),
        run_id=params.run,
        reason=params.reason,
    )
    services = store_of(out, apply=params.apply, create=True)
    rows = import_checkpoints(services, params.files, expected, apply=params.apply)
    show(rows, out, applied=params.apply)
    return FAILURE if any(row.problems for row in rows) else OK


def _inputs(text: str) -> dict[str, Any]:
    from tachograph.cli.values import read_json

    found = read_json(text, "--inputs")
    if not isinstance(found, dict):
        raise UsageError("--inputs holds no JSON object: give the inputs by name.")
    return found
