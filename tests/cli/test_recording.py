"""What each recording command records, prints and ends with."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history, topics

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

STARTED = ["created", "attempt-started"]

# Lines before, the line itself, what it prints, the topic and fields of the last event.
RECORDS: list[tuple[list[str], str, str, str, dict[str, Any]]] = [
    ([], "phase start parse", "", "phase-started", {"phase": "parse", "safe_to_retry": True}),
    ([], "phase start p --unsafe", "", "phase-started", {"phase": "p", "safe_to_retry": False}),
    (
        [],
        "phase start p --batches 3",
        "",
        "batches-planned",
        {"phase": "p", "total": 3, "size": 0, "items_digest": None},
    ),
    (
        ["phase start p"],
        "phase end p --summary 'all well'",
        "",
        "phase-ended",
        {"phase": "p", "status": "completed", "summary": "all well"},
    ),
    (
        ["phase start p --batches 2"],
        "phase end p --status skipped",
        "",
        "phase-ended",
        {"phase": "p", "status": "skipped", "summary": None},
    ),
    (
        ["phase start p"],
        "batch p 0 --inputs 5 --parsed 4",
        "",
        "batch-completed",
        {"phase": "p", "index": 0, "inputs": 5, "parsed": 4, "output": None},
    ),
    (
        ["phase start p"],
        "batch p 7 --output text",
        "",
        "batch-completed",
        {"phase": "p", "index": 7, "inputs": None, "parsed": 1, "output": "text"},
    ),
    (
        ["phase start p"],
        """batch p 0 --output-json '[1, {"a": null}]'""",
        "",
        "batch-completed",
        {"phase": "p", "index": 0, "inputs": None, "parsed": 2, "output": [1, {"a": None}]},
    ),
    (
        [],
        "checkpoint --offset 3 --total 9 --counter kept=2",
        "",
        "checkpoint-saved",
        {"phase": None, "kind": "offset", "state": {"kept": 2, "offset": 3, "total": 9}},
    ),
    (
        ["phase start p"],
        """checkpoint --phase p --state '{"page": 3}'""",
        "",
        "checkpoint-saved",
        {"phase": "p", "kind": "state", "state": {"page": 3}},
    ),
    (
        [],
        "effect mail --intend --idempotent --describe 'send it'",
        "",
        "effect-intended",
        {"key": "mail", "description": "send it", "idempotent": True},
    ),
    (
        ["effect mail --intend"],
        """effect mail --done --result '{"id": 7}'""",
        "",
        "effect-done",
        {"key": "mail", "result": {"id": 7}, "reason": None},
    ),
    (
        ["effect mail --intend"],
        "effect mail --done --reason 'saw it' --epoch 0",
        "",
        "effect-done",
        {"key": "mail", "result": None, "reason": "saw it"},
    ),
    (
        ["effect mail --intend"],
        "effect mail --retry --reason 'it is not there'",
        "",
        "effect-retry-allowed",
        {"key": "mail", "reason": "it is not there"},
    ),
    (
        [],
        "progress 3 9 --unit pages",
        "",
        "progress-reported",
        {"completed": 3, "total": 9, "unit": "pages"},
    ),
    ([], "progress 3", "", "progress-reported", {"completed": 3, "total": None, "unit": "units"}),
    (
        [],
        "retry transient 2 --delay 1.5 --error timeout --model small",
        "",
        "retry-scheduled",
        {
            "kind": "transient",
            "attempt": 2,
            "delay_seconds": 1.5,
            "error": "timeout",
            "model": "small",
        },
    ),
    (
        [],
        "fallback large small --reason quota",
        "",
        "fallback-taken",
        {"source": "large", "target": "small", "reason": "quota"},
    ),
    (
        [],
        "note 'looks odd' --level warning --epoch 0",
        "",
        "note-added",
        {"level": "warning", "text": "looks odd", "source": None},
    ),
    (
        [],
        "finish --outcome skipped --reason 'nothing new'",
        "skipped\n",
        "finished",
        {"outcome": "skipped", "reason_code": None, "reason": "nothing new"},
    ),
    ([], "cancel job --reason 'not needed'", "", "cancelled", {"reason": "not needed"}),
]


def run_line(capsys: Capture, line: str) -> Any:
    return here(capsys, "run", *shlex.split(line))


@pytest.mark.parametrize(
    ("before", "line", "stdout", "topic", "fields"), RECORDS, ids=[case[1] for case in RECORDS]
)
def test_a_command_records_what_it_says(
    before: list[str],
    line: str,
    stdout: str,
    topic: str,
    fields: dict[str, Any],
    run: str,
    capsys: Capture,
) -> None:
    for earlier in before:
        run_line(capsys, earlier)
    done = run_line(capsys, line)

    assert (done.returncode, done.stdout) == (0, stdout), done.stderr
    assert history(run)[-1] == (f"run.{topic}", fields)


# Lines before, the line itself, its exit code, and what it says on stderr.
REFUSALS: list[tuple[list[str], str, int, str]] = [
    (["phase start p"], "phase start p", 1, "is running already"),
    ([], "phase end p", 1, "is not started"),
    (["phase start p --batches 2"], "phase end p", 1, "2 unfinished batches"),
    (["phase start p --batches 2"], "batch p 2", 1, "out of range"),
    (["phase start p", "batch p 0"], "batch p 0", 1, "finished already"),
    (["phase start p"], "batch p", 2, "Which batch?"),
    (["phase start p"], "batch p 0 --next", 2, "--next and --pending take a phase"),
    (["phase start p"], "batch p 0 --show --parsed 3", 2, "--show records nothing"),
    (["phase start p"], "batch p --next", 2, "it has no batch plan"),
    (["phase start p"], "batch p 0 --output a --output-json 1", 2, "exclude each other"),
    (["phase start p"], "batch p 0 --output-json '{'", 2, "--output-json is not JSON"),
    (["phase start p"], "batch p 0 --output-json NaN", 2, "NaN is no JSON number"),
    (["phase start p"], "batch p 0 --output @nowhere", 2, "nowhere cannot be read"),
    ([], "batch p --pending", 1, "is not started"),
    ([], "checkpoint", 2, "What is to be saved?"),
    ([], "checkpoint --offset 3", 2, "What is to be saved?"),
    ([], "checkpoint --offset 3 --total 2", 2, "the total is 2"),
    ([], "checkpoint --offset 1 --total 2 --state 1", 2, "exclude each other"),
    ([], "checkpoint --offset 1 --total 2 --counter a=b", 2, "write key=number"),
    ([], "checkpoint --show --offset 1", 2, "--show saves nothing"),
    ([], "effect mail", 2, "What about it?"),
    ([], "effect mail --intend --done", 2, "exclude each other"),
    ([], "effect mail --intend -- true", 2, "leave out the command"),
    ([], "effect mail --retry", 2, "--retry and --reason go together"),
    ([], "effect mail --intend --reason x", 2, "--retry and --reason go together"),
    ([], "effect mail --intend --result 1", 2, "--result goes with --done"),
    ([], "effect mail --done --idempotent", 2, "belong to the intent"),
    ([], "effect mail --done", 1, "was never begun"),
    (["effect mail --intend"], "effect mail --intend", 8, "it may have happened"),
    (["effect mail --intend", "effect mail --done"], "effect mail --done", 1, "done already"),
    ([], "artifact a nowhere", 1, "FileNotFoundError"),
    ([], "progress 9 3", 2, "total is 3"),
    ([], "fail", 2, "Why did it fail?"),
    ([], "cancel job", 2, "Why is it cancelled?"),
    ([], "cancel jo --reason x", 3, "jo"),
    ([], "note x --run other", 3, "other"),
    ([], "heartbeat --epoch 2", 6, "ttempt 2"),
    ([], "phase start p --epoch 2", 6, "ttempt 2"),
    ([], "phase start p --epoch 0", 6, "belongs to none"),
    (["finish --outcome skipped"], "phase start p", 1, "is finished"),
    (["fail --reason x"], "phase start p", 6, "has ended"),
    (["phase start p"], "finish --outcome success", 1, "running phases: 'p'"),
]


@pytest.mark.parametrize(
    ("before", "line", "code", "message"), REFUSALS, ids=[case[1] for case in REFUSALS]
)
def test_a_refused_command_says_why_and_records_nothing(
    before: list[str], line: str, code: int, message: str, run: str, capsys: Capture
) -> None:
    for earlier in before:
        run_line(capsys, earlier)
    events = topics(run)
    done = run_line(capsys, line)

    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert topics(run) == events


@pytest.mark.parametrize("variable", ["TACHO_RUN_ID", "TACHO_EPOCH"])
def test_a_missing_attempt_is_explained(
    variable: str, run: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable)
    done = run_line(capsys, "phase start p")

    assert done.returncode == 2
    assert variable in done.stderr
    assert 'eval "$(tacho run start COMMAND --export)"' in done.stderr


def test_an_error_is_json_where_json_is_asked_for(run: str, capsys: Capture) -> None:
    done = run_line(capsys, "batch p 0 --json")

    assert done.stdout == ""
    assert json.loads(done.stderr) == {
        "error": "PhaseNotOpenError",
        "message": "Phase 'p' of run job is not started. "
        "Start it first, and end it after its last batch.",
        "exitCode": 1,
    }


def test_an_error_of_the_command_line_is_json_as_well(run: str, capsys: Capture) -> None:
    done = run_line(capsys, "batch --json")

    assert done.returncode == 2
    assert json.loads(done.stderr)["error"] == "UsageError"
    assert json.loads(done.stderr)["exitCode"] == 2


# Batches left.


def test_unfinished_batches_are_listed(run: str, capsys: Capture) -> None:
    run_line(capsys, "phase start p --batches 4")
    run_line(capsys, "batch p 1")

    assert run_line(capsys, "batch p --pending").stdout == "0\n2\n3\n"
    assert run_line(capsys, "batch p --next").stdout == "0\n"
    assert json.loads(run_line(capsys, "batch p --pending --json").stdout)["pending"] == [0, 2, 3]


def test_nothing_is_printed_when_no_batch_is_left(run: str, capsys: Capture) -> None:
    run_line(capsys, "phase start p --batches 1")
    run_line(capsys, "batch p 0")
    done = run_line(capsys, "batch p --next")

    assert (done.returncode, done.stdout) == (0, "")


def test_the_output_of_a_batch_can_be_read_again(run: str, capsys: Capture, tmp_path: Path) -> None:
    """One too large for an event as well."""
    large = tmp_path / "large.txt"
    large.write_text("ä" * 20_000, encoding="utf-8")
    run_line(capsys, "phase start p")
    run_line(capsys, f"batch p 0 --output @{large}")

    assert json.loads(run_line(capsys, "batch p 0 --show").stdout) == "ä" * 20_000
    assert json.loads(run_line(capsys, "batch p 1 --show").stdout) is None


# After a resume.


@pytest.fixture
def resumed(run: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> str:
    """Leave a run with a finished and an open phase, and start its second attempt."""
    for line in ("phase start a", "phase end a", "phase start b --batches 2", "batch b 0"):
        run_line(capsys, line)
    run_line(capsys, "start demo --id job --takeover --reason test --export")
    monkeypatch.setenv("TACHO_EPOCH", "2")
    return run


def test_a_finished_phase_is_told_and_left_alone(resumed: str, capsys: Capture) -> None:
    before = topics(resumed)
    started = run_line(capsys, "phase start a")
    ended = run_line(capsys, "phase end a")

    assert (started.returncode, started.stdout) == (0, "completed\n")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert topics(resumed) == before


def test_an_open_phase_is_taken_up_with_what_is_left(resumed: str, capsys: Capture) -> None:
    started = run_line(capsys, "phase start b --batches 2")

    assert (started.returncode, started.stdout) == (0, "")
    assert run_line(capsys, "batch b --pending").stdout == "1\n"


def test_another_plan_is_refused_and_the_phase_not_taken_up(resumed: str, capsys: Capture) -> None:
    before = topics(resumed)
    done = run_line(capsys, "phase start b --batches 3")

    assert done.returncode == 1
    assert topics(resumed) == before


def test_the_superseded_attempt_is_fenced(resumed: str, capsys: Capture) -> None:
    assert run_line(capsys, "phase start b --epoch 1").returncode == 6
    assert run_line(capsys, "heartbeat --epoch 1").returncode == 6


# Checkpoints.


def test_the_last_checkpoint_is_shown_as_json(run: str, capsys: Capture) -> None:
    assert run_line(capsys, "checkpoint --show").stdout == ""
    run_line(capsys, "checkpoint --offset 3 --total 9")
    run_line(capsys, """checkpoint --state '{"page": "ä"}'""")

    assert run_line(capsys, "checkpoint --show").stdout == '{"page": "ä"}\n'
    assert json.loads(run_line(capsys, "checkpoint --show --json").stdout) == {
        "version": 4,
        "phase": None,
        "kind": "state",
        "state": {"page": "ä"},
    }


def test_a_checkpoint_can_come_from_standard_input(
    run: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO('{"from": "stdin"}'))
    run_line(capsys, "checkpoint --state @-")

    assert run_line(capsys, "checkpoint --show").stdout == '{"from": "stdin"}\n'


# Judging and ending.


@pytest.mark.parametrize(
    ("line", "outcome", "code"),
    [
        ("judge --inputs 3 --outputs 3", "success", 0),
        ("judge --inputs 3 --outputs 2", "success_with_review", 0),
        ("judge --inputs 3 --outputs 3 --faults 1", "success_with_review", 0),
        ("judge --inputs 0", "empty", 0),
        ("judge --inputs 3 --outputs 0 --declared 'up to date'", "empty", 0),
        ("judge --inputs 3 --outputs 2 --stopped deadline", "partial", 0),
        ("judge --inputs 3 --outputs 0", "failed_semantic_empty", 7),
        ("judge", "success_with_review", 0),
    ],
)
def test_the_gate_decides_and_fails_with_its_own_code(
    line: str, outcome: str, code: int, run: str, capsys: Capture
) -> None:
    done = run_line(capsys, line)

    assert (done.returncode, done.stdout) == (code, f"{outcome}\n")


@pytest.mark.parametrize(
    ("before", "line", "outcome", "code"),
    [
        ("judge --inputs 3 --outputs 3", "finish", "success", 0),
        ("judge --inputs 3 --outputs 0", "finish", "failed_semantic_empty", 7),
        ("judge --inputs 3 --outputs 2 --stopped deadline", "finish", "partial", 75),
        ("note x", "finish --outcome failed", "failed", 1),
        ("note x", "fail --reason disk", "failed", 1),
        ("note x", "finish", "success_with_review", 0),
    ],
)
def test_a_finish_ends_with_the_code_of_the_outcome(
    before: str, line: str, outcome: str, code: int, run: str, capsys: Capture
) -> None:
    run_line(capsys, before)
    done = run_line(capsys, line)

    assert (done.returncode, done.stdout) == (code, f"{outcome}\n")


def test_an_artifact_is_measured(run: str, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_bytes(b"abc")
    done = run_line(capsys, f"artifact report {path} --json")
    sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

    assert json.loads(done.stdout)["sha256"] == sha256
    assert history(run)[-1][1] == {
        "name": "report",
        "path": str(path),
        "size": 3,
        "sha256": sha256,
    }


def test_a_heartbeat_renews_the_lease_and_is_no_event(run: str, capsys: Capture) -> None:
    before = topics(run)
    done = run_line(capsys, "heartbeat")

    assert (done.returncode, done.stdout) == (0, "")
    assert topics(run) == before == STARTED
