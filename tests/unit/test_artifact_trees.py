"""Where the setting `artifacts` names a folder, runs keep their files there up to date."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from stores import begin, opened
from tree_reader import events, load

import tachograph
from tachograph import artifact_trees, laying_out
from tachograph.artifact_trees import Follower, forget, layout
from tachograph.domain.errors import ArtifactFolderError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CANARY = "canary-77aa-secret-value"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a folder for artifact files."""
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "tree"))
    return tmp_path / "tree"


class Stub:
    """Stands in for what writes the files; `seen` says how it was asked to."""

    def __init__(self, *errors: Exception) -> None:
        self.seen: list[tuple[bool, bool]] = []
        self.looked = threading.Event()
        self._errors = list(errors)

    def refresh(self, _run_id: str, *, whole: bool, wait: bool) -> bool:
        self.seen.append((whole, wait))
        self.looked.set()
        if self._errors:
            raise self._errors.pop(0)
        return True


def follow(stub: Any, told: list[str], version: Any = lambda: 1) -> Follower:
    return Follower(stub, "job-a", version, told.append, seconds=0.001)


def test_a_python_job_has_its_files_while_it_goes_on_and_at_its_end(
    tree: Path, store_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_trees, "SECONDS", 0.001)
    with tachograph.record("demo", {"n": 1}) as run:
        with run.phase("work") as phase:
            for batch in phase.batches([1, 2], size=1):
                batch.complete([batch.index])
        wait_until(lambda: list(tree.rglob("checkpoint.json")))
        (path,) = tree.rglob("summary.json")
        wait_until(lambda: len(events(path.parent / "events.jsonl")) == 4)
        record = load(path)
        assert record is not None
        assert record["semanticOutcome"] == "partial"
        run.judge(inputs=2, outputs=2)

    record = load(path)
    assert record is not None
    assert record["semanticOutcome"] == "success"
    assert {each.name for each in path.parent.iterdir()} == {"summary.json", "report.md"}


def wait_until(happened: Callable[[], object]) -> None:
    """Wait until a follower has come so far; a hanging test is ended from outside."""
    pause = threading.Event()
    while not happened():
        pause.wait(0.01)


def test_a_job_that_fails_leaves_a_report_of_it(tree: Path, store_environment: Path) -> None:
    with pytest.raises(ZeroDivisionError), tachograph.record("demo", {"n": 1}):
        _ = 1 / 0

    (report,) = tree.rglob("report.md")
    assert report.read_text().startswith("# job-demo-fdef5c20: failed")
    assert "ZeroDivisionError" in report.read_text()


def test_without_the_setting_nothing_is_written_and_nothing_imported(
    tmp_path: Path, store_environment: Path
) -> None:
    with tachograph.record("demo", {"n": 1}) as run:
        run.judge(declared="nothing to do")

    assert {path.name for path in tmp_path.iterdir()} == {"store"}


def test_a_folder_that_cannot_be_written_ends_no_job_and_is_noted_in_it(
    tmp_path: Path, store_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TACHO_ARTIFACTS", str(tmp_path / "file" / "tree"))
    with tachograph.record("demo", {"n": 1}) as run:
        run.judge(declared="nothing to do")

    with opened(store_environment) as services:
        records = services.log.read_stream(run.id)
        notes = [services.repository.fields(r) for r in records if r.topic == "run.note-added"]
        outcome = services.repository.get(run.id)
    assert outcome is not None
    assert outcome.outcome == "empty"
    assert [note["source"] for note in notes] == ["artifacts"]
    assert "cannot be read or written" in notes[0]["text"]


def test_no_secret_is_in_the_files(
    tree: Path, store_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", CANARY)
    with tachograph.record("leaky", {"header": CANARY}, title=f"with {CANARY}") as run:
        with run.phase("work") as phase:
            for batch in phase.batches([1, 2], size=1):
                batch.complete([CANARY * 2000])
            run.retry("transient", 1, error=CANARY, model=CANARY)
            run.fallback(CANARY, "other")
            run.effect("send", lambda: CANARY, description=CANARY)
        run.finish("partial", reason=f"401 for {CANARY}")

    files = [path for path in tree.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"checkpoint.json", "events.jsonl", "report.md"}
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


def test_a_follower_looks_only_when_something_was_recorded() -> None:
    stub, told = Stub(), []  # type: ignore[var-annotated]
    asked = threading.Semaphore(0)

    def version() -> int:
        asked.release()
        return 1

    follower = follow(stub, told, version)
    follower.start()
    for _ in range(5):
        asked.acquire()
    follower.stop()

    assert stub.seen == [(False, False), (True, True)]
    assert told == []


def test_a_follower_tells_once_what_is_wrong() -> None:
    wrong = [ArtifactFolderError("/t", "No space left on device"), OSError("odd")]
    stub, told = Stub(*wrong), []  # type: ignore[var-annotated]
    follower = follow(stub, told)
    follower.start()
    stub.looked.wait()
    follower.stop()

    assert len(told) == 1
    assert "No space left on device" in told[0]


def test_a_follower_that_was_never_started_writes_at_the_end() -> None:
    stub = Stub()
    follow(stub, []).stop()

    assert stub.seen == [(True, True)]


def test_a_run_that_is_to_be_forgotten_loses_its_files(tree: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "store") as services:
        begin(services, "job-1").start_phase("parse")
        found = layout(services, str(tree))
        found.refresh("job-1")
        assert forget(services, "job-1").files == 0  # it may go on
        run = services.repository.get("job-1")
        assert run is not None
        run.bodies = run.ended = "erased"
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(services.repository, "get", lambda _run_id: run)
            patched.setattr(laying_out.Layout, "_execute", None, raising=False)
            patched.setattr(laying_out.Layout, "_is_recorded", lambda *_: True)
            assert forget(services, "job-1").files == 3

    assert [path for path in tree.rglob("*") if path.is_dir()] == []
