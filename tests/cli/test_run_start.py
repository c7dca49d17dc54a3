"""Starting and resuming a run from a shell: ids, inputs, owners."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from command_line import bash, here, history, topics

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


def start(capsys: Capture, *arguments: str) -> subprocess.CompletedProcess[str]:
    return here(capsys, "run", "start", "demo", *arguments)


def test_the_id_is_printed_and_the_store_made(store_environment: Path, capsys: Capture) -> None:
    done = start(capsys, "--input", "root=/data", "--input", "days:=3")

    assert (done.returncode, done.stderr) == (0, "")
    created = history(done.stdout.strip())[0][1]
    assert created["command"] == "demo"
    assert created["inputs"] == {"root": "/data", "days": 3}


def test_inputs_can_be_a_json_object_and_single_ones_win(
    store_environment: Path, capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.json"
    path.write_text('{"root": "/old", "days": 3}', encoding="utf-8")
    done = start(capsys, "--inputs", f"@{path}", "--input", "root=/data")

    assert history(done.stdout.strip())[0][1]["inputs"] == {"root": "/data", "days": 3}


def test_what_was_said_about_the_run_is_recorded(store_environment: Path, capsys: Capture) -> None:
    start(capsys, "--id", "mine", "--title", "A title", "--parent", "night")
    created = history("mine")[0][1]

    assert (created["title"], created["parent"]) == ("A title", "night")


def test_an_unfinished_run_of_the_same_inputs_is_resumed(
    store_environment: Path, capsys: Capture
) -> None:
    first = start(capsys, "--unowned", "--input", "a=1")
    again = start(capsys, "--takeover", "--reason", "test", "--input", "a=1", "--json")

    assert json.loads(again.stdout) == {
        "jobRunId": first.stdout.strip(),
        "epoch": 2,
        "resumed": True,
    }
    assert "attempt 2" in again.stderr


def test_a_finished_run_is_left_alone_and_a_new_one_made(
    store_environment: Path, capsys: Capture
) -> None:
    first = start(capsys).stdout.strip()
    here(capsys, "run", "finish", "--outcome", "success", "--run", first, "--epoch", "1")

    assert start(capsys).stdout.strip() == f"{first}~2"


def test_a_living_owner_is_not_robbed(store_environment: Path, capsys: Capture) -> None:
    pid = os.getpid()
    start(capsys, "--id", "job", "--owner-pid", str(pid))
    done = start(capsys, "--id", "job")

    assert done.returncode == 6
    assert f"process {pid}" in done.stderr


def test_other_inputs_under_the_same_id_are_refused(
    store_environment: Path, capsys: Capture
) -> None:
    start(capsys, "--id", "job", "--unowned")
    done = start(capsys, "--id", "job", "--input", "a=1")

    assert done.returncode == 1
    assert "other inputs" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "novalue"], "write key=text"),
        (["--input", "=x"], "write key=text"),
        (["--input", "a:={"], "--input a is not JSON"),
        (["--inputs", "[1]"], "no JSON object"),
        (["--takeover"], "go together"),
        (["--reason", "x"], "go together"),
        (["--unowned", "--owner-pid", "1"], "exclude each other"),
        (["--id", "a b"], "cannot be a run id"),
    ],
)
def test_nonsense_is_refused_before_a_run_is_made(
    arguments: list[str], message: str, store_environment: Path, capsys: Capture
) -> None:
    done = start(capsys, *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("wrong", ["--id 'a b'", "--nothing"])
def test_an_eval_of_a_start_that_failed_fails(
    wrong: str, store_environment: Path, tmp_path: Path
) -> None:
    """Without a word on stdout the script would go on, and record for nobody."""
    script = f'set -e\neval "$(tacho run start demo {wrong} --export)"\necho went on\n'
    done = subprocess.run(bash(script, tmp_path), cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (2, "")


def test_a_process_that_is_not_there_cannot_own(store_environment: Path, capsys: Capture) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    done = start(capsys, "--owner-pid", str(ended.pid))

    assert done.returncode == 3
    assert f"no process {ended.pid}" in done.stderr


OWNERS = r"""
tacho run start plain --id plain >/dev/null
x=$(tacho run start assigned --id assigned)
y=$(cd / && tacho run start list --id list || exit 1)
eval "$(tacho run start evaluated --id evaluated --export)"
( eval "$(tacho run start subshell --id subshell --export)"; echo "$BASHPID" >subshell ) | cat
tacho run start unowned --id unowned --unowned >/dev/null
tacho run phase start here
echo $$
"""


def test_the_calling_shell_owns_the_run(store_environment: Path, tmp_path: Path) -> None:
    """Not the copy of itself that a shell makes for `$(…)`: that one ends at once."""
    done = subprocess.run(bash(OWNERS, tmp_path), cwd=tmp_path, capture_output=True, text=True)
    shell = int(done.stdout)
    owners = {
        name: history(name)[1][1]["owner"].get("pid")
        for name in ("plain", "assigned", "list", "evaluated", "subshell", "unowned")
    }

    assert done.stderr == ""
    assert owners == {
        "plain": shell,
        "assigned": shell,
        "list": shell,
        "evaluated": shell,
        "subshell": int((tmp_path / "subshell").read_text()),
        "unowned": None,
    }
    assert topics("evaluated")[-1] == "phase-started"


def test_two_shells_that_start_the_same_run_at_once(
    store_environment: Path, tmp_path: Path
) -> None:
    """One gets it; the other is told who has it (G5)."""
    script = """
    echo up; read -r go
    tacho run start demo --input a=1 >out.$1 2>err.$1; echo $?
    read -r end
    """
    command = bash(script, tmp_path)
    shells = [
        subprocess.Popen(
            [*command, str(number)],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    streams = [(shell.stdin, shell.stdout) for shell in shells]
    for _, reader in streams:
        assert reader is not None
        assert reader.readline() == "up\n"
    for writer, _ in streams:
        assert writer is not None
        writer.write("go\n")
        writer.flush()
    codes = sorted(int(reader.readline()) for _, reader in streams if reader)
    for shell in shells:
        shell.communicate("end\n")
    refused = "".join((tmp_path / f"err.{number}").read_text() for number in range(2))
    started = "".join((tmp_path / f"out.{number}").read_text() for number in range(2)).split()

    assert codes == [0, 6]
    assert "is at work: process " in refused
    assert topics(started[0]) == ["created", "attempt-started"]
