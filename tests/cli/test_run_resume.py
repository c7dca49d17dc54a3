"""`run resume` continues a run by its plan, and ends with what came of it."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import FINISHES, NOTHING, ONE_BATCH, abandon
from command_line import bash, here, history, topics
from stores import opened

from tachograph.infra.processes import describe
from tachograph.resuming import Dispatcher

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]


def test_a_run_that_was_cut_off_goes_on_to_its_end(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    done = here(capsys, "run", "resume", "job")

    assert (done.returncode, done.stdout) == (0, "job\n")
    assert done.stderr == "Attempt 2 of job got further; the run ended as success.\n"
    assert topics("job").count("batch-completed") == 3
    assert topics("job").count("attempt-started") == 2


def test_json_says_what_came_of_it(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    done = here(capsys, "run", "resume", "job", "--json")
    found = json.loads(done.stdout)

    assert (found["jobRunId"], found["epoch"], found["outcome"]) == ("job", 2, "success")
    assert (found["progressed"], found["fenced"], found["error"]) == (True, False, None)
    assert found["result"]["exitCode"] == 0
    assert found["execute"]["argv"][0] == sys.executable


def test_it_does_what_the_plan_said(capsys: Capture, store_path: Path) -> None:
    """G11."""
    abandon(store_path)
    shown = json.loads(here(capsys, "run", "plan", "job", "--json").stdout)
    done = here(capsys, "run", "resume", "job", "--plan", shown["digest"])
    recorded = dict(history("job"))["run.resume-dispatched"]

    assert done.returncode == 0
    assert recorded["plan"]["digest"] == shown["digest"]
    assert recorded["plan"]["version"] == shown["version"]
    assert recorded["plan"]["execute"]["argv"] == shown["execute"]["argv"]


def test_another_plan_is_not_carried_out(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    before = topics("job")
    done = here(capsys, "run", "resume", "job", "--plan", "0" * 32)

    assert done.returncode == 1
    assert "Look at `tacho run plan job` again" in done.stderr
    assert topics("job") == before


def test_an_adapter_that_does_nothing_is_exit_code_1(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, NOTHING)
    done = here(capsys, "run", "resume", "job")

    assert done.returncode == 1
    assert done.stderr == "Attempt 2 of job got no further; the run is unfinished.\n"


def test_an_adapter_that_failed_after_a_batch_is_exit_code_1(
    capsys: Capture, store_path: Path
) -> None:
    abandon(store_path, ONE_BATCH.replace("_exit(0)", "_exit(3)"))
    done = here(capsys, "run", "resume", "job")

    assert done.returncode == 1
    assert "got further; the run is unfinished. Its adapter: exit code 3." in done.stderr


def test_it_can_be_resumed_again_and_again(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, ONE_BATCH)
    codes = [here(capsys, "run", "resume", "job").returncode for _ in range(2)]

    assert codes == [0, 0]
    assert topics("job").count("batch-completed") == 3


def test_it_is_found_from_another_folder(
    capsys: Capture, store_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is that in which the job was declared."""
    job, elsewhere = tmp_path / "job", tmp_path / "elsewhere"
    job.mkdir()
    elsewhere.mkdir()
    code = FINISHES + "\nopen('here', 'w').close()\n"
    abandon(store_path, code, working_folder=str(job))
    monkeypatch.chdir(elsewhere)
    done = here(capsys, "run", "resume", "job")

    assert done.returncode == 0
    assert [path.name for path in job.iterdir()] == ["here"]


def test_a_finished_run_is_exit_code_1(capsys: Capture, store_path: Path) -> None:
    """G6."""
    abandon(store_path)
    here(capsys, "run", "resume", "job")
    done = here(capsys, "run", "resume", "job", "--json")

    assert done.returncode == 1
    assert json.loads(done.stderr)["error"] == "RunFinishedError"


def test_a_living_owner_is_exit_code_6(capsys: Capture, store_path: Path) -> None:
    """G5."""
    abandon(store_path, owner=describe(os.getpid()))
    done = here(capsys, "run", "resume", "job")

    assert done.returncode == 6
    assert "--takeover and --reason" in done.stderr


def test_a_person_may_take_it_over(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, owner=describe(os.getpid()))
    done = here(capsys, "run", "resume", "job", "--takeover", "--reason", "it hangs")
    late = here(capsys, "run", "checkpoint", "--state", "1", "--run", "job", "--epoch", "1")

    assert done.returncode == 0
    assert late.returncode == 6
    started = [fields for topic, fields in history("job") if topic == "run.attempt-started"]
    assert started[1]["reason"] == "it hangs"


def test_an_effect_in_doubt_is_exit_code_8(capsys: Capture, store_path: Path) -> None:
    """G10."""
    abandon(store_path)
    with opened(store_path) as services:
        services.session("job", 1).intend_effect("mail")
    refused = here(capsys, "run", "resume", "job")
    here(capsys, "run", "effect", "mail", "--run", "job", "--done", "--reason", "it was sent")
    done = here(capsys, "run", "resume", "job")

    assert refused.returncode == 8
    assert "mail" in refused.stderr
    assert done.returncode == 0


def test_an_unsafe_phase_is_exit_code_8_and_may_be_disregarded(
    capsys: Capture, store_path: Path
) -> None:
    abandon(store_path, safe_to_retry=False)
    refused = here(capsys, "run", "resume", "job")
    done = here(
        capsys, "run", "resume", "job", "--despite", "unsafe_to_retry", "--reason", "I looked"
    )

    assert refused.returncode == 8
    assert "tacho run resume job --despite unsafe_to_retry --reason" in refused.stderr
    assert done.returncode == 0


def test_too_early_is_exit_code_75(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, NOTHING, backoff_seconds=3600)
    here(capsys, "run", "resume", "job", "--unattended")
    done = here(capsys, "run", "resume", "job", "--unattended")

    assert done.returncode == 75
    assert "the next try is due in" in done.stderr


def test_nothing_to_resume_it_with_is_exit_code_1(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, None)
    done = here(capsys, "run", "resume", "job")

    assert done.returncode == 1
    assert "nothing says what would resume it" in done.stderr


def test_an_adapter_that_is_not_there_is_told(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, command=["/no/such/program"])
    done = here(capsys, "run", "resume", "job")

    assert done.returncode == 1
    assert "/no/such/program" in done.stderr


def test_a_time_limit_stops_it(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, "import time; time.sleep(600)")
    done = here(capsys, "run", "resume", "job", "--timeout", "0.2s")

    assert done.returncode == 1
    assert "it was stopped at its time limit" in done.stderr


def test_what_a_killed_one_left_is_told_with_its_stderr(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, "import sys; sys.exit('no disk')")
    here(capsys, "run", "resume", "job")
    returned = history("job")[-1][1]

    assert returned["result"]["stderr"] == "no disk\n"
    assert returned["result"]["error"] == "exit code 1"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--takeover"], "say why"),
        (["--despite", "owned"], "say why"),
        (["--reason", "because"], "go together"),
        (["--timeout", "0s"], "--timeout is 0"),
        (["--timeout", "soon"], "soon"),
        (["--nothing"], "No such option"),
    ],
)
def test_wrong_input_is_exit_code_2_and_changes_nothing(
    options: list[str], problem: str, capsys: Capture, store_path: Path
) -> None:
    abandon(store_path)
    before = topics("job")
    done = here(capsys, "run", "resume", "job", *options)

    assert done.returncode == 2
    assert problem in done.stderr
    assert topics("job") == before


@pytest.mark.parametrize("run", ["nothing", ""])
def test_an_unknown_run_is_exit_code_3(run: str, capsys: Capture, store_path: Path) -> None:
    abandon(store_path)

    assert here(capsys, "run", "resume", run).returncode == 3


def test_without_a_store_it_is_exit_code_3(capsys: Capture) -> None:
    assert here(capsys, "run", "resume", "job").returncode == 3


ADAPTER = """
import tachograph

def resume(resume):
    with tachograph.record("report", run_id=resume.run_id) as run:
        run.save_checkpoint({"seen": len(resume.checkpoint["text"])})
        run.finish("partial")
    print("goes to stderr")
    return {"ok": True, "epoch": resume.epoch}
"""


@pytest.mark.parametrize("length", [10, 200_000])
def test_a_function_resumes_it_from_a_checkpoint_of_any_length(
    length: int, capsys: Capture, store_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "job_adapter.py").write_text(ADAPTER)
    abandon(store_path, None, adapter="job_adapter:resume", working_folder=str(tmp_path))
    with opened(store_path) as services:
        services.session("job", 1).save_checkpoint({"text": "x" * length})
    done = here(capsys, "run", "resume", "job", "--timeout", "60s", "--json")
    found = json.loads(done.stdout)

    assert found["result"]["reply"] == {"ok": True, "epoch": 2}
    assert found["execute"]["kind"] == "function"
    saved = [fields for topic, fields in history("job") if topic == "run.checkpoint-saved"]
    assert saved[1]["state"] == {"seen": length}
    returned = dict(history("job"))["run.resume-returned"]
    assert returned["result"]["stderr"] == "goes to stderr\n"
    assert list((store_path / "spool").iterdir()) == []


SCRIPT = """
eval "$(tacho run start report --id job --export --resume-command 'bash job.sh')"
tacho run batch parse --next >/dev/null 2>&1 || tacho run phase start parse --batches 2
test -e once || { touch once; tacho run batch parse 0; exit 9; }
tacho run batch parse 1 && tacho run phase end parse
tacho run finish --outcome success
"""


def test_a_shell_job_goes_on_in_the_attempt_that_it_was_started_for(
    capsys: Capture, tmp_path: Path
) -> None:
    import subprocess

    first = subprocess.run(bash(SCRIPT, tmp_path), cwd=tmp_path, capture_output=True, text=True)
    done = here(capsys, "run", "resume", "job")

    assert first.returncode == 9, first.stderr
    assert done.returncode == 0, done.stderr + str(history("job")[-1])
    assert topics("job").count("attempt-started") == 2
    assert topics("job").count("batch-completed") == 2


def test_what_is_declared_is_shown_and_changed(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    changed = here(
        capsys, "run", "recovery", "job", "--max-retries", "5", "--reason", "the net is back"
    )
    shown = json.loads(here(capsys, "run", "recovery", "job", "--json").stdout)

    assert changed.returncode == 0
    assert shown["recovery"]["max_retries"] == 5
    assert shown["recovery"]["command"] == [sys.executable, "-c", FINISHES]
    declared = [fields for topic, fields in history("job") if topic == "run.recovery-declared"]
    assert [fields["reason"] for fields in declared] == [None, "the net is back"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--max-retries", "5"], "Why is it changed?"),
        (["--reason", "because"], "What is changed?"),
        (["--adapter", "a:b", "--resume-command", "c", "--reason", "r"], "exclude each other"),
        (["--resume-command", "'", "--reason", "r"], "--resume-command"),
        (["--input-file", "/no/such/file", "--reason", "r"], "cannot be read"),
        (["--in-doubt", "perhaps", "--reason", "r"], "perhaps"),
    ],
)
def test_what_cannot_be_declared_is_exit_code_2(
    options: list[str], problem: str, capsys: Capture, store_path: Path
) -> None:
    abandon(store_path)
    before = topics("job")
    done = here(capsys, "run", "recovery", "job", *options)

    assert done.returncode == 2
    assert problem in done.stderr
    assert topics("job") == before


class TestDespite:
    @pytest.mark.parametrize("code", ["unsafe", "artifact_damaged", "finished", "UNSAFE_TO_RETRY"])
    def test_a_code_that_is_not_in_the_way_is_exit_code_2(
        self, code: str, capsys: Capture, store_path: Path
    ) -> None:
        abandon(store_path, safe_to_retry=False)
        options = ("--despite", "unsafe_to_retry", "--despite", code, "--reason", "I looked")
        done = here(capsys, "run", "resume", "job", *options)

        assert done.returncode == 2
        assert f"--despite {code} says nothing: in the way of job is unsafe_to_retry." in (
            " ".join(done.stderr.split())
        )
        assert topics("job").count("attempt-started") == 1

    def test_with_nothing_in_the_way_it_says_so(self, capsys: Capture, store_path: Path) -> None:
        abandon(store_path)
        done = here(capsys, "run", "resume", "job", "--despite", "blocked", "--reason", "why")

        assert (done.returncode, "in the way of job is nothing" in done.stderr) == (2, True)

    def test_what_nobody_may_disregard_is_named_as_such(
        self, capsys: Capture, store_path: Path
    ) -> None:
        abandon(store_path)
        with opened(store_path) as services:
            services.session("job", 1).intend_effect("mail")
        options = ("--despite", "effects_in_doubt", "--reason", "why")
        done = here(capsys, "run", "resume", "job", *options)

        assert done.returncode == 2
        assert "effects_in_doubt (not to be disregarded)" in " ".join(done.stderr.split())

    def test_of_a_finished_run_it_says_that(self, capsys: Capture, store_path: Path) -> None:
        abandon(store_path)
        here(capsys, "run", "resume", "job")
        done = here(capsys, "run", "resume", "job", "--despite", "blocked", "--reason", "why")

        assert done.returncode not in (0, 2)
        assert "is finished (success)" in done.stderr

    def test_what_comes_into_the_way_after_the_look_still_stops_it(
        self, capsys: Capture, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        abandon(store_path, safe_to_retry=False)
        resume = Dispatcher.resume

        def blocked_first(dispatcher: Dispatcher, run_id: str, **options: Any) -> Any:
            with opened(store_path) as services:
                services.session("job", 0).execute(lambda run, why: run.block(why, "a strike"))
            return resume(dispatcher, run_id, **options)

        monkeypatch.setattr(Dispatcher, "resume", blocked_first)
        options = ("--despite", "unsafe_to_retry", "--reason", "I looked")
        done = here(capsys, "run", "resume", "job", *options)

        assert (done.returncode, "a strike" in done.stderr) == (8, True)
        assert topics("job").count("attempt-started") == 1
