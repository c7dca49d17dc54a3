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
from typing import TYPE_CHECKING, Any, ClassVar

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ListenNotifySubscription,
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

from tachograph.domain.errors import SettingError, StoreError
from tachograph.domain.records import NewRecord
from tachograph.infra.lmdb_datastore import (
    LMDBDatastore,
    View,
    persistence_error,
    translated,
)
from tachograph.infra.lmdb_environment import map_size_setting
from tachograph.infra.lmdb_tracking import LMDBTracking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from threading import Event
    from uuid import UUID

EVENTS = "events"
POLL_SECONDS = 0.05
"""After this time at most, a subscription sees what another process has written."""


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


class LMDBSubscription(ListenNotifySubscription[LMDBApplicationRecorder]):
    """Notifications as they are recorded, by this process (at once) or another (POLL_SECONDS)."""

    def __init__(
        self, recorder: LMDBApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        self._seen = 0
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        recorder.datastore.listen(self._has_been_notified)

    def stop(self) -> None:
        """End the iteration, also from another thread."""
        super().stop()
        self._recorder.datastore.unlisten(self._has_been_notified)

    def _loop_on_pull(self) -> None:
        try:
            while not self._has_been_stopped:
                if self._has_changed():
                    self._pull()
                self._has_been_notified.wait(POLL_SECONDS)
        except BaseException as error:  # noqa: BLE001  raised again where the user iterates
            self._thread_error = self._thread_error or error
            self.stop()

    def _has_changed(self) -> bool:
        """Tell whether anybody has committed since the last time, in microseconds.

        The number is taken before the records are read: what comes between is read twice at
        worst, never missed.
        """
        self._has_been_notified.clear()
        before, self._seen = self._seen, self._recorder.last_transaction()
        return self._seen != before


class LMDBTrackingRecorder(LMDBRecorder, TrackingRecorder):
    """Records how far the notifications of other applications were processed.

    Subclass it for a view: give it a `view_name`, write its data in `with self.transaction(
    tracking) as view`, which records both or neither, and read it in `with self.reading()`.
    """

    view_name: ClassVar[str] = ""
    """Names the database of the view's own data for good: renaming the class keeps it."""

    def __init__(self, datastore: LMDBDatastore) -> None:
        super().__init__(datastore)
        self._tracking = LMDBTracking(datastore.environment, EVENTS)

    @translated
    def create_table(self) -> None:
        """Make the databases for the tracking and for the view's own data."""
        super().create_table()
        self._open_databases(create=True)

    @translated
    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position. Raises IntegrityError if it is not after the recorded one."""
        with self._write(tracking):
            pass

    @translated
    def max_tracking_id(self, application_name: str) -> int | None:
        """Return the highest processed notification id of an application, None if none was."""
        if not self._open_databases(create=False):
            return None
        with self.datastore.environment.read() as txn:
            return self._tracking.read(txn, application_name)

    @contextmanager
    def transaction(self, tracking: Tracking | None = None) -> Iterator[View]:
        """Change the view's own data together with the tracking: both are on disk, or neither.

        A tracking that was already recorded raises IntegrityError before the block begins. If
        the block raises, nothing is written. One block may change up to 8 MiB of data.
        """
        ...

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Read the view's own data as of one moment. Keep the block short."""
        ...
