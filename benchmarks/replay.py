"""Loading runs: by replaying events, and by snapshots, which make long runs as quick as short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stores
from harness import LOWER, Figure, milliseconds, per_second, rounds
from peers import library_aggregate

from tachograph.runs import SNAPSHOT_EVERY, RunRepository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Bench

    from tachograph.bootstrap import Services
    from tachograph.domain.run import Run

EVENTS = 1000
SHORT = 100
LONG = 100_000
BEGUN = 4
"""Events of a run before its first batch."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield replayed events per second, and the time to load long and short runs."""
    services = stores.new_store(bench.folder / "store")
    yield _replay(bench, services)
    yield from _loads(bench, services)
    services.close()


def _replay(bench: Bench, services: Services) -> Figure:
    """Replay a run from its first event: no snapshots on either side."""
    repository = RunRepository(services.log, services.repository.packing, snapshot_every=10**9)
    clock = stores.Clock(EVENTS)
    run = stores.begun("replayed", clock, batches=EVENTS)
    while run.version < EVENTS:
        stores.complete(run, clock, run.version)
        if run.version % 10 == 0:
            state = {"offset": run.version, "total": EVENTS}
            run.save_checkpoint(clock.cause(), kind="offset", state=state)
    theirs = library_aggregate.from_events(run.pending_events)
    repository.save(run)
    application = library_aggregate.application(bench.folder / "library.sqlite")
    application.save(theirs)
    assert run.version == application.repository.get(theirs.id).version
    pairs = rounds(
        per_second(run.version, lambda: repository.get("replayed")),
        per_second(run.version, lambda: application.repository.get(theirs.id)),
        seconds=bench.seconds(8),
    )
    application.close()
    name, peer = "replay, events", "eventsourcing on SQLite, JSON"
    return Figure(name, peer, "/s", pairs, target=3.0)


def _loads(bench: Bench, services: Services) -> Iterator[Figure]:
    batches = bench.size(LONG, LONG // 10)
    bench.say(f"recording a run of {batches:,} batches")
    _record(services, "short", SHORT)
    _record(services, "long", batches)
    # A crash comes when it likes: at worst just before the next snapshot.
    _record(services, "unlucky", batches + SNAPSHOT_EVERY - BEGUN - 1)
    for run_id, target, note in (
        ("long", 3.0, ""),
        ("unlucky", None, f"{SNAPSHOT_EVERY - 1} events after its last snapshot: the worst case"),
    ):
        pairs = rounds(
            milliseconds(_loading(services, run_id), 10),
            milliseconds(_loading(services, "short"), 10),
            seconds=bench.seconds(4),
        )
        name = f"load a run of {batches:,} batches" + (" (worst)" if note else "")
        peer = f"a run of {SHORT} batches"
        yield Figure(name, peer, "ms", pairs, relation=LOWER, target=target, note=note)


def _loading(services: Services, run_id: str) -> Callable[[], Run | None]:
    return lambda: services.repository.get(run_id)


def _record(services: Services, run_id: str, batches: int) -> None:
    """Record a run with its snapshots where single commands would have left them."""
    clock = stores.Clock(batches)
    run = stores.begun(run_id, clock, batches=batches)
    for index in range(batches):
        stores.complete(run, clock, index)
        if run.version % SNAPSHOT_EVERY == 0:
            services.repository.save(run)
    services.repository.save(run)
