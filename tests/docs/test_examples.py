"""Every program in examples/ runs, is interrupted, and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tachograph.bootstrap import open_store

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def place(store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, with `tacho` on the path and a store of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    return tmp_path


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, check=False, capture_output=True, text=True)


def topics(store: Path) -> list[str]:
    services = open_store(str(store))
    found = [record.topic.removeprefix("run.") for record in services.log.read()]
    services.close()
    return found


def test_the_agent_goes_on_after_an_outage(place: Path, store_environment: Path) -> None:
    (place / "provider-is-down").touch()
    script = str(EXAMPLES / "classify_tickets.py")

    first = run(sys.executable, script)
    second = run(sys.executable, script)

    assert (first.returncode, second.returncode) == (1, 0)
    assert second.stdout == "12 labels, attempt 2: success\n"
    recorded = topics(store_environment)
    assert recorded.count("batch-completed") == 4
    assert recorded.count("retry-scheduled") == recorded.count("fallback-taken") == 1


@pytest.mark.skipif(os.name == "nt", reason="a bash script")
def test_the_shell_job_goes_on_after_its_last_finished_part(
    place: Path, store_environment: Path
) -> None:
    source = place / "from"
    source.mkdir()
    for name in "abcd":
        (source / name).write_text(name)
    script = str(EXAMPLES / "nightly-copy.sh")
    (place / "to" / "c").mkdir(parents=True)  # cp cannot write over this folder's name
    (place / "to" / "c" / "c").mkdir()

    first = run("bash", script, str(source), str(place / "to"))
    (place / "to" / "c" / "c").rmdir()
    (place / "to" / "c").rmdir()
    second = run("bash", script, str(source), str(place / "to"))

    assert first.returncode != 0
    assert second.returncode == 0, second.stderr
    assert sorted(path.read_text() for path in (place / "to").iterdir()) == list("abcd")
    recorded = topics(store_environment)
    assert recorded.count("batch-completed") == 4
    assert recorded.count("attempt-started") == 2
    assert recorded[-1] == "finished"
