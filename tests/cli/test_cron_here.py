"""Cron lines in this process, as where there is no fork: the same traces, and every odd end."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Done, here, history
from cron_jobs import Traces, shell

from tachograph.cli import cron_ending, cron_traces
from tachograph.domain.errors import FencedError, StoreFullError
from tachograph.infra import cron_files, keeper
from tachograph.infra.job_lock import JobLock
from tachograph.validating_exits import validate_exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

WAITS = (
    """echo '{"schemaVersion": 1, "exitCode": 2, "steps": [{"name": "w", "status": "deferred"}]}'"""
    """ >"$HM_SUMMARY"; exit 2"""
)
FRUITLESS = (
    "tacho run phase start p --batches 1; tacho run batch p 0 --inputs 5 --parsed 0; "
    "tacho run phase end p"
)
SKIPS = 'for s in a b; do echo "2024-05-08T02:15:30Z $s exit=0 status=skipped" >>"$HM_EXIT"; done'


@pytest.fixture
def root(store_environment: Path) -> Path:
    return store_environment / "cron"


@pytest.fixture(params=[False, True], ids=["without a keeper", "with one"])
def line(
    request: pytest.FixtureRequest,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    store_environment: Path,
) -> Callable[..., Done]:
    """Run a cron line in this process."""
    monkeypatch.setattr(keeper, "possible", lambda: request.param)
    monkeypatch.setattr(keeper, "keep", lambda work, shared: work())
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: here(capsys, "cron", "exec", "--job", "job", *arguments)


def guard_of(run_id: str) -> str:
    (guard,) = [fields["guard"] for topic, fields in history(run_id) if "exit-v" in topic]
    return str(guard)


@pytest.mark.parametrize(
    ("argv", "code", "guard"),
    [
        (("true",), 0, "written"),
        (("sh", "-c", "exit 3"), 3, "skipped_wrapped_step_exit_nonzero"),
        (("no-such-program-here",), 127, "skipped_wrapped_step_exit_nonzero"),
        (("echo", "status=failed_parse"), 1, "skipped_outcome_failed"),
        (("sh", "-c", "echo status=failed_partial; exit 2"), 2,
         "skipped_wrapped_step_exit_nonzero"),
        (("sh", "-c", "kill -TERM $$"), 143, "skipped_wrapped_step_exit_nonzero"),
        (("sh", "-c", 'echo "{" >"$HM_SUMMARY"'), 1, "skipped_traces_incomplete"),
        (("sh", "-c", WAITS), 2, "skipped_wrapped_step_exit_nonzero"),
    ],
)  # fmt: skip
def test_what_comes_of_a_line(
    argv: tuple[str, ...], code: int, guard: str, line: Callable[..., Done], root: Path
) -> None:
    done = line("--json", "--", *argv)
    traces = Traces(root)

    assert done.returncode == code, done.stderr
    assert traces.validations == 1
    assert guard_of(traces.run_id) == guard
    assert traces.guard.exists() is (guard == "written")


@pytest.mark.parametrize(
    ("script", "code", "status"),
    [
        ("exit 64", 64, "failed"),
        ("true", 1, "failed"),
        ('echo "2024-05-08T02:15:30Z a exit=0" >>"$HM_EXIT"', 1, "partial"),
        ('for s in a b; do echo "2024-05-08T02:15:30Z $s exit=0" >>"$HM_EXIT"; done', 0,
         "success"),
        (SKIPS, 0, "skipped"),
        (f"{SKIPS}; exit 5", 5, "failed"),
    ],
)  # fmt: skip
def test_what_comes_of_a_script_that_writes_its_own_rows(
    script: str, code: int, status: str, line: Callable[..., Done], root: Path
) -> None:
    done = line(
        "--allow-skip", "--required-steps", "a,b", "--timeout", "60", "--", "sh", "-c", script
    )
    traces = Traces(root)

    assert done.returncode == code, done.stderr
    assert traces.json("validation")["maintenanceStatus"] == status


def test_a_skipped_job_ends_a_skipped_run(line: Callable[..., Done], root: Path) -> None:
    line("--allow-skip", "--", "echo", "status=skipped_cooldown")
    fields = history(Traces(root).run_id)[-2][1]

    assert (fields["outcome"], fields["reason_code"]) == ("skipped", "skipped_cooldown")


@pytest.mark.parametrize(
    ("script", "outcome", "code"),
    [
        (FRUITLESS, "failed_semantic_empty", "no_item_parsed"),
        (f"{FRUITLESS}; tacho run judge", "failed_semantic_empty", "no_item_parsed"),
        ("tacho run phase start p", "partial", "phases_open"),
        ("tacho run fail --reason 'no disk'", "failed", None),
    ],
)
def test_what_was_recorded_is_not_talked_away_by_a_skip(
    script: str, outcome: str, code: str | None, line: Callable[..., Done], root: Path
) -> None:
    """G12: a word on stdout moves no verdict."""
    done = line("--allow-skip", *shell(f"{script}; echo status=skipped_cooldown"))
    traces = Traces(root)
    finished = [fields for topic, fields in history(traces.run_id) if topic == "run.finished"]

    assert done.returncode == 1, done.stderr
    assert [(each["outcome"], each["reason_code"]) for each in finished] == [(outcome, code)]
    assert not traces.guard.exists()


def test_a_job_that_is_at_work_is_not_begun_again(line: Callable[..., Done], root: Path) -> None:
    with JobLock(str(root), "job") as lock:
        lock.name("run-1")
        done = line("--", "true")

    assert done.returncode == 75
    assert "at work already, in run run-1" in done.stderr


def test_an_attempt_that_was_taken_over_does_not_record_its_end(
    line: Callable[..., Done], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fenced(*_: Any) -> None:
        raise FencedError("run", 1, 2)

    monkeypatch.setattr(cron_ending, "end_run", fenced)
    done = line("--", "true")
    traces = Traces(root)

    assert done.returncode == 1
    assert "belongs to another attempt by now" in done.stderr
    assert traces.validations == 1
    assert not traces.guard.exists()


def test_a_validation_that_is_not_recorded_is_told(
    line: Callable[..., Done], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.domain.run import Run

    def full(*_: Any) -> None:
        raise StoreFullError("/s", "disk")

    monkeypatch.setattr(Run, "record_exit_validation", full)
    done = line("--", "true")

    assert done.returncode == 1
    assert "was not recorded" in done.stderr
    assert Traces(root).validations == 1


def test_a_validator_that_fails_leaves_a_placeholder(
    line: Callable[..., Done], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """#2134: validation.json is never empty."""
    original = validate_exit
    calls: list[int] = []

    def second_time_broken(*arguments: Any, **names: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise RuntimeError("boom")
        return original(*arguments, **names)

    monkeypatch.setattr(cron_traces, "validate_exit", second_time_broken)
    done = line("--", "true")
    traces = Traces(root)

    assert done.returncode == 1
    assert traces.json("validation")["maintenanceStatus"] == "unknown"
    assert traces.rows[-1] == "validate-cron-exit exit=1 status=failed reason=maintenance_unknown"
    assert guard_of(traces.run_id) == "skipped_traces_incomplete"


def test_an_error_of_ours_is_told_and_judged(
    line: Callable[..., Done], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("tachograph.cli.cron_wrapping.run_child", broken)
    done = line("--", "true")
    traces = Traces(root)

    assert done.returncode == 1
    assert "boom" in done.stderr
    assert traces.json("validation")["failureClass"] == "wrapper_aborted_before_steps"


def test_no_folder_for_traces(
    line: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: Any) -> tuple[None, list[OSError]]:
        return None, [PermissionError(13, "Permission denied", "/logs")]

    monkeypatch.setattr(cron_files, "begin", nowhere)
    done = line("--json", "--", "sh", "-c", 'echo "$HM_JOB ${HM_LOG:-none}"; exit 0')

    assert done.returncode == 1
    assert "no cron log in /logs: Permission denied" in done.stderr
    assert json.loads(done.stderr.splitlines()[-1])["exitPath"] is None


def test_a_killed_keeper_is_stood_in_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.setattr(keeper, "possible", lambda: True)
    monkeypatch.setattr(keeper, "keep", lambda work, shared: -signal.SIGKILL)
    done = here(capsys, "cron", "exec", "--job", "job", "--", "true")
    traces = Traces(root)

    assert done.returncode == 137
    assert "killed by SIGKILL" in done.stderr
    assert traces.validations == 1
    assert traces.log.endswith(" job exit=137\n")


def test_a_keeper_that_was_killed_after_its_verdict_is_not_stood_in_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    def keep(work: Callable[[], int], *, shared: bool) -> int:
        work()
        return -signal.SIGKILL

    monkeypatch.setattr(keeper, "possible", lambda: True)
    monkeypatch.setattr(keeper, "keep", keep)
    here(capsys, "cron", "exec", "--job", "job", "--", "true")

    assert Traces(root).validations == 1


class TestSteps:
    @pytest.fixture
    def names(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> dict[str, str]:
        """Name ledger and log, and a run that is going on."""
        monkeypatch.setenv("TACHO_STORE", str(tmp_path / "store"))
        here(capsys, "run", "start", "job", "--id", "job", "--unowned")
        names = {
            "HM_EXIT": str(tmp_path / "exit.txt"),
            "HM_LOG": str(tmp_path / "log"),
            "HM_REQUIRED_STEPS": "prune distill",
            "TACHO_RUN_ID": "job",
            "TACHO_EPOCH": "1",
        }
        for name, value in names.items():
            monkeypatch.setenv(name, value)
        return names

    @pytest.mark.parametrize(
        ("name", "argv", "status", "summary"),
        [
            ("prune", ("true",), "completed", "exit code 0"),
            ("prune", ("false",), "failed", "exit code 1, nonzero_exit"),
            ("extra", ("false",), "skipped", "exit code 1, nonzero_exit"),
            ("prune", ("echo", "status=skipped_cooldown"), "skipped",
             "exit code 0, skipped_cooldown"),
            ("prune", ("no-such-program-here",), "failed",
             "no-such-program-here cannot be run: No such file or directory, failed_not_run"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("below_exec", [False, True])
    def test_a_step_is_a_phase_of_its_run(
        self,
        name: str,
        argv: tuple[str, ...],
        status: str,
        summary: str,
        below_exec: bool,
        names: dict[str, str],
        capsys: Capture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        if below_exec:
            monkeypatch.setenv("TACHO_CRON_RUN", "job")
        done = here(capsys, "cron", "step", name, "--json", "--", *argv)
        fields = history("job")[-1][1]

        assert (fields["phase"], fields["status"], fields["summary"]) == (name, status, summary)
        assert ("--- steps ---" in done.stderr) is below_exec

    def test_a_step_that_is_done_again_is_told_and_runs(
        self, names: dict[str, str], capsys: Capture
    ) -> None:
        here(capsys, "cron", "step", "prune", "--", "true")
        done = here(capsys, "cron", "step", "prune", "--", "true")

        assert done.returncode == 0
        assert "is not in the run" in done.stderr

    def test_a_store_that_cannot_be_opened_stops_no_step(
        self,
        names: dict[str, str],
        capsys: Capture,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("TACHO_STORE", str(tmp_path / "nothing"))
        done = here(capsys, "cron", "step", "prune", "--", "true")

        assert done.returncode == 0
        assert "is not in the store" in done.stderr

    @pytest.mark.parametrize(("limit", "code"), [("1", 124), ("soon", 0), ("0", 0)])
    def test_a_time_limit(
        self,
        limit: str,
        code: int,
        names: dict[str, str],
        capsys: Capture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("STEP_TIMEOUT_SECONDS", limit)
        command = ("sleep", "600") if code else ("true",)
        done = here(capsys, "cron", "step", "prune", "--", *command)

        assert done.returncode == code

    def test_strict_semantics(
        self, names: dict[str, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HYBRID_MEM_STRICT_SEMANTICS", "1")

        assert here(capsys, "cron", "step", "x", "--", "echo", "status=degraded").returncode == 2

    def test_traces_that_cannot_be_written(
        self,
        names: dict[str, str],
        capsys: Capture,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        (tmp_path / "exit.txt").mkdir()
        (tmp_path / "log").mkdir()
        done = here(capsys, "cron", "step", "x", "--", "true")

        assert done.returncode == 1
        assert done.stderr.count("Is a directory") == 2

    def test_no_ledger_below_exec(
        self, names: dict[str, str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("HM_EXIT")
        monkeypatch.setenv("TACHO_CRON_RUN", "job")
        done = here(capsys, "cron", "step", "x", "--", "true")

        assert done.returncode == 1
        assert "no ledger" in done.stderr
