"""A run, and a job of a queue, can live in an application of the `eventsourcing` library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.persistence import IntegrityError, Mapper, StoredEvent
from eventsourcing.utils import TopicError, get_topic, register_topic, resolve_topic
from given_when_then import OWNER, PERSON, RUN_ID, attempt

from tachograph.domain.event_types import all_types
from tachograph.domain.events import AttemptStarted
from tachograph.domain.queue_errors import LeaseLostError
from tachograph.domain.queued_job import QueuedJob
from tachograph.domain.repair_policy import RepairPolicy
from tachograph.domain.repairs import Repairs, stream_of
from tachograph.domain.run import Run
from tachograph.infra.msgpack_transcoder import MsgpackTranscoder
from tachograph.infra.topics import register_topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
POPO = {"PERSISTENCE_MODULE": "eventsourcing.popo"}
LMDB = {"PERSISTENCE_MODULE": "tachograph.infra.lmdb_recorder"}
EVENT_TYPES = all_types()
MSGPACK = {"TRANSCODER_TOPIC": "tachograph.infra.msgpack_transcoder:MsgpackTranscoder"}
ENVIRONMENTS = {
    "plain objects, JSON": POPO,
    "plain objects, msgpack": POPO | MSGPACK,
    "plain objects, msgpack, cached": POPO | MSGPACK | {"AGGREGATE_CACHE_MAXSIZE": "9"},
    "LMDB, JSON": LMDB,
    "LMDB, msgpack": LMDB | MSGPACK,
}


class Runs(Application[str]):
    """An application such as any user of the library might write."""


@pytest.fixture(autouse=True)
def topics() -> None:
    register_topics()


@pytest.fixture(params=ENVIRONMENTS.values(), ids=list(ENVIRONMENTS))
def runs(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Runs]:
    with Runs(env={**request.param, "LMDB_PATH": str(store_path)}) as application:
        yield application


def new_run() -> Run:
    run = Run.create(
        PERSON,
        RUN_ID,
        command="code-report",
        fingerprint="0dc845e1",
        inputs={"root": "/src"},
        inputs_digest="digest-1",
    )
    run.start_attempt(PERSON, OWNER, live_owner=None)
    return run


class TestApplication:
    def test_a_run_is_loaded_as_it_was_saved(self, runs: Runs) -> None:
        run = new_run()
        run.start_phase(attempt(1), "parse")
        run.plan_batches(attempt(1), "parse", total=3, size=5, items_digest=None)
        run.complete_batch(attempt(1), "parse", 1, inputs=5, parsed=4, output=["a", {"b": 0.5}])
        runs.save(run)

        loaded: Run = runs.repository.get(RUN_ID)

        assert type(loaded) is Run
        assert loaded.to_snapshot() == run.to_snapshot()
        assert loaded.pending_events == []

    def test_saving_a_run_records_its_events_once(self, runs: Runs) -> None:
        run = new_run()

        assert [recording.domain_event.originator_version for recording in runs.save(run)] == [1, 2]
        assert runs.save(run) == []

    def test_a_loaded_run_goes_on(self, runs: Runs) -> None:
        runs.save(new_run())
        loaded: Run = runs.repository.get(RUN_ID)
        loaded.start_phase(attempt(1), "parse")
        runs.save(loaded)

        again: Run = runs.repository.get(RUN_ID)

        assert (again.version, again.phases["parse"].status) == (3, "running")

    def test_a_run_is_loaded_as_of_a_version(self, runs: Runs) -> None:
        runs.save(new_run())
        created: Run = runs.repository.get(RUN_ID, version=1)

        assert (created.version, created.epoch) == (1, 0)

    def test_of_two_writers_one_is_refused(self, runs: Runs) -> None:
        """G3, G5."""
        runs.save(new_run())
        one: Run = runs.repository.get(RUN_ID)
        other: Run = runs.repository.get(RUN_ID)
        one.start_phase(attempt(1), "parse")
        other.start_phase(attempt(1), "rank")
        runs.save(one)

        with pytest.raises(IntegrityError):
            runs.save(other)

    def test_a_run_outlives_the_application_on_disk(self, store_path: Path) -> None:
        """G1."""
        env = LMDB | MSGPACK | {"LMDB_PATH": str(store_path)}
        run = new_run()
        with Runs(env=env) as one:
            one.save(run)
        with Runs(env=env) as other:
            loaded: Run = other.repository.get(RUN_ID)

        assert loaded.to_snapshot() == run.to_snapshot()

    def test_a_run_that_was_never_saved_is_not_found(self, runs: Runs) -> None:
        with pytest.raises(AggregateNotFoundError):
            runs.repository.get("job-nothing-0")

    def test_the_log_names_events_by_their_topics(self, runs: Runs) -> None:
        runs.save(new_run())
        notifications = runs.notification_log.select(start=1, limit=10)

        assert [notification.topic for notification in notifications] == [
            "run.created",
            "run.attempt-started",
        ]


class TestJobs:
    """A job of a queue follows the same protocol."""

    def test_a_job_is_loaded_as_it_was_saved_and_goes_on(self, runs: Runs) -> None:
        job = QueuedJob.enqueue(PERSON, JOB_ID, "memory", "ingest", {"n": 1}, key="k")
        job.lease(PERSON, OWNER, 300.0)
        runs.save(job)

        loaded: QueuedJob = runs.repository.get(JOB_ID)
        loaded.complete(attempt(1), {"rows": 7})
        runs.save(loaded)
        again: QueuedJob = runs.repository.get(JOB_ID)

        assert type(loaded) is QueuedJob
        assert again.to_row() == loaded.to_row()
        assert (again.status, again.version, again.pending_events) == ("completed", 3, [])

    def test_a_job_is_loaded_as_of_a_version(self, runs: Runs) -> None:
        job = QueuedJob.enqueue(PERSON, JOB_ID, "memory", "ingest", None)
        job.lease(PERSON, OWNER, 300.0)
        runs.save(job)
        enqueued: QueuedJob = runs.repository.get(JOB_ID, version=1)

        assert (enqueued.status, enqueued.version, enqueued.epoch) == ("pending", 1, 0)

    def test_of_two_holders_one_is_refused(self, runs: Runs) -> None:
        """G3, G5."""
        runs.save(QueuedJob.enqueue(PERSON, JOB_ID, "memory", "ingest", None))
        one: QueuedJob = runs.repository.get(JOB_ID)
        other: QueuedJob = runs.repository.get(JOB_ID)
        one.lease(PERSON, OWNER, 300.0)
        other.lease(PERSON, OWNER, 300.0)
        runs.save(one)

        with pytest.raises(IntegrityError):
            runs.save(other)

    def test_an_earlier_holder_is_fenced(self, runs: Runs) -> None:
        """G5."""
        job = QueuedJob.enqueue(PERSON, JOB_ID, "memory", "ingest", None)
        for _ in range(2):
            job.lease(PERSON, OWNER, 300.0)
            job.release(PERSON, "owner_gone", "it ended")
        runs.save(job)
        loaded: QueuedJob = runs.repository.get(JOB_ID)
        loaded.lease(PERSON, OWNER, 300.0)

        with pytest.raises(LeaseLostError):
            loaded.complete(attempt(2))


class TestRepairs:
    """The repairs of an action are known by their stream alone: their events are saved."""

    def test_repairs_are_loaded_as_their_events_were_saved(self, runs: Runs) -> None:
        repairs = Repairs("requeueDeadJobs")
        repairs.begin(PERSON, RepairPolicy(), "operator", "dead jobs")
        repairs.end(PERSON, "requeueDeadJobs~1", 5, "5 jobs wait again", watched=[JOB_ID])
        runs.save(*repairs.collect_events())
        loaded: Any = runs.repository.get(stream_of("requeueDeadJobs"))

        assert loaded.to_snapshot() == repairs.to_snapshot()
        assert loaded.version == 2


class TestMapper:
    @pytest.mark.parametrize("kind", EVENT_TYPES.values(), ids=EVENT_TYPES)
    def test_every_event_is_stored_and_read_by_the_library(self, kind: Any) -> None:
        mapper: Mapper[str] = Mapper(MsgpackTranscoder())
        values = {name: [name, 1, None, b"x", (1,)] for name in kind.field_names()}
        event = kind(**values | {"originator_id": RUN_ID, "originator_version": 7})

        stored = mapper.to_stored_event(event)

        assert (stored.topic, stored.originator_id, stored.originator_version) == (
            kind.TOPIC,
            RUN_ID,
            7,
        )
        assert mapper.to_domain_event(stored) == event

    def test_an_event_of_an_earlier_version_is_brought_up_to_date(self) -> None:
        """G9: by the library's own reader too."""
        transcoder = MsgpackTranscoder()
        state = {"time_us": 5, "by": ["tacho", "ada", 17, 0], "epoch": 1, "host": "ada", "pid": 17}
        stored = StoredEvent(RUN_ID, 2, "run.attempt-started", transcoder.encode(state))
        mapper: Mapper[str] = Mapper(transcoder)

        assert mapper.to_domain_event(stored) == AttemptStarted(
            originator_id=RUN_ID,
            originator_version=2,
            time_us=5,
            by=["tacho", "ada", 17, 0],
            epoch=1,
            owner={"kind": "process", "host": "ada", "pid": 17},
            reason=None,
            orchestrator=None,
        )

    def test_a_run_of_an_earlier_version_is_loaded(self, runs: Runs) -> None:
        """G9."""
        run = new_run()
        created, _ = run.collect_events()
        state = {"time_us": 5, "by": ["tacho", "ada", 17, 0], "epoch": 1, "host": "ada", "pid": 17}
        old = StoredEvent(RUN_ID, 2, "run.attempt-started", runs.mapper.transcoder.encode(state))
        runs.recorder.insert_events([runs.mapper.to_stored_event(created), old])

        loaded: Run = runs.repository.get(RUN_ID)

        assert (loaded.version, loaded.epoch) == (2, 1)
        assert loaded.owner == {"kind": "process", "host": "ada", "pid": 17}


class TestTopics:
    @pytest.mark.parametrize("topic", EVENT_TYPES)
    def test_every_event_is_found_by_its_topic(self, topic: str) -> None:
        assert resolve_topic(topic) is EVENT_TYPES[topic]
        assert get_topic(EVENT_TYPES[topic]) == topic

    def test_topics_can_be_registered_again(self) -> None:
        register_topics()

        assert resolve_topic("run.created") is EVENT_TYPES["run.created"]

    def test_a_topic_of_another_application_is_not_taken(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("eventsourcing.utils._topic_cache", {})
        register_topic("run.created", Runs)

        with pytest.raises(TopicError, match=r"already registered for topic 'run.created'"):
            register_topics()
