"""Name what no rule knows in the traces of a cron job: it decides nothing, and is told. No I/O."""

from __future__ import annotations

from tachograph.domain import cron_log
from tachograph.domain.exit_report import Unexplained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.domain.exit_validation import Evidence


def is_usable(summary: Any) -> bool:
    """Say whether what was read is a summary that the rules know."""
    return (
        isinstance(summary, dict)
        and summary.get("schemaVersion") == 1
        and isinstance(summary.get("steps"), list)
    )


def unexplained(evidence: Evidence) -> Iterator[Unexplained]:
    """Yield what is in ledger, summary and log, and has no rule."""
    for number, line in evidence.ledger.unparsable:
        text = line[: cron_log.LONGEST_LINE]
        yield Unexplained("ledger_line", evidence.exit_path, text, number)
    if evidence.summary is not None and not is_usable(evidence.summary):
        yield Unexplained("summary", evidence.summary_path or "", _what_is_wrong(evidence.summary))
    steps = [*evidence.required, *evidence.ledger.last]
    lines = list(cron_log.unexplained_lines(evidence.log, steps))
    for at, text in lines[: cron_log.MOST_UNEXPLAINED]:
        yield Unexplained("log_line", evidence.log_path or "", text, at)
    if len(lines) > cron_log.MOST_UNEXPLAINED:
        more = f"{len(lines) - cron_log.MOST_UNEXPLAINED} more such lines"
        yield Unexplained("log_line", evidence.log_path or "", more)


def _what_is_wrong(summary: Any) -> str:
    if not isinstance(summary, dict):
        return "it is no JSON object"
    if summary.get("schemaVersion") != 1:
        return f"its schemaVersion is {summary.get('schemaVersion')!r}, not 1"
    return "its steps are no list"
