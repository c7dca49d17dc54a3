"""The demonstration: a real job, a real SIGKILL, a real resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tachograph.cli.main import execute
from tachograph.jobs import demo


def test_the_demonstration_kills_a_job_and_resumes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """G1, G7: half of the work is reused, the rest is run, and the report is there."""
    assert execute(["demo", "--dir", str(tmp_path / "demo"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert found["semanticOutcome"] == "success"
    assert found["reusedBatches"] >= found["ranBatches"] - 3 > 5
    for page in found["report"]:
        assert Path(page).stat().st_size > 1000


def test_a_folder_in_use_is_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").touch()

    assert execute(["demo", "--dir", str(tmp_path)]) == 1
    assert "already exists" in capsys.readouterr().err


def test_a_job_that_ends_too_early_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_CHILD", "raise SystemExit('no disk')")

    with pytest.raises(demo.DemoError, match="no disk"):
        demo.kill_half_way(tmp_path, lambda _done, _total: None)
