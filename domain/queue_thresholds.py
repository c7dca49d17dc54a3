"""How many dead jobs and how long a wait are too much, per queue. No I/O, no clock.

What is shown of them is what a score is made with: there is no other place for them.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Number = int | float


class QueueThresholds(_Fields):
    """The thresholds of one queue."""

    __slots__ = (
        "dead_fail",
        "dead_warn",
        "oldest_dead_warn_seconds",
        "oldest_pending_fail_seconds",
        "oldest_pending_warn_seconds",
    )

    def __init__(
        self,
        *,
        dead_warn: int = 50,
        dead_fail: int = 500,
        oldest_pending_warn_seconds: Number = 300,
        oldest_pending_fail_seconds: Number = 1800,
        oldest_dead_warn_seconds: Number = 86_400,
    ) -> None:
        self.dead_warn = dead_warn
        """More dead jobs than this cost points."""
        self.dead_fail = dead_fail
        """This many, or more, cost the most."""
        self.oldest_pending_warn_seconds = oldest_pending_warn_seconds
        """A job that has waited for longer than this costs points."""
        self.oldest_pending_fail_seconds = oldest_pending_fail_seconds
        """One that has waited so long, or longer, costs the most."""
        self.oldest_dead_warn_seconds = oldest_dead_warn_seconds
        """A job that has been dead for longer than this costs points."""

    def changed(self, **values: Number) -> QueueThresholds:
        """Return a copy with other values. Raises TypeError for a name that is none."""
        kept = {name: getattr(self, name) for name in self.__slots__}
        return QueueThresholds(**{**kept, **values})

    def as_document(self, queue: str) -> dict[str, Number]:
        """Return them by the flat names that they have in a report.

        >>> QueueThresholds().as_document("memory")["memoryOldestPendingFailSec"]
        1800
        """
        return {f"{queue}{title}": getattr(self, name) for name, title in _TITLES.items()}


_TITLES = {
    "dead_warn": "DeadWarn",
    "dead_fail": "DeadFail",
    "oldest_pending_warn_seconds": "OldestPendingWarnSec",
    "oldest_pending_fail_seconds": "OldestPendingFailSec",
    "oldest_dead_warn_seconds": "OldestDeadWarnSec",
}


class HealthThresholds(_Fields):
    """The thresholds of all queues: those of one queue where it has its own, else the general."""

    __slots__ = ("general", "queues")

    def __init__(
        self,
        general: QueueThresholds | None = None,
        queues: Mapping[str, QueueThresholds] | None = None,
    ) -> None:
        self.general = QueueThresholds() if general is None else general
        self.queues = dict(queues or {})

    def of(self, queue: str) -> QueueThresholds:
        """Return the thresholds of a queue."""
        return self.queues.get(queue, self.general)

    def as_document(self, queues: Iterable[str]) -> dict[str, Number]:
        """Return the thresholds of these queues in one flat table.

        >>> own = {"summary": QueueThresholds(dead_warn=5)}
        >>> shown = HealthThresholds(queues=own).as_document(["memory", "summary"])
        >>> shown["memoryDeadWarn"], shown["summaryDeadWarn"]
        (50, 5)
        """
        document: dict[str, Number] = {}
        for queue in queues:
            document.update(self.of(queue).as_document(queue))
        return document
