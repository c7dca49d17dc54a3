"""`tacho run note`: add a remark to a run's history."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, anybody
from tachograph.cli.options import Argument, Option, Spec
from tachograph.cli.values import read_text
from tachograph.domain.run import NOTE_LEVELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Add a remark to a run's history.",
    Argument("text", "The remark, or @file."),
    Option("--level", "How grave it is.", choices=NOTE_LEVELS, default="note"),
    RUN,
    EPOCH,
    details="Anybody may, at any time, finished or not: no attempt is needed.",
)


def run(params: Params, out: Output) -> None:
    """Record the note."""
    text = read_text(params.text)
    session = anybody(params, out)
    session.execute(lambda run, why: run.add_note(why, text, level=params.level))
    if out.json:
        out.document({"jobRunId": session.run_id, "level": params.level, "text": text})
