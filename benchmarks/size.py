"""How many bytes the same events take on disk. No target: it is here to be looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import stores
from harness import LOWER, Figure, Pair
from peers import library_aggregate

from tachograph.infra import store_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Bench

    from tachograph.domain.event import Event
    from tachograph.domain.run import Run

BATCHES = 11
MB = 1_000_000


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield the size of the log beside lines of JSON and the library's SQLite file."""
    clock = stores.Clock(1000 * BATCHES)
    runs = [_run(number, clock) for number in range(bench.size(1000, 100))]
    events = [run.pending_events for run in runs]
    lines = sum(len(_line(event)) for each in events for event in each)
    library = bench.folder / "library.sqlite"
    application = library_aggregate.application(library)
    application.save(*(library_aggregate.from_events(each) for each in events))
    application.close()
    services = stores.new_store(bench.folder / "store")
    count = stores.fill(services, runs)
    services.close()
    ours = allocated(store_folder.log_folder(str(bench.folder / "store")))
    for peer, size in (
        ("as lines of JSON", lines),
        ("eventsourcing on SQLite", library.stat().st_size),
    ):
        pair = Pair(ours / MB, size / MB)
        name = f"size of {count:,} events"
        yield Figure(name, peer, "MB", [pair], relation=LOWER)


def _run(number: int, clock: stores.Clock) -> Run:
    run = stores.begun(f"report-{number:06}", clock, batches=BATCHES)
    for index in range(BATCHES):
        stores.complete(run, clock, index)
    return run


def _line(event: Event) -> str:
    return json.dumps({"topic": event.TOPIC, **vars(event)}, separators=(",", ":")) + "\n"


def allocated(folder: str) -> int:
    """Return how many bytes of disk the files of a folder take; holes count for nothing."""
    return sum(path.stat().st_blocks * 512 for path in Path(folder).iterdir())
