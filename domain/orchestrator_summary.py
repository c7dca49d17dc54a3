"""The summary of an orchestrator run as `{job}-{runId}.summary.json` holds it. Writes no file."""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.iso_time import iso_stamp
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SCHEMA_VERSION = 1
SKIPPED_STATUSES = tuple(each for each in outcome.STEP_STATUSES if each.startswith("skipped_"))
EXIT_CODES = (0, 1, 2)
"""Of an orchestrator run: all went well, a step failed, a step is still to be done."""


class SummaryStep(_Fields):
    """One maintenance step of a run that is summed up.

    `status` is one of the eight step statuses. `semantic_outcome` is that of the nested run: one
    of the seven outcomes, or a status of the original's commands, which is mapped to one.
    """

    __slots__ = ("duration_us", "job_run_id", "name", "semantic_outcome", "status", "summary")

    def __init__(
        self,
        name: str,
        status: str,
        *,
        summary: str = "",
        duration_us: int = 0,
        job_run_id: str | None = None,
        semantic_outcome: str | None = None,
    ) -> None:
        if status not in outcome.STEP_STATUSES:
            raise ValueError(f"{status!r} is no status of a step: {outcome.STEP_STATUSES}")
        self.name = name
        self.status = status
        self.summary = summary
        self.duration_us = duration_us
        self.job_run_id = job_run_id
        self.semantic_outcome = semantic_outcome

    def to_json(self) -> dict[str, Any]:
        """Return the step as the file holds it; what is not known is left out."""
        fields: dict[str, Any] = {
            "name": self.name,
            "status": self.status,
            "summary": self.summary,
            "durationMs": self.duration_us // 1000,
        }
        if self.job_run_id is not None:
            fields["jobRunId"] = self.job_run_id
        if self.semantic_outcome is not None:
            fields["semanticOutcome"] = outcome.from_command_status(self.semantic_outcome)
        return fields


def orchestrator_summary(
    run_id: str,
    tier: str,
    *,
    started_us: int,
    finished_us: int,
    exit_code: int,
    steps: Sequence[SummaryStep],
    job: str | None = None,
    duration_us: int | None = None,
    validation: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the summary of an orchestrator run, with the field names of the original's files.

    `tier` is `cycle`, `nightly`, `full`, or `cron` for a cron line that is not ours. Times are
    microseconds UTC; `duration_us` is the difference without it. `job` and `validation` are left
    out of the summary when they are None. Raises ValueError for another exit code than 0, 1, 2.
    """
    if exit_code not in EXIT_CODES:
        raise ValueError(f"exit code {exit_code} is none of an orchestrator run: 0, 1, 2")
    took_us = max(0, finished_us - started_us) if duration_us is None else duration_us
    counts = counted(steps)
    fields: dict[str, Any] = {"schemaVersion": SCHEMA_VERSION, "runId": run_id}
    if job is not None:
        fields["job"] = job
    fields.update(
        tierLabel=tier,
        startedAt=iso_stamp(started_us),
        finishedAt=iso_stamp(finished_us),
        durationMs=took_us // 1000,
        exitCode=exit_code,
        summaryLine=summary_line(tier, counts),
        steps=[each.to_json() for each in steps],
        counts=counts,
    )
    if validation is not None:
        fields["validation"] = dict(validation)
    return fields


def counted(steps: Sequence[SummaryStep]) -> dict[str, int]:
    """Return how many steps ended how; `failed` includes those that a rate limit stopped.

    >>> counted([SummaryStep("distill", "ok"), SummaryStep("reflect", "rate_limited")])
    {'ok': 1, 'skipped': 0, 'deferred': 0, 'failed': 1, 'rateLimited': 1}
    """
    statuses = [each.status for each in steps]
    limited = statuses.count("rate_limited")
    return {
        "ok": statuses.count("ok"),
        "skipped": sum(map(statuses.count, SKIPPED_STATUSES)),
        "deferred": statuses.count("deferred"),
        "failed": statuses.count("failed") + limited,
        "rateLimited": limited,
    }


def summary_line(tier: str, counts: Mapping[str, int]) -> str:
    """Return the line that sums a run up.

    >>> print(summary_line("cycle", counted([SummaryStep("prune", "ok")])))
    Maintenance cycle — 1 steps (1 ok, 0 skipped, 0 deferred, 0 failed)
    """
    named = ("ok", "skipped", "deferred", "failed")
    total = sum(counts[name] for name in named)
    parts = ", ".join(f"{counts[name]} {name}" for name in named)
    return f"Maintenance {tier} — {total} steps ({parts})"


def step_lines(steps: Sequence[SummaryStep]) -> list[str]:
    """Return a line for each step, as they are printed below the summary line.

    >>> step_lines([SummaryStep("prune", "ok", summary="removed=3", duration_us=1_250_000)])
    ['prune                        ok                 1.2 removed=3']
    """
    return [
        f"{each.name:<28} {each.status:<14} {each.duration_us / 1e6:7.1f} {each.summary}".rstrip()
        for each in steps
    ]
