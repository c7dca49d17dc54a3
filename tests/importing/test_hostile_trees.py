"""What somebody has put into a tree holds no import up, leads it nowhere, and takes no memory."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from imports import importing, run_of, texts
from job_run_trees import (
    JOB,
    at,
    batches,
    cut_off,
    ending,
    opening,
    orchestrator,
    phase,
    put,
    summary,
)

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")


@pytest.mark.parametrize("name", ["summary.json", "events.jsonl", "checkpoint.json"])
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(
    tree: Path, capsys: Capture, name: str
) -> None:
    folder = put(tree, summary(), opening(), batches([0]))
    put(tree, summary(jobRunId="job-b-1"), name="job-b-1")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    good, bad = sorted(importing(capsys, tree, code=1), key=lambda entry: entry["jobRunIds"] != [])
    found = [bad, good] if bad["problems"] else [good, bad]

    assert found[0]["problems"][0]["path"] == str(folder / name)
    assert "it is no regular file" in texts(found[0])
    assert run_of("job-b-1").finished


def test_a_pipe_in_the_place_of_a_summary_of_an_orchestrator_holds_nobody_up(
    tree: Path, capsys: Capture
) -> None:
    path = orchestrator(tree)
    path.unlink()
    os.mkfifo(path)
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["state"], entry["path"]) == ("unreadable", str(path))
    assert "it is no regular file" in texts(entry)


def test_a_pipe_in_the_place_of_a_checkpoint_file_holds_nobody_up(
    tree: Path, capsys: Capture
) -> None:
    path = tree / "m3-batches-aaaaaaaa.json"
    os.mkfifo(path)
    done = here(capsys, "checkpoint", "import", path, "--apply")

    assert done.returncode == 1
    assert f"{path}: it cannot be read: it is no regular file" in done.stderr


@pytest.mark.parametrize("name", ["summary.json", "events.jsonl", "checkpoint.json"])
def test_a_linked_file_is_not_followed_and_named(
    tree: Path, tmp_path: Path, capsys: Capture, name: str
) -> None:
    folder = put(tree, summary(), opening(), batches([0]))
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    (entry,) = importing(capsys, tree, code=1)

    assert entry["problems"][0]["path"] == str(folder / name)
    assert "links are not followed" in texts(entry)


def test_a_linked_summary_of_an_orchestrator_is_not_followed_and_named(
    tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = orchestrator(tree)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["state"], entry["path"]) == ("unreadable", str(path))
    assert "links are not followed" in texts(entry)


def test_a_linked_folder_is_not_followed_and_named(
    tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    put(tmp_path / "other", summary())
    (tree / "more").symlink_to(tmp_path / "other")
    (tree / "20260301" / "job-runs").mkdir(parents=True)
    job = tree / "20260301" / "job-runs" / JOB
    job.symlink_to(tmp_path / "other" / "20260301" / "job-runs" / JOB)
    entries = importing(capsys, tree, code=1)

    assert {(entry["path"], entry["state"]) for entry in entries} == {
        (str(job), "unreadable"),
        (str(tree / "more"), "unreadable"),
    }
    assert all("links are not followed" in texts(entry) for entry in entries)


def test_a_link_that_leads_nowhere_in_the_place_of_a_job_run_is_named(
    tree: Path, capsys: Capture
) -> None:
    (tree / "job-runs").mkdir()
    (tree / "job-runs" / JOB).symlink_to("gone")
    (entry,) = importing(capsys, tree, code=1)

    assert (entry["state"], entry["path"]) == ("unreadable", str(tree / "job-runs" / JOB))


def test_a_link_to_what_is_found_anyway_is_no_problem(tree: Path, capsys: Capture) -> None:
    put(tree, summary())
    (tree / "latest").symlink_to("20260301")
    (entry,) = importing(capsys, tree)

    assert entry["state"] == "imported"


def test_a_root_that_is_a_link_is_followed_since_it_was_named(
    tree: Path, tmp_path: Path, capsys: Capture
) -> None:
    put(tree, summary())
    (tmp_path / "link").symlink_to(tree)
    (entry,) = importing(capsys, tmp_path / "link")

    assert entry["state"] == "imported"


HUGE: list[Any] = [
    (batches([0], totalBatches=1_000_000_000), "totalBatches is 1000000000, and no more than"),
    (batches([0], batchSize=2**60), "batchSize is 1152921504606846976, and no more than"),
    ({"offset": 1, "total": 10**30}, "total is 1000000000000000000000000000000, and no more than"),
    ({"offset": 1, "total": 2, "migrated": 1e300}, "migrated is 1e+300, and no more than"),
]


@pytest.mark.parametrize(("checkpoint", "problem"), HUGE)
def test_a_checkpoint_with_numbers_that_no_job_has_is_refused_and_named(
    tree: Path, capsys: Capture, checkpoint: Any, problem: str
) -> None:
    put(tree, summary(), [*opening(), *ending("success")], checkpoint)
    put(tree, summary(jobRunId="job-b-1"), name="job-b-1")
    named = importing(capsys, tree, code=1)
    file = tree / "m3-batches-0dc845e1.json"
    file.write_text(json.dumps(checkpoint), encoding="utf-8")
    told = here(capsys, "checkpoint", "import", file, "--command", "x", "--fingerprint", "0dc845e1")

    assert problem in "".join(map(texts, named))
    assert problem in told.stderr
    assert {entry["state"] for entry in named} == {"imported"}
    assert run_of("job-b-1").finished


def test_a_plan_that_was_hardly_begun_is_not_completed_batch_by_batch(
    tree: Path, capsys: Capture
) -> None:
    """Each batch is an event: the word of one line is not worth a million of them."""
    put(tree, cut_off(), opening(), batches([0], total=1_000_000))
    again = summary(
        startedAt=at(5, 1),
        finishedAt=at(60, 1),
        phases=[phase("analyze", "completed", at(8, 1), at(59, 1))],
        progress=None,
    )
    put(tree, again, day="20260302")
    _first, second = importing(capsys, tree, code=1)
    run = run_of(JOB)

    assert "phase 'analyze' lacks 999999 of 1000000 batches" in texts(second)
    assert (run.outcome, run.phases["analyze"].status) == ("partial", "failed")
    assert run.version < 50


def test_a_batch_line_with_a_number_that_no_job_has_is_left_out(
    tree: Path, capsys: Capture
) -> None:
    line = {"type": "batch_complete", "ts": at(20), "index": 10**30}
    put(tree, cut_off(), [*opening(), line])
    (entry,) = importing(capsys, tree, code=1)

    assert "line 4 is left out: its index is 1000000000000000000000000000000" in texts(entry)
