"""Signals reach every sink that can take them, and a sink that cannot stops no other."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from loopback import Loopback

from tachograph.infra.sinks import (
    CommandSink,
    FileSink,
    SinkDownError,
    SinkFailure,
    deliver,
    make_sinks,
)

if TYPE_CHECKING:
    from pathlib import Path


def signal(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "kind": "alert",
        "task_id": "job-1",
        "summary": "Nightly report is silent",
        "message": f"Message {number}",
        **fields,
    }


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def script(folder: Path, code: str) -> str:
    """Return the command line of a shell script."""
    path = folder / "my script"
    path.write_text(f"#!/bin/sh\ncd '{folder}'\n{code}\n")
    path.chmod(0o755)
    return f"'{path}' 'first argument'"


def test_a_file_gets_one_line_per_signal_behind_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "signals"
    sinks = make_sinks(file=str(path))
    first, second, third = signal(1), signal(2, detail="naïve"), signal(3)
    failures = deliver([first, second], sinks) + deliver([third], sinks)

    assert failures == []
    assert lines(path) == [first, second, third]
    assert "naïve" in path.read_text("utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_text_that_is_no_text_is_written_nevertheless(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff")
    deliver([signal(path=odd)], make_sinks(file=str(tmp_path / "signals")))

    assert lines(tmp_path / "signals")[0]["path"] == odd


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "signals"
    path.write_text('{"id": "s0", "ki')
    deliver([signal()], make_sinks(file=str(path)))

    assert json.loads(path.read_text().splitlines()[1]) == signal()


def test_a_pipe_can_stand_in_for_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    failures = deliver([signal()], make_sinks(file=str(path)))
    with os.fdopen(reader, "rb") as file:
        written = file.read()

    assert (failures, json.loads(written)) == ([], signal())


def test_a_path_may_begin_at_home(home: Path) -> None:
    deliver([signal()], make_sinks(file="~/signals"))

    assert lines(home / "signals") == [signal()]


def test_a_file_that_cannot_be_made_takes_nothing_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "none" / "signals"

    assert deliver([signal(1), signal(2)], make_sinks(file=str(path))) == [
        SinkFailure(f"file {path}", f"No such file or directory: {path}", ["s1", "s2"])
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is there only")
def test_a_full_disk_is_told() -> None:
    failures = deliver([signal()], [FileSink("/dev/full")])

    assert [failure.signals for failure in failures] == [["s1"]]
    assert "No space left on device" in failures[0].error


def test_a_line_that_was_not_written_whole_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda _descriptor, data: len(data) - 1)

    with pytest.raises(SinkDownError, match="the disk is full"):
        FileSink(str(tmp_path / "signals")).send(signal())


def test_a_command_gets_the_signal_on_stdin_and_the_essentials_in_variables(
    tmp_path: Path,
) -> None:
    code = 'cat >given; printf "%s\\n" "$1" "$TACHO_SIGNAL_KIND" "$TACHO_SIGNAL_TASK_ID" >seen'
    line = script(tmp_path, f'{code}; printf "%s\\n" "$TACHO_SIGNAL_SUMMARY" >>seen')
    failures = deliver([signal(message="a\0b", task_id=None)], make_sinks(command=line))

    assert failures == []
    assert lines(tmp_path / "given") == [signal(message="a\0b", task_id=None)]
    assert (tmp_path / "seen").read_text().splitlines() == [
        "first argument",
        "alert",
        "",
        "Nightly report is silent",
    ]


def test_a_command_that_does_not_read_is_no_failure() -> None:
    assert deliver([signal(message="x" * 1_000_000)], make_sinks(command="true")) == []


def test_a_command_that_fails_for_one_signal_gets_the_next(tmp_path: Path) -> None:
    code = 'echo "$TACHO_SIGNAL_ID" >>seen; [ "$TACHO_SIGNAL_ID" = s2 ] || { echo no >&2; exit 3; }'
    failures = deliver(
        [signal(1), signal(2), signal(3)], make_sinks(command=script(tmp_path, code))
    )

    assert (tmp_path / "seen").read_text() == "s1\ns2\ns3\n"
    assert [(failure.error, failure.signals) for failure in failures] == [
        ("OSError: it ended with 3: no", ["s1", "s3"])
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no-such-program-here --secret x", "no-such-program-here cannot be run: No such file"),
        ("'open", "the command cannot be split into words: No closing quotation"),
        (" ", "the command is empty"),
    ],
)
def test_a_command_that_cannot_be_run_takes_nothing_and_says_so(line: str, problem: str) -> None:
    (failure,) = deliver([signal(1), signal(2)], make_sinks(command=line))

    assert failure.error.startswith(problem)
    assert failure.signals == ["s1", "s2"]
    assert "secret" not in failure.sink


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    sink = CommandSink(script(tmp_path, "exec 3>alive; sleep 600 & sleep 600"), 0.1)
    (failure,) = deliver([signal(1), signal(2)], [sink])
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as file:
        file.read()  # ends when the last of them has

    assert (failure.error, failure.signals) == ("it took more than 0.1 s", ["s1", "s2"])


class Broken:
    """A sink that raises what nobody expects."""

    name = "broken"
    receiver = "broken"
    closed = False

    def send(self, signal: Any) -> None:
        raise ZeroDivisionError("oh")

    def close(self) -> None:
        self.closed = True


def test_a_broken_sink_stops_no_other(tmp_path: Path) -> None:
    broken = Broken()
    failures = deliver([signal()], [broken, *make_sinks(file=str(tmp_path / "signals"))])

    assert failures == [SinkFailure("broken", "ZeroDivisionError: oh", ["s1"])]
    assert lines(tmp_path / "signals") == [signal()]
    assert broken.closed


def test_one_description_makes_all_sinks(tmp_path: Path) -> None:
    with Loopback() as server:
        sinks = make_sinks(
            file=str(tmp_path / "signals"),
            command=script(tmp_path, "cat >given"),
            webhook=server.url,
            webhook_secret="s3cret",
        )
        failures = deliver([signal()], sinks)

    assert failures == []
    assert lines(tmp_path / "signals") == lines(tmp_path / "given") == [signal()]
    assert [json.loads(request.body) for request in server.requests] == [signal()]


def test_without_a_signal_nothing_is_touched_and_nothing_heavy_imported(tmp_path: Path) -> None:
    code = f"""
import sys
from tachograph.infra.sinks import deliver, make_sinks
sinks = make_sinks(file={str(tmp_path / "signals")!r}, command="false", webhook="http://127.0.0.1:1/")
print(deliver([], sinks), sorted({{"httpx", "tenacity", "subprocess", "json"}} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )

    assert (done.stdout, done.stderr) == ("[] []\n", "")
    assert not (tmp_path / "signals").exists()
