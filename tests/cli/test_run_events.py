"""`run events` prints what is stored, and follows what any process records."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, here
from stores import begin, opened, record_run

from tachograph import storekeeping
from tachograph.infra.processes import describe
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tachograph.bootstrap import Services

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def services(store_environment: Path) -> Iterator[Services]:
    """A store with two runs of nine events each."""
    with opened(store_environment) as services:
        record_run(services, "job-1", output={"text": "a b", "n": [1]})
        record_run(services, "job-2")
        yield services


def lines(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    done = here(capsys, "run", "events", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "versions"),
    [
        (("job-1",), [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (("job-1", "--reverse"), [9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (("job-1", "--limit", "2"), [8, 9]),
        (("job-1", "--limit", "2", "--reverse"), [9, 8]),
        (("job-1", "--limit", "0"), []),
        (("job-1", "--type", "batch-completed"), [5, 6, 7]),
        (("job-1", "--type", "run.batch-completed", "--limit", "1"), [7]),
        (("job-1", "--type", "created", "--type", "finished"), [1, 9]),
        (("--all", "--type", "created"), [1, 1]),
        (("--all", "--limit", "1"), [9]),
    ],
)
def test_the_events_that_are_asked_for_are_printed(
    services: Services, capsys: Capture, arguments: tuple[str, ...], versions: list[int]
) -> None:
    assert [line["version"] for line in lines(capsys, *arguments)] == versions


@pytest.fixture
def job(services: Services) -> str:
    """A job that is enqueued in the same store."""
    return queues_of(services).enqueue(Enqueue("memory", "ingest", {"n": 1}, key="k")).job_id


@pytest.mark.parametrize("name", ["queue.job-enqueued", "job-enqueued"])
def test_events_of_jobs_are_printed_among_all(
    services: Services, capsys: Capture, job: str, name: str
) -> None:
    (line,) = lines(capsys, "--all", "--type", name)
    text = here(capsys, "run", "events", "--all", "--type", name).stdout

    assert line["stream"] == {"$uuid": job}
    assert line["type"] == "queue.job-enqueued"
    assert f"{job}  queue.job-enqueued    queue=memory type=ingest payload=" in text
    assert "key=k" in text
    assert lines(capsys, "--all", "--limit", "1") == [line]


def test_a_json_line_is_the_line_of_an_export(
    services: Services, capsys: Capture, tmp_path: Path
) -> None:
    with storekeeping.new_file(str(tmp_path / "export")) as file:
        storekeeping.export(services, file.write)
    exported = [json.loads(line) for line in (tmp_path / "export").read_text().splitlines()]

    assert lines(capsys, "--all") == [line for line in exported if "position" in line]


def test_a_line_for_people_has_the_fields_of_the_event(services: Services, capsys: Capture) -> None:
    text = here(capsys, "run", "events", "job-1", "--type", "batch-completed").stdout

    assert text.splitlines()[0].split()[0] == "5"
    assert 'phase=parse index=0 inputs=1 parsed=1 output={"text": "a b", "n": [1]}' in text


def test_a_line_is_cut_to_the_terminal(
    services: Services, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = here(capsys, "run", "events", "job-1").stdout

    assert max(map(len, text.splitlines())) == 60


def test_an_event_that_cannot_be_read_is_printed_as_such(
    services: Services, capsys: Capture
) -> None:
    from tachograph.domain.records import NewRecord

    services.log.append([NewRecord("odd", 1, "other.made", 0, b"\xc1")])
    text = here(capsys, "run", "events", "--all", "--limit", "1").stdout
    (line,) = lines(capsys, "--all", "--limit", "1")

    assert "(cannot be read)" in text
    assert (line["data"], line["raw"]) == (None, "wQ==")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one run, or give --all"),
        (("job-1", "--all"), "one run, or give --all"),
        (("job-1", "--follow", "--reverse"), "leave out --reverse"),
        (("job-1", "--until-finished"), "needs a run and --follow"),
        (("--all", "--follow", "--until-finished"), "needs a run and --follow"),
        (("job-1", "--type", "batch-complete"), "Did you mean batch-completed"),
        (("job-1", "--type", "xyz"), "There are created,"),
        (("job-1", "--limit", "-1"), "limit"),
    ],
)
def test_a_line_that_makes_no_sense_is_a_usage_error(
    services: Services, capsys: Capture, arguments: tuple[str, ...], said: str
) -> None:
    done = here(capsys, "run", "events", *arguments)

    assert done.returncode == 2
    assert said in done.stderr


# Following. The follower is a process of its own; this one writes.


class Follower:
    """`tacho run events … --follow --json` in a process, and what it prints."""

    def __init__(self, *arguments: str) -> None:
        command = [*TACHO, "run", "events", *arguments, "--follow", "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        )
        self._pending = b""

    def next_line(self) -> dict[str, Any]:
        """Wait for the next line; fail after a minute without one."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                assert selector.select(60), f"no line came; so far {self._pending!r}"
                data = os.read(self.process.stdout.fileno(), 65536)
                assert data, self.process.communicate()
                self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> tuple[int, bytes, bytes]:
        """Wait for its end; return how it ended and what else it printed."""
        out, err = self.process.communicate()
        return self.process.returncode, self._pending + out, err


@pytest.fixture
def follow() -> Iterator[Callable[..., Follower]]:
    """Start followers, and end those that are left."""
    started: list[Follower] = []

    def start(*arguments: str) -> Follower:
        started.append(Follower(*arguments))
        return started[-1]

    yield start
    for follower in started:
        follower.process.kill()
        follower.process.communicate()


def test_a_follower_sees_what_another_process_records_and_ends_with_the_run(
    services: Services, follow: Callable[..., Follower]
) -> None:
    owner = describe(os.getpid())
    session = services.starter.start(Start("report", {}, run_id="live"), owner)
    follower = follow("live", "--until-finished")
    first = [follower.next_line()["type"] for _ in range(2)]
    session.start_phase("parse")
    second = follower.next_line()["type"]
    session.end_phase("parse")
    session.finish("success")
    code, rest, err = follower.end()

    assert [*first, second] == ["run.created", "run.attempt-started", "run.phase-started"]
    assert [json.loads(line)["type"] for line in rest.splitlines()] == [
        "run.phase-ended",
        "run.finished",
    ]
    assert (code, err) == (0, b"")


def test_a_follower_does_not_wait_for_a_run_that_has_lost_its_process(
    services: Services, capsys: Capture
) -> None:
    begin(services, "lost")

    assert len(lines(capsys, "lost", "--follow", "--until-finished")) == 2


def test_ctrl_c_while_following_is_no_error(
    services: Services, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)

    assert len(lines(capsys, "job-1", "--follow", "--limit", "3")) == 3


def test_a_follower_of_all_runs_ends_cleanly_on_ctrl_c(
    services: Services, follow: Callable[..., Follower]
) -> None:
    follower = follow("--all", "--type", "created", "--limit", "1")
    known = follower.next_line()["stream"]
    record_run(services, "new")
    added = follower.next_line()["stream"]
    follower.process.send_signal(signal.SIGINT)

    assert (known, added) == ("job-2", "new")
    assert follower.end() == (0, b"", b"")
