"""Persistence module for the eventsourcing library, on LMDB. Never keeps a transaction open.

Name it in `PERSISTENCE_MODULE=tachograph.infra.lmdb_recorder`, and the folder in `LMDB_PATH`.
`LMDB_MAP_SIZE` is where the memory map starts (it grows by itself), and `CREATE_TABLE=no` keeps
recorders from making their databases.

Applications that name the same folder share one log, as they share one table in SQLite. Give
each its own folder, for instance with `MYAPP_LMDB_PATH`, to number their notifications apart.
"""

from __future__ import annotations

from contextlib import contextmanager
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    Notification,
    ProcessRecorder,
    ProgrammingError,
    Recorder,
    StoredEvent,
    Subscription,
    Tracking,
    TrackingRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic, strtobool

from tachograph.domain.errors import SettingError, StoreNotFoundError
from tachograph.domain.records import NewRecord
from tachograph.infra.lmdb_datastore import (
    LMDBDatastore,
    View,
    translated,
    translating,
)
from tachograph.infra.lmdb_environment import map_size_setting
from tachograph.infra.lmdb_subscription import LMDBSubscription
from tachograph.infra.lmdb_tracking import LMDBTracking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from tachograph.infra.lmdb_environment import Database, Transaction

EVENTS = "events"
T = TypeVar("T", bound="LMDBRecorder")


class LMDBRecorder(Recorder):
    """What all recorders have: the folder they record in."""

    def __init__(self, datastore: LMDBDatastore) -> None:
        self.datastore = datastore

    def create_table(self) -> None:
        """Make the databases that the recorder needs, unless they exist."""


class LMDBAggregateRecorder(LMDBRecorder, AggregateRecorder):
    """Records the events of aggregates in a log of their own."""

    def __init__(self, datastore: LMDBDatastore, purpose: str = EVENTS) -> None:
        super().__init__(datastore)
        self._log = datastore.log(purpose)

    @translated
    def create_table(self) -> None:
        """Make the databases of the log."""
        super().create_table()
        self._log.create()

    @translated
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Write events, all or none. They are on disk when this returns.

        Raises IntegrityError if one of the versions exists, DataError if one is out of range.
        """
        self._insert_events(stored_events, **kwargs)
        return None

    def _insert_events(
        self, stored_events: Sequence[StoredEvent], *, tracking: Tracking | None = None
    ) -> list[int]:
        self.datastore.check_open()
        now = time_ns() // 1000
        records = [
            NewRecord(event.originator_id, event.originator_version, event.topic, now, event.state)
            for event in stored_events
        ]
        if tracking is None:
            return self._log.append(records)
        return self._log.append(
            records, tracking=(tracking.application_name, tracking.notification_id)
        )

    @translated
    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return events of an aggregate by version."""
        self.datastore.check_open()
        records = self._log.read_stream(
            originator_id, after=gt, up_to=lte, limit=limit, reverse=desc
        )
        return [StoredEvent(each.stream, each.version, each.topic, each.body) for each in records]


class LMDBApplicationRecorder(LMDBAggregateRecorder, ApplicationRecorder):
    """Records the events of an application, numbered from 1 without gaps.

    Positions are given in the order of commits: nobody ever sees one before a lower one.
    """

    @translated
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Write events, all or none, and return their notification ids. They are then on disk.

        Raises IntegrityError if one of the versions exists, DataError if one is out of range.
        """
        return self._insert_events(stored_events, **kwargs)

    @translated
    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return notifications by id. With topics, only headers of the others are read."""
        self.datastore.check_open()
        after = start or 0
        if start is not None and inclusive_of_start:
            after -= 1
        records = self._log.read(after=max(after, 0), up_to=stop, limit=limit, topics=topics)
        return [
            Notification(each.stream, each.version, each.topic, each.body, each.position)
            for each in records
        ]

    @translated
    def max_notification_id(self) -> int | None:
        """Return the id of the last notification, None if there is none."""
        self.datastore.check_open()
        return self._log.head().position or None

    @translated
    def last_transaction(self) -> int:
        """Return a number that rises with every commit to the folder, by any process."""
        self.datastore.check_open()
        return self._log.last_transaction()

    @translated
    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Return an iterator of notifications that waits for more at the end."""
        self.datastore.check_open()
        return LMDBSubscription(self, gt=gt, topics=topics)


class LMDBTrackingRecorder(LMDBRecorder, TrackingRecorder):
    """Records how far the notifications of other applications were processed.

    Subclass it for a view. Give it a `view_name`, write its data in a `with
    self.transaction(tracking) as view` block, and read it in a `with self.reading() as view`.
    """

    view_name: ClassVar[str] = ""
    """Names the database of the view's own data for good, whatever the class is called."""

    def __init__(self, datastore: LMDBDatastore) -> None:
        super().__init__(datastore)
        self._tracking = LMDBTracking(datastore.environment, EVENTS)
        self._databases = [self._tracking.database]
        if self.view_name:
            self._databases.append(f"view.{self.view_name}".encode())

    @translated
    def create_table(self) -> None:
        """Make the databases for the tracking and for the view's own data."""
        super().create_table()
        self.datastore.environment.open_databases(*self._databases)

    @translated
    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position. Raises IntegrityError if it is not after the recorded one."""
        with self._write(tracking):
            pass

    @translated
    def max_tracking_id(self, application_name: str) -> int | None:
        """Return the highest processed notification id of an application, None if none was."""
        environment = self.datastore.environment
        if not environment.open_databases(self._tracking.database, create=False):
            return None
        with environment.read() as txn:
            return self._tracking.read(txn, application_name)

    @contextmanager
    def transaction(self, tracking: Tracking | None = None) -> Iterator[View]:
        """Change the view's own data together with the tracking: both are on disk, or neither.

        A tracking that is not after the recorded one raises IntegrityError before the block
        begins. If the block raises, nothing is written. It may change up to 8 MiB of data.
        """
        with translating(), self._write(tracking) as txn:
            yield View(txn, self._view_database())

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Read the view's own data as of one moment. Keep the block short."""
        with translating():
            self._find_databases()
            with self.datastore.environment.read() as txn:
                yield View(txn, self._view_database())

    @contextmanager
    def _write(self, tracking: Tracking | None) -> Iterator[Transaction]:
        self._find_databases()
        with self.datastore.environment.write() as txn:
            if tracking is not None:
                place = tracking.application_name, tracking.notification_id
                self._tracking.check(txn, *place)
                self._tracking.put(txn, *place)
            yield txn

    def _find_databases(self) -> None:
        if not self.datastore.environment.open_databases(*self._databases, create=False):
            raise StoreNotFoundError(f"{self.datastore.folder} (view {self.view_name!r})")

    def _view_database(self) -> Database:
        if not self.view_name:
            raise ProgrammingError(f"{type(self).__name__} has no view_name: set one, for good.")
        return self.datastore.environment.databases[self._databases[-1]]


class LMDBProcessRecorder(LMDBTrackingRecorder, LMDBApplicationRecorder, ProcessRecorder):
    """Records events together with how far the notifications that caused them were processed."""


class LMDBFactory(InfrastructureFactory[LMDBTrackingRecorder]):
    """Makes the recorders of an application from its environment variables."""

    LMDB_PATH = "LMDB_PATH"
    LMDB_MAP_SIZE = "LMDB_MAP_SIZE"
    CREATE_TABLE = "CREATE_TABLE"

    aggregate_recorder_class = LMDBAggregateRecorder
    application_recorder_class = LMDBApplicationRecorder
    tracking_recorder_class = LMDBTrackingRecorder
    process_recorder_class = LMDBProcessRecorder

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        folder = self.env.get(self.LMDB_PATH)
        if not folder:
            names = ", ".join(self.env.create_keys(self.LMDB_PATH))
            raise OSError(f"No folder for LMDB: set one of {names} in the environment.")
        self.datastore = self._open(folder)

    @translated
    def _open(self, folder: str) -> LMDBDatastore:
        return LMDBDatastore(folder, self._map_size())

    def aggregate_recorder(self, purpose: str = EVENTS) -> AggregateRecorder:
        """Make a recorder of aggregate events, or of snapshots, in a log named by its purpose."""
        return self._created(self.aggregate_recorder_class(self.datastore, purpose))

    def application_recorder(self) -> ApplicationRecorder:
        """Make a recorder of application events (APPLICATION_RECORDER_TOPIC)."""
        kind = self._class(self.APPLICATION_RECORDER_TOPIC, self.application_recorder_class)
        return self._created(kind(self.datastore))

    def tracking_recorder(
        self, tracking_recorder_class: type[LMDBTrackingRecorder] | None = None
    ) -> LMDBTrackingRecorder:
        """Make a recorder of a given class, or of TRACKING_RECORDER_TOPIC."""
        kind = tracking_recorder_class or self._class(
            self.TRACKING_RECORDER_TOPIC, self.tracking_recorder_class
        )
        if not issubclass(kind, LMDBTrackingRecorder):
            raise ProgrammingError(f"{kind.__name__} is no LMDBTrackingRecorder.")
        return self._created(kind(self.datastore))

    def process_recorder(self) -> ProcessRecorder:
        """Make a recorder of events and tracking (PROCESS_RECORDER_TOPIC)."""
        kind = self._class(self.PROCESS_RECORDER_TOPIC, self.process_recorder_class)
        return self._created(kind(self.datastore))

    def close(self) -> None:
        """Close the folder. Its recorders then raise InterfaceError."""
        self.datastore.close()

    def _class(self, variable: str, default: type[T]) -> type[T]:
        """Return the class that a topic in the environment names."""
        topic = self.env.get(variable)
        kind = resolve_topic(topic) if topic else default
        if not (isinstance(kind, type) and issubclass(kind, default)):
            raise ProgrammingError(f"{variable} is {topic!r}, which is no {default.__name__}.")
        return kind

    def _created(self, recorder: T) -> T:
        if strtobool(self.env.get(self.CREATE_TABLE) or "yes"):
            recorder.create_table()
        return recorder

    def _map_size(self) -> int:
        try:
            return map_size_setting(self.env.get(self.LMDB_MAP_SIZE) or "")
        except SettingError as error:
            raise OSError(str(error)) from error


Factory = LMDBFactory
