"""A side effect is done at most once, and one that may have happened is a person's affair (G10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command_line import Done, tacho, topics

if TYPE_CHECKING:
    from pathlib import Path

COUNTED = "echo done >>log; echo sent; echo odd >&2"


def effect(key: str, *arguments: str, cwd: Path) -> Done:
    return tacho("run", "effect", key, *arguments, cwd=cwd)


def times_done(cwd: Path) -> int:
    return len((cwd / "log").read_text().splitlines())


def test_an_effect_is_done_once_and_its_output_repeated(run: str, tmp_path: Path) -> None:
    first = effect("mail", "--", "sh", "-c", COUNTED, cwd=tmp_path)
    again = effect("mail", "--", "sh", "-c", COUNTED, cwd=tmp_path)

    assert (first.returncode, first.stdout, first.stderr) == (0, "sent\n", "odd\n")
    assert (again.returncode, again.stdout) == (0, "sent\n")
    assert "nothing was run" in again.stderr
    assert times_done(tmp_path) == 1
    assert topics(run)[2:] == ["effect-intended", "effect-done"]


def test_an_effect_that_failed_is_in_doubt(run: str, tmp_path: Path) -> None:
    """What it had done before it failed, nobody knows."""
    first = effect("mail", "--", "sh", "-c", f"{COUNTED}; exit 4", cwd=tmp_path)
    again = effect("mail", "--", "sh", "-c", COUNTED, cwd=tmp_path)

    assert (first.returncode, again.returncode) == (4, 8)
    assert "in doubt" in first.stderr
    assert "it may have happened" in again.stderr
    assert times_done(tmp_path) == 1


def test_an_effect_that_was_killed_is_in_doubt(run: str, tmp_path: Path) -> None:
    killed = effect("mail", "--", "sh", "-c", f"{COUNTED}; kill -9 $PPID $$", cwd=tmp_path)
    again = effect("mail", "--", "sh", "-c", COUNTED, cwd=tmp_path)

    assert (killed.returncode, again.returncode) == (-9, 8)
    assert times_done(tmp_path) == 1


def test_an_idempotent_effect_is_repeated(run: str, tmp_path: Path) -> None:
    effect("mail", "--idempotent", "--", "sh", "-c", f"{COUNTED}; exit 4", cwd=tmp_path)
    again = effect("mail", "--idempotent", "--", "sh", "-c", COUNTED, cwd=tmp_path)

    assert again.returncode == 0
    assert times_done(tmp_path) == 2


def test_a_person_may_have_it_done_again(run: str, tmp_path: Path) -> None:
    effect("mail", "--", "sh", "-c", f"{COUNTED}; exit 4", cwd=tmp_path)
    retry = ("--retry", "--reason", "it is not in the outbox")
    again = effect("mail", *retry, "--", "sh", "-c", COUNTED, cwd=tmp_path)

    assert again.returncode == 0
    assert times_done(tmp_path) == 2


def test_a_person_may_say_that_it_happened(run: str, tmp_path: Path) -> None:
    effect("mail", "--", "sh", "-c", f"{COUNTED}; exit 4", cwd=tmp_path)
    effect("mail", "--done", "--reason", "saw it", "--result", '"id 7"', cwd=tmp_path)
    again = effect("mail", "--", "sh", "-c", COUNTED, cwd=tmp_path)

    assert (again.returncode, again.stdout) == (0, "id 7")
    assert times_done(tmp_path) == 1


def test_an_output_too_long_to_keep_is_cut_and_said_so(run: str, tmp_path: Path) -> None:
    script = "head -c 1500000 /dev/zero | tr '\\0' x"
    first = effect("dump", "--", "sh", "-c", script, cwd=tmp_path)
    again = effect("dump", "--", "sh", "-c", script, cwd=tmp_path)

    assert len(first.stdout) == 1_500_000
    assert len(again.stdout) == 1 << 20
    assert "only its end was kept" in again.stderr


@pytest.mark.parametrize("script", [r"printf '\303\244'", r"printf '\377\0'", "true"])
def test_the_repeated_output_is_the_same_bytes(script: str, run: str, tmp_path: Path) -> None:
    import subprocess

    from command_line import TACHO

    command = [*TACHO, "run", "effect", "bytes", "--quiet", "--", "sh", "-c", script]
    outputs = [subprocess.run(command, capture_output=True, cwd=tmp_path).stdout for _ in range(2)]

    assert outputs[0] == outputs[1]
