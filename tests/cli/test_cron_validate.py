"""`tacho cron validate` prints and writes its report, and ends with the code that it recommends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from command_line import here, tacho

from tachograph.cli import cron_validate
from tachograph.cli.shapes import SHAPES
from tachograph.infra import cron_reading

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

STEM = "nightly-20240508T021530Z-4711"
TIME = "2024-05-08T02:15:31Z"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger in which `prune` ended well and `distill` did not."""
    path = tmp_path / f"{STEM}.exit.txt"
    path.write_text(f"{TIME} prune exit=0\n{TIME} distill exit=3\n")
    return path


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        (["--required-steps", "prune"], 0),
        (["--required-steps", "prune,distill"], 1),
        (["--required-steps", "prune", "--required-steps", "distill"], 1),
        (["--required-steps", "prune", "distill"], 1),
        (["--required-steps", "prune, prune"], 0),
    ],
)
def test_required_steps_are_given_in_every_way(
    steps: list[str], code: int, ledger: Path, capsys: Capture
) -> None:
    done = here(capsys, "cron", "validate", "--exit-path", ledger, *steps)

    assert done.returncode == code, done.stdout


def test_code_2_is_for_the_meaning_of_the_work(
    ledger: Path, tmp_path: Path, capsys: Capture
) -> None:
    log = tmp_path / "log"
    log.write_text("--- steps ---\nprune: semantic_empty\n")
    arguments: list[str | Path] = [
        "--exit-path",
        ledger,
        "--log-path",
        log,
        "--required-steps",
        "prune",
    ]
    done = here(capsys, "cron", "validate", *arguments)

    assert done.returncode == 2
    assert "semantic_failure: prune: semantic_empty (semantic_fail)" in done.stdout


def test_people_read_what_is_wrong_and_what_is_odd(ledger: Path, capsys: Capture) -> None:
    with ledger.open("a") as file:
        file.write("Killed\n")
    arguments: list[str | Path] = [
        "--exit-path",
        ledger,
        "--required-steps",
        "prune,distill,reflect",
    ]
    done = here(capsys, "cron", "validate", *arguments)

    assert done.stdout.splitlines() == [
        "failed, semantic status unknown, exit code 1.",
        "The guard is withheld. Read first: the ledger.",
        "Missing steps: reflect; Failed steps: distill (exit=3)",
        f"  {TIME} prune exit=0",
        f"  {TIME} distill exit=3",
        "mechanical_failure: distill: nonzero_exit (unknown)",
        "mechanical_failure: reflect: missing_required_step (unknown)",
        "Unexplained (1):",
        f"  {ledger}:3: Killed",
    ]


def test_json_has_its_shape_and_is_what_is_written(
    ledger: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "validation.json"
    options: list[str | Path] = ["--required-steps", "prune", "--json", "--output-json", path]
    done = here(capsys, "cron", "validate", "--exit-path", ledger, *options)

    assert SHAPES["cron-validate"].validate_json(done.stdout).recommended_exit_code == 0
    assert json.loads(path.read_text()) == json.loads(done.stdout)


def test_a_summary_elsewhere_is_read_when_it_is_named(
    ledger: Path, tmp_path: Path, capsys: Capture
) -> None:
    summary = tmp_path / "else.json"
    steps = [{"name": "prune", "status": "failed"}]
    summary.write_text(json.dumps({"schemaVersion": 1, "exitCode": 1, "steps": steps}))
    options: list[str | Path] = ["--required-steps", "prune", "--summary-path", summary, "--json"]
    done = here(capsys, "cron", "validate", "--exit-path", ledger, *options)

    assert done.returncode == 1
    assert json.loads(done.stdout)["readFirst"] == "summary"


def test_a_ledger_that_is_not_there_is_a_finding_not_an_error(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "v.json"
    options: list[str | Path] = ["--required-steps", "prune", "--output-json", path]
    done = here(capsys, "cron", "validate", "--exit-path", tmp_path / "none.exit.txt", *options)

    assert done.returncode == 1
    assert json.loads(path.read_text())["reportableIssues"][0]["failureClass"] == (
        "missing_exit_ledger"
    )


def test_a_report_that_cannot_be_written_is_told(ledger: Path, capsys: Capture) -> None:
    options: list[str | Path] = ["--required-steps", "prune", "--output-json", ledger / "v.json"]
    done = here(capsys, "cron", "validate", "--exit-path", ledger, *options)

    assert done.returncode == 1
    assert "was not written" in done.stderr


def test_the_file_is_never_empty(
    ledger: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """#2134: a validator that fails leaves a placeholder."""

    def broken(_files: object, _path: str, **_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(cron_reading.CronFiles, "text", broken)
    path = tmp_path / "v.json"
    options: list[str | Path] = ["--required-steps", "prune", "--output-json", path]
    done = here(capsys, "cron", "validate", "--exit-path", ledger, *options)

    assert done.returncode == 1
    assert json.loads(path.read_text())["maintenanceStatus"] == "unknown"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--required-steps", "prune"], "Which run?"),
        (["--exit-path", "x.exit.txt"], "Which steps?"),
        (["--exit-path", "x.exit.txt", "--required-steps", ","], "Which steps?"),
        (["--exit-path", "x.exit.txt", "--wrong"], "wrong"),
    ],
)
def test_a_line_that_makes_no_sense_is_2_and_prints_no_report(
    arguments: list[str], complaint: str, capsys: Capture
) -> None:
    done = here(capsys, "cron", "validate", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_no_file_of_the_run_is_changed(ledger: Path) -> None:
    before = ledger.read_bytes()
    done = tacho("cron", "validate", "--exit-path", ledger, "--required-steps", "prune")

    assert done.returncode == 0
    assert ledger.read_bytes() == before
    assert [path.name for path in ledger.parent.iterdir()] == [ledger.name]


def test_the_help_says_that_its_codes_are_its_own(capsys: Capture) -> None:
    assert "not those of other commands" in cron_validate.SPEC.details
