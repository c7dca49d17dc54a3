"""A step leaves its row whatever came of it; below the original's harness as below ours."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from command_line import TACHO, here, tacho

from tachograph.cli.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


def step(
    folder: Path, *argv: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a step as the original's harness would: ledger and log are named, and nothing else."""
    names = {"HM_EXIT": str(folder / "exit.txt"), "HM_LOG": str(folder / "log")}
    return tacho("cron", "step", "prune", "--", *argv, environment={**names, **(environment or {})})


def row(folder: Path) -> str:
    """Return the only row, without time and duration."""
    (line,) = (folder / "exit.txt").read_text().splitlines()
    return line.partition(" ")[2].partition(" duration_ms=")[0]


@pytest.mark.parametrize(
    ("script", "code", "expected"),
    [
        ("true", 0, "prune exit=0 status=ok"),
        ("exit 3", 3, "prune exit=3 status=failed reason=nonzero_exit"),
        ("echo status=success_a; echo status=skipped_cooldown", 0,
         "prune exit=0 status=skipped reason=skipped_cooldown"),
        ("echo status=failed_parse >&2", 0, "prune exit=0 status=failed reason=failed_parse"),
        ("echo status=failed_partial; exit 2", 2,
         "prune exit=2 status=failed reason=failed_partial"),
        ("kill -KILL $$", 137, "prune exit=137 status=failed reason=nonzero_exit"),
    ],
)  # fmt: skip
def test_the_row_of_a_step(script: str, code: int, expected: str, tmp_path: Path) -> None:
    done = step(tmp_path, "sh", "-c", script)

    assert done.returncode == code
    assert row(tmp_path) == expected


def test_its_output_is_in_the_log_below_its_name(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("HM_JOB=job\n--- steps ---\n")
    done = step(tmp_path, "echo", "pruned")

    assert done.stdout == "pruned\n"
    assert (tmp_path / "log").read_text() == (
        "HM_JOB=job\n--- steps ---\n--- step prune ---\npruned\n"
    )


@pytest.mark.parametrize("token", ["no_candidates", "no_changes", "degraded"])
def test_strict_semantics_make_a_soft_status_fail(token: str, tmp_path: Path) -> None:
    strict = {"HYBRID_MEM_STRICT_SEMANTICS": "1"}
    done = step(tmp_path, "echo", f"status={token}", environment=strict)

    assert done.returncode == 2
    assert row(tmp_path) == f"prune exit=2 status=failed reason=failed_semantic_{token}"


def test_without_them_it_is_none(tmp_path: Path) -> None:
    assert step(tmp_path, "echo", "status=no_changes").returncode == 0


def test_a_step_is_stopped_at_its_time_limit(tmp_path: Path) -> None:
    limit = {"STEP_TIMEOUT_SECONDS": "1"}
    done = step(tmp_path, "sleep", "600", environment=limit)

    assert done.returncode == 124
    assert row(tmp_path) == "prune exit=124 status=failed reason=nonzero_exit"


@pytest.mark.parametrize(("text", "told"), [("0", False), ("", False), ("soon", True)])
def test_no_time_limit(text: str, told: bool, tmp_path: Path) -> None:
    done = step(tmp_path, "true", environment={"STEP_TIMEOUT_SECONDS": text})

    assert done.returncode == 0
    assert ("no number of seconds" in done.stderr) is told


def test_a_command_that_is_not_there_leaves_a_row(tmp_path: Path) -> None:
    done = step(tmp_path, "no-such-program-here")

    assert done.returncode == 127
    assert row(tmp_path) == "prune exit=127 status=failed reason=failed_not_run"


def test_a_signal_ends_the_step_and_leaves_a_row(tmp_path: Path) -> None:
    environment = {**os.environ, "HM_EXIT": str(tmp_path / "exit.txt")}
    with subprocess.Popen(
        [*TACHO, "cron", "step", "prune", "--", "sh", "-c", "echo up; exec sleep 600"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)

    assert process.returncode == 143
    assert row(tmp_path) == "prune exit=143 status=failed reason=nonzero_exit"


def test_a_ledger_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "exit.txt").mkdir()
    done = step(tmp_path, "echo", "did it")

    assert (done.returncode, done.stdout) == (1, "did it\n")
    assert "Is a directory" in done.stderr


def test_a_step_without_a_ledger_below_exec_runs_and_is_told(tmp_path: Path) -> None:
    done = tacho("cron", "step", "prune", "--", "echo", "x", environment={"TACHO_CRON_RUN": "r"})

    assert (done.returncode, done.stdout) == (1, "x\n")
    assert "no ledger" in done.stderr


def test_json_is_on_stderr(tmp_path: Path) -> None:
    names = {"HM_EXIT": str(tmp_path / "exit.txt")}
    done = tacho("cron", "step", "prune", "--json", "--", "true", environment=names)

    assert SHAPES["cron-step"].validate_json(done.stderr.splitlines()[-1]).status == "ok"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["prune", "--", "true"], "Which ledger?"),
        (["a b", "--", "true"], "cannot be called"),
        (["prune"], "COMMAND"),
    ],
)
def test_a_step_that_makes_no_sense_runs_nothing(
    arguments: list[str], complaint: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HM_EXIT", "TACHO_CRON_RUN"):
        monkeypatch.delenv(name, raising=False)
    done = here(capsys, "cron", "step", *arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
