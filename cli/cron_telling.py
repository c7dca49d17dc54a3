"""What `tacho cron exec` says at the end of a run, on stderr: stdout belongs to the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.cron_ending import Ending
    from tachograph.domain.exit_report import ExitReport
    from tachograph.executing import Verdict


def tell(
    ending: Ending, verdict: Verdict | None, report: ExitReport | None, guard: str, final: int
) -> None:
    """Say what came of a run, of its traces and of its guard."""
    out = ending.out
    outcome = "" if verdict is None else f"{verdict.outcome}, {verdict.reason}; "
    status = "unknown" if report is None else report.status
    out.note(f"tacho: job {ending.job}: {outcome}maintenance {status}, guard {guard}")
    if report is not None and report.error and report.exit_code:
        out.warn(f"tacho: job {ending.job}: {report.error}")
    if out.json:
        from tachograph.cli.output import to_json

        out.warn(to_json(_shape(ending, verdict, report, guard, final)))


def _shape(
    ending: Ending, verdict: Verdict | None, report: ExitReport | None, guard: str, final: int
) -> dict[str, Any]:
    paths = ending.paths
    return {
        "jobRunId": ending.run_id,
        "job": ending.job,
        "outcome": None if verdict is None else verdict.outcome,
        "reasonCode": None if verdict is None else verdict.reason_code,
        "reason": None if verdict is None else verdict.reason,
        "exitCode": final,
        "guard": guard,
        "logPath": None if paths is None else paths.log,
        "exitPath": None if paths is None else paths.exit,
        "summaryPath": None if paths is None else paths.summary,
        "validationPath": None if paths is None else paths.validation,
        "validation": None if report is None else report.to_json(),
    }


def short(shown: dict[str, Any], guard: str) -> dict[str, Any]:
    """Return what of a verdict is in the summary."""
    names = ("maintenanceStatus", "semanticStatus", "recommendedExitCode", "guardUpdated", "error")
    return {**{name: shown.get(name) for name in names}, "guard": guard}
