"""The job `code-report`: measure every Python file of a tree and render a report.

It is written against the public API as a user would write it, and serves as the example.
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any

import tachograph
from tachograph.infra.writing import write_atomically
from tachograph.jobs.report_pages import render_html, render_json, render_markdown
from tachograph.jobs.source_files import find_python_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tachograph.recording import Recording

COMMAND = "code-report"
PAGES = ("report.md", "report.html", "report.json")
FileFacts = dict[str, Any]


class Report:
    """What a finished job leaves: the run, its outcome, where the pages are, what was reused."""

    def __init__(self, run_id: str, outcome: str, folder: Path, reused: int, ran: int) -> None:
        self.run_id = run_id
        self.outcome = outcome
        self.folder = folder
        self.pages = PAGES
        self.reused_batches = reused
        self.ran_batches = ran


def code_report(
    root: Path,
    output: Path,
    *,
    batch_size: int = 20,
    exclude: Sequence[str] = (),
    store: str | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Report:
    """Measure the Python files below `root` and write report.md, report.html and report.json.

    Killed anywhere and called again with the same arguments, it goes on after the last finished
    batch and writes the same report as an undisturbed run. `on_batch` is told the finished and
    planned batches. Raises NotADirectoryError before anything is recorded.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder. Give --root a folder of Python files.")
    inputs = {
        "root": str(root.resolve()),
        "output": str(output.resolve()),
        "batch_size": batch_size,
        "exclude": list(exclude),
    }
    title = f"Code report of {root}"
    with tachograph.record(COMMAND, inputs, title=title, store=store) as run:
        with run.phase("discover") as phase:
            files = run.step(find_python_files, inputs["root"], inputs["exclude"])
            if not phase.completed:
                phase.end(f"{len(files)} files")
        reused, ran = _analyse(run, root, files, batch_size, on_batch)
        measured: list[FileFacts] = run.outputs("analyse")
        with run.phase("render"):
            _render(run, root.resolve().name, measured, output)
        parsed = sum("error" not in facts for facts in measured)
        run.judge(inputs=len(files), outputs=parsed)
        outcome = run.finish()
        return Report(run.id, outcome, output, reused, ran)


def _analyse(
    run: Recording,
    root: Path,
    files: list[str],
    size: int,
    on_batch: Callable[[int, int], None] | None,
) -> tuple[int, int]:
    """Measure the files of the unfinished batches; return how many were reused and run."""
    with run.phase("analyse") as phase:
        batches = phase.batches(files, size=size)
        done = reused = len(run.state.phases["analyse"].done)
        if on_batch is not None:
            on_batch(done, batches.total)
        for batch in batches:
            facts = [measure_file(root, path) for path in batch.items]
            batch.complete(facts, parsed=sum("error" not in fact for fact in facts))
            done += 1
            if on_batch is not None:
                on_batch(done, batches.total)
    return reused, done - reused


def measure_file(root: Path, path: str) -> FileFacts:
    """Return lines, functions and complexity of one file, or why it could not be measured."""
    import lizard

    try:
        source = (root / path).read_text("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tree's own warnings are not ours to print
            ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return {"path": path, "error": f"{type(error).__name__}: {error}"}
    measured = lizard.analyze_file.analyze_source_code(path, source)
    complexities = [function.cyclomatic_complexity for function in measured.function_list]
    return {
        "path": path,
        "lines": source.count("\n") + (not source.endswith("\n") and source != ""),
        "code_lines": measured.nloc,
        "functions": len(complexities),
        "complexity": sum(complexities),
        "highest": max(complexities, default=0),
    }


def _render(run: Recording, name: str, measured: list[FileFacts], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "report.md": render_markdown(name, measured),
        "report.html": render_html(name, measured),
        "report.json": render_json(name, measured),
    }
    for page, text in pages.items():
        write_atomically(folder / page, text)
        run.artifact(page, folder / page)
