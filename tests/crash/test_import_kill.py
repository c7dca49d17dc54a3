"""An import that is killed anywhere is repeated, and ends as if it had never been killed."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING, Any

import pytest
from job_run_trees import (
    COMMAND,
    at,
    batches,
    cut_off,
    ending,
    opening,
    orchestrator,
    put,
    summary,
)

from tachograph import storekeeping
from tachograph.bootstrap import open_store
from tachograph.runs import RunRepository
from tachograph.taking_over import import_trees

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.run import Run

FAMILIES = 6
KILLS = 12

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def make_tree(root: Path) -> None:
    """Write families of job runs, each of several attempts on two days."""
    for number in range(FAMILIES):
        name = f"job-{COMMAND}-{number}"
        said = {"jobRunId": name, "inputFingerprint": str(number)}
        large = batches([0, 1], incidentsHash=str(number))
        large["analysed"] = [{**item, "text": "x" * 9000} for item in large["analysed"]]
        again = cut_off(**said, startedAt=at(105))
        put(root, again, [*opening(), *ending("success"), *opening(100)], large, name=name)
        day = summary(**said, startedAt=at(5, 1), finishedAt=at(60, 1))
        put(root, day, [*opening(0, 1), *ending("success", 0, 1)], day="20260302", name=name)
    orchestrator(root)


def contents(store: Path) -> dict[str, list[Any]]:
    """Return every run's events, without who recorded them."""
    services = open_store(str(store), read_only=True)
    try:
        found: dict[str, list[Any]] = {}
        for record in services.log.read():
            fields = services.repository.fields(record)
            left = {name: value for name, value in fields.items() if name != "by"}
            found.setdefault(str(record.stream), []).append((record.topic, left))
        return found
    finally:
        services.close()


def import_in(store: Path, tree: Path) -> None:
    services = open_store(str(store), create=True)
    try:
        rows = import_trees(services, [str(tree)], apply=True)
    finally:
        services.close()
    assert [row.problems for row in rows if row.problems] == []


def killed_after(saves: int, store: Path, tree: Path, chance: random.Random) -> int:
    """Import in a child that is killed in or after the next of so many runs; return how many."""
    out, inside = os.pipe()
    may, allow = os.pipe()  # the child waits before each run that it may not begin yet
    os.write(allow, b"." * (saves + 1))
    pid = os.fork()
    if not pid:
        save = RunRepository.save

        def telling(self: RunRepository, run: Run) -> list[int]:
            os.read(may, 1)
            positions = save(self, run)
            os.write(inside, b".")
            return positions

        RunRepository.save = telling  # type: ignore[method-assign]
        try:
            import_in(store, tree)
        finally:
            os._exit(0)
    os.close(inside)
    told = b""
    while len(told) < saves and (piece := os.read(out, 1)):
        told += piece
    for _ in range(chance.randrange(4000)):
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while piece := os.read(out, 4096):
        told += piece
    for descriptor in (out, may, allow):
        os.close(descriptor)
    return len(told)


def test_a_killed_import_is_repeated_without_a_trace(tmp_path: Path) -> None:
    """G1, G2: no run is there in part, none twice, and none is lost."""
    tree = tmp_path / "tree"
    make_tree(tree)
    import_in(tmp_path / "whole", tree)
    whole = contents(tmp_path / "whole")
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    cut_short = 0
    for number in range(KILLS):
        store = tmp_path / f"killed-{number}"
        acknowledged = killed_after(chance.randrange(2 * FAMILIES), store, tree, chance)
        before = contents(store) if acknowledged else {}
        assert len(before) >= acknowledged, f"seed {seed}"
        assert all(before[run] == whole[run] for run in before), f"seed {seed}"
        cut_short += len(before) < len(whole)
        import_in(store, tree)

        assert contents(store) == whole, f"seed {seed}"
        assert list(storekeeping.verify(str(store))) == [], f"seed {seed}"
    assert cut_short > KILLS // 2, "the imports ended before they were killed"
