"""Options about recovery that say nothing, or nothing that can be meant, are told at once."""

from __future__ import annotations

import pytest
from command_line import here, history, tacho

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", [("run", "start", "job"), ("run", "exec")])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--kill-stalled",), "--kill-stalled says nothing alone: add --stale-after"),
        (("--resume-timeout", "0"), "--resume-timeout is 0: give a time above 0"),
        (("--resume-timeout", "0s"), "--resume-timeout is 0"),
    ],
)
def test_what_would_do_nothing_is_a_usage_error(
    command: tuple[str, ...], options: tuple[str, ...], told: str
) -> None:
    words = ("--", "true") if command[1] == "exec" else ()
    done = tacho(*command, *options, *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_a_limit_that_was_declared_before_is_enough_to_kill_by(run: str, capsys: Capture) -> None:
    change = ("run", "recovery", "job", "--reason", "why")
    alone = here(capsys, *change, "--kill-stalled")
    stale = here(capsys, *change, "--stale-after", "1h")
    after = here(capsys, *change, "--kill-stalled")

    assert [alone.returncode, stale.returncode, after.returncode] == [2, 0, 0]
    recovery = history("job")[-1][1]["recovery"]
    assert (recovery["stale_after_seconds"], recovery["kill_stalled"]) == (3600, True)
