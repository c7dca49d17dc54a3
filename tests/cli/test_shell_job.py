"""A job written in bash is killed, run again, and ends as one that was never disturbed."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from command_line import bash, history

if TYPE_CHECKING:
    from pathlib import Path

JOB = r"""
set -eu
eval "$(tacho run start nightly --id job --input root=/data --export --quiet)"
tacho run phase start parse --batches 5
for index in $(tacho run batch parse --pending); do
    echo "$index" >>worked
    if [ "$index" = "${1:-none}" ]; then kill -KILL $$; fi
    tacho run batch parse "$index" --inputs 2 --output-json "[$index, $index]"
done
tacho run phase end parse
tacho run finish
"""


def play(folder: Path, store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "TACHO_STORE": str(store)}
    return subprocess.run(
        bash(JOB, folder, *arguments), cwd=folder, env=environment, capture_output=True, text=True
    )


def work_done(store: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the history without what tells attempts apart."""
    of_attempts = ("run.attempt-started", "run.phase-started")
    return [event for event in history("job", store) if event[0] not in of_attempts]


def test_a_killed_shell_job_goes_on_where_it_stopped(tmp_path: Path) -> None:
    disturbed, whole = tmp_path / "disturbed", tmp_path / "whole"
    killed = play(disturbed, tmp_path / "store", "3")
    again = play(disturbed, tmp_path / "store")
    undisturbed = play(whole, tmp_path / "other-store")

    assert killed.returncode == -signal.SIGKILL
    assert (again.returncode, again.stdout) == (0, "success\n"), again.stderr
    assert (disturbed / "worked").read_text().split() == ["0", "1", "2", "3", "3", "4"]
    assert undisturbed.returncode == 0
    assert without_versions(work_done(tmp_path / "store")) == without_versions(
        work_done(tmp_path / "other-store")
    )


def without_versions(events: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Leave out the verdict's evidence: it names versions, which count the attempts as well."""
    return [
        (topic, {name: value for name, value in fields.items() if name != "evidence"})
        for topic, fields in events
    ]
