"""A compaction that is killed at any of its steps leaves the store whole (SIGKILL, not a raise)."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from typing import TYPE_CHECKING, Any

from stores import LARGE, make_store, opened

from tachograph import storekeeping

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.records import Head

# Audit events (see sys.addaudithook) of everything that changes files; renames and removals
# are what a store could be lost by.
STEPS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "fcntl.flock")
MOST_STEPS = 500


def kill_at(step: int) -> None:
    """Let this process kill itself right before its n-th step."""
    seen = 0

    def hook(event: str, _arguments: Any) -> None:
        nonlocal seen
        if event in STEPS:
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def compact_in_a_child(store: Path, step: int) -> int:
    """Compact in a child that is killed before a step; return how the child ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            kill_at(step)
            storekeeping.compact(str(store))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check(store: Path, expected: Head) -> list[str]:
    """Return what is wrong with a store."""
    wrong = [problem.detail for problem in storekeeping.verify(str(store))]
    with opened(store) as services:
        if services.log.head() != expected:
            wrong.append(f"the log ends at {services.log.head()}")
        outputs = [text for _, text in services.session("job-1", 1).batch_outputs("parse")]
        if outputs != [LARGE] * 3:
            wrong.append("an output is lost")
        if storekeeping.check_views(services):
            wrong.append("a view is wrong")
    return wrong


def test_a_compaction_killed_at_any_step_leaves_the_store_whole(tmp_path: Path) -> None:
    original = make_store(tmp_path / "original")
    with opened(original) as services:
        services.blobs.put(b"unneeded")
        storekeeping.rebuild(services)
        expected = services.log.head()
    compact_in_a_child(shutil.copytree(original, tmp_path / "warm"), 0)  # imports done once
    wrong: dict[int, list[str]] = {}
    killed = 0
    for step in range(1, MOST_STEPS):
        store = shutil.copytree(original, tmp_path / "store")
        ended = compact_in_a_child(store, step)
        found = check(store, expected)
        if found:
            wrong[step] = found
        storekeeping.compact(str(store))
        if [path.name for path in (store / "log").glob("compact-*")]:
            wrong[step] = ["a leftover stays"]
        shutil.rmtree(store)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1

    assert wrong == {}
    assert 10 < killed < MOST_STEPS - 1, "every step was tried, up to the end"
