"""Bring a run of a cron job to its end: outcome, summary, verdict on its traces. Runs nothing.

Outcomes decide; the ledger's rows say what the steps were, and no text of a log counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import errors, outcome
from tachograph.domain.exit_ledger import STEP_SKIPPED, Ledger, LedgerRow, row_time, status_of
from tachograph.domain.exit_summary import OURS
from tachograph.domain.gate import judge
from tachograph.domain.orchestrator_summary import SummaryStep, orchestrator_summary
from tachograph.executing import Expected, Verdict, bad_ending, conclude, described
from tachograph.validating_exits import SKIPPED_CONCURRENCY, outcome_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.ended import Ended
    from tachograph.domain.exit_report import ExitReport
    from tachograph.session import Session

TIMED_OUT = 124
"""Exit code of a command that was stopped at its time limit, as `timeout` gives it."""
ENDING_SIGNALS = {"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGTERM": 15}
"""Signals that ask a command to end, and their numbers."""
INTERRUPTED = "interrupted"
STEPS_DEFERRED = "steps_deferred"


def exit_code_of(ended: Ended) -> int:
    """Return the exit code of a command as ledgers hold it.

    A signal that it was sent counts even when it ended with 0 then: it was cut off.
    """
    if ended.timed_out:
        return TIMED_OUT
    return ended.shell_code or code_of_signals(ended.asked)


def code_of_signals(names: Sequence[str]) -> int:
    """Return the exit code that tells of the last signal that asks for an end; 0 without one.

    >>> code_of_signals(["SIGTERM", "SIGWINCH"])
    143
    """
    codes = [128 + ENDING_SIGNALS[name] for name in names if name in ENDING_SIGNALS]
    return codes[-1] if codes else 0


def reported_by(ended: Ended, reported: str | None) -> str | None:
    """Return the reason of a row: what was printed, unless the command was cut off."""
    return reported if _cut_off(ended) is None else INTERRUPTED


def _cut_off(ended: Ended) -> tuple[str, str, str] | None:
    """Return what came of a command that was asked to end, and ended with 0 then."""
    if ended.timed_out or ended.exit_code != 0 or not code_of_signals(ended.asked):
        return None
    by = [name for name in ended.asked if name in ENDING_SIGNALS][-1]
    code = outcome.STOPPED_BY_PERSON if by == "SIGINT" else INTERRUPTED
    return outcome.PARTIAL, f"interrupted by {by}, {described(ended)}", code


def steps_wait(exit_code: int, summary: Any) -> bool:
    """Say whether exit code 2 means, by the summary of the command, that steps are to be done."""
    return exit_code == 2 and isinstance(summary, dict) and summary.get("exitCode") == 2


def step_row(
    time_us: int, step: str, exit_code: int, reported: str | None, seconds: float
) -> LedgerRow:
    """Return the row of a step that ended."""
    status, reason = status_of(exit_code, reported)
    return LedgerRow(
        row_time(time_us),
        step,
        exit_code,
        status=status,
        reason=reason,
        duration_ms=round(seconds * 1000),
    )


def end_run(
    session: Session,
    ended: Ended,
    report: ExitReport,
    summary: Any,
    within: tuple[str, str, str] | None = None,
) -> Verdict:
    """Record how the command ended, and end the attempt, by what its steps say.

    `report` is on the ledger, and on the `summary` that the command wrote, if it wrote one.
    `within` is what the runs came to that the command has started, None when it started none.
    """
    expected = Expected(session.reload(), ())
    said = _said(ended, report, summary, within)
    if said is not None and outcome.is_terminal(said[0], said[2]) and _gate_fails(session):
        said = None
    try:
        return conclude(session, ended, expected, said=said)
    except errors.GateFailedError:  # G12: what the gate has judged is not talked away
        return conclude(session, ended, expected)


def _gate_fails(session: Session) -> bool:
    """Say whether what the command recorded fails by the gate: no word of its output mends that."""
    judgement = judge(session.run.counted_facts(), session.policy())
    return outcome.traits(judgement.outcome, judgement.reason_code).fails_step


def _said(
    ended: Ended, report: ExitReport, summary: Any, within: tuple[str, str, str] | None
) -> tuple[str, str, str] | None:
    """Return outcome, reason and code by the steps; None where the command's own end decides."""
    bad = bad_ending(ended, (0,))
    if bad is None:
        cut_off = _cut_off(ended)
        if cut_off is not None:
            return cut_off
    elif bad[2] != "exit_code":
        return None
    if steps_wait(exit_code_of(ended), summary) and not report.failed and not report.missing:
        return outcome.PARTIAL, str(summary.get("summaryLine") or "steps wait"), STEPS_DEFERRED
    by_steps = outcome_of(report)
    if bad is None:
        said = [each for each in (by_steps, within) if each is not None]
        return max(said, key=lambda each: outcome.severity(each[0], each[2]), default=None)
    if by_steps is None:
        return None
    # With nothing finer in the rows, `exit code 3` says more than `step x failed`. No word of a
    # step makes the end of the command better.
    finer = outcome.traits(by_steps[0], by_steps[2]).fails_step and by_steps[0] != bad[0]
    return by_steps if finer else None


def skip_run(session: Session, other: str) -> Verdict:
    """End a run whose job is at work already, in another run."""
    reason = f"run {other} of the same job is at work"
    session.finish(outcome.SKIPPED, reason=reason, reason_code=SKIPPED_CONCURRENCY)
    return Verdict(outcome.SKIPPED, reason, SKIPPED_CONCURRENCY, {})


def summary_of_run(
    run_id: str,
    job: str,
    ledger: str,
    required: Sequence[str],
    verdict: Verdict | None,
    *,
    exit_code: int,
    started_us: int,
    finished_us: int,
    duration_us: int,
    validation: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the summary of a run whose command wrote none: its steps are those of the ledger."""
    rows = [row for row in Ledger(ledger).last.values() if row.step != job or row.step in required]
    return orchestrator_summary(
        run_id,
        OURS,
        started_us=started_us,
        finished_us=finished_us,
        duration_us=duration_us,
        exit_code=_summary_code(exit_code, verdict),
        steps=[_step(row, verdict if row.step == job else None, run_id) for row in rows],
        job=job,
        validation=validation,
    )


def _step(row: LedgerRow, verdict: Verdict | None, run_id: str) -> SummaryStep:
    said = row.reason if outcome.is_command_status(row.reason) else None
    text = row.reason or f"exit code {row.exit_code}"
    if verdict is not None and outcome.is_outcome(verdict.outcome):
        # That nothing was there to be judged is no statement on the work.
        judged = verdict.reason_code != outcome.NOT_JUDGED
        said = verdict.outcome if judged else None
        text = verdict.reason or text
    if said is not None and row.failed and not _fails(said):
        said = None  # a good word beside a failure
    return SummaryStep(
        row.step,
        "failed" if row.failed else "skipped_guard" if row.skipped else "ok",
        summary=text,
        duration_us=(row.duration_ms or 0) * 1000,
        job_run_id=None if verdict is None else run_id,
        semantic_outcome=said,
    )


def _fails(said: str) -> bool:
    return outcome.traits(outcome.from_command_status(said)).fails_step


def _summary_code(exit_code: int, verdict: Verdict | None) -> int:
    if verdict is None or not outcome.is_outcome(verdict.outcome):
        return 1 if exit_code or verdict is None else 0
    meant = outcome.traits(verdict.outcome, verdict.reason_code)
    if meant.withholds_guard:
        return 2 if meant.validator_status == "degraded" else 1
    return 1 if exit_code else 0


def refused_rows(time_us: int, required: Sequence[str], *, allow_skip: bool) -> list[LedgerRow]:
    """Return the rows of steps that were not begun because the job is at work already.

    Where a step may be skipped that is good; else it is a failure that passes by itself.
    """
    code = 0 if allow_skip else 75
    return [
        LedgerRow(row_time(time_us), name, code, status=STEP_SKIPPED, reason=SKIPPED_CONCURRENCY)
        for name in required
    ]
