"""Any command as a run: passed through, ended truthfully, recorded whole."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, here, history, tacho, topics

from tachograph.infra import keeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]


def execute(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as `job`, with nothing to read."""
    return subprocess.run(
        [*TACHO, "run", "exec", "--id", "job", *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def last(run_id: str = "job") -> dict[str, Any]:
    return history(run_id)[-1][1]


def ending(run_id: str = "job") -> dict[str, Any]:
    """Return how the last attempt's command ended, as it was recorded."""
    results = [fields for topic, fields in history(run_id) if topic == "run.step-completed"]
    result: dict[str, Any] = results[-1]["result"]
    return result


def test_output_passes_through_and_its_tail_is_recorded(tmp_path: Path) -> None:
    done = execute("--tail-bytes", "6", "--", "sh", "-c", "echo first; echo last", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (0, "first\nlast\n")
    assert ending()["output"] == "\nlast\n"
    assert ending()["output_bytes"] == 11


def test_a_large_tail_is_kept_apart_and_loaded_again(tmp_path: Path) -> None:
    from tachograph.bootstrap import open_store

    script = "head -c 300000 /dev/zero | tr '\\0' 'x'"
    done = execute("--tail-bytes", "200000", "--", "sh", "-c", script, cwd=tmp_path)
    services = open_store(read_only=True)
    loaded = services.payloads.load(ending())
    services.close()

    assert done.returncode == 0
    assert loaded["output"] == "x" * 200_000


def test_exit_code_0_alone_is_no_success(tmp_path: Path) -> None:
    """G12: nothing says that the command did its work."""
    done = execute("--", "true", cwd=tmp_path)

    assert done.returncode == 0
    assert (last()["outcome"], last()["reason_code"]) == ("success_with_review", "not_judged")
    # A command that ends at once may have no process left to record.
    assert [topic for topic in topics("job") if topic != "worker-started"] == [
        "created",
        "recovery-declared",
        "attempt-started",
        "phase-started",
        "step-completed",
        "phase-ended",
        "semantic-gate-judged",
        "finished",
    ]


@pytest.mark.parametrize(
    ("script", "code", "reason", "signal_name"),
    [
        ("exit 3", 3, "exit code 3", None),
        ("kill -KILL $$", 137, "killed by SIGKILL", "SIGKILL"),
        ("kill -SEGV $$", 139, "killed by SIGSEGV", "SIGSEGV"),
    ],
)
def test_a_command_that_fails_fails_the_run(
    script: str, code: int, reason: str, signal_name: str | None, tmp_path: Path
) -> None:
    done = execute("--", "sh", "-c", script, cwd=tmp_path)

    assert done.returncode == code
    assert (last()["outcome"], last()["reason"]) == ("failed", reason)
    assert ending()["signal"] == signal_name
    assert f"job: failed, {reason}" in done.stderr


def test_the_next_execution_resumes_a_failed_run(tmp_path: Path) -> None:
    script = "test -e ok || { touch ok; exit 3; }"
    codes = [execute("--", "sh", "-c", script, cwd=tmp_path).returncode for _ in range(2)]

    assert codes == [3, 0]
    assert topics("job").count("attempt-started") == 2
    assert last()["outcome"] == "success_with_review"


def test_another_exit_code_can_mean_success(tmp_path: Path) -> None:
    options = ("--success-code", "0", "--success-code", "3")
    done = execute(*options, "--", "sh", "-c", "exit 3", cwd=tmp_path)

    assert done.returncode == 3
    assert last()["outcome"] == "success_with_review"


def test_expected_outputs_that_are_there_make_a_success(tmp_path: Path) -> None:
    done = execute("--expect-output", "out.txt", "--", "sh", "-c", "echo x >out.txt", cwd=tmp_path)
    artifacts = [fields for topic, fields in history("job") if topic == "run.artifact-recorded"]

    assert done.returncode == 0
    assert last()["outcome"] == "success"
    assert [(item["name"], item["path"], item["size"]) for item in artifacts] == [
        ("out.txt", str(tmp_path / "out.txt"), 2)
    ]


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("true", "was not written anew"),
        (": >out.txt", "is empty"),
        ("rm out.txt", "was not made"),
    ],
)
def test_expected_outputs_that_are_not_there_fail_the_gate(
    script: str, problem: str, tmp_path: Path
) -> None:
    """Exit code 0 would be a lie then."""
    (tmp_path / "out.txt").write_text("of yesterday")
    done = execute("--expect-output", "out.txt", "--", "sh", "-c", script, cwd=tmp_path)

    assert done.returncode == 7
    assert last()["outcome"] == "failed_semantic_empty"
    assert f"expected output out.txt {problem}" in done.stderr


def test_the_command_finds_its_run_and_records_on_its_own(tmp_path: Path) -> None:
    python, flag, code = TACHO
    script = f"""
    tacho() {{ {python} {flag} '{code}' "$@"; }}
    tacho run phase start inner --batches 1
    tacho run batch inner 0 --inputs 2 --output-json '[1, 2]'
    tacho run phase end inner
    """
    done = execute("--", "sh", "-c", script, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "batch-completed" in topics("job")
    assert last()["outcome"] == "success"


def test_a_phase_that_the_command_left_open_makes_it_partial(tmp_path: Path) -> None:
    python, flag, code = TACHO
    script = f"{python} {flag} '{code}' run phase start inner"
    done = execute("--", "sh", "-c", script, cwd=tmp_path)

    assert done.returncode == 75
    assert (last()["outcome"], last()["reason_code"]) == ("partial", "phases_open")


def test_a_command_that_ended_the_attempt_has_the_last_word(tmp_path: Path) -> None:
    python, flag, code = TACHO
    script = f"{python} {flag} '{code}' run fail --reason 'no disk'; exit 0"
    done = execute("--", "sh", "-c", script, cwd=tmp_path)

    assert done.returncode == 1
    assert topics("job").count("finished") == 1
    assert "job: failed, no disk" in done.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    done = execute("--", "no-such-program-here", cwd=tmp_path)

    assert done.returncode == 127
    assert (last()["outcome"], last()["reason_code"]) == ("failed", "not_run")


def test_a_command_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    assert execute("--", "./data", cwd=tmp_path).returncode == 126


def test_nothing_is_run_when_the_start_cannot_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {"TACHO_STORE": str(tmp_path / "file" / "store")}
    done = execute("--", "touch", "made", cwd=tmp_path, environment=environment)

    assert done.returncode not in (0, 75)
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit(2) is there only")
def test_a_store_that_takes_no_more_does_not_stop_the_command_but_is_told(
    tmp_path: Path,
) -> None:
    code = (
        "import os, resource as r; r.prlimit(os.getppid(), r.RLIMIT_FSIZE, (0, 0)); print('made')"
    )
    done = execute("--", sys.executable, "-c", code, cwd=tmp_path)

    assert done.stdout == "made\n"
    assert done.returncode == 75
    assert "the end of run job was not recorded" in done.stderr


def test_a_superseded_attempt_does_not_record_its_end(tmp_path: Path) -> None:
    python, flag, code = TACHO
    take = "run start sh --id job --takeover --reason test"
    script = f"""{python} {flag} '{code}' {take} --inputs "$INPUTS" """
    command = ["sh", "-c", script]
    environment = {"INPUTS": json.dumps({"argv": command})}
    done = execute("--", *command, cwd=tmp_path, environment=environment)

    assert done.returncode == 6
    assert "belongs to another attempt by now" in done.stderr
    assert topics("job")[-1] == "attempt-started"


def test_a_running_command_is_not_started_again(tmp_path: Path) -> None:
    command = [*TACHO, "run", "exec", "--id", "job", "--", "cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("up\n")
        process.stdin.flush()
        assert process.stdout.readline() == "up\n"
        again = subprocess.run(command, input="", capture_output=True, text=True)
        process.stdin.close()

    assert again.returncode == 6
    assert process.returncode == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_an_interrupted_command_is_partial(name: str, tmp_path: Path) -> None:
    number = getattr(signal, name)
    with subprocess.Popen(
        [*TACHO, "run", "exec", "--id", "job", "--", "sh", "-c", "echo up; exec sleep 600"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        process.wait()

    # A shell shows both as 130: ending by SIGINT lets a loop around it end as well.
    assert process.returncode == (-number if number == signal.SIGINT else 128 + number)
    assert (last()["outcome"], last()["reason"]) == ("partial", f"interrupted, killed by {name}")


def test_a_time_limit_is_a_failure(tmp_path: Path) -> None:
    done = execute("--timeout", "0.2", "--", "sleep", "600", cwd=tmp_path)

    assert done.returncode == 143
    assert (last()["outcome"], last()["reason_code"]) == ("failed", "timeout")


class Running:
    """`tacho run exec` of a command that is up, waits for a word, and then writes out.txt."""

    def __init__(self, folder: Path) -> None:
        os.mkfifo(folder / "gate")
        self.gate = folder / "gate"
        script = "echo $$; read -r word <gate; echo $word >out.txt"
        self.command = [
            *(*TACHO, "run", "exec", "--id", "job", "--expect-output", "out.txt"),
            *("--", "sh", "-c", script),
        ]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command, cwd=folder, stdout=pipe, stderr=pipe, text=True
        )
        assert self.process.stdout is not None
        self.stdout = self.process.stdout
        self.pid = int(self.stdout.readline())
        self.keeper = attempt()["owner"]["pid"]

    def told(self) -> str:
        """Return what was said on stderr, once nobody is left who could say more."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def release(self) -> None:
        """Let the command end, and wait until nobody holds its output any more."""
        self.gate.write_text("done\n")
        self.stdout.read()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    with running.process:
        yield running


def attempt() -> dict[str, Any]:
    """Return how the last attempt was started."""
    started = [fields for topic, fields in history("job") if topic == "run.attempt-started"]
    return started[-1]


def status() -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(tacho("run", "status", "job", "--json").stdout)
    return shown


def test_the_command_is_recorded_as_the_worker_and_the_keeper_as_the_owner(
    running: Running,
) -> None:
    workers = [fields["worker"] for topic, fields in history("job") if "worker" in topic]
    running.release()

    assert [worker["pid"] for worker in workers] == [running.pid]
    assert workers[0]["started"] is not None
    assert running.keeper not in (running.pid, running.process.pid)


def test_a_killed_tacho_does_not_keep_the_run_from_its_end(running: Running) -> None:
    """The command goes on, and its keeper records how it ended: nothing is to be run again."""
    running.process.kill()
    running.process.wait()
    before = topics("job")
    running.release()

    assert "finished" not in before
    assert (last()["outcome"], ending()["exit_code"]) == ("success", 0)
    assert topics("job").count("attempt-started") == 1
    assert running.gate.with_name("out.txt").read_text() == "done\n"


def test_a_killed_group_does_not_keep_the_run_from_its_end(tmp_path: Path) -> None:
    """As a supervisor kills: the keeper has left the group."""
    os.mkfifo(tmp_path / "gate")
    command = [*TACHO, "run", "exec", "--id", "job", "--", "sh", "-c", "echo up; cat gate"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, signal.SIGKILL)
        (tmp_path / "gate").write_text("late\n")

        assert process.stdout.read() == "late\n"
    assert last()["outcome"] == "success_with_review"


def test_while_the_command_of_a_killed_keeper_lives_the_run_is_running(running: Running) -> None:
    os.kill(running.keeper, signal.SIGKILL)
    code = running.process.wait()
    shown = status()
    again = subprocess.run(running.command, cwd=running.gate.parent, capture_output=True, text=True)
    running.release()
    told = running.told()

    assert code == 128 + signal.SIGKILL
    assert "the keeper of the run was killed by SIGKILL; the command may live on" in told
    assert shown["status"] == "running"
    assert (again.returncode, again.stdout) == (6, "")


def test_when_keeper_and_command_are_killed_the_next_one_takes_the_run_up(
    tmp_path: Path,
) -> None:
    command = [*TACHO, "run", "exec", "--id", "job", "--", "sh", "-c", "echo $$; test -e ok || cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.kill(attempt()["owner"]["pid"], signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        process.stdout.read()
    (tmp_path / "ok").touch()
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert again.returncode == 0
    assert topics("job").count("attempt-started") == 2


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("argv", "code", "outcome"),
    [
        (("sh", "-c", "echo x >out.txt"), 0, "success"),
        (("true",), 7, "failed_semantic_empty"),
        (("sh", "-c", "exit 3"), 3, "failed"),
        (("no-such-program-here",), 127, "failed"),
    ],
)
def test_the_work_is_the_same_with_a_keeper_and_without(
    kept: bool,
    argv: tuple[str, ...],
    code: int,
    outcome: str,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this process, as where there is no fork, or where threads run already."""
    monkeypatch.setattr(keeper, "possible", lambda: kept)
    monkeypatch.setattr(keeper, "keep", lambda work, shared: work())
    monkeypatch.chdir(tmp_path)
    done = here(capsys, "run", "exec", "--id", "job", "--expect-output", "out.txt", "--", *argv)

    assert (done.returncode, last()["outcome"]) == (code, outcome)


@pytest.mark.parametrize("kept", [False, True])
def test_a_time_limit_that_makes_no_sense_is_a_usage_error(
    kept: bool, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "possible", lambda: kept)
    monkeypatch.setattr(keeper, "keep", lambda work, shared: work())
    done = here(capsys, "run", "exec", "--timeout", "0", "--", "true")

    assert done.returncode == 2
    assert "--timeout is 0" in done.stderr


def test_an_error_of_the_keeper_is_told_as_any_other(tmp_path: Path) -> None:
    done = execute("--json", "--timeout", "0", "--", "true", cwd=tmp_path)

    assert done.returncode == 2
    assert json.loads(done.stderr)["error"] == "UsageError"


# Blocked signals wait for sigwait; handlers and pause() would lose one that comes in between.
LISTENER = """
import signal, sys
wanted = [signal.SIGINT, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
print("ready", flush=True)
seen = []
while signal.SIGTERM not in seen:
    seen.append(signal.sigwait(wanted))
    print("got", signal.Signals(seen[-1]).name, flush=True)
sys.exit(10 + len(seen))
"""


def test_ctrl_c_at_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    """The terminal signals the group, in which tacho, its keeper and the command are.

    SIGTERM, sent to tacho alone, is passed on behind whatever was passed on before it.
    """
    terminal, other = pty.openpty()
    leader = ["sh", "-c", 'exec <>"$0" >&0 2>&0; exec "$@"', os.ttyname(other)]
    command = [*TACHO, "run", "exec", "--id", "job", "--", sys.executable, "-c", LISTENER]
    with subprocess.Popen([*leader, *command], cwd=tmp_path, start_new_session=True) as process:
        shown = read_until(terminal, b"ready")
        os.write(terminal, b"\x03")
        shown += read_until(terminal, b"got SIGINT")
        process.terminate()
        code = process.wait()
    os.close(other)
    os.close(terminal)

    assert shown.count(b"got SIGINT") == 1
    assert code == 12
    assert last()["reason"] == "exit code 12"


def read_until(descriptor: int, mark: bytes) -> bytes:
    """Return what a terminal shows, up to the line with the mark, or to its end."""
    shown = b""
    while mark not in shown or not shown.endswith(b"\n"):
        try:
            shown += os.read(descriptor, 1024)
        except OSError:  # the other side is closed
            break
    return shown


def test_json_is_told_on_stderr_and_stdout_is_the_commands(tmp_path: Path) -> None:
    done = execute("--json", "--quiet", "--", "echo", "data", cwd=tmp_path)

    assert done.stdout == "data\n"
    assert json.loads(done.stderr)["outcome"] == "success_with_review"


def test_output_that_is_no_text_is_kept_as_bytes() -> None:
    command = [*TACHO, "run", "exec", "--id", "job", "--", "printf", r"\377\376"]
    done = subprocess.run(command, capture_output=True)

    assert done.stdout == b"\xff\xfe"

    assert ending()["output"] == b"\xff\xfe"


def test_a_secret_does_not_reach_the_store(store_path: Path, tmp_path: Path) -> None:
    secret = "correct-horse-battery-staple"
    execute("--", "sh", "-c", 'echo "$API_TOKEN"', cwd=tmp_path, environment={"API_TOKEN": secret})
    files = [path for path in store_path.rglob("*") if path.is_file()]

    assert ending()["output"].endswith("\n")
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_the_name_is_that_of_the_program(capsys: Capture) -> None:
    here(capsys, "run", "exec", "--id", "job", "--", "/bin/true")

    assert history("job")[0][1]["command"] == "true"
    assert history("job")[0][1]["inputs"] == {"argv": ["/bin/true"]}


def test_the_environment_of_this_process_is_left_alone(capsys: Capture) -> None:
    before = dict(os.environ)
    here(capsys, "run", "exec", "--", "true")

    assert dict(os.environ) == before


# The watchdog and a command that fails.


def watch() -> dict[str, Any]:
    """Let the watchdog look once, and return what it tells."""
    done = tacho("watchdog", "run", "--once", "--auto-resume", "--json")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


FAILS = ("--", "sh", "-c", "echo x >>bad.log; exit 3")


def times(folder: Path) -> int:
    """Return how often the failing command ran."""
    return len((folder / "bad.log").read_text()) // 2


def test_a_command_that_fails_again_and_again_is_given_up_after_max_retries(
    tmp_path: Path,
) -> None:
    """That its end is recorded is no progress."""
    options = ("--auto-resume", "--max-retries", "2", "--backoff", "0s")
    execute(*options, *FAILS, cwd=tmp_path)
    reports = [watch() for _ in range(4)]

    assert times(tmp_path) == 3
    assert [report["recoveries"] for report in reports] == [[], [], [], []]
    assert [len(report["resumed"]) for report in reports] == [1, 1, 0, 0]
    assert [
        fields["reason"] for topic, fields in history("job") if "attention-raised" in topic
    ] == ["resume_failed"]
    assert topics("job").count("step-completed") == 3


def test_the_pause_between_resumes_that_fail_is_kept(tmp_path: Path) -> None:
    execute("--auto-resume", "--max-retries", "9", "--backoff", "1h", *FAILS, cwd=tmp_path)
    first, second = watch(), watch()

    assert times(tmp_path) == 2
    assert len(first["resumed"]) == 1
    assert (second["resumed"], second["recoveries"]) == ([], [])
    assert topics("job").count("attention-raised") == 0


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 7), ("exit 3", 3), ("kill -KILL $$", 137), ("kill $$", 143)]
)
def test_only_an_end_that_is_final_is_progress(script: str, code: int, tmp_path: Path) -> None:
    from tachograph.bootstrap import open_store

    done = execute("--expect-output", "out", "--", "sh", "-c", script, cwd=tmp_path)
    services = open_store(read_only=True)
    run = services.repository.get("job")
    services.close()

    assert done.returncode == code
    assert run is not None
    assert (run.progress_version, list(run.steps)) == (0, ["exec:1"])


def test_a_command_that_made_nothing_can_be_run_again(tmp_path: Path) -> None:
    """Its phase is not over: the next attempt's end is recorded too."""
    script = "test ! -e ok || echo x >out; touch ok"
    options = ("--expect-output", "out", "--", "sh", "-c", script)
    codes = [execute(*options, cwd=tmp_path).returncode for _ in range(2)]

    assert codes == [7, 0]
    assert last()["outcome"] == "success"


# What is not recorded is not run.

FAULT = """
import os, signal
from tachograph.domain import errors
from tachograph.domain.run import Run
def fault(run, *_rest, **_named):
    {fault}
Run.start_worker = fault
from tachograph.cli.main import main
main()
"""
REFUSALS = [
    ("raise errors.FencedError(run.id, 1, 2)", 6, "was superseded by attempt 2"),
    ("raise errors.StoreFullError('store', 'no space')", 75, "no space"),
    ("raise PermissionError(1, 'not permitted')", 126, "not permitted"),
]


def with_fault(fault: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `tacho run exec` with a fault where it records the process of the command."""
    return subprocess.run(
        [sys.executable, "-c", FAULT.format(fault=fault), "run", "exec", "--id", "job", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("fault", "code", "told"), REFUSALS)
def test_a_command_whose_start_cannot_be_recorded_is_not_run(
    fault: str, code: int, told: str, tmp_path: Path
) -> None:
    done = with_fault(fault, "--", "touch", "made", cwd=tmp_path)

    assert (done.returncode, list(tmp_path.glob("made"))) == (code, [])
    assert told in done.stderr
    assert "touch was not run" in done.stderr or "touch cannot be run" in done.stderr


def test_a_keeper_that_is_killed_before_the_command_is_recorded_leaves_none_running(
    tmp_path: Path,
) -> None:
    """So that the one that the watchdog starts is the only one."""
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    done = with_fault(kill, "--auto-resume", "--", "sh", "-c", "echo x >>log; echo y", cwd=tmp_path)
    before = list(tmp_path.glob("log"))
    report = watch()

    # The output ended: nobody is left who holds it.
    assert (done.returncode, done.stdout, before) == (128 + signal.SIGKILL, "", [])
    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    assert (tmp_path / "log").read_text() == "x\n"


def test_the_command_is_recorded_before_it_runs(tmp_path: Path) -> None:
    python, flag, code = TACHO
    script = f"""{python} {flag} '{code}' run events job; echo $$"""
    done = execute("--", "sh", "-c", script, cwd=tmp_path)
    *_, event, pid = done.stdout.splitlines()

    assert "worker-started" in event
    assert f'"pid": {pid}' in event


def test_the_environment_reaches_the_command_unchanged(tmp_path: Path) -> None:
    """Names that no shell could write included; only the three of the run are added."""
    given = {"BASH_FUNC_f%%": "() { :; }", "A.b": "1", "PATH": os.environ["PATH"]}
    given |= {"TACHO_STORE": os.environ["TACHO_STORE"], "HOME": os.environ["HOME"]}
    command = [*TACHO, "run", "exec", "--id", "job", "--", "env", "-0"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, cwd=tmp_path)
    names = {line.partition("=")[0] for line in done.stdout.split("\0") if line}

    assert names - {"LC_CTYPE"} == {*given, "TACHO_RUN_ID", "TACHO_EPOCH"}


# What a resume runs.


def test_a_resume_is_ours_whatever_lies_in_the_folder_of_the_job(tmp_path: Path) -> None:
    script = "test -e ok && exit 0; touch ok; exit 3"
    execute("--auto-resume", "--", "sh", "-c", script, cwd=tmp_path)
    (tmp_path / "signal.py").write_text("raise SystemExit('not ours')")
    report = watch()

    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    assert status()["status"] == "success_with_review"


def declared() -> dict[str, Any]:
    """Return how the run may be continued."""
    found = [fields["recovery"] for topic, fields in history("job") if "recovery" in topic]
    recovery: dict[str, Any] = found[0]
    return recovery


def piped(*options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Wrap a command that gets its input through a pipe, and fails after it has read it."""
    script = "wc -c >>read; exit 3"
    command = [*TACHO, "run", "exec", "--id", "job", *options, "--", "sh", "-c", script]
    whole = f"printf data | {shlex.join(command)}"
    return subprocess.run(["sh", "-c", whole], cwd=cwd, capture_output=True, text=True)


def test_what_was_fed_to_a_command_is_not_replaced_by_nothing(tmp_path: Path) -> None:
    done = piped("--auto-resume", cwd=tmp_path)
    report = watch()

    assert "cannot repeat: the watchdog will ask a person" in done.stderr
    assert (report["resumed"], report["recoveries"]) == ([], [])
    assert [each["task_id"] for each in report["needs_attention"]] == ["job"]
    assert (tmp_path / "read").read_text().split() == ["4"]


def test_a_person_may_resume_it_all_the_same(tmp_path: Path) -> None:
    piped(cwd=tmp_path)
    refused = tacho("run", "resume", "job")
    tacho("run", "resume", "job", "--despite", "unsafe_to_retry", "--reason", "reads none")

    assert refused.returncode == 8
    assert "--despite unsafe_to_retry" in refused.stderr
    assert (tmp_path / "read").read_text().split() == ["4", "0"]


def test_wrapped_again_with_its_input_it_goes_on(tmp_path: Path) -> None:
    told = [piped(cwd=tmp_path).stderr for _ in range(2)]

    assert (tmp_path / "read").read_text().split() == ["4", "4"]
    assert [text for text in told if "watchdog" in text] == []  # nobody asked for it


@pytest.mark.parametrize("redirected", ["</dev/null", "<&-"])
def test_a_command_that_is_fed_nothing_is_resumed(redirected: str, tmp_path: Path) -> None:
    """As cron starts it."""
    command = [*TACHO, "run", "exec", "--id", "job", "--auto-resume", *FAILS]
    subprocess.run(["sh", "-c", f"{shlex.join(command)} {redirected}"], cwd=tmp_path)
    watch()

    assert "safe_to_retry" not in declared()
    assert times(tmp_path) == 2


def test_who_names_what_resumes_it_has_thought_of_its_input(tmp_path: Path) -> None:
    done = piped("--auto-resume", "--resume-command", "true", cwd=tmp_path)

    assert "safe_to_retry" not in declared()
    assert "will ask a person" not in done.stderr
