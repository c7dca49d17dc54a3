"""What the runs within a run came to: those that a command has started count, not its exit code."""

from __future__ import annotations

from tachograph.domain import outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.run import Run
    from tachograph.runs import RunRepository

    End = tuple[str, str | None, str]
    """Outcome, reason code and reason."""

NESTED_RUN = "nested_run"
"""Reason code of a run that came to what a run within it came to."""
_PAGE = 1000
_STARTS = ("run.created", "run.attempt-started")


def runs_within(repository: RunRepository, parent: str, after: int) -> list[Run]:
    """Return the runs that were created or taken up for a parent, after a position of the log."""
    found: dict[str, None] = {}
    head = repository.log.head().position
    while after < head:
        records = repository.log.read(after=after, up_to=head, limit=_PAGE, topics=_STARTS)
        for record in records:
            if record.absent or not isinstance(record.stream, str):
                continue
            fields = repository.fields(record)
            if parent in (fields.get("parent"), fields.get("orchestrator")):
                found[record.stream] = None
        after = records[-1].position if len(records) == _PAGE else head
    loaded = [repository.get(run_id) for run_id in found if run_id != parent]
    return [run for run in loaded if run is not None]


def came_to(run: Run, is_at_work: Callable[[Run], bool]) -> End:
    """Return outcome, reason code and reason of a run; one that has none yet did not end.

    `is_at_work` says whether anything may still be at work for a run whose attempt is open.
    """
    if run.ended is not None:
        how = outcome.PARTIAL if run.ended == "cancelled" else outcome.FAILED
        code = outcome.STOPPED_BY_PERSON if run.ended == "cancelled" else run.ended
        return how, code, f"{run.ended}: {run.reason or 'no reason'}"
    if run.outcome is not None:
        return run.outcome, run.reason_code, run.reason or run.outcome
    if run.attempt_open and is_at_work(run):
        return outcome.PARTIAL, "left_running", "it was left running"
    return outcome.FAILED, "unfinished", "it was begun, and nothing says that it ended"


def worst_within(
    runs: Sequence[Run], is_at_work: Callable[[Run], bool]
) -> tuple[str, str, str] | None:
    """Return outcome, reason and reason code of the worst of the runs within another one.

    That is what `conclude` takes as `said`. None where there are no runs.
    """
    if not runs:
        return None
    ends = [(came_to(run, is_at_work), run.id) for run in runs]
    (how, code, reason), run_id = max(ends, key=lambda each: outcome.severity(*each[0][:2]))
    return how, f"as its run {run_id}: {reason}", code or NESTED_RUN
