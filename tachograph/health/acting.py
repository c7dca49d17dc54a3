"""What a maintenance cycle does for each repair action, once the gate has let it begin."""

from __future__ import annotations

from tachograph.domain.queue_selection import Selection
from tachograph.domain.queued_job import CANCELLED, DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Protocol, Self

    from tachograph.queues.gatekeeping import Permit
    from tachograph.queues.queueing import Queueing
    from tachograph.queues.repairing import Gate, Repairing, RepairResult
    from tachograph.queues.sweeping import Sweeper

    class CheckedViews(Protocol):
        """Views that can be compared with the log, and made anew."""

        def wrong(self) -> tuple[int, str | None]:
            """Return how many rows differ from the log, and why a view cannot go on, or None."""
            ...

        def rebuild(self) -> None:
            """Make all views anew. Raises ProjectionStoppedError where that does not help."""
            ...


class Held:
    """A permit that was given already, for what asks a gate itself: its block ends nothing."""

    def __init__(self, permit: Permit) -> None:
        self._permit = permit
        self.repair = permit.repair

    def step(self, affected: int, detail: Any = None) -> None:
        """Record that a part is done and durable."""
        self._permit.step(affected, detail)

    def done(
        self,
        affected: int | None = None,
        message: str = "",
        *,
        success: bool = True,
        watched: Sequence[str] = (),
    ) -> None:
        """Say what came of it."""
        self._permit.done(affected, message, success=success, watched=watched)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        return None


def held(permit: Permit) -> Gate:
    """Return a gate that lets through what this permit was given for."""

    def gate(action: str, reason: str, selection: dict[str, Any]) -> Held:  # noqa: ARG001
        return Held(permit)

    return gate


def requeue_dead(repairing: Repairing, permit: Permit) -> None:
    """Let dead jobs wait again: 50, of all queues by fair shares."""
    _tell(permit, repairing.requeue(Selection(), permit.reason))


def cancel_obsolete(repairing: Repairing, permit: Permit) -> None:
    """Cancel jobs that have been dead for too long; not completed ones, which harm nobody."""
    _tell(permit, repairing.cancel(Selection(statuses=[DEAD]), permit.reason))


def prune_terminal(repairing: Repairing, permit: Permit) -> None:
    """Prune jobs that have been cancelled for long."""
    _tell(permit, repairing.prune(Selection(statuses=[CANCELLED]), permit.reason))


def sweep(sweeper: Sweeper, permit: Permit) -> None:
    """Prune the jobs whose time is over."""
    sweeper.sweep(permit.reason)


def _tell(permit: Permit, result: RepairResult) -> None:
    """Say that nothing matched: then nothing was asked of the gate."""
    if result.repair is None:
        permit.done(0, result.message, success=result.success)


def release_stale(queueing: Queueing, permit: Permit) -> None:
    """Take jobs from holders that are gone, or have been silent for too long."""
    released = queueing.release_stale()
    watched = [*released.pending, *released.dead]
    message = f"released {len(released.pending)} stale lease(s) back to pending"
    if released.dead:
        message += f" and dead-lettered {len(released.dead)} exhausted job(s)"
    permit.done(len(watched), message, watched=watched)


def check_views(views: CheckedViews, permit: Permit) -> None:
    """Compare the views with the log, and make them anew where they differ or have stopped."""
    differences, stopped = views.wrong()
    if not differences and stopped is None:
        permit.done(0, "the views are what the log says")
        return
    views.rebuild()
    left, still = views.wrong()
    if left or still is not None:
        why = still or f"{left} row(s) differ"
        permit.done(0, f"making the views anew did not help: {why}", success=False)
        return
    what = stopped or f"{differences} row(s) differed"
    permit.done(max(1, differences), f"made the views anew: {what}")


def clear_readers(clear: Callable[[], int], permit: Permit) -> None:
    """Free the slots of killed readers."""
    cleared = clear()
    permit.done(cleared, f"cleared {cleared} slot(s) of killed readers")
