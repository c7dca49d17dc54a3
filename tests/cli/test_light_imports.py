"""Commands that jobs call in loops import nothing that costs: light at the door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest
from project_files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FORBIDDEN = {
    *("argparse", "asyncio", "click", "contextlib", "dataclasses", "datetime", "enum"),
    *("eventsourcing", "hashlib", "httpx", "inspect", "json", "logging", "pathlib", "psutil"),
    *("pydantic", "re", "rich", "typing", "uuid"),
}

# What a command needs for its own work: a digest of a file, a JSON text that was given.
ARTIFACT = {"hashlib", "pathlib", "re", "enum", "typing", "contextlib"}
JSON = {"json", "re", "enum"}
JOB = {"uuid", "re", "enum"}

COMMANDS: list[tuple[str, set[str]]] = [
    # A fingerprint quotes its texts as JSON does.
    ("run start demo --id other --input a=1 --title t --unowned", JSON),
    ("run start demo --id job --takeover --reason test --export", set()),
    ("run phase start q --batches 3", set()),
    ("run phase end p --summary done", set()),
    ("run batch p 3 --inputs 5 --parsed 4", set()),
    ("run batch p --pending", set()),
    ("run batch p --next", set()),
    ("run checkpoint --offset 3 --total 9 --counter kept=2 --phase p", set()),
    ("run checkpoint --state 3", JSON),
    ("run heartbeat", set()),
    ("run effect mail --intend", set()),
    ("run effect sent --done", set()),
    ("run artifact a {file}", ARTIFACT),
    ("run progress 3 9", set()),
    ("run retry transient 2 --delay 0.5", set()),
    ("run fallback large small", set()),
    ("run note hello", set()),
    ("run judge --inputs 3 --outputs 3", set()),
    ("run judge --inputs 3 --fact asked=3", set()),
    ("run expect --inputs 3 --minimum-fraction 0.5", set()),
    ("run answer --phase p --batch 3 --asked 5 --parsed 4 --text answer", set()),
    ("run finish --outcome partial", set()),
    ("run fail --reason disk", set()),
    ("run cancel job --reason test", set()),
    # Streams of jobs are UUIDs.
    ("queue enqueue memory --type t --key k --priority 3 --concurrency-key c", JOB),
    ("queue enqueue memory --type t --payload 3 --in 10m --max-attempts 2", JOB | JSON),
    ("queue enqueue memory --type t --at now", JOB),
    ("watchdog run --once", set()),
    ("watchdog run --once --auto-resume --json", JSON),
    ("watchdog run --once --anchor-file {file}", set()),
    ("watchdog run --once --anchor-file {file}.new", JSON),
]

SCRIPT = """
import sys
sys.path[:0] = {paths}
bare = set(sys.modules)
from tachograph.cli.main import execute
code = execute(sys.argv[1:])
names = sorted({{name.partition(".")[0] for name in set(sys.modules) - bare}})
sys.stderr.write("\\n" + " ".join([str(code), *names]))
"""


def imported(*arguments: str) -> tuple[int, set[str]]:
    """Run a command without `site`, whose own imports would hide ours; return code and names."""
    paths = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    script = SCRIPT.format(paths=json.dumps(paths))
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, *arguments], capture_output=True, text=True
    )
    code, *names = done.stderr.splitlines()[-1].split()
    return int(code), set(names)


@pytest.fixture
def started(store_environment: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Start a run with an open phase and an effect, and name its attempt."""
    monkeypatch.setenv("TACHO_RUN_ID", "job")
    monkeypatch.setenv("TACHO_EPOCH", "1")
    from tachograph.bootstrap import open_store
    from tachograph.starting import Start

    services = open_store(create=True)
    session = services.starter.start(Start("demo", run_id="job"), services.owner(os.getpid()))
    session.start_phase("p")
    session.plan_batches("p", 5, 0, None)
    for index in (0, 1, 2, 4):
        session.complete_batch("p", index)
    session.intend_effect("sent")
    services.close()
    return session.run_id


@pytest.mark.parametrize(("line", "needed"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_light_command_imports_nothing_heavy(
    line: str, needed: set[str], started: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    code, names = imported(*line.format(file=tmp_path / "file").split())

    assert code in (0, 1, 75)
    assert "tachograph" in names
    assert names & FORBIDDEN - needed == set()


def test_the_check_sees_what_a_heavy_command_imports(started: str) -> None:
    """Otherwise the test above could pass because it looks at nothing."""
    code, names = imported("run", "batch", "--help")

    assert code == 0
    assert {"click", "typing", "enum"} <= names
