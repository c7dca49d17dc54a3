"""Subscriptions to an LMDB log that wake across processes. Never busy while nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventsourcing.persistence import ListenNotifySubscription, ShutDown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.infra.lmdb_recorder import LMDBApplicationRecorder

POLL_SECONDS = 0.05
"""After this time at most, a subscription sees what another process has written."""


class LMDBSubscription(ListenNotifySubscription["LMDBApplicationRecorder"]):
    """Notifications as they are recorded, by this process (at once) or another (POLL_SECONDS)."""

    def __init__(
        self, recorder: LMDBApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        self._seen = 0
        self._environment = recorder.datastore.environment
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._environment.listeners.add(self._has_been_notified)

    def stop(self) -> None:
        """End the iteration, also from another thread."""
        super().stop()
        self._environment.listeners.discard(self._has_been_notified)

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
        """Tell, in microseconds, whether anybody has committed since the last time."""
        self._has_been_notified.clear()
        before, self._seen = self._seen, self._recorder.last_transaction()
        return self._seen != before

    def _pull(self) -> None:
        """Queue what is new. What has other topics is not looked at again the next time."""
        while not self._has_been_stopped:
            head = self._recorder.max_notification_id() or 0
            after = self._last_notification_id or 0
            found = self._recorder.select_notifications(
                after, self._select_limit, head, self._topics, inclusive_of_start=False
            )
            if len(found) == self._select_limit:
                head = found[-1].id
            if found:
                try:
                    self._notifications_queue.put(found)
                except ShutDown:
                    return
            self._last_notification_id = max(after, head)
            if len(found) < self._select_limit:
                return
