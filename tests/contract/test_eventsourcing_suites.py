"""The eventsourcing library's own test cases, unchanged, against the LMDB persistence module."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, ClassVar, TypeVar
from unittest import TestCase
from uuid import uuid4

import pytest
from eventsourcing.cipher import AESCipher
from eventsourcing.tests import application as application_suites
from eventsourcing.tests import persistence as suites
from eventsourcing.tests import projection as projection_suites
from eventsourcing.utils import Environment, get_topic

from tachograph.infra.lmdb_datastore import LMDBDatastore
from tachograph.infra.lmdb_recorder import (
    LMDBAggregateRecorder,
    LMDBApplicationRecorder,
    LMDBFactory,
    LMDBProcessRecorder,
    LMDBRecorder,
    LMDBTrackingRecorder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eventsourcing.persistence import Tracking

R = TypeVar("R", bound=LMDBRecorder)
MODULE = "tachograph.infra.lmdb_recorder"
MEMORY_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: PTH112
"""The library's cases have time limits of one second, which a busy disk may exceed."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep the library's cases from printing their timings, also under `pytest -s`."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


class WithFolder(TestCase):
    """A case with an empty folder of its own, named in the environment of the process."""

    settings: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(dir=MEMORY_DISK)
        self.addCleanup(shutil.rmtree, self.folder)
        values = {"PERSISTENCE_MODULE": MODULE, "LMDB_PATH": self.folder, **self.settings}
        before = dict(os.environ)
        self.addCleanup(os.environ.update, before)
        for name in values.keys() - before.keys():
            self.addCleanup(os.environ.pop, name, None)
        os.environ.update(values)
        super().setUp()


class WithDatastore(WithFolder):
    """A case with an open datastore."""

    def setUp(self) -> None:
        super().setUp()
        self.datastore = LMDBDatastore(self.folder)
        self.addCleanup(self.datastore.close)

    def made(self, recorder: R) -> R:
        recorder.create_table()
        return recorder


class TextIds:
    """Streams named by texts instead of UUIDs."""

    def new_originator_id(self) -> str:
        return f"customers/{uuid4()}/ü" + "x" * 600  # longer than an LMDB key may be


class TestAggregateRecorder(WithDatastore, suites.AggregateRecorderTestCase):
    def create_recorder(self) -> LMDBAggregateRecorder:
        return self.made(LMDBAggregateRecorder(self.datastore))


class TestAggregateRecorderWithTextIds(TextIds, TestAggregateRecorder):
    pass


class TestApplicationRecorder(WithDatastore, suites.ApplicationRecorderTestCase):
    def create_recorder(self) -> LMDBApplicationRecorder:
        return self.made(LMDBApplicationRecorder(self.datastore))

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationRecorderWithTextIds(TextIds, TestApplicationRecorder):
    pass


class TestTrackingRecorder(WithDatastore, suites.TrackingRecorderTestCase):
    def create_recorder(self) -> LMDBTrackingRecorder:
        return self.made(LMDBTrackingRecorder(self.datastore))


class TestProcessRecorder(WithDatastore, suites.ProcessRecorderTestCase):
    def create_recorder(self) -> LMDBProcessRecorder:
        return self.made(LMDBProcessRecorder(self.datastore))


class TestProcessRecorderWithTextIds(TextIds, TestProcessRecorder):
    pass


class TestNonInterleaving(WithDatastore, suites.NonInterleavingNotificationIDsBaseCase):
    def create_recorder(self) -> LMDBApplicationRecorder:
        return self.made(LMDBApplicationRecorder(self.datastore))


class TestNonInterleavingWithTextIds(TextIds, TestNonInterleaving):
    pass


class TestFactory(WithFolder, suites.InfrastructureFactoryTestCase[LMDBFactory]):
    def setUp(self) -> None:
        folder = tempfile.mkdtemp(dir=MEMORY_DISK)
        self.addCleanup(shutil.rmtree, folder)
        self.env = Environment(env={"PERSISTENCE_MODULE": MODULE, "LMDB_PATH": folder})
        super().setUp()

    def expected_factory_class(self) -> type[LMDBFactory]:
        return LMDBFactory

    def expected_aggregate_recorder_class(self) -> type[LMDBAggregateRecorder]:
        return LMDBAggregateRecorder

    def expected_application_recorder_class(self) -> type[LMDBApplicationRecorder]:
        return LMDBApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[LMDBTrackingRecorder]:
        return LMDBTrackingRecorder

    def tracking_recorder_subclass(self) -> type[LMDBTrackingRecorder]:
        return EventCounters

    def expected_process_recorder_class(self) -> type[LMDBProcessRecorder]:
        return LMDBProcessRecorder


class TestApplication(WithFolder, application_suites.ApplicationTestCase):
    pass


class TestExampleApplication(WithFolder, application_suites.ExampleApplicationTestCase):
    expected_factory_topic = get_topic(LMDBFactory)


class TestExampleApplicationCompressed(TestExampleApplication):
    settings: ClassVar[dict[str, str]] = {"COMPRESSOR_TOPIC": "zlib"}


class TestExampleApplicationEncrypted(TestExampleApplication):
    settings: ClassVar[dict[str, str]] = {
        "CIPHER_TOPIC": get_topic(AESCipher),
        "CIPHER_KEY": AESCipher.create_key(32),
        "COMPRESSOR_TOPIC": "zlib",
    }


class EventCounters(LMDBTrackingRecorder, projection_suites.EventCountersView):
    """Two counters, kept in LMDB together with the tracking."""

    view_name = "event_counters"

    def get_created_event_counter(self) -> int:
        return self._count(b"created")

    def get_subsequent_event_counter(self) -> int:
        return self._count(b"subsequent")

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        self._increment(b"created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        self._increment(b"subsequent", tracking)

    def _count(self, name: bytes) -> int:
        with self.reading() as view:
            return int(view.get(name) or 0)

    def _increment(self, name: bytes, tracking: Tracking) -> None:
        with self.transaction(tracking) as view:
            view.put(name, b"%d" % (int(view.get(name) or 0) + 1))


class TestEventCountersView(WithFolder, projection_suites.EventCountersViewTestCase):
    def construct_event_counters_view(self) -> EventCounters:
        view = LMDBFactory({"LMDB_PATH": self.folder}).tracking_recorder(EventCounters)
        assert isinstance(view, EventCounters)
        return view


class TestEventCountersProjection(
    WithFolder, projection_suites.AggregateEventCountersProjectionTestCase
):
    view_class = EventCounters


class TestEventSourcedProjection(WithFolder, projection_suites.EventSourcedProjectionTestCase):
    def setUp(self) -> None:
        super().setUp()
        # The counters get a folder of their own: in one log they would count their own events.
        os.environ["COUNTERS_LMDB_PATH"] = os.path.join(self.folder, "counters")  # noqa: PTH118
        self.addCleanup(os.environ.pop, "COUNTERS_LMDB_PATH")
