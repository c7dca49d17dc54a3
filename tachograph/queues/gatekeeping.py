"""The gate of repairs: who may begin one now. Each answer is an event; the limits are in the log.

Every repair of queues, views and store goes through `Gatekeeper.gate`, by whomever it is asked
for; a dry run goes past it, since it changes nothing.
"""

from __future__ import annotations

from tachograph.domain.errors import (
    MalformedValueError,
    UnknownEventTypeError,
    VersionConflictError,
)
from tachograph.domain.records import NewRecord, SnapshotRecord
from tachograph.domain.repair_errors import denied
from tachograph.domain.repair_events import upcast
from tachograph.domain.repairs import Repairs, check_action, stream_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Self, TypeVar

    from tachograph.domain.event import Cause
    from tachograph.domain.records import Record
    from tachograph.domain.repair_events import RepairEvent
    from tachograph.domain.repair_policy import RepairPolicy
    from tachograph.domain.repairs import Denial
    from tachograph.packing import Packing
    from tachograph.ports import EventLog
    from tachograph.session import Actor

    T = TypeVar("T")
    Fields = dict[str, Any]

SNAPSHOT_EVERY = 200
"""Events between snapshots: to ask the gate replays at most this many."""
TRIES = 100
"""Decisions that may be lost to other processes, one after another."""
_MALFORMED = (MalformedValueError, LookupError, TypeError, ValueError)


class Permit:
    """A repair that may be done now; used in a `with` block, whose end is the repair's end.

    Where the block raises, the repair has ended without success, with the error as its message.
    """

    def __init__(self, keeper: Gatekeeper, action: str, repair: str, reason: str) -> None:
        self.action = action
        self.reason = reason
        self.repair = repair
        """Name of the repair, for the events of what it changes."""
        self.affected = 0
        self.message = ""
        self.success = True
        self._watched: Sequence[str] = ()
        self._steps = 0
        self._keeper = keeper

    def step(self, affected: int, detail: Any = None) -> None:
        """Record that a part is done and durable: what it affected counts in the whole."""
        self._steps += 1
        self.affected += affected
        self._keeper.decide(
            self.action,
            lambda repairs, cause: repairs.do_step(
                cause, self.repair, self._steps, affected, detail
            ),
        )

    def done(
        self,
        affected: int | None = None,
        message: str = "",
        *,
        success: bool = True,
        watched: Sequence[str] = (),
    ) -> None:
        """Say what came of it; it is recorded when the block ends.

        `affected` None: what its steps affected. `watched` are jobs whose fate will show whether
        it helped, such as those that were requeued.
        """
        if affected is not None:
            self.affected = affected
        self.message, self.success, self._watched = message, success, watched

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.success = False
            self.message = str(error) or type(error).__name__
        message = self.message or f"{self.affected} affected"
        self._keeper.decide(
            self.action,
            lambda repairs, cause: repairs.end(
                cause,
                self.repair,
                self.affected,
                message,
                success=self.success,
                watched=self._watched,
            ),
        )


class Gatekeeper:
    """Keeps the repairs of a log. Safe to share between threads and processes."""

    def __init__(self, log: EventLog, packing: Packing, actor: Actor, policy: RepairPolicy) -> None:
        self.policy = policy
        self._log = log
        self._packing = packing
        self._actor = actor

    def gate(
        self,
        action: str,
        actor_kind: str,
        reason: str,
        *,
        force: bool = False,
        selection: Any = None,
        run: str | None = None,
        baseline: Fields | None = None,
    ) -> Permit:
        """Return the permit to do a repair now; it counts from here on, whatever becomes of it.

        To check and to record is one step: of two processes that ask at once, one gets it.
        `force` lets a person overrule a halt, the cooldown and the budget. `run` and `baseline`
        are the maintenance cycle it belongs to, and the facts on which it was recommended.

        Raises RepairDeniedError (RepairWaitError where time helps): nothing may be changed then.
        Raises InvalidValueError for an unknown action or kind of actor, or a missing reason.
        """

        def begin(repairs: Repairs, cause: Cause) -> tuple[Denial | None, str]:
            denial = repairs.begin(
                cause,
                self.policy,
                actor_kind,
                reason,
                force=force,
                selection=selection,
                run=run,
                baseline=baseline,
            )
            return denial, f"{action}~{repairs.count}"

        denial, repair = self.decide(action, begin)
        if denial is not None:
            raise denied(action, denial.rule, denial.remaining_us)
        return Permit(self, action, repair, reason)

    def look(self, action: str, actor_kind: str) -> Denial | None:
        """Return by which rule a repair would be denied now; records and uses up nothing."""
        return self.get(action).denies(self.policy, actor_kind, self._actor.now_us())

    def get(self, action: str) -> Repairs:
        """Return the repairs of an action as of the end of its stream."""
        repairs = self._from_snapshot(check_action(action))
        for record in self._log.read_stream(stream_of(action), after=repairs.version):
            repairs.evolve(record.topic, self.fields(record))
        return repairs

    def history(self, action: str, limit: int = 50) -> list[tuple[str, Fields]]:
        """Return the newest events of an action, oldest first: topics and fields."""
        stream = stream_of(check_action(action))
        records = self._log.read_stream(stream, after=None, limit=limit, reverse=True)
        return [(record.topic, self.fields(record)) for record in reversed(records)]

    def decide(self, action: str, command: Callable[[Repairs, Cause], T]) -> T:
        """Let a command decide on the newest state, and append what it recorded.

        Where another process was first, it decides again. Durable on return. Raises
        VersionConflictError when that happens too often.
        """
        for remaining in range(TRIES - 1, -1, -1):
            repairs = self.get(action)
            before = repairs.version
            answer = command(repairs, self._actor.cause())
            try:
                self._save(repairs, before)
            except VersionConflictError:
                if not remaining:
                    raise
            else:
                return answer
        raise AssertionError("unreachable: the last try returns or raises")

    def _save(self, repairs: Repairs, before: int) -> None:
        recorded = repairs.collect_events()
        if not recorded:
            return
        snapshot = None
        if repairs.version // SNAPSHOT_EVERY > before // SNAPSHOT_EVERY:
            body = self._packing.pack(repairs.to_snapshot(), "state")
            snapshot = SnapshotRecord(stream_of(repairs.action), repairs.version, body)
        self._log.append([self._record_of(event) for event in recorded], snapshot=snapshot)

    def _record_of(self, event: RepairEvent) -> NewRecord:
        fields = dict(vars(event))
        stream = fields.pop("originator_id")
        version = fields.pop("originator_version")
        if event.class_version > 1:
            fields["class_version"] = event.class_version
        body = self._packing.pack(fields, "")
        return NewRecord(stream, version, event.TOPIC, event.time_us, body)

    def _from_snapshot(self, action: str) -> Repairs:
        snapshot = self._log.snapshot(stream_of(action))
        if snapshot is None:
            return Repairs(action)
        repairs = Repairs(action)
        try:
            kept = repairs.restore(self._packing.unpack(snapshot.body))
        except _MALFORMED:  # derived data: the events say the same
            kept = False
        return repairs if kept else Repairs(action)

    def fields(self, record: Record) -> Fields:
        """Return an event's fields as of today's version. Raises UnknownEventTypeError."""
        fields: Fields = self._packing.unpack(record.body)
        fields["originator_id"] = record.stream
        fields["originator_version"] = record.version
        try:
            return upcast(record.topic, fields)
        except KeyError:
            raise UnknownEventTypeError(record.topic, f"position {record.position}") from None
