"""All that is known of a run, for people."""

from __future__ import annotations

from tachograph.advising import effects_in_doubt, next_step
from tachograph.cli.cards import lines
from tachograph.cli.statuses import paint, progress
from tachograph.domain.attention import text
from tachograph.domain.owner import Owner
from tachograph.domain.recovery import Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output
    from tachograph.domain.records import Record

    Summary = dict[str, Any]
    Row = tuple[str, str | None]

EVENTS = 5
"""Events that a card shows: the newest ones."""


def show(services: Services, run: Summary, newest: Sequence[Record], out: Output) -> None:
    """Print the card, the newest events, and how the run can go on."""
    from tachograph.cli.event_lines import line

    status = run["status"]
    for row in lines(_rows(run, out), bold=out.styled()):
        painted = out.styled() and "\033[1mStatus" in row
        out.line(row.replace(status, paint(status), 1) if painted else row)
    out.line()
    for record in newest:
        out.line(line(services, record, out, of_one_run=True))
    out.line()
    out.line(next_step(run))


def _rows(run: Summary, out: Output) -> Iterator[Row]:
    reason = f": {run['status_reason']}" if run["status_reason"] else ""
    yield "Run", f"{run['id']}  ({run['command']})"
    yield "Title", run["title"]
    yield "Parent", run["parent"]
    yield "Origin", origin(run["origin"])
    yield "Status", run["status"] + reason
    yield "Progress", progress(run["progress"]) or None
    yield from _attempts(run, out)
    yield "Created", out.when(run["created_us"])
    yield "Last seen", out.when(run["seen_us"]) if run["seen_us"] else None
    yield "Finished", out.when(run["finished_us"]) if run["finished_us"] else None
    yield from _first_named("Phases", (_phase_text(*each) for each in run["phases"].items()))
    checkpoint = run["checkpoint"]
    if checkpoint is not None:
        when = out.when(checkpoint["time_us"])
        yield "Checkpoint", f"version {checkpoint['version']}, {checkpoint['kind']}, {when}"
    yield "Verdict", _verdict(run["verdict"])
    yield "Revised", _verdict(run["revision"])
    yield from _first_named("In doubt", effects_in_doubt(run))
    yield from _first_named("Approval", (f"{name}, not decided" for name in run["approvals"]))
    yield "Waits for", ", ".join(run["depends_on"]) or None
    yield "Blocked", run["blocked"]
    yield "Recovery", _recovery(run["recovery"], run["futile"])
    yield "Resume", _resume(run["resume"], out)
    needed = (
        f"{text(reason)}" + (f": {detail}" if detail else "")
        for reason, detail in run["attention"].items()
    )
    yield from _first_named("Attention", needed)
    yield "Files", f"{len(run['artifacts'])}" if run["artifacts"] else None
    yield "Archived", run["archived"]
    if run["bodies"] is not None and run["bodies"]["state"] == "archived":
        because = f", because: {run['bodies']['reason']}" if run["bodies"]["reason"] else ""
        yield "Bodies", f"in the archive {run['bodies']['archive']} of the store{because}"


def _attempts(run: Summary, out: Output) -> Iterator[Row]:
    if run["epoch"] and run["attempts"]:
        last = run["attempts"][-1]
        owner = Owner.from_fields(last["owner"] or {})
        yield "Attempt", f"{run['epoch']}, of {owner}, started {out.when(last['started_us'])}"
        earlier = [f"{each['epoch']} {each['outcome']}" for each in run["attempts"][:-1]]
        yield "Before", ", ".join(earlier) or None


def _phase_text(name: str, phase: dict[str, Any]) -> str:
    batches = ""
    if phase["total"] or phase["batches"]:
        total = "" if phase["total"] is None else f" of {phase['total']}"
        batches = f", {phase['batches']}{total} batches"
    if phase["inputs"] or phase["parsed"]:
        batches += f", {phase['parsed']} of {phase['inputs']} items parsed"
    summary = f": {phase['summary']}" if phase["summary"] else ""
    return f"{name} {phase['status']}{batches}{summary}"


def _recovery(fields: dict[str, Any] | None, futile: int) -> str | None:
    """Return what was declared about resuming, and how often that was in vain."""
    if fields is None:
        return None
    declared = Recovery.from_fields(fields)
    how = declared.adapter or " ".join(declared.command or ()) or "by starting it again"
    who = "unattended" if declared.auto_resume else "by a person"
    tries = f", {futile} of {declared.max_retries} tries in vain" if futile else ""
    return f"{who}, {how}{tries}"


def _resume(resume: dict[str, Any] | None, out: Output) -> str | None:
    if resume is None:
        return None
    if resume["returned_us"] is None:
        return f"under way since {out.when(resume['time_us'])}, with {resume['adapter']}"
    came = "the run got further" if resume["progressed"] else "the run got no further"
    error = f" ({resume['error']})" if resume["error"] else ""
    return f"{out.when(resume['returned_us'])}: {came}{error}"


def origin(known: dict[str, Any] | None) -> str | None:
    """Return where a run comes from, None for one that was recorded as it happened.

    >>> origin({"kind": "fork", "run": "job-a", "version": 12})
    'fork of job-a, up to its version 12'
    >>> origin({"kind": "job-runs"})
    'job-runs'
    """
    if known is None:
        return None
    if "run" in known:
        return f"{known.get('kind')} of {known['run']}, up to its version {known.get('version')}"
    return " ".join(str(known[name]) for name in ("kind", "path") if name in known)


def _verdict(verdict: dict[str, Any] | None) -> str | None:
    if verdict is None:
        return None
    return f"{verdict['outcome']}: {verdict['reason']} (rule {verdict['rule']})"


def _first_named(name: str, values: Any) -> Iterator[Row]:
    for value in values:
        yield name, value
        name = ""
