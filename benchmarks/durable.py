"""One durable checkpoint through the Python API, beside what else would keep it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import stores
from harness import Figure, absent, in_rates, latencies, timed
from peers import json_card, library_aggregate
from peers.raw_lmdb import RawLMDB
from peers.step_process import StepProcess

import tachograph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Bench, Measure

NAME = "one durable checkpoint"
PER_ROUND = 100


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield checkpoints per second beside four peers."""
    store = bench.folder / "store"
    with tachograph.record("checkpoints", {"size": 1}, store=store) as run:
        numbers = itertools.count(1)

        def ours() -> float:
            number = next(numbers)
            return timed(lambda: run.save_offset(number, 1_000_000, parsed=number))

        ours()
        yield _beside_raw_lmdb(bench, ours)
        yield _beside_dbos(bench, ours)
        yield _beside_the_library(bench, ours)
        yield _beside_a_card(bench, ours)


def _beside_raw_lmdb(bench: Bench, ours: Measure) -> Figure:
    services = stores.new_store(bench.folder / "store")
    (last,) = services.log.read(reverse=True, limit=1)
    services.close()
    raw = RawLMDB(bench.folder / "raw")
    pairs = latencies(
        ours,
        lambda: timed(lambda: raw.append([last.body])),
        per_round=PER_ROUND,
        seconds=bench.seconds(8),
    )
    raw.close()
    return Figure(NAME, "raw LMDB commit, same bytes", "/s", in_rates(pairs), target=0.85)


def _beside_dbos(bench: Bench, ours: Measure) -> Figure:
    name = "DBOS step on SQLite"
    try:
        with StepProcess(bench.folder / "dbos.sqlite") as process:
            per_round = PER_ROUND // 4
            pairs = latencies(ours, process.step, per_round=per_round, seconds=bench.seconds(8))
    except RuntimeError as error:
        return absent(NAME, name, str(error), target=5.0)
    return Figure(NAME, name, "/s", in_rates(pairs), target=5.0)


def _beside_the_library(bench: Bench, ours: Measure) -> Figure:
    application = library_aggregate.application(bench.folder / "library.sqlite")
    run = library_aggregate.from_events(
        list(stores.begun("one", stores.Clock(4), batches=1).collect_events())
    )
    application.save(run)
    by = ["bench", "bench", 4711, 1]

    def peer() -> float:
        state = {"offset": run.version, "total": 1_000_000, "parsed": run.version}
        fields = {"by": by, "phase": None, "kind": "offset", "state": state}

        def save() -> None:
            run.record("run.checkpoint-saved", fields)
            application.save(run)

        return timed(save)

    pairs = latencies(ours, peer, per_round=PER_ROUND, seconds=bench.seconds(4))
    application.close()
    return Figure(NAME, "eventsourcing on SQLite, one event", "/s", in_rates(pairs))


def _beside_a_card(bench: Bench, ours: Measure) -> Figure:
    path = str(bench.folder / "card.json")
    card = new_card()
    offsets = itertools.count()

    def save() -> None:
        json_card.checkpoint(card, next(offsets), 1_000_000, "analyse")
        json_card.save(path, card)

    pairs = latencies(ours, lambda: timed(save), per_round=PER_ROUND, seconds=bench.seconds(4))
    return Figure(NAME, "JSON card rewritten, synced", "/s", in_rates(pairs))


def new_card() -> dict[str, object]:
    """Return the card of a run that has begun."""
    return {
        "id": "job-checkpoints-1a2b3c4d",
        "command": "checkpoints",
        "status": "running",
        "inputs": {"size": 1},
        "owner": stores.OWNER,
        "createdAt": "2026-01-01T00:00:00Z",
        "checkpoint": None,
        "history": [],
    }
