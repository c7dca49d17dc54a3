"""Fill stores with runs that look like real ones, fast, through the same doors as everybody."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tachograph.bootstrap import open_store
from tachograph.domain.event import Cause
from tachograph.domain.gate import Facts
from tachograph.domain.owner import Owner
from tachograph.domain.records import Head
from tachograph.domain.recovery import Recovery
from tachograph.domain.run import Run
from tachograph.runs import RunRepository

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.domain.records import NewRecord, SnapshotRecord
    from tachograph.ports import EventLog

OWNER = Owner("bench", boot_id="an-earlier-boot", pid=4711).to_fields()
SAVED_TOGETHER = 5_000
"""Events in one commit while a store is filled."""


class Clock:
    """Hands out causes, a millisecond apart, ending about now."""

    def __init__(self, events: int) -> None:
        self._now_us = time.time_ns() // 1000 - events * 1000

    def cause(self, epoch: int = 1) -> Cause:
        """Return the cause of the next event."""
        self._now_us += 1000
        return Cause(self._now_us, "bench", "bench", 4711, epoch)


class Gathering:
    """Takes the records that a repository appends and keeps them, to be appended together."""

    def __init__(self) -> None:
        self.records: list[NewRecord] = []

    def append(
        self, records: list[NewRecord], *, snapshot: SnapshotRecord | None = None
    ) -> list[int]:
        """Keep the records; a snapshot is derived data and can be left out."""
        self.records += records
        return []

    def head(self) -> Head:
        """Return the end of an empty log."""
        return Head(0, bytes(32))


def new_store(folder: Path) -> Services:
    """Make a store and open it."""
    return open_store(str(folder), create=True)


def output(index: int) -> dict[str, Any]:
    """Return what a batch of a code report gives back: about 200 bytes."""
    return {
        "files": [f"src/package_{index % 40}/module_{index}.py", f"tests/test_{index}.py"],
        "lines": 100 + index % 900,
        "findings": [{"rule": "long-function", "line": index % 300, "score": 0.5}],
        "clean": index % 3 == 0,
    }


def begun(run_id: str, clock: Clock, *, batches: int) -> Run:
    """Return a run that has begun a phase of so many batches: four events."""
    inputs = {"root": "src", "scanDays": 3, "number": run_id}
    run = Run.create(
        clock.cause(0),
        run_id,
        command="code-report",
        fingerprint="1a2b3c4d",
        inputs=inputs,
        inputs_digest="00112233445566778899aabbccddeeff",
        title=f"Report {run_id}",
    )
    run.start_attempt(clock.cause(0), OWNER, live_owner=None)
    run.start_phase(clock.cause(), "analyse")
    run.plan_batches(clock.cause(), "analyse", total=batches, size=50, items_digest=None)
    return run


def complete(run: Run, clock: Clock, index: int) -> None:
    """Finish a batch."""
    run.complete_batch(clock.cause(), "analyse", index, inputs=50, parsed=49, output=output(index))


def whole_runs(count: int, *, batches: int) -> Iterator[Run]:
    """Yield finished runs of 9 events and one more per batch, mostly successful ones."""
    clock = Clock(count * (9 + batches))
    for number in range(count):
        run = begun(f"report-{number:06}", clock, batches=batches)
        for index in range(batches):
            complete(run, clock, index)
        state = {"offset": batches, "total": batches}
        run.save_checkpoint(clock.cause(), kind="offset", state=state)
        run.add_note(clock.cause(), "slow disk", level="warning", source="report")
        run.end_phase(clock.cause(), "analyse")
        run.judge(clock.cause(), Facts(50 * batches, 0 if number % 10 == 3 else 49 * batches))
        run.finish(clock.cause())
        yield run


def short_runs(count: int) -> Iterator[Run]:
    """Yield runs of three or four events; of ten one has failed and one was cut off."""
    clock = Clock(count * 4)
    for number in range(count):
        run = Run.create(
            clock.cause(0),
            f"mail-{number:06}",
            command="mail-triage",
            fingerprint="1a2b3c4d",
            inputs={"box": "inbox", "number": number},
            inputs_digest="00112233445566778899aabbccddeeff",
        )
        run.start_attempt(clock.cause(0), OWNER, live_owner=None)
        run.save_checkpoint(clock.cause(), kind="offset", state={"offset": 5, "total": 9})
        if number % 10 == 3:
            run.finish(clock.cause(), "failed", reason="the mail server hung up")
        elif number % 10 != 7:
            run.finish(clock.cause(), "success")
        yield run


def living_runs(count: int, owner: dict[str, Any]) -> Iterator[Run]:
    """Yield runs that are at work: every other one is this process's, the rest beat."""
    clock = Clock(count * 4)
    watched = Recovery(command=["true"], auto_resume=True, stale_after_seconds=86_400)
    for number in range(count):
        run = Run.create(
            clock.cause(0),
            f"mail-{number:06}",
            command="mail-triage",
            fingerprint="1a2b3c4d",
            inputs={"box": "inbox", "number": number},
            inputs_digest="00112233445566778899aabbccddeeff",
        )
        run.declare_recovery(clock.cause(0), watched)
        nobody = {"kind": "unowned", "host": owner["host"], "boot_id": owner.get("boot_id")}
        run.start_attempt(clock.cause(0), nobody if number % 2 else owner, live_owner=None)
        run.save_checkpoint(clock.cause(), kind="offset", state={"offset": 5, "total": 9})
        yield run


def fill(services: Services, runs: Iterable[Run]) -> int:
    """Append runs to a store, many in one commit, and return the number of events."""
    gathering = Gathering()
    repository = RunRepository(_as_log(gathering), services.repository.packing)
    total = 0
    for run in runs:
        repository.save(run)
        if len(gathering.records) >= SAVED_TOGETHER:
            total += _flush(services, gathering)
    return total + _flush(services, gathering)


def _flush(services: Services, gathering: Gathering) -> int:
    records, gathering.records = gathering.records, []
    return len(services.log.append(records))


def _as_log(gathering: Gathering) -> EventLog:
    log: Any = gathering  # saving a run asks a log for nothing else
    typed: EventLog = log
    return typed
