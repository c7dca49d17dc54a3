"""Runs are recorded and read while an archiver moves them out of the log and is killed for it."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

from stores import opened, record_run

from tachograph import bodykeeping, offloading, projecting, storekeeping
from tachograph.looking import judge_of
from tachograph.retiring import FINISHED, ended_before

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITERS = 2
RUNS = 12
KILLS = 25


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def write(store: Path, name: int) -> None:
    with opened(store) as services:
        for number in range(RUNS):
            record_run(services, f"job-{name}-{number}", batches=5, output=f"text {number}" * 30)
            projecting.catch_up(services.log, services.codec, services.views())


def archive(store: Path) -> None:
    """Archive whatever has finished, again and again."""
    with opened(store) as services:
        while True:
            cards = projecting.ask(
                services.log,
                services.codec,
                services.views(),
                lambda view: ended_before(view, judge_of(services), 2**62, FINISHED),
            )
            runs = [(card["id"], card["status"]) for card in cards]
            bodykeeping.offload(services, offloading.plan(services.repository, runs))


def test_nothing_is_lost_while_others_write_and_read(tmp_path: Path) -> None:
    chance = random.Random(11)
    store = tmp_path / "store"
    with opened(store) as services:
        record_run(services, "job-first")
    waiting = [fork(lambda name=name: write(store, name)) for name in range(WRITERS)]  # type: ignore[misc]
    ended: list[int] = []
    kills = 0
    while waiting or kills < KILLS:
        archiver = fork(lambda: archive(store))
        if waiting:
            with opened(store) as services:
                projecting.rebuild(services.log, services.codec, services.views())
        spin(chance.randrange(60_000))
        os.kill(archiver, signal.SIGKILL)
        os.waitpid(archiver, 0)
        kills += 1
        for pid in list(waiting):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                waiting.remove(pid)
                ended.append(os.waitstatus_to_exitcode(status))

    assert ended == [0] * WRITERS
    assert [each.detail for each in storekeeping.verify(str(store))] == []
    with opened(store) as services:
        ids = [f"job-{name}-{number}" for name in range(WRITERS) for number in range(RUNS)]
        plans = offloading.plan(services.repository, [(run_id, "?") for run_id in ids])
        bodykeeping.offload(services, plans)
        for number, run_id in enumerate(ids):
            outputs = [text for _, text in services.session(run_id, 1).batch_outputs("parse")]
            assert outputs == [f"text {number % RUNS}" * 30] * 5
        assert storekeeping.check_views(services) == []
        held = services.log.archives()
        assert sum(held.values()) >= 11 * WRITERS * RUNS
        assert set(bodykeeping.Shelf(str(store)).files.numbers()) >= set(held)
    assert [each.detail for each in storekeeping.verify(str(store))] == []


def spin(turns: int) -> None:
    """Let some time go by, without sleeping."""
    for _ in range(turns * 20):
        pass
