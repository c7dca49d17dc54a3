"""`queue status` says how the queues are, and its JSON is the body of the diagnostics route."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, here
from project_files import ROOT
from queued_here import Queued

from tachograph.cli import queue_watch
from tachograph.cli.queue_lines import DEAD_TITLE, TITLE, block

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def queued(store_environment: Path) -> Iterator[Queued]:
    with Queued(store_environment) as made:
        yield made


def status(capsys: Capture, *arguments: str) -> dict[str, Any]:
    done = here(capsys, "queue", "status", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shown(capsys: Capture, *arguments: str) -> list[str]:
    done = here(capsys, "queue", "status", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_declared_queues_are_shown_though_nothing_is_in_them(
    queued: Queued, capsys: Capture
) -> None:
    document = status(capsys)

    assert list(document) == [
        *("timestamp", "queues", "oldestDeadSummaryJob", "oldestDeadMemoryJob"),
        *("oldestDeadJobs", "thresholds"),
    ]
    assert list(document["queues"]) == ["memory", "summary"]
    queue = document["queues"]["memory"]
    counted = ("pending", "leased", "completed", "failed", "dead", "cancelled", "scheduled")
    assert [queue[name] for name in counted] == [0] * 7
    assert (queue["oldestAgeSec"], queue["oldestDeadAgeSec"], queue["lastError"]) == (0, 0, None)
    assert document["oldestDeadMemoryJob"] is document["oldestDeadSummaryJob"] is None


def test_case_28_dead_jobs_of_both_queues(queued: Queued, capsys: Capture) -> None:
    """Memory dead 1, summary dead 2, no `extraction`, the oldest summary id, thresholds 50."""
    queued.dead("memory")
    oldest = queued.dead("summary", key="session-1", error="provider gone")
    queued.dead("summary")
    document = status(capsys)

    assert {name: queue["dead"] for name, queue in document["queues"].items()} == {
        "memory": 1,
        "summary": 2,
    }
    found = document["oldestDeadSummaryJob"]
    assert found.pop("createdAt").endswith("Z")
    assert found == {
        "id": oldest,
        "harness": "index",
        "sessionKey": "session-1",
        "attempts": 1,
        "error": "provider gone",
    }
    assert document["oldestDeadJobs"]["summary"]["id"] == oldest
    assert document["thresholds"]["memoryDeadWarn"] == 50
    assert document["thresholds"]["summaryOldestPendingFailSec"] == 1800


def test_every_job_is_counted_once(queued: Queued, capsys: Capture) -> None:
    queued.add("memory")
    queued.add("memory", available_us=queued.now_us + 10**12)
    queued.leased("memory")
    queued.done("memory")
    queued.dead("memory")
    queued.failed("memory", "try again")
    queued.cancel(queued.add("memory"))
    queue = status(capsys)["queues"]["memory"]

    counted = ("pending", "leased", "completed", "failed", "dead", "cancelled", "scheduled")
    assert [queue[name] for name in counted] == [1] * 7
    assert queue["lastError"] == "try again"
    assert queue["rates"]["lastHour"] == {
        "enqueued": 7,
        "leased": 4,
        "completed": 1,
        "failed": 2,
        "died": 1,
    }
    assert queue["latencies"]["lastDay"]["startToEnd"]["p50Sec"] is not None


def test_only_the_queues_that_are_named(queued: Queued, capsys: Capture) -> None:
    queued.dead("memory")
    document = status(capsys, "summary")

    assert list(document["queues"]) == list(document["oldestDeadJobs"]) == ["summary"]
    assert document["oldestDeadMemoryJob"] is None


def test_a_queue_that_nobody_knows_is_no_queue(queued: Queued, capsys: Capture) -> None:
    done = here(capsys, "queue", "status", "memroy")

    assert done.returncode == 2
    assert "Did you mean 'memory'?" in done.stderr


def test_the_thresholds_are_those_of_the_project(
    queued: Queued, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is shown is what scores: there is no other place that a score could take them from."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tachograph.toml").write_text(
        "[queues.letters]\n[health]\ndead_warn = 7\n", encoding="utf-8"
    )
    thresholds = status(capsys)["thresholds"]

    assert thresholds["lettersDeadWarn"] == 7
    assert thresholds["lettersDeadFail"] == 500


def test_without_a_dead_job_the_title_is_calm(queued: Queued, capsys: Capture) -> None:
    queued.add("memory")
    lines = shown(capsys)

    assert lines[0] == TITLE
    assert lines[1].startswith("  memory   p=1 l=0 c=0 f=0 d=0 oldest=")
    assert lines[1].endswith(" dead=— s=0 x=0")
    assert not any("requeue" in line for line in lines)


def test_dead_jobs_change_the_title_and_bring_a_hint(queued: Queued, capsys: Capture) -> None:
    queued.dead("memory", error="\x1b[2J" + "x" * 300)
    lines = shown(capsys)

    assert lines[0] == DEAD_TITLE
    error = lines[2].strip()
    assert error.startswith(r"last error: \x1b[2Jxxx")
    assert len(error) == len("last error: ") + 120
    assert any("tacho queue requeue" in line for line in lines)


def test_rates_and_latencies_stand_below(queued: Queued, capsys: Capture) -> None:
    queued.done("memory")
    lines = shown(capsys)

    assert lines[-2].split() == [
        *("QUEUE", "LAST", "ENQUEUED", "STARTED", "DONE", "FAILED", "DIED"),
        *("WAIT", "P50", "P95", "WORK", "P50", "P95"),
    ]
    assert lines[-1].split()[:7] == ["memory", "1h", "1", "1", "1", "0", "0"]


def test_colours_are_for_what_is_wrong(queued: Queued, capsys: Capture) -> None:
    queued.dead("memory")
    queued.failed("summary")
    lines = list(block(status(capsys), styled=True))

    assert lines[0] == f"\033[33m{DEAD_TITLE}\033[0m"
    assert "\033[31md=1\033[0m" in lines[1]
    assert "f=0" in lines[1]
    assert "\033[33mf=0" not in lines[1]
    assert "\033[33mf=1\033[0m" in lines[3]


def test_an_hour_and_a_day_are_told_apart_where_they_differ(
    queued: Queued, capsys: Capture
) -> None:
    queued.done("memory")
    document = status(capsys)
    document["queues"]["memory"]["rates"]["lastDay"]["enqueued"] = 9
    lines = list(block(document))

    assert [line.split()[1] for line in lines[-2:]] == ["1h", "24h"]


# --watch.


def looks(monkeypatch: pytest.MonkeyPatch, number: int) -> list[float]:
    """Let Ctrl-C come while it waits for the next look after so many; return the waits."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == number:
            raise KeyboardInterrupt

    monkeypatch.setattr(queue_watch, "sleep", sleep)
    return waited


def test_a_watch_looks_again_until_ctrl_c(
    queued: Queued, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = looks(monkeypatch, 3)
    done = here(capsys, "queue", "status", "--watch", "--interval", "0.5")

    assert done.returncode == 0
    assert done.stdout.count(TITLE) == 3
    assert waited == [0.5] * 3


def test_a_watch_for_programs_is_one_line_for_each_look(
    queued: Queued, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = looks(monkeypatch, 2)
    done = here(capsys, "queue", "status", "--watch", "--json")

    assert [list(json.loads(line)["queues"]) for line in done.stdout.splitlines()] == [
        ["memory", "summary"]
    ] * 2
    assert waited == [2.0] * 2


def test_a_watch_at_a_terminal_redraws_in_place(
    queued: Queued, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks(monkeypatch, 2)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    done = here(capsys, "queue", "status", "--watch")

    assert done.returncode == 0
    assert done.stdout.count(TITLE) >= 2
    assert "\x1b[1A" in done.stdout  # it goes up again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--interval", "2"), "--interval goes with --watch"),
        (("--watch", "--interval", "0"), "--interval is 0"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    queued: Queued, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    done = here(capsys, "queue", "status", *arguments)

    assert done.returncode == 2
    assert message in done.stderr


def test_a_watch_in_a_process_of_its_own_ends_well_by_ctrl_c(queued: Queued) -> None:
    command = [*TACHO, "queue", "status", "--watch", "--interval", "0.05", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        queued.dead("memory")
        while not (later := json.loads(process.stdout.readline()))["queues"]["memory"]["dead"]:
            pass
        process.send_signal(signal.SIGINT)
        process.stdout.read()

    assert process.returncode == 0
    assert first["queues"]["memory"]["dead"] == 0
    assert later["queues"]["memory"]["lastError"] == "boom"


# What the original got wrong.


def test_case_13_a_look_is_never_of_yesterday(queued: Queued, capsys: Capture) -> None:
    """The original kept its counts for 30 seconds, and judged repairs by what was before them."""
    job_id = queued.dead("memory")

    assert status(capsys)["queues"]["memory"]["dead"] == 1

    queued.queues.change([job_id], lambda job, cause: job.requeue(cause, "mended"))
    queue = status(capsys)["queues"]["memory"]

    assert (queue["dead"], queue["pending"], queue["lastError"]) == (0, 1, None)


def test_a_job_for_tonight_is_not_old_all_day(queued: Queued, capsys: Capture) -> None:
    """The original counted from when a job was enqueued."""
    job_id = queued.add("memory", available_us=queued.now_us + 10**11)
    queue = status(capsys)["queues"]["memory"]

    assert (queue["scheduled"], queue["pending"], queue["oldestAgeSec"]) == (1, 0, 0)
    assert here(capsys, "queue", "show", job_id).returncode == 0


def test_status_as_a_process_loads_nothing_heavy(queued: Queued, capsys: Capture) -> None:
    """Once the view is caught up: to fold new events of jobs, their ids are UUIDs."""
    queued.dead("memory")
    status(capsys)
    paths = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    script = f"""import sys; sys.path[:0] = {paths!r}
from tachograph.cli.main import execute
code = execute(["queue", "status"])
sys.stderr.write(" ".join(["", *{{name.partition(".")[0] for name in sys.modules}}]))
sys.exit(code)"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], check=True, capture_output=True, text=True
    )

    assert DEAD_TITLE in done.stdout
    heavy = {"click", "dataclasses", "pydantic", "rich", "eventsourcing", "re", "json", "typing"}
    assert heavy.isdisjoint(done.stderr.split())
