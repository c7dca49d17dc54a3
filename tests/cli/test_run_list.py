"""`run list` shows the runs that are asked for, each with a status that is true now (G7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, tacho
from stores import begin, opened, record_run

from tachograph.domain.owner import Owner
from tachograph.infra.processes import describe
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(store_environment: Path) -> Path:
    """Runs in every state there is."""
    with opened(store_environment) as services:
        record_run(services, "job-done")
        record_run(services, "job-failed", outcome="failed")
        begin(services, "job-lost").start_phase("parse")
        alive = describe(os.getpid())
        services.starter.start(Start("other", {"n": 2}, run_id="job-alive"), alive)
        session = begin(services, "job-blocked")
        session.execute(lambda run, why: run.block(why, "waits for the disk"))
        session = begin(services, "job-cancelled")
        session.execute(lambda run, why: run.cancel(why, "not wanted"))
        nobody = Owner("here", kind="unowned")
        services.starter.start(Start("report", {"n": 3}, run_id="job-unowned"), nobody)
    return store_environment


def listed(capsys: Capture, *arguments: str) -> list[dict[str, Any]]:
    done = here(capsys, "run", "list", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["unowned", "cancelled", "blocked", "alive", "lost", "failed", "done"]),
        (("--limit", "2"), ["unowned", "cancelled"]),
        (("--limit", "0", "--status", "running"), ["unowned", "alive"]),
        (("--status", "interrupted"), ["lost"]),
        (("--status", "blocked", "--status", "cancelled"), ["cancelled", "blocked"]),
        (("--outcome", "success"), ["done"]),
        (("--outcome", "failed", "--outcome", "partial"), ["failed"]),
        (("--command", "other"), ["alive"]),
        (("--since", "1h", "--command", "other"), ["alive"]),
        (("--since", "2999-01-01"), []),
        (("--since", "1h", "--outcome", "partial"), []),
    ],
)
def test_the_runs_that_are_asked_for_are_listed_newest_first(
    store: Path, capsys: Capture, arguments: tuple[str, ...], expected: list[str]
) -> None:
    assert [card["jobRunId"] for card in listed(capsys, *arguments)] == [
        f"job-{name}" for name in expected
    ]


def test_each_status_has_its_reason(store: Path, capsys: Capture) -> None:
    found = {card["jobRunId"].removeprefix("job-"): card for card in listed(capsys)}

    assert {name: card["status"] for name, card in found.items()} == {
        "done": "success",
        "failed": "failed",
        "lost": "interrupted",
        "alive": "running",
        "blocked": "blocked",
        "cancelled": "cancelled",
        "unowned": "running",
    }
    assert "has ended" in found["lost"]["statusReason"]
    assert found["blocked"]["statusReason"] == "waits for the disk"
    assert found["cancelled"]["statusReason"] == "not wanted"
    assert found["done"]["progress"] == {
        "completedUnits": 3,
        "totalUnits": 3,
        "unitLabel": "batches",
    }


def test_a_table_for_people_names_status_progress_and_reason(store: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "list")
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}

    assert done.stdout.startswith("RUN ")
    assert "\033" not in done.stdout
    assert "3/3 batches" in rows["job-done"]
    assert "interrupted" in rows["job-lost"]
    assert "has ended" in rows["job-lost"]


def test_a_terminal_gets_colours_and_no_line_is_wrapped(
    store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.cli.output import Output

    monkeypatch.setattr(Output, "styled", lambda _self: True)
    monkeypatch.setenv("COLUMNS", "100")
    lines = here(capsys, "run", "list").stdout.splitlines()

    assert any("\033[31minterrupted\033[0m" in line for line in lines)
    assert any("\033[32msuccess\033[0m" in line for line in lines)
    bare = [line.replace("\033[0m", "") for line in lines]
    assert max(len(line.split("\033[")[0]) for line in bare) <= 100


@pytest.mark.parametrize(
    ("option", "value", "forms"),
    [
        ("--since", "yesterday-ish", "2026-03-01"),
        ("--since", "3", "no unit"),
        ("--since", "", "empty"),
        ("--status", "lost", "interrupted"),
        ("--outcome", "good", "success"),
        ("--limit", "many", "integer"),
        ("--limit", "-1", "0 or more"),
    ],
)
def test_a_value_that_makes_no_sense_is_a_usage_error_that_names_what_does(
    store: Path, capsys: Capture, option: str, value: str, forms: str
) -> None:
    done = here(capsys, "run", "list", option, value)

    assert done.returncode == 2
    assert forms in done.stderr


def test_nothing_to_list_is_said_on_stderr(store: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "list", "--command", "nobody")

    assert (done.returncode, done.stdout) == (0, "")
    assert "no such runs" in done.stderr


def test_a_missing_store_is_not_found(store_environment: Path, capsys: Capture) -> None:
    done = here(capsys, "run", "list")

    assert done.returncode == 3
    assert str(store_environment) in done.stderr
    assert not store_environment.exists()


@pytest.mark.parametrize("command", [("run", "list"), ("run", "status", "job-done")])
def test_listing_imports_neither_pydantic_nor_rich_nor_click(
    store: Path, command: tuple[str, ...]
) -> None:
    code = (
        "import sys; from tachograph.cli.main import execute; code = execute(sys.argv[1:]);"
        "heavy = {'pydantic', 'rich', 'click', 'eventsourcing', 'psutil'} & set(sys.modules);"
        "sys.stderr.write(' '.join(heavy)); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert "job-done" in done.stdout


def test_a_run_is_listed_as_interrupted_once_its_process_was_killed(
    store_environment: Path, tmp_path: Path
) -> None:
    job = (
        "import os, signal, tachograph\n"
        "with tachograph.record('killed') as run:\n"
        "    print(run.id, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", job], capture_output=True, text=True)
    (card,) = json.loads(tacho("run", "list", "--json").stdout)

    assert killed.returncode == -9
    assert (card["jobRunId"], card["status"]) == (killed.stdout.strip(), "interrupted")


def test_a_store_that_cannot_be_written_is_listed_all_the_same(
    store: Path, capsys: Capture
) -> None:
    """Its views are then made in memory."""
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    for path in [store, *store.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        found = listed(capsys)
    finally:
        for path in [store, *store.rglob("*")]:
            path.chmod(0o700)

    assert len(found) == 7
