"""What the LMDB persistence module does beyond the library's own cases."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import (
    DatabaseError,
    DataError,
    InfrastructureFactory,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
    StoredEvent,
    Tracking,
)
from eventsourcing.utils import get_topic
from other_process import OtherProcess

from tachograph.domain import errors
from tachograph.infra import lmdb_mapping
from tachograph.infra.lmdb_datastore import persistence_error
from tachograph.infra.lmdb_recorder import (
    LMDBAggregateRecorder,
    LMDBApplicationRecorder,
    LMDBFactory,
    LMDBProcessRecorder,
    LMDBTrackingRecorder,
)
from tachograph.infra.lmdb_subscription import LMDBSubscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MODULE = "tachograph.infra.lmdb_recorder"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"PERSISTENCE_MODULE": MODULE, "LMDB_PATH": str(tmp_path / "log")}


@pytest.fixture
def factory(env: dict[str, str]) -> Iterator[LMDBFactory]:
    factory = LMDBFactory(env)
    yield factory
    factory.close()


@pytest.fixture
def recorder(factory: LMDBFactory) -> LMDBApplicationRecorder:
    recorder = factory.application_recorder()
    assert isinstance(recorder, LMDBApplicationRecorder)
    return recorder


def event(
    version: int, originator: UUID | str = "a", topic: str = "t", state: bytes = b"state"
) -> StoredEvent:
    return StoredEvent(originator, version, topic, state)


class Balances(LMDBTrackingRecorder):
    """A view with data of its own."""

    view_name = "balances"

    def add(self, account: bytes, amount: int, tracking: Tracking) -> None:
        with self.transaction(tracking) as view:
            view.put(account, b"%d" % (int(view.get(account) or 0) + amount))

    def all(self, prefix: bytes = b"") -> dict[bytes, int]:
        with self.reading() as view:
            return {key: int(value) for key, value in view.items(prefix)}


def balances_of(factory: LMDBFactory, kind: type[Balances] = Balances) -> Balances:
    recorder = factory.tracking_recorder(kind)
    assert isinstance(recorder, Balances)
    return recorder


class Nameless(LMDBTrackingRecorder):
    pass


class CustomRecorder(LMDBApplicationRecorder):
    pass


class CustomProcessRecorder(LMDBProcessRecorder):
    pass


class TestFactory:
    def test_the_module_has_one_factory(self, env: dict[str, str]) -> None:
        factory = InfrastructureFactory.construct(env)

        assert type(factory) is LMDBFactory
        factory.close()

    def test_the_folder_must_be_named(self) -> None:
        with pytest.raises(OSError, match="MYAPP_LMDB_PATH, LMDB_PATH"):
            from eventsourcing.utils import Environment

            LMDBFactory(Environment("myapp", {}))

    @pytest.mark.parametrize("size", ["64M", "12"])
    def test_the_map_size_must_be_a_number_of_bytes(self, env: dict[str, str], size: str) -> None:
        with pytest.raises(OSError, match="LMDB_MAP_SIZE"):
            LMDBFactory({**env, "LMDB_MAP_SIZE": size})

    def test_the_map_size_can_be_set(self, env: dict[str, str]) -> None:
        factory = LMDBFactory({**env, "LMDB_MAP_SIZE": str(2**21)})

        assert factory.datastore.environment.map_size == 2**21
        factory.close()

    def test_a_folder_that_cannot_be_used_is_an_error_of_the_library(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")

        with pytest.raises(DatabaseError):
            LMDBFactory({"LMDB_PATH": str(tmp_path / "file")})

    def test_classes_can_be_chosen(self, env: dict[str, str]) -> None:
        factory = LMDBFactory(
            {
                **env,
                "APPLICATION_RECORDER_TOPIC": get_topic(CustomRecorder),
                "TRACKING_RECORDER_TOPIC": get_topic(Balances),
                "PROCESS_RECORDER_TOPIC": get_topic(CustomProcessRecorder),
            }
        )

        assert type(factory.application_recorder()) is CustomRecorder
        assert type(factory.tracking_recorder()) is Balances
        assert type(factory.process_recorder()) is CustomProcessRecorder
        factory.close()

    @pytest.mark.parametrize(
        ("name", "method"),
        [
            ("APPLICATION_RECORDER_TOPIC", "application_recorder"),
            ("TRACKING_RECORDER_TOPIC", "tracking_recorder"),
            ("PROCESS_RECORDER_TOPIC", "process_recorder"),
        ],
    )
    def test_a_class_of_another_kind_is_refused(
        self, env: dict[str, str], name: str, method: str
    ) -> None:
        factory = LMDBFactory({**env, name: get_topic(LMDBAggregateRecorder)})

        with pytest.raises(ProgrammingError, match="LMDBAggregateRecorder"):
            getattr(factory, method)()
        with pytest.raises(ProgrammingError):
            factory.tracking_recorder(LMDBAggregateRecorder)  # type: ignore[arg-type]
        factory.close()

    def test_no_databases_are_made_when_that_is_forbidden(self, env: dict[str, str]) -> None:
        factory = LMDBFactory({**env, "CREATE_TABLE": "no"})
        recorder = factory.process_recorder()

        with pytest.raises(OperationalError):
            recorder.insert_events([event(1)])
        with pytest.raises(OperationalError):
            recorder.insert_tracking(Tracking("up", 1))
        with pytest.raises(OperationalError):
            balances_of(factory).add(b"a", 1, Tracking("up", 1))
        assert (recorder.select_events("a"), recorder.max_notification_id()) == ([], None)
        assert (recorder.select_notifications(1, 9), recorder.max_tracking_id("up")) == ([], None)
        factory.close()

    def test_recorders_find_databases_that_others_made(self, env: dict[str, str]) -> None:
        reading = LMDBFactory({**env, "CREATE_TABLE": "no"})
        early = reading.application_recorder()
        writing = LMDBFactory(env)
        writing.application_recorder().insert_events([event(1)])

        assert len(early.select_notifications(1, 9)) == 1
        reading.close()
        writing.close()

    def test_applications_of_one_folder_share_a_log(self, env: dict[str, str]) -> None:
        one, two = LMDBFactory(env), LMDBFactory(env)

        assert one.application_recorder().insert_events([event(1)]) == [1]
        assert two.application_recorder().insert_events([event(2)]) == [2]
        assert two.aggregate_recorder("snapshots").select_events("a") == []
        with pytest.raises(IntegrityError):
            one.application_recorder().insert_events([event(2)])
        one.close()
        two.close()

    def test_closing_one_application_leaves_the_other_open(self, env: dict[str, str]) -> None:
        one, two = LMDBFactory(env), LMDBFactory(env)
        recorder = two.application_recorder()
        one.close()
        one.close()

        assert recorder.insert_events([event(1)]) == [1]
        two.close()


class TestErrors:
    def test_conflicts(self, recorder: LMDBApplicationRecorder) -> None:
        recorder.insert_events([event(1)])

        with pytest.raises(IntegrityError) as caught:
            recorder.insert_events([event(1)])

        assert isinstance(caught.value.__cause__, errors.VersionConflictError)

    @pytest.mark.parametrize("version", [-1, 2**63, "1"])
    def test_versions_out_of_range(self, recorder: LMDBApplicationRecorder, version: int) -> None:
        with pytest.raises(DataError):
            recorder.insert_events([event(version)])

    def test_ids_that_are_none(self, recorder: LMDBApplicationRecorder) -> None:
        with pytest.raises(ProgrammingError):
            recorder.insert_events([event(1, originator=7)])  # type: ignore[arg-type]
        with pytest.raises(ProgrammingError):
            recorder.select_events(None)  # type: ignore[arg-type]

    def test_states_that_are_no_bytes(self, recorder: LMDBApplicationRecorder) -> None:
        with pytest.raises(ProgrammingError):
            recorder.insert_events([event(1, state="text")])  # type: ignore[arg-type]

    def test_use_after_close(self, factory: LMDBFactory, env: dict[str, str]) -> None:
        recorder = factory.process_recorder()
        balances = balances_of(factory)
        other = LMDBFactory(env)  # keeps the folder open
        factory.close()
        uses: list[Callable[[], object]] = [
            lambda: recorder.insert_events([event(1)]),
            lambda: recorder.select_events("a"),
            lambda: recorder.select_notifications(1, 1),
            recorder.max_notification_id,
            recorder.subscribe,
            lambda: recorder.insert_tracking(Tracking("up", 1)),
            lambda: recorder.max_tracking_id("up"),
            lambda: balances.add(b"a", 1, Tracking("up", 1)),
            balances.all,
            factory.application_recorder,
            factory.tracking_recorder,
        ]

        for use in uses:
            with pytest.raises(InterfaceError):
                use()
        other.close()

    def test_a_full_map(self, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lmdb_mapping, "MAX_MAP_SIZE", 2**20)
        factory = LMDBFactory({**env, "LMDB_MAP_SIZE": str(2**20)})
        recorder = factory.application_recorder()

        with pytest.raises(OperationalError) as caught:
            recorder.insert_events([event(1, state=b"x" * 2**21)])

        assert isinstance(caught.value.__cause__, errors.StoreFullError)
        assert recorder.insert_events([event(1)]) == [1]
        factory.close()

    def test_damage(self, recorder: LMDBApplicationRecorder) -> None:
        recorder.insert_events([event(1)])
        environment = recorder.datastore.environment
        records = environment.databases[b"events.records"]
        environment.update(lambda txn: txn.put(bytes(7) + b"\1", b"damaged", db=records))

        with pytest.raises(InternalError):
            recorder.select_notifications(1, 1)

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (errors.VersionConflictError("a", 1, 1), IntegrityError),
            (errors.TrackingConflictError("up", 1, 1), IntegrityError),
            (errors.StoredNameError("a", "b"), IntegrityError),
            (errors.RecordOutOfRangeError("a", "x", 1), DataError),
            (errors.StoreClosedError("/s"), InterfaceError),
            (errors.StoreCorruptError("/s", "x"), InternalError),
            (errors.StoreFormatError("/s", 2, 1), InternalError),
            (errors.StoreFullError("/s", "x"), OperationalError),
            (errors.StoreBusyError("/s", "x"), OperationalError),
            (errors.StoreReadOnlyError("/s", "x"), OperationalError),
            (errors.StoreNotFoundError("/s"), OperationalError),
            (errors.NetworkFileSystemError("/s", "nfs"), OperationalError),
            (errors.StoreFailedError("/s", "x"), DatabaseError),
            (TypeError("x"), ProgrammingError),
        ],
    )
    def test_each_of_ours_has_one_of_the_library(
        self, error: Exception, kind: type[PersistenceError]
    ) -> None:
        assert type(persistence_error(error)) is kind


class TestEvents:
    @pytest.mark.parametrize("originator", [UUID(int=5), "customers/5", str(UUID(int=5)), ""])
    def test_ids_come_back_as_they_were_given(
        self, recorder: LMDBApplicationRecorder, originator: UUID | str
    ) -> None:
        recorder.insert_events([event(1, originator)])

        assert [each.originator_id for each in recorder.select_events(originator)] == [originator]
        assert [each.originator_id for each in recorder.select_notifications(1, 9)] == [originator]

    def test_versions_may_start_at_zero(self, recorder: LMDBApplicationRecorder) -> None:
        recorder.insert_events([event(0), event(1)])

        assert [each.originator_version for each in recorder.select_events("a")] == [0, 1]

    @pytest.mark.parametrize("start", [None, -5, 0, 1])
    def test_a_start_before_the_first_is_the_first(
        self, recorder: LMDBApplicationRecorder, start: int | None
    ) -> None:
        recorder.insert_events([event(1), event(2)])

        assert [each.id for each in recorder.select_notifications(start, 9)] == [1, 2]

    def test_a_start_of_none_includes_the_first(self, recorder: LMDBApplicationRecorder) -> None:
        recorder.insert_events([event(1)])

        found = recorder.select_notifications(None, 9, inclusive_of_start=False)

        assert [each.id for each in found] == [1]


class TestSubscriptions:
    def test_another_process_wakes_a_subscription(
        self, recorder: LMDBApplicationRecorder, env: dict[str, str]
    ) -> None:
        script = """
log = LMDBLog(open_environment(folder))
while (version := hear()):
    log.append([new("a", int(version))])
"""
        from pathlib import Path

        with (
            OtherProcess(script, Path(env["LMDB_PATH"])) as other,
            recorder.subscribe() as subscription,
        ):
            found = []
            for version in (1, 2, 3):
                other.say(str(version))
                found.append(next(subscription).originator_version)

        assert found == [1, 2, 3]

    def test_another_application_of_this_process_wakes_a_subscription_at_once(
        self,
        env: dict[str, str],
        recorder: LMDBApplicationRecorder,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Without waiting for the next poll, which here never comes."""
        monkeypatch.setattr("tachograph.infra.lmdb_subscription.POLL_SECONDS", None)
        other = LMDBFactory(env)
        writer = other.application_recorder()

        with recorder.subscribe() as subscription:
            writer.insert_events([event(1)])
            first = next(subscription)
            writer.insert_events([event(2)])
            second = next(subscription)

        assert (first.id, second.id) == (1, 2)
        other.close()

    def test_a_subscription_is_stopped_while_it_waits(
        self, recorder: LMDBApplicationRecorder
    ) -> None:
        subscription = recorder.subscribe()
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.extend(subscription))
        thread.start()
        with subscription:
            subscription.stop()
        thread.join()

        assert found == []
        assert recorder.datastore.environment.listeners == set()

    def test_closing_the_application_ends_its_subscriptions_with_an_error(
        self, factory: LMDBFactory
    ) -> None:
        recorder = factory.application_recorder()
        with recorder.subscribe() as subscription:
            factory.close()
            with pytest.raises(InterfaceError):
                next(subscription)

    def test_a_subscription_to_a_topic_does_not_look_at_the_rest_again(
        self, recorder: LMDBApplicationRecorder
    ) -> None:
        recorder.insert_events([event(version) for version in range(1, 700)])
        recorder.insert_events([event(700, topic="rare")])
        with recorder.subscribe(topics=["rare"]) as subscription:
            assert isinstance(subscription, LMDBSubscription)
            first = next(subscription)
            recorder.insert_events([event(701), event(702)])
            recorder.insert_events([event(703, topic="rare")])
            second = next(subscription)

            assert (first.id, second.id) == (700, 703)
        assert subscription._last_notification_id == 703

    def test_more_events_than_one_pull_takes_come_in_order(
        self, recorder: LMDBApplicationRecorder
    ) -> None:
        recorder.insert_events([event(version) for version in range(1, 1201)])

        with recorder.subscribe(gt=100) as subscription:
            found = [next(subscription).id for _ in range(1100)]

        assert found == list(range(101, 1201))

    def test_a_subscription_may_start_beyond_the_end(
        self, recorder: LMDBApplicationRecorder
    ) -> None:
        recorder.insert_events([event(1)])
        with recorder.subscribe(gt=2) as subscription:
            recorder.insert_events([event(2), event(3)])

            assert next(subscription).id == 3


class TestViews:
    def test_data_and_tracking_are_written_together(self, factory: LMDBFactory) -> None:
        balances = balances_of(factory)

        balances.add(b"a", 5, Tracking("bank", 1))
        balances.add(b"b", 7, Tracking("bank", 2))
        balances.add(b"a", 1, Tracking("bank", 3))

        assert balances.all() == {b"a": 6, b"b": 7}
        assert balances.max_tracking_id("bank") == 3

    def test_what_was_processed_is_not_processed_again(self, factory: LMDBFactory) -> None:
        balances = balances_of(factory)
        balances.add(b"a", 5, Tracking("bank", 2))

        for again in (1, 2):
            with pytest.raises(IntegrityError):
                balances.add(b"a", 5, Tracking("bank", again))

        assert balances.all() == {b"a": 5}

    def test_a_block_that_raises_writes_nothing(self, factory: LMDBFactory) -> None:
        balances = balances_of(factory)

        with pytest.raises(ZeroDivisionError), balances.transaction(Tracking("bank", 1)) as view:
            view.put(b"a", b"1")
            raise ZeroDivisionError

        assert (balances.all(), balances.max_tracking_id("bank")) == ({}, None)

    def test_data_can_be_changed_without_tracking(self, factory: LMDBFactory) -> None:
        balances = balances_of(factory)
        with balances.transaction() as view:
            view.put(b"a/1", b"1")
            view.put(b"a/2", b"2")
            view.put(b"b", b"3")
        with balances.transaction() as view:
            deleted = view.delete(b"a/2"), view.delete(b"missing")

        assert deleted == (True, False)
        assert balances.all() == {b"a/1": 1, b"b": 3}
        assert (balances.all(b"a/"), balances.all(b"c")) == ({b"a/1": 1}, {})

    @pytest.mark.parametrize("key", [b"", b"x" * 512])
    def test_keys_have_a_limit(self, factory: LMDBFactory, key: bytes) -> None:
        balances = balances_of(factory)

        with pytest.raises(DataError, match="1 to 511"), balances.transaction() as view:
            view.put(key, b"1")

    def test_a_view_without_a_name_has_no_data(self, factory: LMDBFactory) -> None:
        view = factory.tracking_recorder(Nameless)
        view.insert_tracking(Tracking("bank", 1))

        with pytest.raises(ProgrammingError, match="view_name"), view.transaction():
            pass
        with pytest.raises(ProgrammingError, match="view_name"), view.reading():
            pass

    def test_views_of_different_names_have_different_data(self, factory: LMDBFactory) -> None:
        class Others(Balances):
            view_name = "others"

        balances, others = balances_of(factory), balances_of(factory, Others)
        balances.add(b"a", 1, Tracking("bank", 1))

        assert others.all() == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_recorder_works_in_a_forked_child(recorder: LMDBApplicationRecorder) -> None:
    """As under a server that loads the application before it forks its workers."""
    recorder.insert_events([event(1)])
    pid = os.fork()
    if not pid:
        code = 9
        try:
            recorder.insert_events([event(1, uuid4())])
            code = len(recorder.select_notifications(1, 9))
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 2
    assert recorder.insert_events([event(2)]) == [3]
