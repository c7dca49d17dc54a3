"""`tacho run expect`: say what a run is measured by, before it is done."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, anybody
from tachograph.cli.options import NUMBER, WHOLE, Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Say what the run is measured by.",
    Option("--inputs", "Items there are to work on.", kind=WHOLE, metavar="N"),
    Option(
        "--extracted",
        "Items found before any filter or classifier had its say.",
        kind=WHOLE,
        metavar="N",
    ),
    Option(
        "--minimum-fraction",
        "Share of the work that has to come out, from 0 to 1.",
        kind=NUMBER,
        metavar="F",
    ),
    Option(
        "--file",
        "A file that it must write anew.",
        multiple=True,
        metavar="PATH",
        complete="path",
    ),
    Option("--deadline", "When work has to stop: a time, or how long from now.", metavar="TIME"),
    Option("--reason", "Why, where a person says so.", metavar="TEXT"),
    RUN,
    EPOCH,
    details="""What is not said now stays as it was said before. A deadline is a time
(2026-03-01T06:00Z) or a span from now (2h30m, 90m); one that has passed when an attempt begins was
that of an earlier attempt, and counts no more.

\b
  tacho run expect --inputs 12 --minimum-fraction 0.9 --deadline 2h
  tacho run expect --file report.html""",
)


def run(params: Params, out: Output) -> None:
    """Record what is expected."""
    from tachograph.domain.expectations import Expectations

    said = Expectations(
        inputs=params.inputs,
        extracted=params.extracted,
        minimum_fraction=params.minimum_fraction,
        deadline_us=None if params.deadline is None else deadline_us(params.deadline),
    )
    if not said.to_fields() and not params.file:
        raise UsageError("Nothing is expected: give --inputs, --file, --deadline or another.")
    session = anybody(params, out)
    session.expect(said, files=params.file, reason=params.reason)
    if out.json:
        out.document(shown(session.run_id, session.run.expectations))


def deadline_us(text: str) -> int:
    """Return a time, or a span from now, in microseconds since 1970 in UTC.

    Raises InvalidTimeError and InvalidSpanError.
    """
    from tachograph.infra.clock import now_us, parse_span, parse_time

    now = now_us()
    whole = text.strip().partition(".")[0]
    is_time = "-" in text or "T" in text or text.strip()[:1] == "@" or len(whole) >= 9
    if is_time:
        return parse_time(text, now)
    return now + parse_span(text)


def shown(run_id: str, stored: dict[str, Any]) -> dict[str, Any]:
    """Return what a run is measured by, for JSON."""
    return {
        "jobRunId": run_id,
        "inputs": stored.get("inputs"),
        "extracted": stored.get("extracted"),
        "minimumFraction": stored.get("minimum_fraction"),
        "files": stored.get("files", []),
        "deadlineUs": stored.get("deadline_us"),
    }
