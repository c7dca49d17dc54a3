"""Processes that fold the log into views are killed at named points, or do it at the same time."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rebuild_worker
from rebuild_worker import POINTS
from viewed import Viewed, everything

from tachograph import projecting
from tachograph.domain.records import NewRecord
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_views import LMDBViews

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.domain.records import Record

WORKER = Path(rebuild_worker.__file__)
RUNS = 12


@cache
def recorded() -> list[Record]:
    bench = Viewed()
    everything(bench)
    return bench.log.read()


class Store:
    """A log of many runs, and its views."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codec = Codec()
        self.environment = open_environment(str(folder / "log"))
        self.log = LMDBLog(self.environment)
        self.views = LMDBViews(str(folder / "views"), self.codec)

    def record(self, runs: int, name: str) -> None:
        """Append the events of some runs (three each)."""
        self.log.append(
            [
                NewRecord(f"{r.stream}-{name}{number}", r.version, r.topic, r.time_us, r.body)
                for number in range(runs)
                for r in recorded()
            ]
        )

    def content(self) -> list[tuple[str, bytes, bytes]]:
        with self.views.read() as reader:
            return list(reader.rows())

    def catch_up(self) -> None:
        projecting.catch_up(self.log, self.codec, self.views)

    def differences(self) -> list[str]:
        found = projecting.check(self.log, self.codec, self.views)
        return [str(difference) for difference in found]

    def generations(self) -> int:
        return sum(path.is_dir() for path in (self.folder / "views").iterdir())

    def worker(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a worker; it waits for a line before it begins."""
        process = subprocess.Popen(
            [sys.executable, str(WORKER), str(self.folder), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    store.record(RUNS, "a")
    yield store
    store.views.close()
    store.environment.close()


def run(process: subprocess.Popen[str]) -> int:
    process.communicate("go\n")
    return process.returncode


REBUILD = [
    ("making the generation", "1"),
    ("writing a row", "3"),
    ("writing a row", "40"),
    ("committing", "1"),
    ("committing", "5"),
    ("flushing", "1"),
    ("publishing", "1"),
    ("swapping", "1"),
    ("sweeping", "2"),
    ("removing", "1"),
    ("removing", "2"),
]


@pytest.mark.parametrize(("point", "nth"), REBUILD)
def test_a_killed_rebuild_leaves_whole_views(store: Store, point: str, nth: str) -> None:
    store.catch_up()
    before = store.content()

    assert run(store.worker("rebuild", point, nth)) == -signal.SIGKILL
    assert store.content() == before

    store.record(1, "b")
    store.catch_up()

    assert store.differences() == []
    assert run(store.worker("rebuild")) == 0
    assert store.generations() == 1
    assert store.differences() == []


def test_every_point_is_a_case() -> None:
    assert {point for point, _ in REBUILD} == POINTS.keys()


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("making the generation", "1"),
        ("writing a row", "40"),
        ("committing", "5"),
        ("swapping", "1"),
        ("sweeping", "1"),
    ],
)
def test_a_killed_first_reader_leaves_views_that_the_next_one_completes(
    store: Store, point: str, nth: str
) -> None:
    assert run(store.worker("catch up", point, nth)) == -signal.SIGKILL

    store.catch_up()

    assert store.differences() == []
    assert store.generations() == 1


def test_processes_may_catch_up_at_the_same_time(store: Store) -> None:
    workers = [store.worker("catch up") for _ in range(3)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    store.record(3, "b")
    store.catch_up()

    assert [worker.communicate()[0] for worker in workers] == ["done\n"] * 3
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert store.differences() == []
    assert store.generations() == 1


def test_processes_may_rebuild_while_others_catch_up(store: Store) -> None:
    workers = [store.worker(what) for what in ("rebuild", "catch up", "rebuild")]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for number in range(5):
        store.record(1, f"b{number}-")
        store.catch_up()

    assert [worker.communicate()[0] for worker in workers] == ["done\n"] * 3
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    store.catch_up()
    assert store.differences() == []
    assert store.generations() == 1
