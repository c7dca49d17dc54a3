"""`tacho job run code-report`: measure a tree of Python files and render a report."""

from __future__ import annotations

from tachograph.cli.options import WHOLE, Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Measure every Python file below a folder and render a report.",
    Option("--root", "Folder of the files.", metavar="DIR", complete="path", default="."),
    Option("--output", "Folder of the report.", metavar="DIR", complete="path", default="report"),
    Option("--exclude", "Leave out what this git pattern matches.", multiple=True, metavar="GLOB"),
    Option("--batch-size", "Files in a batch.", kind=WHOLE, default=20, metavar="N"),
    details="Files that git ignores are left out. A file that does not parse is counted and "
    "listed. Killed anywhere and run again with the same options, the job goes on after its "
    "last finished batch and writes the same report as an undisturbed run.",
)


def run(params: Params, out: Output) -> int:
    """Run the job, or resume it; the exit code is the outcome's."""
    from pathlib import Path

    from tachograph.cli.bars import Bar
    from tachograph.domain.outcome import traits
    from tachograph.jobs.code_report import code_report

    if params.batch_size < 1:
        raise UsageError(f"--batch-size {params.batch_size}: give 1 or more.")
    with Bar(out, "analyse") as bar:
        try:
            report = code_report(
                Path(params.root),
                Path(params.output),
                batch_size=params.batch_size,
                exclude=params.exclude,
                store=out.store,
                on_batch=bar,
            )
        except NotADirectoryError as error:
            raise UsageError(str(error)) from error
    pages = [str(report.folder / name) for name in report.pages]
    if out.json:
        out.document(
            {
                "jobRunId": report.run_id,
                "semanticOutcome": report.outcome,
                "reusedBatches": report.reused_batches,
                "ranBatches": report.ran_batches,
                "report": pages,
            }
        )
    else:
        out.line(f"{report.run_id}: {report.outcome}")
        out.line(f"batches: {report.ran_batches} run, {report.reused_batches} reused")
        for page in pages:
            out.line(page)
    return traits(report.outcome).exit_code
