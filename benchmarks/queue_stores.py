"""Stores with very many jobs. The largest is made once and kept in the results."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import installed
from own_queue import KIND, QUEUE, OwnQueue
from queue_process import payload

from tachograph.projecting import catch_up
from tachograph.queues.enqueueing import Enqueue
from tachograph.queues.queueing import MOST_CHANGED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANY, FEW = 1_000_000, 100
KEPT = installed.CHECKOUT / "benchmarks" / "results" / "queues"
TYPES = ("report", "index", "mail", "digest")
CHUNK = 10_000
ENDED_AT_ONCE = 500


def store(scratch: Path, jobs: int, say: Callable[[str], None]) -> Path:
    """Return a folder with a store of so many jobs, its views caught up.

    Of fifty jobs, forty-five are pending, two completed, two dead and one cancelled.
    """
    if jobs != MANY:
        folder = scratch / f"{jobs}-jobs"
        fill(folder, jobs, lambda _text: None)
        return folder
    stamp = KEPT / installed.STAMP
    code = installed.code()
    if not stamp.exists() or stamp.read_text(encoding="ascii") != code:
        shutil.rmtree(KEPT, ignore_errors=True)
        fill(KEPT, jobs, say)
        stamp.write_text(code, encoding="ascii")
    return KEPT


def fill(folder: Path, jobs: int, say: Callable[[str], None]) -> None:
    """Make a store of so many jobs."""
    folder.mkdir(parents=True)
    queue = OwnQueue(folder)
    say(f"enqueueing {jobs:,} jobs; this store is kept until the code changes")
    for start in range(0, jobs, CHUNK):
        numbers = range(start, min(start + CHUNK, jobs))
        queue.queues.enqueue_many(
            [Enqueue(QUEUE, TYPES[number % len(TYPES)], payload(number)) for number in numbers]
        )
    say("ending a tenth of them")
    _end(queue, jobs // 10)
    services = queue.services
    catch_up(services.log, services.codec, services.views())
    queue.close()


def _end(queue: OwnQueue, jobs: int) -> None:
    queues, owner = queue.queues, queue.services.owner()
    for start in range(0, jobs, ENDED_AT_ONCE):
        limit = min(ENDED_AT_ONCE, jobs - start)
        leased = queues.lease([QUEUE], owner, types=TYPES, limit=limit)
        fifths = [leased[number::5] for number in range(5)]
        ended = [queues.completion(each.job.id, each.job.epoch) for each in fifths[0] + fifths[1]]
        failed = [
            queues.failure(each.job.id, each.job.epoch, "the mail server hung up", terminal=True)
            for each in fifths[2] + fifths[3]
        ]
        queues.end(*ended, *failed)
        queues.change(
            [each.job.id for each in fifths[4]],
            lambda job, cause: job.cancel(cause, "nobody needs it"),
        )


assert ENDED_AT_ONCE <= MOST_CHANGED
assert KIND in TYPES
