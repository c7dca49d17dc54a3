"""Our run, written as a tree of job-run files and imported elsewhere, is the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from imports import importing, run_of, status

from tachograph import record

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.recording import Recording

Capture = pytest.CaptureFixture[str]

ITEMS = list(range(5))
SAME = (
    "jobRunId",
    "command",
    "status",
    "semanticOutcome",
    "reasonCode",
    "semanticReason",
    "inputFingerprint",
    "progress",
    "startedAt",
    "finishedAt",
)


def work(run: Recording, until: int | None = None) -> None:
    """Go through the batches; stop before batch `until`."""
    with run.phase("extract"):
        pass
    with run.phase("analyze") as phase:
        for batch in phase.batches(ITEMS, size=2):
            if batch.index == until:
                raise KeyboardInterrupt
            batch.complete([{"incidentIndex": item, "text": f"t{item}"} for item in batch.items])


def carried_over(
    run_id: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, Any]:
    """Return how a run stands in its store, and in another one after an import."""
    before = status(capsys, run_id)
    written = here(capsys, "run", "artifacts", run_id, "--write", tmp_path / "tree")
    assert written.returncode == 0, written.stderr
    monkeypatch.setenv("TACHO_STORE", str(tmp_path / "other"))
    importing(capsys, tmp_path / "tree")
    return before, status(capsys, run_id)


@pytest.mark.usefixtures("store_environment")
@pytest.mark.parametrize("stops", [(1,), (2,), (1, 2), ()])
def test_a_run_is_the_same_elsewhere(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, stops: tuple[int, ...]
) -> None:
    run_id = ""
    for stop in stops:
        with pytest.raises(KeyboardInterrupt), record("tidy", {"items": ITEMS}) as run:
            run_id = run.id
            work(run, stop)
    if not stops:
        with record("tidy", {"items": ITEMS}) as run:
            run_id = run.id
            work(run)
    there = run_of(run_id)
    before, after = carried_over(run_id, tmp_path, capsys, monkeypatch)
    here_now = run_of(run_id)

    assert {name: after[name] for name in SAME} == {name: before[name] for name in SAME}
    assert [(each["name"], each["startedAt"]) for each in after["phases"]] == [
        (each["name"], each["startedAt"]) for each in before["phases"]
    ]
    if stops:
        plan = ("total", "size", "inputs", "parsed", "done")
        assert [getattr(here_now.phases["analyze"], name) for name in plan] == [
            getattr(there.phases["analyze"], name) for name in plan
        ]
        assert len(after["attempts"]) == len(stops)


@pytest.mark.usefixtures("store_environment")
def test_the_outputs_of_its_batches_come_along(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt), record("tidy", {"items": ITEMS}) as run:
        work(run, 2)
    carried_over(run.id, tmp_path, capsys, monkeypatch)
    with pytest.raises(KeyboardInterrupt), record("tidy", run_id=run.id) as again:
        assert again.outputs("analyze") == [
            {"incidentIndex": item, "text": f"t{item}"} for item in ITEMS[:4]
        ]
        raise KeyboardInterrupt
