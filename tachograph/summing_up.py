"""Sum an orchestrator run up: exit code, and the summary as the original's files hold it. Pure."""

from __future__ import annotations

from tachograph.domain.maintenance_plan import STEP
from tachograph.domain.orchestrator_summary import SummaryStep, orchestrator_summary
from tachograph.domain.roll_up import LEFT_OVER, STEP_FAILED, roll_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.run import Run


def exit_code(run: Run) -> int:
    """Return the exit code (0, 1 or 2) of an orchestrator run, as its steps are now."""
    cut_off = any(step["status"] is None for step in run.maintenance_steps.values())
    ended = {n: step for n, step in run.maintenance_steps.items() if step["status"] is not None}
    rolled = roll_up(ended)
    return rolled.exit_code if rolled.exit_code == STEP_FAILED or not cut_off else LEFT_OVER


def summary(
    run: Run, *, job: str | None = None, validation: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the summary of an orchestrator run with the field names of the original's files.

    All of it comes from the log. A step that was cut off is `deferred`, one that was not come to
    is left out. Raises ValueError for a run that is none of maintenance.
    """
    if run.maintenance is None:
        raise ValueError(f"run {run.id} is no run of maintenance")
    known = run.maintenance_steps
    names = [name for name in run.maintenance["steps"] if name in known]
    return orchestrator_summary(
        run.id,
        tier_label(run.maintenance["tier"], run.maintenance["options"]),
        started_us=run.created_us,
        finished_us=run.ended_us or run.updated_us,
        exit_code=exit_code(run),
        steps=[_summed_up(name, known[name]) for name in names],
        job=job,
        validation=validation,
    )


def summary_steps(steps: Mapping[str, Mapping[str, Any]]) -> list[SummaryStep]:
    """Return steps as the summary shows them."""
    return [_summed_up(name, step) for name, step in steps.items()]


def tier_label(tier: str, options: Mapping[str, Any]) -> str:
    """Return the tier as summaries name it: a single step's own."""
    return str(options.get("tier", tier)) if tier == STEP else tier


def _summed_up(name: str, step: Mapping[str, Any]) -> SummaryStep:
    if step["status"] is None:
        return SummaryStep(name, "deferred", summary="it was cut off")
    # Readers of the original take `partial` for a failure: of what waits, the status says enough.
    waits = step["status"] in ("deferred", "rate_limited")
    return SummaryStep(
        name,
        step["status"],
        summary=step["summary"],
        duration_us=step["duration_us"],
        job_run_id=next(iter(step["runs"]), None),
        semantic_outcome=None if waits else step["outcome"],
    )
