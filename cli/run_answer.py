"""`tacho run answer`: record that a model, parser, filter or tool was asked, and what came back."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import WHOLE, Option, Spec, UsageError
from tachograph.domain.answers import FAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Record what a model, parser, filter or tool gave back.",
    Option("--phase", "The phase it was asked in.", metavar="PHASE", complete="phase"),
    Option("--batch", "The batch it was asked about; needs --phase.", kind=WHOLE, metavar="N"),
    Option("--source", "Who was asked, such as a model.", metavar="NAME"),
    Option("--asked", "Items that were put to it.", kind=WHOLE, metavar="N"),
    Option(
        "--answered",
        "Items that it answered at all; all of them without this, none after a provider fault.",
        kind=WHOLE,
        metavar="N",
    ),
    Option("--parsed", "Items of the answer that could be read.", kind=WHOLE, metavar="N"),
    Option("--accepted", "Items that passed validation.", kind=WHOLE, metavar="N"),
    Option("--filtered", "Items that the answer took out.", kind=WHOLE, metavar="N"),
    Option(
        "--declared",
        "Its explicit word that there is nothing to do about these items, and why.",
        metavar="TEXT",
    ),
    Option("--fault", "What went wrong.", choices=FAULTS),
    Option("--error", "The error, in a line.", metavar="TEXT"),
    Option("--text", "What it returned, or @file.", metavar="TEXT"),
    RUN,
    EPOCH,
    details="""A fault within a batch counts as made good once the batch is finished, unless
nothing came out of it. Keep the --text: it is what `tacho run explain` shows to who asks why.

\b
  tacho run answer --phase analyse --batch 3 --source large --asked 5 --fault parser --text @raw
  tacho run answer --phase analyse --batch 3 --source small --asked 5 --parsed 5""",
)

SAID = (
    *("phase", "batch", "source", "asked", "answered", "parsed", "accepted", "filtered"),
    *("declared", "fault", "error"),
)


def run(params: Params, out: Output) -> None:
    """Record the answer."""
    if params.asked is None:
        raise UsageError("How many items was it about? Give --asked.")
    if params.batch is not None and params.phase is None:
        raise UsageError("--batch is the number of a batch of a phase: give --phase, too.")
    said = {name: getattr(params, name) for name in SAID}
    if params.answered is None:
        said["answered"] = 0 if params.fault == "provider" else params.asked
    text = None if params.text is None else _text(params.text)
    attempt(params, out).receive_answer(text=text, **said)
    if out.json:
        out.document(said)


def _text(given: str) -> str:
    from tachograph.cli.values import read_text

    return read_text(given)
