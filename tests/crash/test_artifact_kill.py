"""A writer of artifact files that is killed at any step leaves what the next one repairs."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from stores import begin, opened
from tree_reader import load

from tachograph.artifact_trees import layout

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.session import Session

STEPS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "fcntl.flock")
MOST_STEPS = 200


def kill_at(step: int) -> None:
    """Let this process kill itself right before its n-th step."""
    seen = 0

    def hook(event: str, _arguments: Any) -> None:
        nonlocal seen
        if event in STEPS:
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def refresh_in_a_child(store: Path, root: Path, step: int) -> int:
    """Bring the files up to the log in a child that is killed before a step; return its end."""
    child = os.fork()
    if not child:
        code = 1
        try:
            with opened(store) as services:
                kill_at(step)
                layout(services, str(root)).refresh("job-1")
                code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def files(root: Path) -> dict[str, bytes]:
    """Return the files of the run; leftovers of a killed writer begin with a dot."""
    return {
        path.name: path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def record(session: Session, index: int) -> None:
    """Record one batch more."""
    session.complete_batch("parse", index, inputs=1, parsed=1, output=[index])


def test_a_writer_killed_at_any_step_is_made_good_by_the_next(tmp_path: Path) -> None:
    store, root = tmp_path / "store", tmp_path / "tree"
    with opened(store) as services:
        session = begin(services, "job-1")
        session.start_phase("parse")
        session.plan_batches("parse", MOST_STEPS + 1, 1, None)
        layout(services, str(root)).refresh("job-1")
    for step in range(1, MOST_STEPS):
        with opened(store) as services:
            record(services.session("job-1", 1), step)
        if refresh_in_a_child(store, root, step) == 0:
            break
        (path,) = root.rglob("summary.json")
        assert load(path) is not None, f"killed before step {step}"
        with opened(store) as services:
            layout(services, str(root)).refresh("job-1")
            layout(services, str(tmp_path / f"whole-{step}")).refresh("job-1")
        found, whole = files(root), files(tmp_path / f"whole-{step}")
        assert found["events.jsonl"] == whole["events.jsonl"]
        assert found["checkpoint.json"] == whole["checkpoint.json"]
        assert found["report.md"] == whole["report.md"]
    else:
        raise AssertionError("the writer has more steps than were tried")
    assert step > 5


def test_a_removal_killed_at_any_step_is_recorded_once_and_done(tmp_path: Path) -> None:
    for step in range(1, MOST_STEPS):
        store, root = tmp_path / f"store-{step}", tmp_path / f"tree-{step}"
        with opened(store) as services:
            session = begin(services, "job-1")
            session.start_phase("parse")
            record(session, 0)
            layout(services, str(root)).refresh("job-1")
            session.end_phase("parse")
            session.finish("success")
        ended = refresh_in_a_child(store, root, step)
        with opened(store) as services:
            layout(services, str(root)).refresh("job-1")
            topics = [each.topic for each in services.log.read_stream("job-1")]
        assert set(files(root)) == {"report.md", "summary.json"}, f"killed before step {step}"
        assert topics.count("run.files-removed") == 1, f"killed before step {step}"
        if ended == 0:
            break
    else:
        raise AssertionError("the writer has more steps than were tried")
