"""The main job: measured right, the same report however often it was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tachograph.bootstrap import open_store
from tachograph.jobs.code_report import code_report, measure_file
from tachograph.jobs.report_pages import render_html, render_json, render_markdown

GOOD = "def f(x):\n    return x or 1\n\n\ndef g():\n    if f(1):\n        return 2\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(9):
        (root / f"m{number}.py").write_text(GOOD + f"X = {number}\n")
    (root / "odd.py").write_text("def broken(:\n")
    (root / "latin.py").write_bytes(b"# caf\xe9\n")
    return root


def test_a_file_is_measured(tree: Path) -> None:
    assert measure_file(tree, "m1.py") == {
        "path": "m1.py",
        "lines": 8,
        "code_lines": 6,
        "functions": 2,
        "complexity": 4,
        "highest": 2,
    }


@pytest.mark.parametrize("name", ["odd.py", "latin.py", "nowhere.py"])
def test_a_file_that_cannot_be_measured_says_why(tree: Path, name: str) -> None:
    facts = measure_file(tree, name)

    assert facts.keys() == {"path", "error"}


def test_files_that_do_not_parse_are_listed_and_do_not_stop_the_run(
    tree: Path, tmp_path: Path
) -> None:
    report = code_report(tree, tmp_path / "out", batch_size=4, store=str(tmp_path / "store"))

    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (found["files"], found["measured"], found["complexity"]) == (11, 9, 36)
    assert [facts["path"] for facts in found["notMeasured"]] == ["latin.py", "odd.py"]
    assert "odd.py" in (tmp_path / "out" / "report.md").read_text()
    assert report.outcome == "success_with_review"


def test_an_empty_tree_is_empty_and_not_a_failure(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()

    report = code_report(tmp_path / "tree", tmp_path / "out", store=str(tmp_path / "store"))

    assert report.outcome == "empty"


def test_a_wrong_root_records_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="--root"):
        code_report(tmp_path / "nowhere", tmp_path / "out", store=str(tmp_path / "store"))

    assert not (tmp_path / "store").exists()


def test_artifacts_are_recorded_with_their_checksums(tree: Path, tmp_path: Path) -> None:
    report = code_report(tree, tmp_path / "out", store=str(tmp_path / "store"))

    services = open_store(str(tmp_path / "store"))
    run = services.repository.get(report.run_id)
    services.close()
    assert run is not None
    assert sorted(run.artifacts) == ["report.html", "report.json", "report.md"]


def test_killed_after_any_append_and_run_again_the_report_is_the_same(
    tree: Path, tmp_path: Path
) -> None:
    """G1: SIGKILL after the first append, after the second, and so on, each in a new store."""
    calm = code_report(tree, tmp_path / "calm", batch_size=3, store=str(tmp_path / "calm-store"))
    appends = 0
    while True:
        appends += 1
        place = tmp_path / f"killed-{appends}"
        place.mkdir()
        words = [sys.executable, "-c", JOB_KILLED_AFTER, str(tree), str(place), str(appends)]
        child = subprocess.run(words, check=False, capture_output=True)
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()

        again = code_report(tree, place / "out", batch_size=3, store=str(place / "store"))

        assert pages(place / "out") == pages(tmp_path / "calm")
        assert again.reused_batches + again.ran_batches == calm.ran_batches
    assert appends > 12


def pages(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


JOB_KILLED_AFTER = """
import os, signal, sys
from pathlib import Path
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.jobs.code_report import code_report

append, seen = LMDBLog.append, []
tree, place = map(Path, sys.argv[1:3])


def dying(self, *args, **options):
    positions = append(self, *args, **options)
    seen.append(positions)
    if len(seen) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return positions


LMDBLog.append = dying
code_report(tree, place / "out", batch_size=3, store=str(place / "store"))
"""


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_self_contained_and_escapes_names() -> None:
    facts: list[dict[str, Any]] = [
        {
            "path": "<b>&.py",
            "lines": 3,
            "code_lines": 2,
            "functions": 1,
            "complexity": 2,
            "highest": 2,
        },
        {"path": "x|y.py", "error": "SyntaxError: <oops>"},
    ]
    page = render_html("a<b", facts)
    parser = _Texts()
    parser.feed(page)

    assert (parser.links, parser.open) == ([], [])
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;.py" in page
    assert "<svg" in page
    assert json.loads(render_json("a", facts))["files"] == 2
    assert "`x|y.py`: SyntaxError" in render_markdown("a", facts)
