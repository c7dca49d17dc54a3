"""Rebuilding all views, beside a scan of the log that does nothing but unpack every body."""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

import lmdb
import msgpack
import stores
from harness import LOWER, Figure, Pair, per_second, rounds
from peers.raw_lmdb import HEADER_BYTES, MAP_SIZE

from tachograph.infra import store_folder
from tachograph.projecting import rebuild

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

    from harness import Bench

BATCHES = 11
"""Batches of a run here: with them it has 20 events."""
RECORDS = b"events.records"
MB = 1_000_000
LINUX = sys.platform.startswith("linux")


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield rebuilt events per second, and how memory grows with the log."""
    runs = bench.size(1000, 500)
    small = bench.folder / "small"
    events = _fill(small, runs)
    yield _speed(bench, small, events)
    large = bench.folder / "large"
    bench.say(f"recording {10 * events:,} events")
    _fill(large, 10 * runs)
    yield _memory(small, large, events)


def _fill(folder: Path, runs: int) -> int:
    services = stores.new_store(folder)
    try:
        return stores.fill(services, stores.whole_runs(runs, batches=BATCHES))
    finally:
        services.close()


def _speed(bench: Bench, folder: Path, events: int) -> Figure:
    copy = bench.folder / "copy"  # LMDB lets a process open a file once
    shutil.copytree(store_folder.log_folder(str(folder)), copy)
    services = stores.new_store(folder)
    views = services.views()
    with lmdb.open(str(copy), max_dbs=16, map_size=MAP_SIZE) as environment:
        pairs = rounds(
            per_second(events, lambda: rebuild(services.log, services.codec, views)),
            per_second(events, lambda: scan(environment, events)),
            seconds=bench.seconds(15),
        )
    services.close()
    peer = "cursor scan that unpacks bodies"
    return Figure("rebuild all views, events", peer, "/s", pairs, target=0.15)


def scan(environment: lmdb.Environment, events: int) -> None:
    """Unpack the body of every record, by hand."""
    unpack = msgpack.unpackb
    seen = 0
    records = environment.open_db(RECORDS, create=False)
    with environment.begin(db=records) as txn:
        for value in txn.cursor().iternext(keys=False, values=True):
            unpack(value[HEADER_BYTES:], strict_map_key=False)
            seen += 1
    assert seen == events


def _memory(small: Path, large: Path, events: int) -> Figure:
    less, more = (_in_a_process(folder) for folder in (small, large))
    note = (
        f"growth of what the process itself allocates, at {10 * events:,} and {events:,} events; "
        f"with the pages of the log that the kernel maps: {more[1]:.0f} and {less[1]:.0f} MB"
    )
    name, peer = "rebuild, memory at 10 x the events", "at 1 x"
    pairs = [Pair(more[0], less[0])]
    return Figure(name, peer, "MB", pairs, relation=LOWER, target=1.5, note=note)


def _in_a_process(folder: Path) -> tuple[float, float]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(growth, folder).result()


def growth(folder: Path) -> tuple[float, float]:
    """Rebuild the views of a store and return by how many MB this process grew at most.

    First what it allocated, then the same with mapped files. Where the system does not tell the
    two apart both are the latter.
    """
    services = stores.new_store(folder)
    views = services.views()
    services.repository.get("report-000000")
    with Peak() as peak:
        rebuild(services.log, services.codec, views)
    services.close()
    return peak.own / MB, peak.resident / MB


class Peak:
    """The most memory that this process had in a `with` block, beyond what it had before."""

    def __init__(self) -> None:
        self.own = 0
        self.resident = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._own = own_bytes()
        self._resident = resident_bytes()
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()
        self.resident = resident_bytes() - self._resident
        self.own = max(self.own, own_bytes() - self._own)

    def _watch(self) -> None:
        while not self._stop.is_set():
            self.own = max(self.own, own_bytes() - self._own)
            time.sleep(0.002)


def resident_bytes() -> int:
    """Return the most memory this process ever had, mapped files included."""
    if LINUX:  # where ru_maxrss begins with what the parent had
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def own_bytes() -> int:
    """Return the memory this process has now without mapped files, where the system tells."""
    return _status("RssAnon") if LINUX else resident_bytes()


def _status(name: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        (line,) = [line for line in status if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024
