"""Queues do what the plain model says, whatever happens to them in whatever order (§10, 1 to 8)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from bare_queues import SECOND_US, START_US, BareQueues, job_id, owner
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from queue_model import Bounds, Model

from tachograph import projecting
from tachograph.domain.errors import TachographError
from tachograph.domain.queue_errors import LeaseLostError
from tachograph.domain.queue_settings import QueueSettings, Rate
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.infra.memory_views import MemoryViews

BOUNDS = {
    "memory": Bounds(),
    "summary": Bounds(per_key=2, concurrency=3, rate=(2, 10 * SECOND_US)),
}
QUEUES = tuple(BOUNDS)
TYPES = ("a", "b")
KEYS = ("k", "w")

wanted = st.tuples(
    st.sampled_from(QUEUES),
    st.sampled_from(TYPES),
    st.sampled_from([None, None, None, None, -5, 0, 5, 60]),
    st.fixed_dictionaries(
        {
            "priority": st.sampled_from([0, 0, 0, 5, -5]),
            "max_attempts": st.sampled_from([None, None, 1, 2]),
            "concurrency_key": st.sampled_from([None, "disk", "disk"]),
        },
        optional={"key": st.sampled_from(KEYS)},
    ).flatmap(
        lambda said: (
            st.just({**said, "key_window_us": 20 * SECOND_US})
            if said.get("key") == "w"
            else st.just(said)
        )
    ),
)
"""Queue, type, seconds until it is due, and what else is said of a job."""
queues = st.sampled_from([("memory",), ("summary",), ("memory", "summary"), ("summary", "memory")])
kinds = st.sampled_from([None, ("a",), ("b",), ("a",), ("b",), ("b", "a"), ()])
limits = st.integers(0, 4)


Want = tuple[str, str, int | None, dict[str, Any]]


def declared(name: str, bounds: Bounds) -> QueueSettings:
    rate = None if bounds.rate is None else Rate(*bounds.rate)
    return QueueSettings(
        name,
        max_attempts=bounds.max_attempts,
        per_key=bounds.per_key,
        concurrency=bounds.concurrency,
        rate=rate,
        lease_seconds=bounds.lease_us / SECOND_US,
    )


class Queues(RuleBasedStateMachine):
    """The real queues and the model, side by side; in memory."""

    jobs = Bundle("jobs")
    leases = Bundle("leases")
    """Job and epoch of every lease there was, lost ones too."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = self.make()
        self.views = self.make_views()
        self.model = Model(
            {name: Bounds(**vars(bounds)) for name, bounds in BOUNDS.items()}, START_US
        )
        self.pids = [1, 2, 3]
        self.made = 0
        self.checked: Any = None
        self.other: Any = None

    def make(self) -> BareQueues:
        return BareQueues(*(declared(*each) for each in BOUNDS.items()))

    def make_views(self) -> Any:
        return MemoryViews(self.bench.codec)

    # What happens.

    @initialize(target=jobs, wants=st.lists(wanted, min_size=4, max_size=12))
    def begin(self, wants: list[Want]) -> Any:
        return multiple(*(job for want in wants for job in self._enqueue(*want)))

    @rule(target=jobs, wants=st.lists(wanted, min_size=1, max_size=3))
    def enqueue(self, wants: list[Want]) -> Any:
        return multiple(*(job for want in wants for job in self._enqueue(*want)))

    def _enqueue(self, queue: str, kind: str, delay: int | None, said: dict[str, Any]) -> list[str]:
        """Enqueue a job; returns its id unless another one had its key."""
        due_us = None if delay is None else self.now_us + delay * SECOND_US
        said = {**said, "available_us": due_us}
        self.made += 1
        expected = self.model.enqueue(job_id(self.made), queue, kind, **said)

        assert self.bench.add(queue, kind, **said) == expected
        return [expected] if expected == job_id(self.made) else []

    @rule(target=leases, worker=st.integers(0, 2))
    def lease_all(self, worker: int) -> Any:
        return self._lease(QUEUES, None, 4, worker)

    @rule(target=leases, queues=queues, types=kinds, limit=limits, worker=st.integers(0, 2))
    def lease(self, queues: Any, types: Any, limit: int, worker: int) -> Any:
        return self._lease(queues, types, limit, worker)

    def _lease(self, queues: Any, types: Any, limit: int, worker: int) -> Any:
        pid = self.pids[worker]
        expected = self.model.lease(queues, types, limit, pid)
        found = self.bench.take(*queues, types=types, limit=limit, pid=pid)

        assert [(job.id, job.epoch) for job in found] == [(job.id, job.epoch) for job in expected]
        return multiple(*((job.id, job.epoch) for job in expected))

    @rule(lease=leases)
    def heartbeat(self, lease: tuple[str, int]) -> None:
        holds = self.model.holds(*lease)
        job = self.bench.job(lease[0])
        job.epoch = lease[1]  # what this holder knows
        if holds:
            self.model.beats[job.id] = self.now_us

        assert self.bench.queueing.beat(job) == holds

    @rule(lease=leases, how=st.sampled_from(["complete", "fail", "fail", "die", "release"]))
    def end(self, lease: tuple[str, int], how: str) -> None:
        queueing, model = self.bench.queueing, self.model
        ends: dict[str, Any] = {
            "complete": (lambda: queueing.complete(*lease, {"rows": 7}), model.complete),
            "fail": (lambda: queueing.fail(*lease, "boom"), model.fail),
            "die": (lambda: queueing.fail(*lease, "bang", terminal=True), model.die),
            "release": (lambda: queueing.release(*lease, "stopped", "stop"), model.give_back),
        }
        end, expected = ends[how]
        if not self.lost(lease, end):
            expected(lease[0])

    @rule(target=leases, lease=consumes(leases), queues=queues, types=kinds, limit=limits)
    def complete_and_lease(
        self, lease: tuple[str, int], queues: Any, types: Any, limit: int
    ) -> Any:
        """As a worker does: in one commit."""
        ends = [self.bench.queueing.completion(*lease)]
        turn = self.bench.queueing.turn
        if not self.model.holds(*lease):
            self.lost(lease, lambda: turn(ends, queues, owner(1), types=types, limit=limit))
            return multiple()
        self.model.complete(lease[0])
        ended = self.model.jobs[lease[0]]
        expected = self.model.lease(queues, types, limit, self.pids[0], ended)
        found = turn(ends, queues, owner(self.pids[0]), types=types, limit=limit)

        assert [each.job.id for each in found] == [job.id for job in expected]
        return multiple(*((job.id, job.epoch) for job in expected))

    def lost(self, lease: tuple[str, int], end: Any) -> bool:
        """End a lease; says whether it was lost, and then nothing may have happened."""
        if self.model.holds(*lease):
            end()
            return False
        before = self.bench.log.head()
        with pytest.raises(LeaseLostError):
            end()

        assert self.bench.log.head() == before
        return True

    @rule(worker=st.integers(0, 2))
    def crash(self, worker: int) -> None:
        """A process ends, and another one takes its place."""
        self.bench.gone.add(self.pids[worker])
        self.model.gone.add(self.pids[worker])
        self.pids[worker] += 10

    @rule()
    def release_stale(self) -> None:
        released = self.bench.queueing.release_stale()

        assert (released.pending, released.dead) == self.model.release_stale()

    @rule(bound=st.integers(1, 3), sweep=st.booleans())
    def change_the_bound(self, bound: int, sweep: bool) -> None:
        """Workers begin anew with another bound; the first one sweeps."""
        self.model.bounds["memory"].max_attempts = bound
        self.bench.plan.queues["memory"] = declared("memory", self.model.bounds["memory"])
        if sweep:
            assert self.bench.queueing.die_of_attempts() == self.model.sweep()

    @rule(
        job_ids=st.lists(jobs, min_size=1, max_size=4),
        command=st.sampled_from(["requeue", "cancel", "prune", "restore"]),
    )
    def change(self, job_ids: list[str], command: str) -> None:
        said = ("so", "1.zst") if command == "prune" else ("so",)
        changed = self.bench.queueing.change(
            job_ids, lambda job, cause: getattr(job, command)(cause, *said)
        )
        expected = self.model.change(job_ids, command)

        assert [job.id for job in changed.done] == expected
        assert set(changed.refused) == set(job_ids) - set(expected)
        assert all(isinstance(each, TachographError) for each in changed.refused.values())

    @rule(seconds=st.sampled_from([0.5, 1, 5, 12, 30, 301, 3600, -1, -15, -4000]))
    def clock_jumps(self, seconds: float) -> None:
        self.bench.sleep(seconds)
        self.model.now_us = self.bench.now_us

    @rule()
    def another_process_comes(self) -> None:
        """It has an index of its own, and brings it up to the log."""
        self.model.place = 1 - self.model.place
        other = self.other or BareQueues(log=self.bench.log).store
        self.bench.store, self.other = other, self.bench.store
        self.bench.queueing.store = self.bench.store

    @property
    def now_us(self) -> int:
        return self.bench.now_us

    # What is always so.

    @invariant()
    def every_job_is_as_the_model_says(self) -> None:
        for expected in self.model.jobs.values():
            job = self.bench.job(expected.id)

            assert (
                job.status,
                job.attempts,
                job.epoch,
                job.error,
                job.available_us,
                job.ended_us,
                job.priority,
            ) == (
                expected.status,
                expected.attempts,
                expected.epoch,
                expected.error,
                expected.due_us,
                expected.ended_us,
                expected.priority,
            ), expected.id

    @invariant()
    def the_index_has_the_live_jobs(self) -> None:
        model = self.model

        def look(index: Any) -> None:
            assert index.count() == sum(job.live for job in model.jobs.values())
            for queue in QUEUES:
                leased = [job.id for job in model.of(queue, "leased")]
                tried = [job.id for job in model.of(queue, "pending") if job.attempts]
                assert [job.id for job in index.leased(queue)] == leased
                assert index.leased_count(queue) == len(leased)
                assert [job.id for job in index.tried(queue)] == tried
                for key in KEYS:
                    held = model.holder(queue, key)
                    assert index.holder(queue, key, model.now_us) == held
            for job in model.jobs.values():
                found = index.job(job.id)
                assert (found is not None) == job.live
                if found is not None:
                    assert found.to_row() == self.bench.job(job.id).to_row()

        self.bench.store.look(look)

    @invariant()
    def the_index_offers_what_the_model_offers(self) -> None:
        """To whoever comes next, whatever types of jobs they can do."""

        def offer(index: Any) -> list[list[str]]:
            return [
                [job.id for job in index.eligible(queue, types, self.now_us, bounds.per_key)]
                for queue, bounds in self.model.bounds.items()
                for types in (None, ("a",), ("b",))
            ]

        assert self.bench.store.decide(offer) == [
            self.model.eligible(queue, types)
            for queue in QUEUES
            for types in (None, ("a",), ("b",))
        ]

    @invariant()
    def the_views_count_each_job_once(self) -> None:
        projecting.catch_up(self.bench.log, self.bench.codec, self.views)
        with self.views.read() as reader:
            for queue in QUEUES:
                counts = reader.queues.counts(queue, self.now_us)
                expected = self.model.counts(queue)
                assert {name: getattr(counts, name) for name in expected} == expected

    @invariant()
    def all_that_is_derived_follows_from_the_log(self) -> None:
        """G8."""
        head = self.bench.log.head()
        if head == self.checked:
            return
        self.checked = head

        assert list(self.bench.log.verify()) == []
        assert projecting.check(self.bench.log, self.bench.codec, self.views) == []
        assert self.rebuilt() == self.bench.store.content()

    def rebuilt(self) -> Any:
        """Return the rows of an index made anew: elsewhere, since what was due stays so here."""
        return BareQueues(log=self.bench.log).store.content()


class QueuesOnDisk(Queues):
    """The same, on disk, where other processes come and go."""

    def make(self) -> BareQueues:
        self.folder = Path(tempfile.mkdtemp(prefix="queues-"))
        settings = (declared(*each) for each in BOUNDS.items())
        return BareQueues(*settings, folder=self.folder / "log")

    def make_views(self) -> Any:
        return LMDBViews(str(self.folder / "views"), self.bench.codec)

    @rule()
    def another_process_comes(self) -> None:
        """It knows nothing but what is stored, the index too."""
        self.bench.reopen()

    def rebuilt(self) -> Any:
        """It is made anew in place: once, at the end."""
        return self.bench.store.content()

    def teardown(self) -> None:
        try:
            content = self.bench.store.content()
            self.bench.store.rebuild()

            assert self.bench.store.content() == content
        finally:
            self.views.close()
            self.bench.close()
            shutil.rmtree(self.folder)


def test_queues_do_what_the_model_says() -> None:
    run_state_machine_as_test(Queues, settings=settings(max_examples=80, stateful_step_count=50))


def test_queues_on_disk_do_what_the_model_says() -> None:
    run_state_machine_as_test(
        QueuesOnDisk, settings=settings(max_examples=12, stateful_step_count=40)
    )
