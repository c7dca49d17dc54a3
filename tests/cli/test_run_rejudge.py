"""`run rejudge` shows which verdicts another policy would change, and records that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, topics
from stores import begin, opened

from tachograph.domain.facts import Facts

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

STRICT = """
id = "strict"
version = 1

[[rules]]
id = "too-few"
when = ["done < work"]
outcome = "failed"
reason_code = "too_few"
text = "{done} of {work} is too few"
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "strict.toml"
    path.write_text(STRICT, encoding="utf-8")
    return str(path)


@pytest.fixture
def store(store_environment: Path) -> Path:
    """A run that came out whole, one in part, and one that is open."""
    with opened(store_environment) as services:
        for run_id, outputs in (("whole", 3), ("part", 2)):
            session = begin(services, run_id)
            session.judge(Facts(inputs=3, outputs=outputs))
            session.finish()
        begin(services, "open")
    return store_environment


def document(capsys: Capture, *arguments: str) -> Any:
    done = here(capsys, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_would_change_is_shown(store: Path, capsys: Capture, policy: str) -> None:
    done = here(capsys, "run", "rejudge", "--since", "1d", "--policy", policy)
    found = document(capsys, "run", "rejudge", "--since", "1d", "--policy", policy)

    head, row = done.stdout.splitlines()
    assert head.split("  ")[0] == "RUN"
    assert row.split() == [
        *("part", "success_with_review", "fewer-outputs", "failed", "too-few"),
        *("2", "of", "3", "is", "too", "few"),
    ]
    assert "open is skipped: an attempt of it is open" in done.stderr
    assert "By policy strict 1: 1 same, 1 different, 1 skipped. Add --apply" in done.stderr
    assert found["counts"] == {
        "same": 1,
        "different": 1,
        "unjudgeable": 0,
        "skipped": 1,
        "revised": 0,
    }
    assert [each["jobRunId"] for each in found["runs"]] == ["open", "part", "whole"]
    assert topics("part")[-1] == "finished"


def test_the_policy_in_force_is_meant_by_default(store: Path, capsys: Capture, policy: str) -> None:
    assert document(capsys, "run", "rejudge", "part")["policy"]["id"] == "default"
    (store / "config").write_text(f'policy = "{policy}"\n', encoding="utf-8")

    assert document(capsys, "run", "rejudge", "part")["policy"]["id"] == "strict"


def test_a_revision_is_recorded_and_shown(store: Path, capsys: Capture, policy: str) -> None:
    words = ("run", "rejudge", "--since", "1d", "--policy", policy, "--apply", "--reason", "all")
    done = here(capsys, *words)
    again = here(capsys, *words)
    status = document(capsys, "run", "status", "part")
    card = here(capsys, "run", "status", "part").stdout

    assert "1 same, 1 skipped, 1 revised." in done.stderr
    assert "2 same, 1 skipped." in again.stderr
    assert topics("part").count("verdict-revised") == 1
    assert status["semanticOutcome"] == "success_with_review"
    assert (status["revision"]["outcome"], status["revision"]["rule"]) == ("failed", "too-few")
    assert "Revised    failed: 2 of 3 is too few (rule too-few)" in card
    assert "2 of 3 items came out; revised: failed" in here(capsys, "run", "list").stdout
    assert here(capsys, "store", "verify").returncode == 0
    assert here(capsys, "view", "check").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Which runs?"),
        (("part", "--since", "1d"), 2, "not both"),
        (("part", "--apply"), 2, "go together"),
        (("part", "--reason", "x"), 2, "go together"),
        (("part", "--apply", "--reason", " "), 2, "--reason is empty"),
        (("--since", "soon"), 2, "is not a time"),
        (("nope",), 3, "There is no run 'nope'"),
        (("part", "--policy", "nowhere.toml"), 2, "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(
    store: Path, capsys: Capture, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = here(capsys, "run", "rejudge", *arguments)

    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_the_exit_code_says_whether_a_verdict_would_change(
    store: Path, capsys: Capture, policy: str
) -> None:
    words = ("run", "rejudge", "--exit-code", "--policy", policy)

    assert here(capsys, *words, "part").returncode == 1
    assert here(capsys, *words, "whole").returncode == 0
    assert here(capsys, *words[:2], "part").returncode == 0


def test_a_reason_code_that_alone_differs_is_shown(
    store: Path, capsys: Capture, policy: str, tmp_path: Path
) -> None:
    here(capsys, "run", "rejudge", "part", "--policy", policy, "--apply", "--reason", "a test")
    other = tmp_path / "other.toml"
    other.write_text(STRICT.replace('"too_few"', '"far_too_few"').replace("= 1", "= 2"))
    done = here(capsys, "run", "rejudge", "part", "--policy", other)

    assert "failed (too_few)" in done.stdout
    assert "failed (far_too_few)" in done.stdout
    assert "Other rules" not in done.stderr


def test_other_rules_under_the_same_name_are_told(
    store: Path, capsys: Capture, policy: str, tmp_path: Path
) -> None:
    here(capsys, "run", "rejudge", "part", "--policy", policy, "--apply", "--reason", "a test")
    other = tmp_path / "other.toml"
    other.write_text(STRICT.replace("is too few", "is not enough"))
    found = document(capsys, "run", "rejudge", "part", "whole", "--policy", str(other))
    done = here(capsys, "run", "rejudge", "part", "whole", "--policy", other)
    same = here(capsys, "run", "rejudge", "part", "whole", "--policy", policy)

    assert [each["otherRules"] for each in found["runs"]] == [True, False]
    assert "Other rules that are called strict 1 too have judged 1 of these runs" in done.stderr
    assert "Other rules" not in same.stderr
