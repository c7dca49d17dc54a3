"""`run approval`, `approve` and `reject`: a person agrees to exactly what is asked for."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import FINISHES, watch
from command_line import Done, here, history, topics

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("run")


def ask(capsys: Capture, subject: Any = 1, name: str = "deploy", *options: str) -> Done:
    return here(capsys, "run", "approval", name, "--subject", json.dumps(subject), *options)


def decide(capsys: Capture, verb: str, *options: str) -> Done:
    return here(capsys, "run", verb, "job", *options, "--reason", "looked at it")


def waits(capsys: Capture) -> None:
    """End the attempt as one that waits."""
    options = ("--outcome", "partial", "--reason-code", "waits_for_approval")
    assert here(capsys, "run", "finish", *options).returncode == 75


def test_what_nobody_has_decided_is_exit_code_8(capsys: Capture) -> None:
    done = ask(capsys)

    assert (done.returncode, done.stdout) == (8, "")
    assert done.stderr == "Waits for a person: `tacho run approve job deploy --reason …`\n"
    odd = here(capsys, "run", "approval", "go live", "--subject", "1").stderr
    assert odd == "Waits for a person: `tacho run approve job 'go live' --reason …`\n"


def test_what_a_person_agreed_to_is_exit_code_0(capsys: Capture) -> None:
    ask(capsys)
    decided = decide(capsys, "approve")
    done = ask(capsys)

    assert (decided.returncode, decided.stderr) == (0, "Granted: 'deploy' of job.\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_to_ask_the_same_again_records_nothing(capsys: Capture) -> None:
    ask(capsys, {"a": 1, "b": [2]})
    before = topics("job")
    done = ask(capsys, {"a": 1, "b": [2]})

    assert done.returncode == 8
    assert topics("job") == before


def test_an_approval_is_void_for_anything_else(capsys: Capture) -> None:
    ask(capsys, {"version": 1})
    decide(capsys, "approve")
    changed = ask(capsys, {"version": 2})

    assert changed.returncode == 8
    assert [topic for topic in topics("job") if topic.startswith("approval")] == [
        "approval-requested",
        "approval-granted",
        "approval-requested",
    ]


def test_a_file_that_changes_voids_it(capsys: Capture, tmp_path: Path) -> None:
    build = tmp_path / "app.tar.gz"
    build.write_bytes(b"one")
    first = here(capsys, "run", "approval", "deploy", "--file", build)
    decide(capsys, "approve")
    same = here(capsys, "run", "approval", "deploy", "--file", build)
    build.write_bytes(b"two")
    other = here(capsys, "run", "approval", "deploy", "--file", build)

    assert [done.returncode for done in (first, same, other)] == [8, 0, 8]


def test_what_was_refused_is_refused_to_the_job(capsys: Capture) -> None:
    ask(capsys)
    decided = decide(capsys, "reject")
    done = ask(capsys)

    assert decided.stderr == "Rejected: 'deploy' of job.\n"
    assert done.returncode == 1
    assert "was rejected: ask for something else" in done.stderr


def test_several_approvals_are_decided_by_name(capsys: Capture) -> None:
    ask(capsys)
    ask(capsys, name="publish")
    unclear = decide(capsys, "approve")
    named = decide(capsys, "approve", "publish")

    assert unclear.returncode == 2
    assert "Name one (asked for: 'deploy', 'publish')" in unclear.stderr
    assert named.stderr == "Granted: 'publish' of job.\nIt still waits for 'deploy'.\n"


def test_it_is_bound_to_what_the_person_saw(capsys: Capture) -> None:
    seen = json.loads(ask(capsys, {"version": 1}, "deploy", "--json").stdout)["subjectDigest"]
    ask(capsys, {"version": 2})
    stale = decide(capsys, "approve", "--subject-digest", seen)

    assert stale.returncode == 1
    assert "is asked for another subject now" in stale.stderr
    assert "approval-granted" not in topics("job")


def test_json_says_what_was_decided(capsys: Capture) -> None:
    asked = json.loads(ask(capsys, 1, "deploy", "--json").stdout)
    decided = json.loads(decide(capsys, "approve", "--json").stdout)

    assert (asked["approval"], asked["status"]) == ("deploy", "requested")
    assert decided == {
        "jobRunId": "job",
        "approval": "deploy",
        "status": "granted",
        "subjectDigest": asked["subjectDigest"],
        "pending": [],
    }


def test_what_was_asked_and_decided_is_recorded(capsys: Capture) -> None:
    ask(capsys, {"version": 1})
    decide(capsys, "approve")
    events = dict(history("job"))

    assert events["run.approval-requested"]["subject"] == {"subject": {"version": 1}}
    assert events["run.approval-granted"]["reason"] == "looked at it"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        ("run approval deploy", 2, "What is to be approved?"),
        ("run approval deploy --subject {", 2, "--subject"),
        ("run approval deploy --file /no/such/file", 2, "cannot be read"),
        ("run approve job", 2, "Say so with --reason"),
        ("run approve job --reason r", 2, "none is asked for"),
        ("run approve job deploy --reason r", 1, "was never asked for (asked for: none)"),
        ("run approve nothing deploy --reason r", 3, "nothing"),
        ("run reject nothing --reason r", 3, "nothing"),
    ],
)
def test_wrong_input_is_told_and_changes_nothing(
    words: str, code: int, problem: str, capsys: Capture
) -> None:
    before = topics("job")
    done = here(capsys, *words.split())

    assert done.returncode == code
    assert problem in done.stderr
    assert topics("job") == before


def test_nobody_decides_twice(capsys: Capture) -> None:
    ask(capsys)
    decide(capsys, "approve")
    done = decide(capsys, "reject", "deploy")

    assert done.returncode == 1
    assert "was granted already" in done.stderr


def test_waiting_is_a_state_that_people_see(capsys: Capture) -> None:
    ask(capsys)
    waits(capsys)
    card = json.loads(here(capsys, "run", "status", "job", "--json").stdout)
    refused = here(capsys, "run", "resume", "job")

    assert card["status"] == "waiting"
    assert "deploy" in card["statusReason"]
    assert refused.returncode == 8
    assert "tacho run approve job deploy" in refused.stderr


def test_the_watchdog_tells_it_once_and_resumes_when_it_is_given(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It survives any restart: it is in the log."""
    program = FINISHES.replace('"report"', '"demo"')
    words = ("--resume-command", json.dumps(sys.executable) + " job.py", "--auto-resume")
    (tmp_path / "job.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    declared = here(capsys, "run", "recovery", "job", *words, "--reason", "set up")
    ask(capsys)
    waits(capsys)
    reports = [watch(environment=NOBODY) for _ in range(2)]
    decide(capsys, "approve")
    afterwards = watch(environment=NOBODY)

    assert declared.returncode == 0, declared.stderr
    codes = [[each["code"] for each in report["needs_attention"]] for report in reports]
    assert codes == [["approval:deploy"], []]
    assert [len(report["active_needs_attention"]) for report in reports] == [1, 1]
    assert [each["task_id"] for each in afterwards["recoveries"]] == ["job"]
    assert afterwards["active_needs_attention"] == []


NOBODY = {"TACHO_RUN_ID": "", "TACHO_EPOCH": ""}
