"""The summary of a cron line, as far as the log can give it back. Writes no file."""

from __future__ import annotations

from tachograph.domain.artifact_places import job_of
from tachograph.domain.orchestrator_summary import EXIT_CODES, SummaryStep, orchestrator_summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.run_state import RunState

    Fields = dict[str, Any]

_SKIPPED = "-skipped"


def cron_json(run: RunState, validation: Any) -> Fields | None:
    """Return the summary of a cron line, from its validation; None where that says too little.

    The harness itself writes a fuller one: this is what the log can give back when that is gone.
    """
    if not isinstance(validation, dict) or run.ended_us is None:
        return None
    failed = {_step_name(each): each for each in validation.get("failedSteps") or ()}
    code = validation.get("recommendedExitCode")
    return orchestrator_summary(
        run.id,
        "cron",
        started_us=run.created_us,
        finished_us=run.ended_us,
        exit_code=code if code in EXIT_CODES else 1,
        steps=[_cron_step(each, failed) for each in validation.get("requiredSteps") or ()],
        job=job_of(run),
        validation=validation,
    )


def _cron_step(row: Fields, failed: Mapping[str, Fields]) -> SummaryStep:
    name = _step_name(row)
    if name in failed:
        said = failed[name].get("reason") or failed[name].get("error")
        return SummaryStep(name, "failed", summary=str(said or ""))
    if name.endswith(_SKIPPED):
        return SummaryStep(name.removesuffix(_SKIPPED), "skipped_guard")
    return SummaryStep(name, "failed" if row.get("exit") else "ok")


def _step_name(row: Fields) -> str:
    return str(row.get("name") or "")
