"""`tacho cron validate`: judge what a run of a cron job has left. Changes none of its files."""

from __future__ import annotations

from tachograph.cli.cron_names import check_steps
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.exit_report import ExitReport

SPEC = Spec(
    "Judge what a run of a cron job has left.",
    Argument("steps", "More required steps.", required=False, multiple=True, metavar="STEP..."),
    Option("--exit-path", "Its ledger (HM_EXIT).", metavar="FILE", complete="path"),
    Option("--log-path", "Its log (HM_LOG).", metavar="FILE", complete="path"),
    Option(
        "--required-steps",
        "Steps that must have ended well, separated by commas.",
        multiple=True,
        metavar="STEPS",
    ),
    flag("--allow-skip", "A required step may have been skipped."),
    Option(
        "--summary-path",
        "Its summary; without it the one of that run is looked for.",
        metavar="FILE",
        complete="path",
    ),
    Option("--output-json", "Write the report to a file.", metavar="FILE", complete="path"),
    details="""The summary is read first; ledger and log count as well, and the worst is believed.
Files that the original's harness wrote are judged by its rules, ours by their outcomes.

\b
Exit codes, which are those of the original's validator and not those of other commands:
  0  good, or skipped
  1  steps are missing or failed, or the guard may not be written
  2  every step ended well, and what they say they did is wrong
  2  also a command line that makes no sense; then nothing is printed on stdout

What no rule knows is listed as unexplained: it decides nothing, and is never left out.

\b
  tacho cron validate --exit-path prune-20260101T020000Z-7.exit.txt --required-steps prune""",
)


def run(params: Params, out: Output) -> int:
    """Print the report, write it where it is asked for, and return its exit code."""
    from tachograph.infra import cron_files, cron_reading
    from tachograph.validating_exits import placeholder, validate_exit

    if params.exit_path is None:
        raise UsageError("Which run? Name its ledger with --exit-path.")
    required = check_steps([*params.required_steps, *params.steps])
    if not required:
        raise UsageError("Which steps? Name those that must have ended well: --required-steps.")
    try:
        report = validate_exit(
            cron_reading.CronFiles(),
            params.exit_path,
            required,
            stem=cron_reading.stem_of(params.exit_path),
            log_path=params.log_path,
            summary_path=params.summary_path or cron_reading.summary_of(params.exit_path),
            allow_skip=params.allow_skip,
        )
    except Exception as error:
        if params.output_json is not None:
            cron_files.write_json(params.output_json, placeholder(f"the validator failed: {error}"))
        raise
    shown = report.to_json()
    if out.json:
        out.document(shown)
    else:
        for line in lines(report):
            out.line(line)
    written = 0 if params.output_json is None else _write(params.output_json, shown, out)
    return report.exit_code or written


def _write(path: str, shown: dict[str, Any], out: Output) -> int:
    from tachograph.infra import cron_files

    try:
        cron_files.write_json(path, shown)
    except OSError as error:
        out.warn(f"tacho: the report was not written to {path}: {error.strerror}")
        return 1
    return 0


def lines(report: ExitReport) -> list[str]:
    """Return a report for people."""
    ok = {True: "may be written", False: "is withheld"}
    text = [
        f"{report.status}, semantic status {report.semantic_status}, exit code {report.exit_code}.",
        f"The guard {ok[report.guard_updated]}. Read first: the {report.by}.",
    ]
    if report.error:
        text.append(report.error)
    text += [f"  {row}" for row in report.steps]
    text += [
        f"{issue.category}: {issue.step}: {issue.failure_class} ({issue.semantic_status})"
        for issue in report.issues
    ]
    if report.unexplained:
        text.append(f"Unexplained ({len(report.unexplained)}):")
        text += [
            f"  {each.path}{'' if each.line is None else f':{each.line}'}: {each.text}"
            for each in report.unexplained
        ]
    return text
