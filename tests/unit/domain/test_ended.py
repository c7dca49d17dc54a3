"""How a command ended."""

from __future__ import annotations

import pytest

from tachograph.domain.ended import Ended


@pytest.mark.parametrize(
    ("exit_code", "signal", "code"), [(0, None, 0), (3, None, 3), (None, 9, 137), (None, None, 128)]
)
def test_a_shell_tells_a_killed_command_by_its_signal(
    exit_code: int | None, signal: int | None, code: int
) -> None:
    assert Ended(exit_code, signal, 0.1, b"", 0).shell_code == code


def test_a_command_ended_by_itself_unless_it_is_said_otherwise() -> None:
    ended = Ended(0, None, 0.1, b"tail", 900)

    assert (ended.timed_out, ended.asked, ended.output, ended.output_bytes) == (
        False, (), b"tail", 900
    )  # fmt: skip
