"""`watchdog run` as people and timers call it: its texts, exit codes, loop, sinks and pings."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

import pytest
from abandoned import FINISHES, NOTHING, abandon
from command_line import TACHO, here, topics
from loopback import Loopback
from stores import files, gone, opened

from tachograph.infra.processes import describe
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]
ONCE = ("watchdog", "run", "--once")


@pytest.fixture
def store(store_path: Path) -> Path:
    """An empty store."""
    with opened(store_path):
        return store_path


class TestWhatItSays:
    def test_nothing_to_say(self, store: Path, capsys: Capture) -> None:
        done = here(capsys, *ONCE)

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "0 at work, 0 without life.\n"

    def test_a_death_without_recovery(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            services.starter.start(Start("report", run_id="job"), gone())
        done = here(capsys, *ONCE)

        assert done.returncode == 0
        assert done.stdout.splitlines() == [
            done.stdout.splitlines()[0],
            "0 at work, 1 without life.",
        ]
        assert done.stdout.startswith("alert      report:job has shown no work for 0s: process ")

    def test_a_recovery(self, store: Path, capsys: Capture) -> None:
        abandon(store)
        done = here(capsys, *ONCE, "--auto-resume")

        assert done.returncode == 0
        assert (
            "recovered  report:job went on by itself (attempt 2); it ended as success."
            in done.stdout.splitlines()
        )

    def test_a_resume_that_changed_nothing(self, store: Path, capsys: Capture) -> None:
        abandon(store, NOTHING)
        done = here(capsys, *ONCE, "--auto-resume")

        assert "ineffective job: the run got no further" in done.stdout
        assert "recovered" not in done.stdout

    def test_a_need_is_told_once_and_then_as_still_open(self, store: Path, capsys: Capture) -> None:
        abandon(store, safe_to_retry=False)
        first = here(capsys, *ONCE, "--auto-resume").stdout
        second = here(capsys, *ONCE, "--auto-resume").stdout

        text = "report:job needs attention: task marked unsafe to auto-retry."
        assert f"attention  {text}" in first
        assert "still open" not in first
        assert f"still open {text}" in second
        assert "attention  " not in second

    def test_a_run_that_expired(self, store: Path, capsys: Capture) -> None:
        abandon(store, resume_window_seconds=0)
        done = here(capsys, *ONCE)

        assert "expired    job: no work for longer than its resume window of 0 s" in done.stdout
        assert topics("job")[-1] == "expired"

    def test_what_it_leaves_alone_and_why(self, store: Path, capsys: Capture) -> None:
        abandon(store)
        done = here(capsys, *ONCE)

        assert "skipped    job: auto-resume was not asked for" in done.stdout
        assert topics("job").count("attempt-started") == 1

    def test_json(self, store: Path, capsys: Capture) -> None:
        abandon(store)
        report = json.loads(here(capsys, *ONCE, "--auto-resume", "--json").stdout)

        assert (report["running_count"], report["stale_count"]) == (0, 1)
        assert [each["task_id"] for each in report["recoveries"]] == ["job"]
        assert report["resumed"][0]["returncode"] == 0

    def test_who_is_at_work(self, store: Path, capsys: Capture) -> None:
        abandon(store, owner=describe(os.getpid()))
        report = json.loads(here(capsys, *ONCE, "--json").stdout)

        assert (report["running_count"], report["running"][0]["task_id"]) == (1, "job")


class TestOrders:
    def test_a_dry_run_says_what_it_would_do_and_writes_nothing(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        abandon(store)
        before = files(store)
        with Loopback() as server:
            done = here(
                capsys,
                *("watchdog", "run", "--dry-run", "--auto-resume", "--ping", server.url),
                *("--webhook", server.url, "--signal-file", tmp_path / "signals"),
            )

            assert server.requests == []
        assert done.returncode == 0
        assert f"would      resume job with: {sys.executable}" in done.stdout
        assert files(store) == before
        assert not (tmp_path / "signals").exists()

    def test_only_runs_of_a_command(self, store: Path, capsys: Capture) -> None:
        abandon(store)
        here(capsys, *ONCE, "--auto-resume", "--command", "other")
        others = topics("job").count("attempt-started")
        here(capsys, *ONCE, "--auto-resume", "--command", "report")

        assert (others, topics("job").count("attempt-started")) == (1, 2)

    def test_a_time_limit(self, store: Path, capsys: Capture) -> None:
        abandon(store, "import time; time.sleep(600)")
        done = here(capsys, *ONCE, "--auto-resume", "--timeout", "0.2s")

        assert "error      job: it was stopped at its time limit" in done.stdout

    def test_several_at_the_same_time(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        """Each waits for the other two: one after the other they would never end."""
        meet = """
import os, sys, tachograph
me, folder = int(sys.argv[1]), sys.argv[2]
with tachograph.record("report", run_id=f"job-{me}") as run:
    for other in range(3):
        if other != me:
            # Opening a pipe waits for whoever opens its other end.
            mode = "w" if me < other else "r"
            open(f"{folder}/{min(me, other)}-{max(me, other)}", mode).close()
    run.save_checkpoint(1)
"""
        for pair in ("0-1", "0-2", "1-2"):
            os.mkfifo(tmp_path / pair)
        for me in range(3):
            command = [sys.executable, "-c", meet, str(me), str(tmp_path)]
            abandon(store, run_id=f"job-{me}", command=command)
        report = json.loads(here(capsys, *ONCE, "--auto-resume", "--jobs", "3", "--json").stdout)

        assert sorted(each["task_id"] for each in report["recoveries"]) == [
            "job-0",
            "job-1",
            "job-2",
        ]

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (["--once", "--interval", "60s"], "exclude each other"),
            (["--interval", "0s"], "--interval is 0s"),
            (["--interval", "often"], "often"),
            (["--once", "--timeout", "0s"], "--timeout is 0"),
            (["--once", "--jobs", "0"], "--jobs is 0"),
            (["--once", "--jobs", "many"], "many"),
            (["--no-wait"], "--no-wait goes with --once"),
        ],
    )
    def test_wrong_input_is_exit_code_2(
        self, options: list[str], problem: str, store: Path, capsys: Capture
    ) -> None:
        done = here(capsys, "watchdog", "run", *options)

        assert done.returncode == 2
        assert problem in done.stderr

    def test_without_a_store_it_is_exit_code_3(self, capsys: Capture) -> None:
        assert here(capsys, *ONCE).returncode == 3


class TestSinks:
    def test_a_file_gets_each_signal(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        path = tmp_path / "signals"
        abandon(store)
        here(capsys, *ONCE, "--auto-resume", "--signal-file", path)
        here(capsys, *ONCE, "--auto-resume", "--signal-file", path)
        told = [json.loads(line) for line in path.read_text().splitlines()]

        assert [(each["kind"], each["task_id"]) for each in told] == [
            ("alert", "job"),
            ("recovery", "job"),
        ]

    def test_a_command_gets_each_signal(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        script = tmp_path / "tell"
        script.write_text(
            f'#!/bin/sh\ncat >>"{tmp_path}/told"\necho $TACHO_SIGNAL_KIND >>"{tmp_path}/kinds"\n'
        )
        script.chmod(0o755)
        abandon(store)
        here(capsys, *ONCE, "--auto-resume", "--signal-command", str(script))

        assert (tmp_path / "kinds").read_text().split() == ["alert", "recovery"]
        assert len((tmp_path / "told").read_text().splitlines()) == 2

    def test_a_webhook_gets_each_signal_signed(
        self, store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TACHO_WEBHOOK_SECRET", "correct-horse-battery")
        abandon(store)
        with Loopback() as server:
            done = here(capsys, *ONCE, "--auto-resume", "--webhook", f"{server.url}/hook")
        first = server.requests[0]
        stamped = first.headers["X-Tachograph-Timestamp"].encode() + b"." + first.body
        expected = hmac.new(b"correct-horse-battery", stamped, hashlib.sha256).hexdigest()

        assert done.returncode == 0
        assert server.paths() == ["/hook", "/hook"]
        assert first.headers["X-Tachograph-Signature"] == f"sha256={expected}"
        assert json.loads(first.body)["kind"] == "alert"

    def test_the_secret_of_a_webhook_may_be_in_a_file(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        secret = tmp_path / "secret"
        secret.write_text("correct-horse-battery\n")
        secret.chmod(0o600)
        abandon(store)
        with Loopback() as server:
            here(capsys, *ONCE, "--webhook", server.url, "--webhook-secret-file", secret)
        first = server.requests[0]
        stamped = first.headers["X-Tachograph-Timestamp"].encode() + b"." + first.body
        expected = hmac.new(b"correct-horse-battery", stamped, hashlib.sha256).hexdigest()

        assert first.headers["X-Tachograph-Signature"] == f"sha256={expected}"

    @pytest.mark.parametrize(
        ("content", "mode", "problem"),
        [
            (None, 0, "No such file"),
            (b"s", 0o640, "can be read by others: chmod 600 it"),
            (b"s", 0o604, "can be read by others: chmod 600 it"),
            (b"\n", 0o600, "is empty"),
            (b"\xff", 0o600, "is no text in UTF-8"),
        ],
    )
    def test_a_file_that_keeps_no_secret_is_exit_code_2(
        self,
        content: bytes | None,
        mode: int,
        problem: str,
        store: Path,
        capsys: Capture,
        tmp_path: Path,
    ) -> None:
        secret = tmp_path / "secret"
        if content is not None:
            secret.write_bytes(content)
            secret.chmod(mode)
        abandon(store)
        with Loopback() as server:
            done = here(capsys, *ONCE, "--webhook", server.url, "--webhook-secret-file", secret)

            assert server.requests == []
        assert (done.returncode, problem in done.stderr) == (2, True)
        assert "stall-detected" not in topics("job")

    def test_the_environment_names_sinks_as_well(
        self, store: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TACHO_SIGNAL_FILE", str(tmp_path / "signals"))
        abandon(store)
        here(capsys, *ONCE)

        assert len((tmp_path / "signals").read_text().splitlines()) == 1

    def test_one_that_fails_is_exit_code_1_and_stops_no_other(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        abandon(store)
        with Loopback(404, 404) as server:
            done = here(
                capsys,
                *(*ONCE, "--auto-resume", "--webhook", server.url, "--signal-command", "/no/such"),
                *("--signal-file", tmp_path / "signals"),
            )

        assert done.returncode == 1
        assert len((tmp_path / "signals").read_text().splitlines()) == 2
        assert f"Signals were not delivered to webhook {server.url}: " in done.stderr
        assert "Signals were not delivered to command /no/such: " in done.stderr
        assert "recovered" in done.stdout
        assert topics("job")[-1] == "resume-returned"

    def test_without_news_no_sink_is_asked(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        done = here(capsys, *ONCE, "--signal-command", "/no/such")

        assert done.returncode == 0


class TestPings:
    def test_a_look_is_reported_from_start_to_end(self, store: Path, capsys: Capture) -> None:
        with Loopback() as server:
            here(capsys, *ONCE, "--ping", f"{server.url}/ping/x")

        assert server.paths() == ["/ping/x/start", "/ping/x"]
        assert server.requests[1].body == b"0 running, 0 stale"

    def test_a_sink_that_failed_fails_the_look(self, store: Path, capsys: Capture) -> None:
        abandon(store)
        with Loopback() as server:
            here(capsys, *ONCE, "--ping", server.url, "--signal-command", "/no/such")

        assert server.paths() == ["/start", "/fail"]
        assert b"/no/such" in server.requests[1].body

    def test_a_look_that_failed_is_told(self, store: Path, capsys: Capture) -> None:
        from tachograph.domain.records import NewRecord

        abandon(store)
        with opened(store) as services:
            version = services.log.stream_version("job") + 1
            services.log.append([NewRecord("job", version, "run.of-tomorrow", 0, b"\x80")])
        with Loopback() as server:
            done = here(capsys, *ONCE, "--ping", server.url)

        assert done.returncode != 0
        assert server.paths() == ["/start", "/fail"]
        assert b"run.of-tomorrow" in server.requests[1].body

    def test_a_ping_that_fails_fails_nothing(self, store: Path, capsys: Capture) -> None:
        with Loopback(404, 404) as server:
            done = here(capsys, *ONCE, "--ping", server.url)

        assert done.returncode == 0
        assert "The ping was not delivered" in done.stderr


class TestNoWait:
    def test_a_look_ends_while_a_resume_goes_on_and_tells_later(
        self, store: Path, tmp_path: Path
    ) -> None:
        go = tmp_path / "go"
        os.mkfifo(go)
        abandon(store, f"open({str(go)!r}).close()\n{FINISHES}")
        with Loopback() as server, (tmp_path / "output").open("w") as output:
            # Not through a pipe: that would end only with the process of the resume.
            command = [*TACHO, *ONCE, "--no-wait", "--auto-resume", "--webhook", server.url]
            done = subprocess.run(command, stdout=output, stderr=output)
            told = [json.loads(request.body)["kind"] for request in server.requests]
            go.open("w").close()
            server.until(2)  # the process of the resume posts the second

        assert (done.returncode, told) == (0, ["alert"])
        assert json.loads(server.requests[1].body)["kind"] == "recovery"
        assert topics("job")[-1] == "resume-returned"
        assert "alert      report:job" in (tmp_path / "output").read_text()


class Loop:
    """A watchdog that looks again and again."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [*TACHO, "watchdog", "run", "--auto-resume", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def until_it_looks(self) -> None:
        assert self.process.stderr is not None
        assert self.process.stderr.readline().startswith("Looking every ")

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate()
        return self.process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


class TestTheLoop:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_it_well(self, number: int, store: Path) -> None:
        with Loop("--interval", "1h") as loop:
            loop.until_it_looks()

            assert loop.end(number) == 0

    def test_it_looks_again_and_tells_only_what_is_new(self, store: Path) -> None:
        with Loop("--interval", "0.1s") as loop:
            loop.until_it_looks()
            abandon(store)
            told = [loop.hear() for _ in range(2)]
            code = loop.end(signal.SIGTERM)

        assert told[0].startswith("alert      report:job ")
        assert told[1] == (
            "recovered  report:job went on by itself (attempt 2); it ended as success.\n"
        )
        assert code == 0

    def test_a_dry_run_tells_a_situation_once(self, store: Path) -> None:
        """Nothing is recorded that would say that it was told."""
        abandon(store)
        with Loop("--interval", "0.1s", "--dry-run", "--json") as loop:
            reports = [json.loads(loop.hear()) for _ in range(3)]

        assert [len(report["alerts"]) for report in reports] == [1, 0, 0]
        assert [each["action"] for report in reports for each in report["resumed"]] == ["dry-run"]
        assert [report["stale_count"] for report in reports] == [1, 1, 1]

    def test_json_is_one_line_for_each_look(self, store: Path) -> None:
        with Loop("--interval", "0.1s", "--json") as loop:
            reports = [json.loads(loop.hear()) for _ in range(3)]

        assert [report["running_count"] for report in reports] == [0, 0, 0]

    def test_a_look_goes_on_while_a_resume_is_under_way(self, store: Path, tmp_path: Path) -> None:
        go = tmp_path / "go"
        os.mkfifo(go)
        waits = f"open({str(go)!r}).close()\n"
        abandon(store, waits + FINISHES)
        with Loop("--interval", "0.1s", "--json") as loop:
            reports = [json.loads(loop.hear()) for _ in range(3)]
            go.open("w").close()
            told: dict[str, Any] = {"recoveries": []}
            while not told["recoveries"]:
                told = json.loads(loop.hear())

        assert [len(report["alerts"]) for report in reports] == [1, 0, 0]
        assert [each["task_id"] for each in told["recoveries"]] == ["job"]

    def test_an_adapter_outlives_a_watchdog_that_was_ended(
        self, store: Path, tmp_path: Path, capsys: Capture
    ) -> None:
        begun, go = tmp_path / "begun", tmp_path / "go"
        os.mkfifo(begun)
        os.mkfifo(go)
        waits = f"lives = open({str(begun)!r}, 'w')\nopen({str(go)!r}).close()\n"
        abandon(store, waits + FINISHES)
        with Loop("--interval", "1h") as loop, begun.open() as adapter:
            code = loop.end(signal.SIGTERM)
            meanwhile = here(capsys, *ONCE, "--auto-resume")
            go.open("w").close()
            assert adapter.read() == ""  # it holds its end of the pipe as long as it lives
        here(capsys, *ONCE, "--auto-resume")

        assert code == 0
        assert meanwhile.stdout == "1 at work, 0 without life.\n"
        assert topics("job").count("resume-dispatched") == 1
        assert topics("job").count("finished") == 1
