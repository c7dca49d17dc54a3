"""`run recovery` changes what a job declared, and takes it back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import abandon
from command_line import here, history, topics

from tachograph.domain.recovery import Recovery

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]
WHY = ("--reason", "why")


def changed(capsys: Capture, *options: str) -> dict[str, Any]:
    """Change the recovery of the run, and return what is declared then."""
    done = here(capsys, "run", "recovery", "job", *options, *WHY, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["recovery"]
    recorded = Recovery.from_fields(history("job")[-1][1]["recovery"])
    assert {name: found[name] for name in recorded.__slots__} == {
        name: getattr(recorded, name) for name in recorded.__slots__
    }
    return found


@pytest.mark.parametrize(
    ("given", "back", "name", "expected"),
    [
        (("--auto-resume",), ("--no-auto-resume",), "auto_resume", False),
        (("--unsafe",), ("--safe",), "safe_to_retry", True),
        (("--kill-stalled", "--stale-after", "5m"), ("--no-kill-stalled",), "kill_stalled", False),
        (("--stale-after", "5m"), ("--stale-after", "none"), "stale_after_seconds", None),
        (("--resume-window", "5m"), ("--resume-window", "none"), "resume_window_seconds", None),
        (("--resume-timeout", "5m"), ("--resume-timeout", "none"), "timeout_seconds", None),
        (("--backoff", "5m"), ("--backoff", "none"), "backoff_seconds", 60),
    ],
)
def test_what_was_declared_can_be_taken_back(
    capsys: Capture,
    store_path: Path,
    given: tuple[str, ...],
    back: tuple[str, ...],
    name: str,
    expected: object,
) -> None:
    abandon(store_path)
    before = changed(capsys, *given)
    after = changed(capsys, *back)

    assert before[name] != expected
    assert after == {**before, name: expected}


def test_one_thing_is_taken_back_while_another_is_declared(
    capsys: Capture, store_path: Path
) -> None:
    abandon(store_path)
    found = changed(capsys, "--no-auto-resume", "--max-retries", "7")

    assert (found["auto_resume"], found["max_retries"]) == (False, 7)
    assert found["command"] is not None


def test_a_run_that_may_no_longer_be_resumed_is_left_alone(
    capsys: Capture, store_path: Path
) -> None:
    abandon(store_path)
    changed(capsys, "--no-auto-resume")
    here(capsys, "watchdog", "run", "--once", "--auto-resume")

    assert topics("job").count("attempt-started") == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--auto-resume", "--no-auto-resume"), "exclude each other"),
        (("--unsafe", "--safe"), "--unsafe and --safe exclude each other"),
        (("--kill-stalled", "--no-kill-stalled", "--stale-after", "1m"), "exclude each other"),
        (("--stale-after", "never"), "never"),
    ],
)
def test_what_contradicts_itself_is_exit_code_2(
    capsys: Capture, store_path: Path, options: tuple[str, ...], problem: str
) -> None:
    abandon(store_path)
    done = here(capsys, "run", "recovery", "job", *options, *WHY)

    assert (done.returncode, problem in done.stderr) == (2, True)
    assert topics("job").count("recovery-declared") == 1


def test_who_may_stop_it_has_to_say_when(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    changed(capsys, "--kill-stalled", "--stale-after", "5m")
    refused = here(capsys, "run", "recovery", "job", "--stale-after", "none", *WHY)
    found = changed(capsys, "--stale-after", "none", "--no-kill-stalled")

    assert (refused.returncode, "add --no-kill-stalled" in refused.stderr) == (2, True)
    assert (found["stale_after_seconds"], found["kill_stalled"]) == (None, False)


@pytest.mark.parametrize("options", [("--safe",), ("--stale-after", "none")])
def test_taking_back_needs_a_reason_too(
    capsys: Capture, store_path: Path, options: tuple[str, ...]
) -> None:
    abandon(store_path)
    done = here(capsys, "run", "recovery", "job", *options)

    assert (done.returncode, "--reason" in done.stderr) == (2, True)


def test_a_reason_alone_changes_nothing(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)

    assert here(capsys, "run", "recovery", "job", *WHY).returncode == 2
    assert topics("job").count("recovery-declared") == 1
