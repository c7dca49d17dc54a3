"""Many threads that record into different runs: commits are shared, so a disk sync serves many."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from harness import Figure, per_second, rounds

import tachograph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Bench

    from tachograph.recording import Recording

THREADS = 16
ALONE = 400
"""Checkpoints that one thread saves in a round; of sixteen each saves a quarter of it."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield the checkpoints per second of 16 threads beside those of one."""
    with ExitStack() as stack:
        runs = [
            stack.enter_context(
                tachograph.record("threads", {"n": number}, store=bench.folder / "store")
            )
            for number in range(THREADS)
        ]
        pairs = rounds(
            per_second(THREADS * (ALONE // 4), lambda: _together(runs, ALONE // 4)),
            per_second(ALONE, lambda: _together(runs[:1], ALONE)),
            seconds=bench.seconds(10),
        )
    yield Figure("16 threads into 16 runs", "one thread", "/s", pairs, target=5.0)


def _together(runs: list[Recording], count: int) -> None:
    """Save checkpoints in every run, each in a thread of its own."""
    threads = [threading.Thread(target=_save, args=(run, count)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _save(run: Recording, count: int) -> None:
    for number in range(count):
        run.save_offset(number, count)
