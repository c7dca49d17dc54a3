"""A compaction that is killed at any of its steps leaves the store whole (SIGKILL, not a raise)."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

from dying import in_a_child
from stores import LARGE, make_store, opened

from tachograph import storekeeping

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.records import Head

MOST_STEPS = 500


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
    storekeeping.compact(str(shutil.copytree(original, tmp_path / "warm")))  # imports done once
    wrong: dict[int, list[str]] = {}
    killed = 0
    for step in range(1, MOST_STEPS):
        store = shutil.copytree(original, tmp_path / "store")
        ended = in_a_child(lambda store=store: storekeeping.compact(str(store)), step)  # type: ignore[misc]
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
