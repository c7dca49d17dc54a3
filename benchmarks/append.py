"""Appending to the log in batches of 100 events, beside LMDB by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stores
from harness import Figure, per_second, rounds
from peers.raw_lmdb import RawLMDB

from tachograph.domain.records import NewRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Bench

BATCH = 100
PER_ROUND = 10


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield events per second in batches of 100."""
    services = stores.new_store(bench.folder / "store")
    raw = RawLMDB(bench.folder / "raw")
    bodies = [services.codec.pack(_fields(number)) for number in range(BATCH)]
    stream = "report-000001"
    version = 0

    def ours() -> None:
        nonlocal version
        for _ in range(PER_ROUND):
            first, version = version + 1, version + BATCH
            services.log.append(
                [
                    NewRecord(stream, number, "run.batch-completed", 1_700_000_000_000_000, body)
                    for number, body in enumerate(bodies, first)
                ]
            )

    def peer() -> None:
        for _ in range(PER_ROUND):
            raw.append(bodies)

    pairs = rounds(
        per_second(BATCH * PER_ROUND, ours),
        per_second(BATCH * PER_ROUND, peer),
        seconds=bench.seconds(8),
    )
    raw.close()
    services.close()
    size = f"events of {sum(map(len, bodies)) // BATCH} bytes"
    yield Figure(
        "append, batches of 100", "raw LMDB, same batches", "/s", pairs, target=0.5, note=size
    )


def _fields(index: int) -> dict[str, object]:
    return {
        "time_us": 1_700_000_000_000_000,
        "by": ["bench", "bench", 4711, 1],
        "phase": "analyse",
        "index": index,
        "inputs": 50,
        "parsed": 49,
        "output": stores.output(index),
    }
