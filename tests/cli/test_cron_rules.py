"""What a cron line may never say of its run, each rule with real processes."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path

import pytest
from command_line import here, history, tacho
from cron_jobs import Traces, line, shell

from tachograph.bootstrap import open_store

pytestmark = pytest.mark.usefixtures("store_environment")

ID = "20240508T021530Z-7"


@pytest.fixture
def root(store_path: Path) -> Path:
    return store_path / "cron"


def outcome(run_id: str) -> tuple[str, str | None]:
    fields = next(fields for topic, fields in history(run_id) if topic == "run.finished")
    return fields["outcome"], fields["reason_code"]


class TestAGoodWord:
    """Beside an exit code it makes nothing better."""

    @pytest.mark.parametrize(
        "word", ["success_analyzed", "success_no_incidents", "skipped_cooldown", "skipped_odd"]
    )
    @pytest.mark.parametrize("options", [(), ("--allow-skip",)])
    def test_of_a_job_that_failed(
        self, word: str, options: tuple[str, ...], root: Path, tmp_path: Path
    ) -> None:
        done = line(*options, "--", "sh", "-c", f"echo status={word}; exit 3", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode == 3
        assert outcome(traces.run_id) == ("failed", "exit_code")
        step = traces.json("summary")["steps"][0]
        assert (step["status"], step["semanticOutcome"]) == ("failed", "failed")
        (issue,) = traces.json("validation")["reportableIssues"]
        assert (issue["failureCategory"], issue["failureClass"]) == (
            "mechanical_failure",
            "nonzero_exit",
        )

    def test_of_a_step_that_failed(self, root: Path, tmp_path: Path) -> None:
        script = "tacho cron step one -- sh -c 'echo status=success_analyzed; exit 3'; exit 0"
        line("--required-steps", "one", *shell(script), cwd=tmp_path)
        traces = Traces(root)

        assert outcome(traces.run_id) == ("failed", "steps_failed")
        (step,) = traces.json("summary")["steps"]
        assert (step["status"], step.get("semanticOutcome")) == ("failed", None)


class TestTheLogOfOurOwnRun:
    """Its text decides nothing."""

    @pytest.mark.parametrize(
        "text",
        ["error: unknown command 'foo'", "semantic=failed", "cursor_advanced=false"],
    )
    def test_a_word_fails_nothing(self, text: str, root: Path, tmp_path: Path) -> None:
        done = line("--", "echo", text, cwd=tmp_path)

        assert done.returncode == 0, done.stderr
        assert Traces(root).guard.exists()

    def test_a_phrase_skips_no_failure(self, root: Path, tmp_path: Path) -> None:
        script = "echo The job was skipped.; exit 3"
        done = line("--required-steps", "a", "--", "sh", "-c", script, cwd=tmp_path)

        assert done.returncode == 3
        assert Traces(root).json("validation")["maintenanceStatus"] == "failed"

    def test_a_log_that_is_too_long_stays_ours(
        self, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        script = "head -c 67200000 /dev/zero | tr '\\0' '\\n'; echo job: semantic=failed"
        assert line("--", "sh", "-c", f'({script}) >>"$HM_LOG"', cwd=tmp_path).returncode == 0
        traces = Traces(root)
        options = ["--log-path", str(traces.log_path), "--required-steps", "job"]
        done = here(capsys, "cron", "validate", "--exit-path", traces.exit_path, *options)

        assert done.returncode == 0, done.stdout


class TestTimeLimits:
    @pytest.mark.parametrize("limit", ["nan", "inf", "-inf", "1e999", "9" * 400])
    @pytest.mark.parametrize("command", [("cron", "exec", "--job", "j"), ("run", "exec")])
    def test_one_that_is_not_finite_is_refused(
        self,
        limit: str,
        command: tuple[str, ...],
        capsys: pytest.CaptureFixture[str],
        tmp_path: Path,
    ) -> None:
        made = tmp_path / "made"
        done = here(capsys, *command, f"--timeout={limit}", "--", "touch", made)

        assert done.returncode == 2
        assert not made.exists()

    @pytest.mark.parametrize("limit", ["1e300", "1e18", "9999999999"])
    def test_a_huge_one_is_as_good_as_none(self, limit: str, tmp_path: Path) -> None:
        assert line(f"--timeout={limit}", "--", "true", cwd=tmp_path).returncode == 0

    @pytest.mark.parametrize("limit", ["9" * 400, "9" * 5000, "9" * 12])
    def test_a_huge_one_of_a_step_is_as_good_as_none(self, limit: str, tmp_path: Path) -> None:
        names = {"HM_EXIT": str(tmp_path / "exit.txt"), "STEP_TIMEOUT_SECONDS": limit}

        assert tacho("cron", "step", "a", "--", "true", environment=names).returncode == 0

    def test_run_child_refuses_what_is_no_limit(self, tmp_path: Path) -> None:
        from tachograph.infra.child import run_child

        for limit in (math.nan, math.inf):
            with pytest.raises(ValueError, match="no time limit"):
                run_child(
                    ["touch", str(tmp_path / "made")],
                    os.environ,
                    tail_bytes=0,
                    timeout_seconds=limit,
                )
        assert not (tmp_path / "made").exists()


def test_an_error_while_a_command_runs_ends_the_command(tmp_path: Path) -> None:
    from tachograph.infra.child import run_child

    pids: list[int] = []

    def broken(_data: bytes) -> None:
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        run_child(
            ["sh", "-c", "echo up; exec sleep 600"],
            os.environ,
            tail_bytes=0,
            on_started=pids.append,
            on_output=broken,
        )
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


class TestTheSameIdAgain:
    SCRIPT = "test -e ok && exit 0; touch ok; for s in a b; do tacho cron step $s -- true; done"

    def test_a_new_execution_uses_no_row_of_an_earlier_one(
        self, root: Path, tmp_path: Path
    ) -> None:
        options = ("--id", ID, "--required-steps", "a,b", *shell(self.SCRIPT))
        codes = [line(*options, cwd=tmp_path).returncode for _ in range(2)]
        guard = root / "guard" / "job.ms"
        traces = Traces(root)

        assert codes == [0, 1]
        assert traces.json("validation")["missingSteps"] == ["a", "b"]
        assert outcome(f"{ID}~2")[0] == "failed"
        assert traces.json("validation")["guardUpdated"] is False
        assert guard.exists()  # of the first one

    def test_a_resume_of_one_goes_on_with_its_rows(self, root: Path, tmp_path: Path) -> None:
        script = (
            "test -e ok || tacho cron step a -- true; "
            "test -e ok && tacho cron step b -- true || { touch ok; exit 3; }"
        )
        options = ("--id", ID, "--required-steps", "a,b", *shell(script))
        codes = [line(*options, cwd=tmp_path).returncode for _ in range(2)]

        assert codes == [3, 0]
        assert Traces(root).json("validation")["maintenanceStatus"] == "success"

    def test_other_arguments_leave_the_earlier_verdict_alone(
        self, root: Path, tmp_path: Path
    ) -> None:
        line("--id", ID, "--", "sh", "-c", "exit 3", cwd=tmp_path)
        before = Traces(root).json("validation")
        done = line("--id", ID, "--", "true", cwd=tmp_path)
        traces = Traces(root)

        assert done.returncode not in (0, 3)
        assert traces.json("validation") == before
        assert traces.validations == 1


class TestSkippedWork:
    @pytest.mark.parametrize("options", [(), ("--allow-skip",)])
    def test_a_job_earns_no_guard(
        self, options: tuple[str, ...], root: Path, tmp_path: Path
    ) -> None:
        line(*options, "--", "echo", "status=skipped_cooldown", cwd=tmp_path)

        assert not Traces(root).guard.exists()

    @pytest.mark.parametrize(("options", "earned"), [((), False), (("--allow-skip",), True)])
    def test_a_step_earns_one_only_where_it_may_skip_and_others_did_not(
        self, options: tuple[str, ...], earned: bool, root: Path, tmp_path: Path
    ) -> None:
        script = "tacho cron step a -- echo status=skipped_cooldown; tacho cron step b -- true"
        line(*options, "--required-steps", "a,b", *shell(script), cwd=tmp_path)

        assert Traces(root).guard.exists() is earned


class TestSecrets:
    """G13: what the environment keeps secret is in no file that is left."""

    SECRET = "hunter2-hunter2"

    def test_none_is_in_any_trace(self, root: Path, tmp_path: Path) -> None:
        script = (
            "echo one $MY_API_TOKEN two; printf hunter2-; printf hunter2; "
            "tacho cron step p -- sh -c 'echo status=failed_$MY_API_TOKEN; exit 1'"
        )
        environment = {"MY_API_TOKEN": self.SECRET}
        done = line("--required-steps", "p", *shell(script), cwd=tmp_path, environment=environment)
        files = [path for path in root.rglob("*") if path.is_file()]

        assert done.stdout.startswith(f"one {self.SECRET} two\n")  # of the command, as it was
        assert {path.name.partition(".")[2] for path in files} > {"log", "exit.txt"}
        assert not [path for path in files if self.SECRET in path.read_text()]
        assert "one [redacted] two" in Traces(root).log

    def test_every_trace_is_for_its_owner_only(self, root: Path, tmp_path: Path) -> None:
        line("--", "true", cwd=tmp_path)
        traces = Traces(root)
        day = traces.day / traces.stem
        paths = [traces.log_path, traces.exit_path]
        paths += [Path(f"{day}.{kind}.json") for kind in ("summary", "validation")]

        assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}


class TestTheFolderForTemporaryFiles:
    def exec(self, tmp_path: Path, user: str = "ann") -> str:
        (tmp_path / "file").write_text("")
        environment = {"TMPDIR": str(tmp_path / "tmp"), "USER": user}
        options = ("--root", str(tmp_path / "file" / "x"))
        return line(*options, "--", "true", cwd=tmp_path, environment=environment).stderr

    def test_a_link_in_its_place_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "tmp").mkdir()
        (tmp_path / "mine").mkdir()
        (tmp_path / "tmp" / "openclaw-cron-hybrid-mem-ann").symlink_to(tmp_path / "mine")

        assert "runs without log and ledger" in self.exec(tmp_path)
        assert list((tmp_path / "mine").iterdir()) == []

    def test_one_that_others_may_write_to_is_refused(self, tmp_path: Path) -> None:
        folder = tmp_path / "tmp" / "openclaw-cron-hybrid-mem-ann"
        folder.mkdir(parents=True)
        folder.chmod(0o777)

        assert "runs without log and ledger" in self.exec(tmp_path)

    @pytest.mark.parametrize("user", ["../../x", "a/b", ".", "a b"])
    def test_a_name_that_is_no_part_of_a_path_is_not_used(self, user: str, tmp_path: Path) -> None:
        (tmp_path / "tmp").mkdir()
        self.exec(tmp_path, user)

        assert [path.name for path in (tmp_path / "tmp").iterdir()] == [
            f"openclaw-cron-hybrid-mem-{os.getuid()}"
        ]


class TestParents:
    def parent(self, run_id: str) -> str | None:
        services = open_store(read_only=True)
        try:
            run = services.repository.get(run_id)
            assert run is not None
            return run.parent
        finally:
            services.close()

    def test_a_line_within_a_run_is_part_of_it(self, root: Path, tmp_path: Path) -> None:
        script = f"tacho cron exec --job inner --id {ID} -- true"
        line(*shell(script), cwd=tmp_path, job="outer")
        outer = Traces(root, "outer").run_id

        assert self.parent(ID) == outer
        assert self.parent(outer) is None

    def test_one_within_run_exec_too(self, tmp_path: Path) -> None:
        words = shell(f"tacho cron exec --job inner --id {ID} -- true")
        assert tacho("run", "exec", "--id", "outer", *words).returncode == 0

        assert self.parent(ID) == "outer"

    def test_a_run_within_that_failed_is_in_the_exit_code(self, root: Path, tmp_path: Path) -> None:
        """G12: a script that swallows the exit code of what it runs has not done its work."""
        script = "tacho run exec --name inner -- false; exit 0"
        done = line(*shell(script), cwd=tmp_path, job="outer")
        traces = Traces(root, "outer")

        assert done.returncode == 1
        assert outcome(traces.run_id)[0] == "failed"
        assert not traces.guard.exists()

    def test_it_can_be_named(self, tmp_path: Path) -> None:
        line("--parent", "some-run", "--id", ID, "--", "true", cwd=tmp_path)

        assert self.parent(ID) == "some-run"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("cron", "exec", "--job", "harness-bootstrap", "--", "true"), "harness's own"),
        (("cron", "exec", "--job", "j", "--required-steps", "validate-cron-exit", "--", "true"),
         "harness's own"),
        (("cron", "exec", "--job", "j", "--id", "20241399T021530Z-7", "--", "true"), "no RUN_ID"),
        (("cron", "exec", "--job", "j", "--id", "20240230T021530Z-7", "--", "true"), "no RUN_ID"),
        (("cron", "exec", "--job", "j", "--id", "20240208T250000Z-7", "--", "true"), "no RUN_ID"),
        (("cron", "validate", "--exit-path", "a-1.exit.txt", "a-2.exit.txt",
          "--required-steps", "a"), "a-2.exit.txt is a ledger"),
        (("cron", "validate", "--exit-path", "a-1.exit.txt", "notes/x"), "cannot be called"),
        (("cron", "validate", "--exit-path", "a.exit.txt", "harness-bootstrap"), "harness's own"),
    ],
)  # fmt: skip
def test_what_is_no_name_is_refused(
    arguments: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, *arguments)

    assert done.returncode == 2
    assert complaint in done.stderr


def test_three_first_steps_at_once_begin_the_steps_once(root: Path, tmp_path: Path) -> None:
    script = "for s in a b c; do tacho cron step $s -- true & done; wait"
    done = line("--required-steps", "a,b,c", *shell(script), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert Traces(root).log.count("--- steps ---\n") == 1


def test_the_last_output_without_an_end_of_line_swallows_no_line_of_ours(
    root: Path, tmp_path: Path
) -> None:
    line("--", "printf", "no end", cwd=tmp_path)

    assert "no end\n--- validate-cron-exit ---\n" in Traces(root).log


@pytest.mark.parametrize("text", ["{", "", "\ufeff{}"])
def test_a_summary_that_is_no_json_costs_the_guard(text: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "made").write_text(text, encoding="utf-8")
    done = line("--", "sh", "-c", 'cp made "$HM_SUMMARY"', cwd=tmp_path)
    traces = Traces(root)

    assert done.returncode == 1
    assert "has left no JSON there" in done.stderr
    assert not traces.guard.exists()
    assert "skipped_traces_incomplete" in traces.log


def test_a_step_that_failed_has_one_issue(root: Path, tmp_path: Path) -> None:
    script = "tacho cron step a -- sh -c 'exit 4'; tacho cron step b -- echo status=failed_parse"
    line("--required-steps", "a,b", *shell(script), cwd=tmp_path)
    issues = Traces(root).json("validation")["reportableIssues"]

    assert sorted((each["stepName"], each["failureClass"]) for each in issues) == [
        ("a", "nonzero_exit"),
        ("b", "reported_failure"),
    ]
    assert json.dumps(issues).count('"stepName": "a"') == 1


def test_a_takeover_of_a_second_attempt_leaves_its_own_verdict(
    root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import signal

    from tachograph.infra import keeper

    line("--id", ID, "--", "sh", "-c", "exit 3", cwd=tmp_path)
    monkeypatch.setattr(keeper, "possible", lambda: True)
    monkeypatch.setattr(keeper, "keep", lambda work, shared: -signal.SIGKILL)
    arguments = ("--job", "job", "--id", ID, "--", "sh", "-c", "exit 3")
    done = here(capsys, "cron", "exec", *arguments)

    assert done.returncode == 137
    assert Traces(root).validations == 2
