"""A cron line leaves its traces whole, says truthfully what came of it, and earns its guard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from command_line import TACHO, here, history, topics
from cron_jobs import FUNCTION, Traces, line, shell

from tachograph.bootstrap import open_store
from tachograph.cli.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("store_environment")

BOOTSTRAP = "harness-bootstrap exit=0 status=started reason=harness_bootstrap_started"


@pytest.fixture
def root(store_path: Path) -> Path:
    """Where the traces are when nothing is said."""
    return store_path / "cron"


def without_duration(rows: list[str]) -> list[str]:
    return [row.partition(" duration_ms=")[0] for row in rows]


def validated(run_id: str) -> list[tuple[str, str]]:
    """Return status and guard of each recorded validation."""
    return [
        (fields["report"]["maintenanceStatus"], fields["guard"])
        for topic, fields in history(run_id)
        if topic == "run.exit-validated"
    ]


class TestAGoodRun:
    def test_output_passes_through_and_into_the_log(self, root: Path, tmp_path: Path) -> None:
        done = line("--", "sh", "-c", "echo out; echo err >&2", cwd=tmp_path)
        traces = Traces(root)

        assert (done.returncode, done.stdout) == (0, "out\n")
        assert "err\n" in done.stderr
        body = traces.log.partition("--- steps ---\n")[2]
        assert sorted(body.partition("--- validate")[0].split()) == ["err", "out"]

    def test_it_leaves_ledger_summary_validation_and_guard(
        self, root: Path, tmp_path: Path
    ) -> None:
        assert line("--", "true", cwd=tmp_path).returncode == 0
        traces = Traces(root)

        assert without_duration(traces.rows) == [
            BOOTSTRAP,
            "job exit=0 status=ok",
            "validate-cron-exit exit=0 status=ok reason=maintenance_success",
        ]
        assert traces.json("validation")["guardUpdated"] is True
        assert traces.json("summary")["steps"][0]["jobRunId"] == traces.run_id
        assert traces.json("summary")["validation"]["guard"] == "written"
        assert traces.guard.read_text().isdecimal()
        assert f"SUCCESS: job\n{traces.log.splitlines()[-1]}\n" in traces.log
        assert traces.log.endswith(" job exit=0\n")

    def test_the_run_and_its_validation_are_recorded(self, root: Path, tmp_path: Path) -> None:
        line("--", "true", cwd=tmp_path)
        run_id = Traces(root).run_id

        assert topics(run_id)[-2:] == ["finished", "exit-validated"]
        assert validated(run_id) == [("success", "written")]

    def test_the_command_finds_its_traces_and_its_run(self, root: Path, tmp_path: Path) -> None:
        done = line(
            *("--required-steps", "a,b", "--", "env"),
            cwd=tmp_path,
            environment={"OPENCLAW_CLI": "1", "OPENCLAW_SERVICE_KIND": "x", "KEPT": "yes"},
        )
        found: dict[str, str] = {}
        for each in done.stdout.splitlines():
            name, _, value = each.partition("=")
            found[name] = value
        traces = Traces(root)
        day = traces.day / traces.stem

        assert {name: found[name] for name in found if name.startswith(("HM_", "TACHO_"))} == {
            "HM_RUN_ID": traces.run_id,
            "HM_ORCHESTRATOR_RUN_ID": traces.run_id,
            "HM_JOB": "job",
            "HM_LOG": str(traces.log_path),
            "HM_EXIT": str(traces.exit_path),
            "HM_SUMMARY": f"{day}.summary.json",
            "HM_VALIDATION_JSON": f"{day}.validation.json",
            "HM_REQUIRED_STEPS": "a b",
            "TACHO_STORE": os.environ["TACHO_STORE"],
            "TACHO_RUN_ID": traces.run_id,
            "TACHO_EPOCH": "1",
            "TACHO_CRON_RUN": traces.run_id,
            "TACHO_ARTIFACTS": str(root),
        }
        assert found["KEPT"] == "yes"
        assert not {"OPENCLAW_CLI", "OPENCLAW_SERVICE_KIND"} & set(found)

    def test_the_validator_says_the_same_of_its_traces(
        self, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        line("--", "true", cwd=tmp_path)
        traces = Traces(root)
        arguments: list[str | Path] = [
            "--exit-path",
            traces.exit_path,
            "--log-path",
            traces.log_path,
        ]
        done = here(capsys, "cron", "validate", *arguments, "--required-steps", "job", "--json")

        assert done.returncode == 0
        assert json.loads(done.stdout) == traces.json("validation")

    def test_a_phase_that_the_command_judged_is_in_the_summary(
        self, root: Path, tmp_path: Path
    ) -> None:
        script = """
        tacho run phase start p --batches 1
        tacho run batch p 0 --inputs 2 --parsed 2
        tacho run phase end p
        """
        assert line(*shell(script), cwd=tmp_path).returncode == 0
        summary = Traces(root).json("summary")

        assert summary["steps"][0]["semanticOutcome"] == "success"

    def test_json_is_on_stderr_and_has_its_shape(self, root: Path, tmp_path: Path) -> None:
        done = line("--json", "--quiet", "--", "echo", "data", cwd=tmp_path)

        assert done.stdout == "data\n"
        assert SHAPES["cron-exec"].validate_json(done.stderr).guard == "written"


class TestABadRun:
    def test_the_exit_code_of_the_command_wins(self, root: Path, tmp_path: Path) -> None:
        done = line("--", "sh", "-c", "exit 3", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 3
        assert without_duration(traces.rows)[1] == "job exit=3 status=failed reason=nonzero_exit"
        assert traces.json("validation")["failedSteps"][0]["exit"] == 3
        assert validated(traces.run_id) == [("failed", "skipped_wrapped_step_exit_nonzero")]
        assert not traces.guard.exists()
        assert "FAILED: job\n" in traces.log

    def test_an_old_guard_stays_as_it_is(self, root: Path, tmp_path: Path) -> None:
        (root / "guard").mkdir(parents=True)
        (root / "guard" / "job.ms").write_text("7")
        line("--", "false", cwd=tmp_path)

        assert (root / "guard" / "job.ms").read_text() == "7"

    @pytest.mark.parametrize(
        ("token", "outcome"),
        [
            ("failed_suspect_zero_parsed", "failed_semantic_empty"),
            ("failed_parse", "failed"),
            ("failed_partial", "partial"),
        ],
    )
    def test_exit_code_0_beside_a_failed_status_is_no_success(
        self, token: str, outcome: str, root: Path, tmp_path: Path
    ) -> None:
        done = line("--", "echo", f"status={token}", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 1
        assert history(traces.run_id)[-2][1]["outcome"] == outcome
        assert validated(traces.run_id) == [("failed", f"skipped_outcome_{outcome}")]
        assert not traces.guard.exists()

    def test_a_batch_that_gave_nothing_withholds_the_guard(
        self, root: Path, tmp_path: Path
    ) -> None:
        """G12: exit code 0, no word in the log, and the gate knows better."""
        script = """
        tacho run phase start p --batches 1
        tacho run batch p 0 --inputs 5 --parsed 0
        tacho run phase end p
        """
        done = line(*shell(script), cwd=tmp_path)
        traces = Traces(root)
        validation = traces.json("validation")

        assert done.returncode == 1
        assert traces.json("summary")["steps"][0]["semanticOutcome"] == "failed_semantic_empty"
        assert (validation["semanticStatus"], validation["guardUpdated"]) == (
            "semantic_fail",
            False,
        )
        assert validated(traces.run_id) == [("failed", "skipped_outcome_failed_semantic_empty")]

    def test_a_run_that_the_command_left_partial_withholds_the_guard(
        self, root: Path, tmp_path: Path
    ) -> None:
        done = line(*shell("tacho run phase start p"), cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 1
        assert validated(traces.run_id)[0][1] == "skipped_outcome_partial"
        assert traces.json("summary")["exitCode"] == 2

    def test_a_command_that_is_not_there_never_reached_its_steps(
        self, root: Path, tmp_path: Path
    ) -> None:
        done = line("--", "no-such-program-here", cwd=tmp_path)
        traces = Traces(root)
        validation = traces.json("validation")

        assert done.returncode == 127
        assert validation["failureClass"] == "wrapper_aborted_before_steps"
        assert validation["wrapperExitCode"] == 127
        assert topics(traces.run_id)[-2:] == ["finished", "exit-validated"]

    def test_a_time_limit_is_124(self, root: Path, tmp_path: Path) -> None:
        done = line("--timeout", "0.2", "--", "sleep", "600", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 124
        assert traces.json("validation")["reportableIssues"][-1]["failureClass"] == "timeout"
        assert history(traces.run_id)[-2][1]["reason_code"] == "timeout"


class TestSteps:
    SCRIPT = """
    tacho cron step prune -- echo pruned
    tacho cron step distill -- echo status=success_analyzed
    """

    def test_the_steps_of_a_script_are_in_ledger_summary_and_run(
        self, root: Path, tmp_path: Path
    ) -> None:
        done = line("--required-steps", "prune,distill", *shell(self.SCRIPT), cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 0, done.stderr
        assert without_duration(traces.rows)[1:5] == [
            "harness-bootstrap exit=0 status=started reason=harness_steps_started",
            "prune exit=0 status=ok",
            "distill exit=0 status=ok reason=success_analyzed",
            "job exit=0 status=ok",
        ]
        assert [each["name"] for each in traces.json("summary")["steps"]] == ["prune", "distill"]
        phases = [
            (fields["phase"], fields["status"])
            for topic, fields in history(traces.run_id)
            if topic == "run.phase-ended"
        ]
        assert phases == [("prune", "completed"), ("distill", "completed"), ("exec", "completed")]
        assert validated(traces.run_id) == [("success", "written")]

    def test_a_step_that_never_ran_is_missing(self, root: Path, tmp_path: Path) -> None:
        required = ("--required-steps", "prune", "--required-steps", "distill,reflect")
        done = line(*required, *shell(self.SCRIPT), cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 1
        assert traces.json("validation")["missingSteps"] == ["reflect"]
        assert validated(traces.run_id) == [("partial", "skipped_outcome_partial")]
        assert "Missing steps: reflect" in done.stderr

    def test_a_step_that_failed_fails_the_job_although_the_script_went_on(
        self, root: Path, tmp_path: Path
    ) -> None:
        script = "tacho cron step prune -- false; tacho cron step distill -- true"
        done = line("--required-steps", "prune,distill", *shell(script), cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 1
        assert [each["name"] for each in traces.json("validation")["failedSteps"]] == ["prune"]
        assert history(traces.run_id)[-2][1]["outcome"] == "failed"

    def test_a_step_that_need_not_end_well_fails_nothing(self, root: Path, tmp_path: Path) -> None:
        script = "tacho cron step extra -- false; tacho cron step prune -- true"
        done = line("--required-steps", "prune", *shell(script), cwd=tmp_path)

        assert done.returncode == 0, done.stderr
        assert validated(Traces(root).run_id) == [("success", "written")]

    def test_a_wrapper_that_aborts_before_its_steps(self, root: Path, tmp_path: Path) -> None:
        """#1982: that no step ran is the consequence, not the cause."""
        done = line("--required-steps", "prune", *shell("exit 64"), cwd=tmp_path)
        validation = Traces(root).json("validation")

        assert done.returncode == 64
        assert (validation["failureClass"], validation["wrapperExitCode"]) == (
            "wrapper_aborted_before_steps",
            64,
        )
        assert validation["missingSteps"] == []
        assert "Wrapper aborted before steps (exit=64)" in done.stderr

    def test_a_script_that_does_nothing_and_ends_with_0(self, root: Path, tmp_path: Path) -> None:
        done = line("--required-steps", "prune", *shell("true"), cwd=tmp_path)

        assert done.returncode == 1
        assert Traces(root).json("validation")["missingSteps"] == ["prune"]

    @pytest.mark.parametrize(
        ("skip", "status", "guard"), [(True, "skipped", 0), (False, "success", 0)]
    )
    def test_a_skip_counts_as_one_only_where_it_is_allowed(
        self, skip: bool, status: str, guard: int, root: Path, tmp_path: Path
    ) -> None:
        options = ("--allow-skip",) if skip else ()
        done = line(*options, "--", "echo", "status=skipped_cooldown", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 0
        assert traces.json("validation")["maintenanceStatus"] == status
        assert traces.guard.exists() == bool(guard)


class TestASummaryOfTheCommand:
    GOOD: ClassVar[dict[str, object]] = {
        "schemaVersion": 1,
        "exitCode": 0,
        "steps": [{"name": "prune", "status": "ok"}],
    }

    def exec(self, summary: object, code: int, cwd: Path, *options: str) -> int:
        (cwd / "made.json").write_text(json.dumps(summary))
        script = f'cp made.json "$HM_SUMMARY"; exit {code}'
        return line(*options, "--", "sh", "-c", script, cwd=cwd).returncode

    def test_it_is_kept_and_read_first(self, root: Path, tmp_path: Path) -> None:
        assert self.exec(self.GOOD, 0, tmp_path) == 0
        traces = Traces(root)

        assert traces.json("summary") == self.GOOD
        assert traces.json("validation")["readFirst"] == "summary"

    def test_a_step_that_failed_inside_fails_the_job(self, root: Path, tmp_path: Path) -> None:
        bad = {**self.GOOD, "exitCode": 1, "steps": [{"name": "prune", "status": "failed"}]}

        assert self.exec(bad, 0, tmp_path) == 1
        assert history(Traces(root).run_id)[-2][1]["outcome"] == "failed"

    def test_steps_that_wait_make_it_partial(self, root: Path, tmp_path: Path) -> None:
        wait = {**self.GOOD, "exitCode": 2, "steps": [{"name": "weekly", "status": "deferred"}]}

        assert self.exec(wait, 2, tmp_path, "--allow-skip") == 2
        fields = history(Traces(root).run_id)[-2][1]
        assert (fields["outcome"], fields["reason_code"]) == ("partial", "steps_deferred")

    def test_one_of_an_unknown_version_is_kept_and_told(self, root: Path, tmp_path: Path) -> None:
        assert self.exec({"schemaVersion": 9}, 0, tmp_path) == 0
        traces = Traces(root)

        assert traces.json("summary") == {"schemaVersion": 9}
        assert "schemaVersion is 9" in traces.json("validation")["unexplained"][0]["text"]


class Running:
    """A cron line whose command is up and waits for a word."""

    def __init__(self, folder: Path, *options: str, script: str = "", end: str = "exit 0") -> None:
        os.mkfifo(folder / "gate")
        self.gate = folder / "gate"
        body = f"{script}\necho $$; read -r word <gate; {end}"
        self.command = [
            *(*TACHO, "cron", "exec", "--job", "job", *options),
            *("--", "sh", "-c", FUNCTION + body),
        ]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.stdout = self.process.stdout
        self.pid = int(self.stdout.readline())

    def release(self) -> None:
        """Let the command end, and wait until nobody holds its output any more."""
        self.gate.write_text("done\n")
        self.stdout.read()

    def told(self) -> str:
        """Return what was said on stderr, once nobody is left who could say more."""
        assert self.process.stderr is not None
        return self.process.stderr.read()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    with running.process:
        yield running


class TestSignals:
    @pytest.mark.parametrize(
        ("name", "code"), [("SIGHUP", 129), ("SIGINT", 130), ("SIGQUIT", 131), ("SIGTERM", 143)]
    )
    def test_the_signal_is_the_exit_code_and_the_run_is_validated_once(
        self, name: str, code: int, running: Running, root: Path
    ) -> None:
        number = getattr(signal, name)
        running.process.send_signal(number)
        running.process.wait()
        traces = Traces(root)

        # A shell shows both as 130: ending by SIGINT lets a loop around it end as well.
        assert running.process.returncode == (-number if code == 130 else code)
        assert traces.validations == 1
        assert (
            without_duration(traces.rows)[1] == f"job exit={code} status=failed reason=nonzero_exit"
        )
        assert validated(traces.run_id) == [("failed", "skipped_interrupted")]
        assert history(traces.run_id)[-2][1]["outcome"] == "partial"
        assert traces.log.endswith(f" job exit={code}\n")

    def test_a_command_that_ends_well_on_a_signal_was_cut_off_all_the_same(
        self, tmp_path: Path, root: Path
    ) -> None:
        running = Running(tmp_path, script="trap 'exit 0' TERM")
        with running.process:
            running.process.send_signal(signal.SIGTERM)
            running.process.wait()
        traces = Traces(root)

        assert running.process.returncode == 143
        assert traces.validations == 1
        assert not traces.guard.exists()
        fields = history(traces.run_id)[-2][1]
        assert (fields["outcome"], fields["reason_code"]) == ("partial", "interrupted")
        assert without_duration(traces.rows)[1] == ("job exit=143 status=failed reason=interrupted")
        assert traces.json("summary")["exitCode"] == 2
        assert traces.json("validation")["maintenanceStatus"] == "failed"
        assert validated(traces.run_id) == [("failed", "skipped_interrupted")]

    def test_the_code_of_the_command_wins_over_the_signal(self, tmp_path: Path, root: Path) -> None:
        running = Running(tmp_path, script="trap 'exit 9' TERM")
        with running.process:
            running.process.send_signal(signal.SIGTERM)
            running.process.wait()

        assert running.process.returncode == 9
        assert Traces(root).validations == 1

    def test_two_signals_validate_once(self, tmp_path: Path, root: Path) -> None:
        running = Running(tmp_path, script="trap 'echo one' HUP; trap 'exit 0' TERM")
        with running.process:
            running.process.send_signal(signal.SIGHUP)
            running.process.send_signal(signal.SIGTERM)
            running.process.wait()

        # Whichever ended it: the first may do so before the second is there.
        assert running.process.returncode in (129, 143)
        assert Traces(root).validations == 1

    def test_a_killed_wrapper_leaves_a_run_that_is_brought_to_its_end(
        self, running: Running, root: Path
    ) -> None:
        running.process.kill()
        running.process.wait()
        running.release()
        running.told()
        traces = Traces(root)

        assert traces.validations == 1
        assert traces.json("validation")["maintenanceStatus"] == "success"
        assert validated(traces.run_id) == [("success", "written")]
        assert traces.guard.exists()

    def test_a_killed_keeper_leaves_a_verdict_and_no_guard(
        self, running: Running, root: Path
    ) -> None:
        traces = Traces(root)
        keeper = next(
            fields["owner"]["pid"]
            for topic, fields in history(traces.run_id)
            if topic == "run.attempt-started"
        )
        os.kill(keeper, signal.SIGKILL)
        assert running.process.stderr is not None
        while "lives on: waiting" not in running.process.stderr.readline():
            pass
        assert traces.validations == 0  # while the command lives it is not over
        running.gate.write_text("done\n")
        running.process.wait()

        assert running.process.returncode == 137
        assert traces.validations == 1
        assert traces.json("validation")["missingSteps"] == ["job"]
        assert not traces.guard.exists()

    SIGNALLED = """
import os, signal, sys
from tachograph.cli import cron_ending, cron_traces, cron_wrapping
module, name = {module}, {name!r}
original = getattr(module, name)
def signalled(*args, **names):
    os.kill(os.getpid(), signal.SIGTERM)
    return original(*args, **names)
setattr(module, name, signalled)
from tachograph.cli.main import execute
sys.exit(execute(["cron", "exec", "--job", "job", "--", "touch", "made"]))
"""

    @pytest.mark.parametrize(
        ("module", "name", "made"),
        [
            ("cron_wrapping", "start_phase", False),
            ("cron_traces", "validate_exit", True),
            ("cron_ending", "guard_refusal", True),
        ],
    )
    def test_a_signal_beside_the_command_is_in_the_exit_code_and_validated_once(
        self, module: str, name: str, made: bool, root: Path, tmp_path: Path
    ) -> None:
        script = self.SIGNALLED.format(module=module, name=name)
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 143
        assert (tmp_path / "made").exists() is made
        assert traces.validations == 1
        assert len(validated(traces.run_id)) == 1

    def test_what_is_killed_before_its_command_has_left_a_trace(
        self, root: Path, tmp_path: Path
    ) -> None:
        """#2094, #2131: no file is empty, and the ledger says that it began."""
        script = (
            "import os, signal, sys\n"
            "from tachograph.cli import cron_wrapping\n"
            "def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
            "cron_wrapping.keeper.keep = die\n"
            "from tachograph.cli.main import execute\n"
            "execute(['cron', 'exec', '--job', 'job', '--', 'true'])\n"
        )
        done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == -signal.SIGKILL
        assert traces.rows == [BOOTSTRAP]
        assert "HM_JOB=job\n" in traces.log


class TestTwoAtOnce:
    def test_the_second_is_refused(self, running: Running, root: Path, tmp_path: Path) -> None:
        first = Traces(root).run_id
        done = line("--", "touch", "made", cwd=tmp_path)
        running.release()
        running.process.wait()
        second = next(
            path.name[len("job-") :].removesuffix(".exit.txt")
            for path in root.glob("*.exit.txt")
            if first not in path.name
        )

        assert done.returncode == 75
        assert f"at work already, in run {first}" in done.stderr
        assert not (tmp_path / "made").exists()
        fields = history(second)[-2][1]
        assert (fields["outcome"], fields["reason_code"]) == ("skipped", "skipped_concurrency")
        assert validated(second) == [("failed", "skipped_concurrency")]
        assert running.process.returncode == 0

    def test_where_a_skip_is_allowed_that_is_no_failure(
        self, running: Running, root: Path, tmp_path: Path
    ) -> None:
        done = line("--allow-skip", "--required-steps", "a,b", "--", "touch", "made", cwd=tmp_path)

        assert done.returncode == 0
        assert not (tmp_path / "made").exists()
        assert not (root / "guard").exists()
        running.release()

    def test_a_command_that_outlived_its_keeper_is_at_work(
        self, running: Running, root: Path, tmp_path: Path
    ) -> None:
        run_id = Traces(root).run_id
        keeper = next(
            fields["owner"]["pid"]
            for topic, fields in history(run_id)
            if topic == "run.attempt-started"
        )
        os.kill(keeper, signal.SIGKILL)
        running.process.kill()
        running.process.wait()
        done = line("--", "touch", "made", cwd=tmp_path)

        assert done.returncode == 75
        assert f"in run {run_id}" in done.stderr
        running.gate.write_text("done\n")

    def test_another_job_is_not_in_the_way(self, running: Running, tmp_path: Path) -> None:
        assert line("--", "true", cwd=tmp_path, job="other").returncode == 0
        running.release()

    def test_the_next_one_runs(self, root: Path, tmp_path: Path) -> None:
        codes = [line("--", "true", cwd=tmp_path).returncode for _ in range(2)]

        assert codes == [0, 0]
        assert len(list(root.glob("*.exit.txt"))) == 2


class TestTakingUp:
    def test_the_same_id_takes_up_a_run_that_failed(self, root: Path, tmp_path: Path) -> None:
        script = "test -e ok || { touch ok; exit 3; }"
        options = ("--id", "20240508T021530Z-7", "--", "sh", "-c", script)
        codes = [line(*options, cwd=tmp_path).returncode for _ in range(2)]
        traces = Traces(root)

        assert codes == [3, 0]
        assert topics(traces.run_id).count("attempt-started") == 2
        assert traces.validations == 2
        assert traces.json("validation")["maintenanceStatus"] == "success"

    def test_a_run_that_was_cut_off_is_resumed_by_its_line(
        self, running: Running, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        running.process.send_signal(signal.SIGTERM)
        running.process.wait()
        traces = Traces(root)
        (tmp_path / "gate").unlink()
        (tmp_path / "gate").write_text("done\n")
        done = here(capsys, "run", "resume", traces.run_id, "--json")

        assert done.returncode == 0, done.stdout + done.stderr
        assert traces.json("validation")["maintenanceStatus"] == "success"
        assert traces.guard.exists()


class TestFoldersThatCannotBeWritten:
    def test_the_folder_for_temporary_files_stands_in(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        (tmp_path / "tmp").mkdir()
        environment = {"TMPDIR": str(tmp_path / "tmp"), "USER": "ann"}
        options = ("--root", str(tmp_path / "file" / "root"))
        done = line(*options, "--", "true", cwd=tmp_path, environment=environment)
        traces = Traces(tmp_path / "tmp" / "openclaw-cron-hybrid-mem-ann")

        assert done.returncode == 1  # the guard is written where it is looked for, or not at all
        assert "no cron log in" in done.stderr
        assert str(traces.log_path) in done.stderr
        assert traces.validations == 1
        assert validated(traces.run_id) == [("success", "write_failed")]

    def test_no_folder_at_all_lets_the_job_run_and_is_in_the_exit_code(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "tmp").mkdir()
        (tmp_path / "tmp" / "openclaw-cron-hybrid-mem-ann").write_text("")
        (tmp_path / "file").write_text("")
        environment = {"TMPDIR": str(tmp_path / "tmp"), "USER": "ann"}
        options = ("--root", str(tmp_path / "file"), "--json")
        done = line(*options, "--", "touch", "made", cwd=tmp_path, environment=environment)

        assert done.returncode == 1
        assert (tmp_path / "made").exists()
        assert "runs without log and ledger" in done.stderr
        shown = json.loads(done.stderr.splitlines()[-1])
        assert (shown["logPath"], shown["guard"]) == (None, "skipped_traces_incomplete")

    def test_traces_that_vanish_are_told_and_cost_the_guard(
        self, root: Path, tmp_path: Path
    ) -> None:
        script = 'rm "$HM_EXIT"; mkdir "$HM_EXIT"'
        done = line("--", "sh", "-c", script, cwd=tmp_path)

        assert done.returncode == 1
        assert "Is a directory" in done.stderr
        assert not (root / "guard").exists()

    def test_a_guard_that_cannot_be_written_is_told(self, root: Path, tmp_path: Path) -> None:
        root.mkdir(parents=True)
        (root / "guard").write_text("")
        done = line("--", "true", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 1
        assert validated(traces.run_id) == [("success", "write_failed")]
        assert "result=write_failed" in traces.log

    @pytest.mark.skipif(sys.platform != "linux", reason="prlimit(2) is there only")
    def test_a_full_disk_does_not_stop_the_job_and_is_told(
        self, root: Path, tmp_path: Path
    ) -> None:
        code = "import os, resource as r; r.prlimit(os.getppid(), r.RLIMIT_FSIZE, (0, 0))"
        done = line("--", sys.executable, "-c", f"{code}; print('made')", cwd=tmp_path)

        assert done.stdout == "made\n"
        assert done.returncode == 1
        assert "; the job goes on." in done.stderr
        assert "was not recorded" in done.stderr
        assert not (root / "guard").exists()

    def test_a_store_that_cannot_be_opened_has_left_a_verdict(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        environment = {"TACHO_STORE": str(tmp_path / "file")}
        options = ("--root", str(tmp_path / "root"))
        done = line(*options, "--", "touch", "made", cwd=tmp_path, environment=environment)
        traces = Traces(tmp_path / "root")

        assert done.returncode == 2
        assert not (tmp_path / "made").exists()
        assert traces.json("validation")["failureClass"] == "wrapper_aborted_before_steps"
        assert "StorePathError" in traces.log


def test_openclaws_own_folder_is_used_when_it_is_named(tmp_path: Path) -> None:
    home = tmp_path / "claw"
    done = line("--", "true", cwd=tmp_path, environment={"OPENCLAW_HOME": str(home)})
    traces = Traces(home / "logs" / "cron-hybrid-mem")

    assert done.returncode == 0
    assert traces.json("validation")["guardUpdated"] is True
    assert (home / "cron" / "guard" / "job.ms").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--", "true"), "has no name"),
        (("--job", "a b", "--", "true"), "cannot be called"),
        (("--job", "../x", "--", "true"), "cannot be called"),
        (("--job", "x", "--required-steps", "a,../b", "--", "true"), "cannot be called"),
        (("--job", "x", "--timeout", "0", "--", "true"), "--timeout is 0"),
        (("--job", "x", "--id", "../../x", "--", "true"), "no RUN_ID"),
        (("--job", "x", "--id", "20240508T021530Z-", "--", "true"), "no RUN_ID"),
        (("--job", "x"), "COMMAND"),
    ],
)
def test_a_line_that_makes_no_sense_runs_nothing(
    arguments: tuple[str, ...],
    complaint: str,
    root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = here(capsys, "cron", "exec", *arguments)

    assert done.returncode == 2
    assert complaint.lower() in done.stderr.lower()
    assert not root.exists()


def test_the_store_is_sound_afterwards(root: Path, tmp_path: Path) -> None:
    line("--", "true", cwd=tmp_path)
    services = open_store(read_only=True)
    problems = list(services.log.verify())
    services.close()

    assert problems == []
