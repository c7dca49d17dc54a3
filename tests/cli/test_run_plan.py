"""`run plan` shows what a resume would do, and does nothing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import FINISHES, abandon
from command_line import Done, here
from stores import files, opened

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]


def plan(capsys: Capture, *options: str) -> dict[str, Any]:
    done = here(capsys, "run", "plan", "job", *options, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def lines(done: Done) -> list[str]:
    """Return the lines with single spaces."""
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_it_shows_people_what_would_be_done(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    with opened(store_path) as services:
        session = services.session("job", 1)
        session.plan_batches("parse", 9, 1, None)
        session.complete_batch("parse", 4)
        session.save_checkpoint({"row": 7}, phase="parse")
        session.intend_effect("mail")
        session.intend_effect("ping", idempotent=True)
    done = here(capsys, "run", "plan", "job")
    shown = lines(done)

    assert done.returncode == 0
    assert "Run job" in shown
    assert "Resume attempt 2, from version 8" in shown
    assert "Checkpoint version 8, phase parse" in shown
    assert "Phases parse: go on, reuse batches 0, 4, run batches 1-3, 5-8" in shown
    assert "Effects ! mail: ask a person (in doubt, and the job says 'ask')" in shown
    assert "ping: do again (in doubt, and doing it twice does no harm)" in shown
    assert "Retries 0 without progress, 2 allowed" in shown
    assert "In the way effects may have happened: 'mail' [effects_in_doubt]" in shown
    assert any(line.startswith("Executes ") for line in shown)


def test_without_an_obstacle_it_says_so(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)

    assert lines(here(capsys, "run", "plan", "job"))[-1] == "In the way nothing"


def test_of_a_finished_run_it_says_only_that(capsys: Capture, store_path: Path) -> None:
    """It has no next attempt, and nothing that one would do."""
    abandon(store_path)
    here(capsys, "run", "resume", "job")
    done = here(capsys, "run", "plan", "job")

    assert lines(done) == ["Run job", "In the way it is finished (success) [finished]"]


def test_json_has_everything(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    found = plan(capsys)

    assert (found["jobRunId"], found["version"], found["epoch"]) == ("job", 5, 2)
    assert (found["canResume"], found["obstacles"], found["unattended"]) == (True, [], False)
    assert found["execute"]["argv"] == [sys.executable, "-c", FINISHES]
    assert found["phases"][0]["batchesReused"] == [[0, 0]]
    assert len(found["digest"]) == 32


def test_it_writes_nothing(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    before = files(store_path)
    here(capsys, "run", "plan", "job")
    here(capsys, "run", "plan", "job", "--unattended")

    assert files(store_path) == before


def test_the_same_plan_has_the_same_digest(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)

    assert plan(capsys)["digest"] == plan(capsys)["digest"]


def test_a_changed_input_and_a_damaged_artifact_are_shown(
    capsys: Capture, store_path: Path, tmp_path: Path
) -> None:
    data, report = tmp_path / "data.csv", tmp_path / "report.html"
    data.write_text("1")
    report.write_text("whole")
    abandon(store_path)
    here(capsys, "run", "recovery", "job", "--input-file", str(data), "--reason", "it is read")
    here(capsys, "run", "artifact", "report", str(report), "--run", "job", "--epoch", "1")
    good = here(capsys, "run", "plan", "job")
    data.write_text("2")
    report.unlink()
    bad = here(capsys, "run", "plan", "job")

    assert f"input {data}: unchanged" in good.stdout
    assert f"report: good ({report})" in good.stdout
    assert f"input {data}: changed, has another checksum than the recorded one" in bad.stdout
    assert f"! report: is missing ({report})" in bad.stdout
    assert "[artifact_damaged]" in bad.stdout


def test_a_check_of_ones_own_looks_at_each_artifact(
    capsys: Capture, store_path: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    report.write_text("no html at all")
    abandon(store_path)
    here(capsys, "run", "artifact", "report", str(report), "--run", "job", "--epoch", "1")
    check = shlex.join([sys.executable, "-c", "import sys; sys.exit('no header')"])
    here(capsys, "run", "recovery", "job", "--check-artifact", check, "--reason", "be strict")
    done = here(capsys, "run", "plan", "job")

    assert "report: does not pass its check: no header" in done.stdout


def test_the_watchdog_sees_more_in_the_way(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, auto_resume=False)

    assert plan(capsys)["canResume"]
    assert [each["code"] for each in plan(capsys, "--unattended")["obstacles"]] == [
        "auto_resume_off"
    ]


def test_a_living_owner_is_in_the_way(capsys: Capture, store_path: Path) -> None:
    from tachograph.infra.processes import describe

    abandon(store_path, owner=describe(os.getpid()))

    assert plan(capsys)["obstacles"][0]["code"] == "owned"


def test_an_unknown_run_is_exit_code_3(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    done = here(capsys, "run", "plan", "jub")

    assert done.returncode == 3
    assert "Did you mean job?" in done.stderr


def test_a_prefix_will_do(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, run_id="nightly-report")

    assert "nightly-report" in here(capsys, "run", "plan", "nightly").stdout
