"""What every command of a run shares: who may give it, and how its events are recorded."""

from __future__ import annotations

from tachograph.domain import errors
from tachograph.domain.run_state import RunState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.event import Cause, Event


class RunRules(RunState):
    """A run that records events, and knows who may make it do so."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[Event] = []

    @property
    def pending_events(self) -> list[Event]:
        """Events that were recorded and not collected yet."""
        return self._pending

    def collect_events(self) -> Sequence[Event]:
        """Return the pending events and forget them."""
        collected, self._pending = self._pending, []
        return collected

    def check_attempt(self, cause: Cause) -> None:
        """Refuse what only the current attempt may do, before it is prepared."""
        self._owned(cause)

    def _owned(self, cause: Cause) -> None:
        """G5, G6: only the current attempt of an unfinished run may write."""
        self._not_fenced(cause)
        if cause.epoch == 0:
            raise errors.NoAttemptError(self.id)
        if not self.attempt_open:
            raise errors.AttemptEndedError(
                self.id, self.epoch, self.outcome or "its resume returned"
            )

    def _not_fenced(self, cause: Cause) -> None:
        """G5, G6: a person outside any attempt may do this too, but no superseded attempt.

        Who was superseded is told so, even when the run is finished by now.
        """
        if 0 < cause.epoch < self.epoch:
            raise errors.FencedError(self.id, cause.epoch, self.epoch)
        self._unfinished()
        self._not_superseded(cause)

    def _not_superseded(self, cause: Cause) -> None:
        """G5 alone: what may be recorded of a finished run too, but not by an old attempt."""
        if cause.epoch not in (0, self.epoch):
            raise errors.FencedError(self.id, cause.epoch, self.epoch)

    def _unfinished(self) -> None:
        if self.finished:
            raise errors.RunFinishedError(self.id, self.ended or self.outcome)

    def _record(self, event_type: type[Event], cause: Cause, **fields: Any) -> None:
        event = event_type(
            originator_id=self.id,
            originator_version=self.version + 1,
            time_us=cause.time_us,
            by=cause.by(),
            **fields,
        )
        self.evolve(event.TOPIC, vars(event))
        self._pending.append(event)
