"""Write the report of a run: what came of it, why, and what to do next. Pure.

It says what the log says. Whether a process is alive is left to `tacho run status`: a report is
read long after it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.advising import next_step
from tachograph.domain import attention
from tachograph.domain.forking import begun_in
from tachograph.domain.iso_time import iso_stamp
from tachograph.domain.job_run_shapes import (
    BLOCKED,
    INTERRUPTED,
    UNFINISHED,
    diagnostics,
    outcome_of,
    phase_status,
    phase_summary,
    progress_of,
    status_of,
)
from tachograph.domain.owner import Owner
from tachograph.projections.run_summaries import new_summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tachograph.domain.run_state import Phase, RunState

    Fields = dict[str, Any]

MOST_LISTED = 200
"""Phases, steps or files that a report names; of more it says how many there are."""
LONGEST_TEXT = 2_000
"""Characters of a free text; the log has all of it."""
_SAME = (
    "command", "parent", "fingerprint", "inputs", "origin", "ended", "outcome", "reason_code",
    "reason", "epoch", "verdict", "blocked", "recovery", "checkpoint", "depends_on", "maintenance",
)  # fmt: skip
"""What a summary holds as a run does."""
_DIGEST, _DIGEST_END = "<!-- run digest: ", " -->"


def report_text(run: RunState, digest: str) -> str:
    """Return the report of a run as Markdown.

    `digest` is that of the run's first event: its last line, which is not shown, tells by it
    whose report it is.
    """
    lines = [*_lines(run), "", f"{_DIGEST}{digest}{_DIGEST_END}"]
    return "\n".join(lines) + "\n"


def digest_in(report: bytes) -> str | None:
    r"""Return the digest in the last line of a report; None where there is none.

    >>> digest_in(b"# job-a: failed\n\n<!-- run digest: 53ab -->\n")
    '53ab'
    """
    last = report.rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")
    if not (last.startswith(_DIGEST) and last.endswith(_DIGEST_END)):
        return None
    return last.removeprefix(_DIGEST).removesuffix(_DIGEST_END)


def next_step_of(run: RunState) -> str:
    """Return how the run can go on, as `tacho run status` says it, as far as the log can tell."""
    advice = next_step(_advised(run))
    if status_of(run) in (UNFINISHED, BLOCKED) and run.attempt_open:
        return (
            f"`tacho run status {run.id}` says whether its process is alive. If it is, there is "
            f"nothing to do. If not: {advice}"
        )
    return advice


def diagnosis(run: RunState) -> str:
    """Return what came of a run in the words of the original's `explain`, all in one line."""
    outcome, reason = outcome_of(run)
    if status_of(run) == run.outcome:
        said = [f"Command {run.command} ended with semantic outcome {outcome}."]
    else:
        said = [f"Command {run.command} has no outcome yet ({status_of(run).replace('_', ' ')})."]
        if run.ended is not None:
            said = [f"Command {run.command} was ended for good ({run.ended})."]
    if reason:
        said.append(f"{one_line(reason).rstrip('.')}.")
    for phase in run.phases.values():
        status = phase_status(run, phase)
        if status == "failed":
            said_of_it = phase_summary(run, phase)
            summary = f" ({one_line(said_of_it)})" if said_of_it else ""
            said.append(f"Failed phase: {phase.name}{summary}.")
    found = progress_of(run)
    if found is not None:
        completed, total, unit = found
        said.append(f"Progress: {completed}/{'?' if total is None else total} {unit}.")
    return " ".join(said)


def one_line(text: str) -> str:
    """Return a text in one line, cut where it is long.

    >>> one_line("first  second ")
    'first second'
    """
    joined = " ".join(text.split())
    return joined if len(joined) <= LONGEST_TEXT else f"{joined[: LONGEST_TEXT - 1]}…"


def _lines(run: RunState) -> Iterator[str]:
    status = status_of(run).replace("_", " ")
    yield f"# {run.id}: {status}"
    yield ""
    yield from _head(run)
    yield from _section("What was done", _phases(run))
    yield from _section("Maintenance steps", _steps(run))
    yield from _section("Counted", _counted(run))
    yield from _section("In doubt", _doubted(run))
    yield from _section("Needs a person", _needed(run))
    yield from _section("Files it made", _files(run))
    yield from _section("What to do next", [next_step_of(run)])


def _head(run: RunState) -> Iterator[str]:
    outcome, reason = outcome_of(run)
    if run.title:
        yield f"- Title: {_safe(run.title)}"
    yield f"- Command: {_code(run.command)} over inputs {_code(run.fingerprint)}"
    if run.parent is not None:
        yield f"- Part of: {_code(run.parent)}"
    yield f"- Began: {iso_stamp(run.created_us)}"
    if status_of(run) != outcome:
        yield f"- For readers that know seven outcomes only: {outcome}"
    if run.ended_us is not None:
        yield f"- Ended: {iso_stamp(run.ended_us)}, in attempt {run.epoch}"
    elif run.epoch:
        owner = Owner.from_fields(run.worker or run.owner or {})
        yield f"- Attempt: {run.epoch}, taken by {_safe(str(owner))}"
        yield f"- Last sign of work: {iso_stamp(run.worked_us or run.updated_us)}"
    if reason:
        yield f"- Why: {_safe(reason)}"
    if run.verdict is not None:
        verdict = run.verdict
        yield (
            f"- Judged: {verdict['outcome']} by rule {_code(verdict['rule'])} "
            f"({verdict['reason_code']}): {_safe(verdict['reason'])}"
        )
    if run.revision is not None:
        revision = run.revision
        yield (
            f"- Judged again: {revision['outcome']} by rule {_code(revision['rule'])}: "
            f"{_safe(revision['reason'])}"
        )
    if run.verdict is not None or run.outcome is not None:
        yield f"- The whole reasoning: `tacho run explain {run.id}`"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a section; nothing when there is nothing in it."""
    found = list(lines)
    if found:
        yield from ("", f"## {title}", "")
        yield from found


def _phases(run: RunState) -> Iterator[str]:
    if not run.phases:
        return
    yield "| Phase | Status | Batches | Items in | Parsed | Summary |"
    yield "| --- | --- | --- | --- | --- | --- |"
    phases = list(run.phases.values())
    for phase in phases[-MOST_LISTED:]:
        cells = (
            _safe(phase.name),
            phase_status(run, phase),
            _batches(phase),
            _number(phase.inputs),
            _number(phase.parsed),
            _safe(phase_summary(run, phase) or ""),
        )
        yield f"| {' | '.join(cells)} |"
    if len(phases) > MOST_LISTED:
        yield ""
        yield f"These are the last {MOST_LISTED} of {len(phases)} phases."


def _batches(phase: Phase) -> str:
    done = len(phase.done)
    if phase.total is None:
        return str(done) if done else "-"
    return f"{done} of {phase.total}"


def _number(count: int | None) -> str:
    return "-" if count is None else str(count)


def _steps(run: RunState) -> Iterator[str]:
    if not run.maintenance_steps:
        return
    yield "| Step | Status | Seconds | Run | What came of it |"
    yield "| --- | --- | --- | --- | --- |"
    for name, step in run.maintenance_steps.items():
        seconds = f"{step['duration_us'] / 1e6:.1f}" if "duration_us" in step else "-"
        runs = ", ".join(map(_code, step.get("runs") or ())) or "-"
        summary = _safe(step.get("summary") or "it was begun, and has not ended")
        yield f"| {_safe(name)} | {step['status'] or '-'} | {seconds} | {runs} | {summary} |"


def _counted(run: RunState) -> Iterator[str]:
    found = progress_of(run)
    if found is not None:
        completed, total, unit = found
        of = "" if total is None else f" of {total}"
        yield f"- progress: {completed}{of} {_safe(unit)}"
    for name, count in diagnostics(run).items():
        yield f"- {name}: {count}"


def _doubted(run: RunState) -> Iterator[str]:
    for key in run.effects_in_doubt[:MOST_LISTED]:
        effect = run.effects[key]
        may = ", and may be repeated" if effect["idempotent"] else ""
        yield (
            f"- {_code(key)} may have happened: it was begun in {begun_in(effect['epoch'])}, and "
            f"no result is recorded{may}."
        )


def _needed(run: RunState) -> Iterator[str]:
    for reason, detail in run.attention.items():
        yield f"- {_safe(attention.text(reason))}" + (f": {_safe(detail)}" if detail else "")


def _files(run: RunState) -> Iterator[str]:
    files = list(run.artifacts.items())
    for name, file in files[-MOST_LISTED:]:
        yield f"- {_safe(name)}: {_code(file['path'])}, {file['size']} bytes"
    if len(files) > MOST_LISTED:
        yield f"- and {len(files) - MOST_LISTED} more: `tacho run artifacts {run.id}`"


def _safe(text: str) -> str:
    """Return a free text that stays in its line and its cell, and is nothing but text."""
    escaped = one_line(text).replace("\\", "\\\\")
    for letter in "|`*_<[":
        escaped = escaped.replace(letter, f"\\{letter}")
    return escaped


def _code(text: str) -> str:
    """Return a text that is shown as it is."""
    shown = one_line(text).replace("`", "'").replace("|", "\\|")
    return f"`{shown}`"


def _advised(run: RunState) -> Fields:
    """Return of a run all that `next_step` asks of a summary; as one that nobody is at."""
    status = status_of(run)
    phases = {
        name: {
            "status": INTERRUPTED if phase.status == "running" else phase.status,
            "total": phase.total,
            "batches": len(phase.done),
            "inputs": phase.inputs or 0,
            "parsed": phase.parsed or 0,
        }
        for name, phase in run.phases.items()
    }
    same = {name: getattr(run, name) for name in _SAME}
    return {
        **new_summary(run.id),
        **same,
        "status": BLOCKED if status == BLOCKED else INTERRUPTED,
        "liveness": None,
        "effects": {key: run.effects[key] for key in run.effects_in_doubt},
        "approval": next(iter(run.approvals_pending), None),
        "phases": phases,
    }
