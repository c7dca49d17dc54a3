"""Pruning jobs, killed at any of its steps (SIGKILL): nothing is lost, and all can be restored."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

from dying import in_a_child
from queue_bench import Clock, QueueBench, opened_bench

from tachograph import storekeeping
from tachograph.domain.queue_selection import Selection
from tachograph.domain.records import ArchivedRecord

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.records import Record

MOST_STEPS = 400
JOBS = 3


def make(path: Path) -> tuple[Path, list[str]]:
    """Make a store with dead jobs whose time is over, and return it and their ids."""
    with opened_bench(path, Clock()) as bench:
        ids = bench.dead("memory", JOBS)
        bench.view(lambda view: view.names())
    return path, ids


def late() -> Clock:
    clock = Clock()
    clock.pass_by(days=91)
    return clock


def prune(path: Path) -> int:
    with opened_bench(path, late()) as bench:
        return bench.repairing().prune(Selection(), "its time is over").affected


def read(path: Path) -> list[Record]:
    with opened_bench(path, late()) as bench:
        return bench.services.log.read(limit=None)


def moved(bench: QueueBench, ids: list[str]) -> int:
    """Return how many bodies of jobs are in archives."""
    repository = bench.queueing.repository
    records = [record for job_id in ids for record in repository.records(job_id)]
    return sum(isinstance(record, ArchivedRecord) for record in records)


def files(path: Path) -> list[str]:
    folder = path / "archive"
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def wrong_with(path: Path, before: list[Record], ids: list[str]) -> list[str]:
    """Return what an interrupted pruning has spoilt, right after it, and after the next one."""
    wrong = [problem.detail for problem in storekeeping.verify(str(path))]
    if read(path)[: len(before)] != before:
        wrong.append("an event reads as another one")
    with opened_bench(path, late()) as bench:
        statuses = bench.statuses(*ids)
        if len(set(statuses)) != 1:
            wrong.append(f"some went and some did not: {statuses}")
    affected = prune(path)  # takes up what was begun
    if affected != (JOBS if statuses[0] == "dead" else 0):
        wrong.append(f"{statuses[0]} before, {affected} pruned then")
    with opened_bench(path, late()) as bench:
        bench.sweeper().sweep()
        if bench.statuses(*ids) != ["pruned"] * JOBS:
            wrong.append("not all went")
        if moved(bench, ids) != 4 * JOBS:
            wrong.append(f"only {moved(bench, ids)} bodies were moved")
        held = [f"{number:012d}.zst" for number in sorted(bench.services.log.archives())]
        if files(path) != [*held, "lock"]:
            wrong.append(f"files {files(path)}, needed are {held}")
        restored = bench.repairing().restore(Selection(), "it was a test").affected
        if (restored, bench.statuses(*ids)) != (JOBS, ["dead"] * JOBS):
            wrong.append("not all came back")
    if read(path)[: len(before)] != before:
        wrong.append("an event reads as another one in the end")
    return wrong + [problem.detail for problem in storekeeping.verify(str(path))]


def test_a_pruning_killed_at_any_step_loses_nothing(tmp_path: Path) -> None:
    original, ids = make(tmp_path / "original")
    before = read(original)
    prune(shutil.copytree(original, tmp_path / "warm"))  # imports done once
    wrong: dict[int, list[str]] = {}
    killed = 0
    for step in range(1, MOST_STEPS):
        store = shutil.copytree(original, tmp_path / "store")
        ended = in_a_child(lambda store=store: prune(store), step)  # type: ignore[misc]
        found = wrong_with(store, before, ids)
        if found:
            wrong[step] = found
        shutil.rmtree(store)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1

    assert wrong == {}
    assert 20 < killed < MOST_STEPS - 1, "every step was tried, up to the end"
