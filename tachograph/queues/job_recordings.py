"""The recording that a handler works with: its run's, kept alive by its worker. Decides no end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tachograph.keeping import WarningNotes
from tachograph.recording import Recording
from tachograph.step_calling import returned_key

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.keeping import Keeper
    from tachograph.session import Session


class JobRecording(Recording):
    """A recording without a heartbeat of its own, which knows what its handler returned."""

    def __init__(
        self, session: Session, follow: Callable[[Recording], Keeper | None] | None = None
    ) -> None:
        super().__init__(lambda: session, lambda: 0.0, follow=follow or (lambda _recording: None))
        self.result: Any = None
        """What is recorded as the run's result with its end; None: nothing."""

    def _enter(self) -> None:
        self._session = self._start()
        self._keepers = [ThreadWarnings(self.note)]
        self._follower = self._follow(self)
        for keeper in (*self._keepers, self._follower):
            if keeper is not None:
                keeper.start()

    def _end(self, error: BaseException | None) -> None:
        if error is None and self.result is not None and self.state.attempt_open:
            finish_with(self.session, self.result)
        else:
            super()._end(error)


class ThreadWarnings(WarningNotes):
    """Notes what the thread that made it logs; jobs beside it have runs of their own."""

    def __init__(self, note: Callable[..., Any]) -> None:
        super().__init__(note)
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Note one record."""
        if threading.get_ident() == self._thread:
            super().emit(record)


def finish_with(session: Session, result: Any) -> None:
    """End an attempt by the gate, together with what its handler returned, or neither."""
    from tachograph.domain.facts import Facts
    from tachograph.judging import with_files

    stored = session.payloads.store(result, "result")
    policy, seen = session.policy(), with_files(Facts(), session.run)

    def finish(run: Run, why: Cause) -> None:
        run.complete_step(why, returned_key(session.epoch), stored)
        run.finish(why, facts=seen, policy=policy)

    session.execute(finish)


def result_of(session: Session) -> Any:
    """Return what the handler of a run's last attempt returned; None when that is not recorded."""
    run = session.run
    version = run.steps.get(returned_key(run.epoch))
    return None if version is None else session.recorded_result(version)
