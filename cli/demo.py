"""`tacho demo`: a real job, killed half-way and resumed, in front of your eyes."""

from __future__ import annotations

from tachograph.cli.options import Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Run a real job, kill it half-way, look at it, resume it.",
    Option(
        "--dir",
        "New folder for the store and the report; a temporary one by default.",
        metavar="DIR",
        complete="path",
    ),
    details="The job measures the installed standard library of Python. It runs in a child "
    "process, which gets SIGKILL after half of its batches.",
)


def run(params: Params, out: Output) -> None:
    """Give the demonstration."""
    from tachograph.cli.bars import Bar
    from tachograph.jobs import demo

    folder = demo.make_folder(params.dir)
    store = folder / "store"
    _say(out, "1. A real job starts in a child process: a code report on Python's own library.")
    with Bar(out, "analyse") as bar:
        killed = demo.kill_half_way(folder, bar)
    _say(
        out,
        f"2. SIGKILL to process {killed.pid}, after {killed.done} of {killed.total} batches. "
        "What does its card say?",
    )
    if not out.json:
        _show(out, store, "run", "status", killed.run_id)
    _say(out, "3. The same job is started again, and goes on where it stopped.")
    with Bar(out, "analyse") as bar:
        report = demo.run_job(str(folder), bar)
    pages = [str(folder / "report" / name) for name in report.pages]
    if out.json:
        out.document(
            {
                "jobRunId": report.run_id,
                "semanticOutcome": report.outcome,
                "killedPid": killed.pid,
                "reusedBatches": report.reused_batches,
                "ranBatches": report.ran_batches,
                "report": pages,
                "store": str(store),
            }
        )
        return
    _show(out, store, "run", "timeline", report.run_id)
    _say(out, f"4. Outcome: {report.outcome}.")
    out.line(f"   reused from the killed process: {report.reused_batches} batches")
    out.line(f"   run by the second:              {report.ran_batches} batches")
    out.line("   the report:")
    for page in pages:
        out.line(f"     {page}")
    out.line(f"   look around: tacho --store {store} run events {report.run_id}")


def _say(out: Output, text: str) -> None:
    if not out.json:
        out.line(f"\n{text}")
        out.flush()


def _show(out: Output, store: Path, *words: str) -> None:
    """Run a command of our own as a user would, and let it print."""
    import subprocess
    import sys

    out.line(f"\n   $ tacho {' '.join(words)}\n")
    out.flush()
    command = [sys.executable, "-m", "tachograph", "--store", str(store), *words]
    subprocess.run(command, check=False)
