"""The shell completes commands, ids, phases and names from the store, and never shows an error."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from command_line import TACHO, here, tacho

from tachograph.cli.catalogue import COMMANDS
from tachograph.cli.completing import SOURCES
from tachograph.cli.light import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def complete(words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    environment = {
        "_TACHO_COMPLETE": "bash_complete",
        "COMP_WORDS": f"tacho {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    done = tacho(environment=environment)

    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ru", ["run"]),
        ("run che", ["checkpoint"]),
        ("run phase ", ["start", "end"]),
        ("run batch --out", ["--output", "--output-json"]),
        ("run phase end p --status s", ["skipped"]),
        ("run status jo", ["job"]),
        ("run cancel ", ["job"]),
        ("run start de", ["demo"]),
        ("run batch ", ["parse"]),
        ("run batch --run job p", ["parse"]),
        ("run effect m", ["mail"]),
    ],
)
def test_the_store_completes(
    words: str, offered: list[str], run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here(capsys, "run", "phase", "start", "parse")
    here(capsys, "run", "effect", "mail", "--intend")

    assert complete(words) == offered


def test_an_erased_run_is_offered_without_its_command(
    run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here(capsys, "run", "cancel", "job", "--reason", "a test")
    done = here(capsys, "store", "erase", "job", "--reason", "a test", "--apply")

    assert done.returncode == 0, done.stderr
    assert complete("run status ") == ["job"]
    assert complete("run start ") == []


def test_queues_and_jobs_are_offered(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = here(capsys, "queue", "enqueue", "memory", "--type", "mail").stdout.strip()

    assert complete("queue enqueue ") == ["memory", "summary"]
    assert complete("queue worker s") == ["summary"]
    assert complete(f"queue show {made[:5]}") == [made]


def test_without_a_store_there_is_nothing_to_offer(store_environment: Path) -> None:
    assert complete("run status ") == []
    assert not store_environment.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "completion", shell)

    assert done.returncode == 0
    assert f"_TACHO_COMPLETE={shell}_complete" in done.stdout


def test_bash_completes_with_the_script(run: str, tmp_path: Path) -> None:
    """The whole way: the script is loaded, and bash asks `tacho` itself."""
    tool = tmp_path / "tacho"
    tool.write_text(f"#!/bin/sh\nexec {TACHO[0]} {TACHO[1]} '{TACHO[2]}' \"$@\"\n")
    tool.chmod(0o755)
    script = """
    eval "$(tacho completion bash)"
    COMP_WORDS=(tacho run cancel j); COMP_CWORD=3
    _tacho_completion tacho j cancel
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("job\n", "")


def modules(table: dict[str, object] = COMMANDS) -> Iterator[str]:
    for found in table.values():
        if isinstance(found, dict):
            yield from modules(found)
        else:
            yield str(found)


@pytest.mark.parametrize("name", list(modules()))
def test_what_a_command_completes_is_known(name: str) -> None:
    spec = load(name).SPEC
    kinds = {param.complete for param in (*spec.arguments, *spec.options)}

    assert kinds <= {None, "path", *SOURCES}
