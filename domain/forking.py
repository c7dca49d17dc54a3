"""The command by which a new run takes over what another one has done: a fork. Reads no log.

A fork shares the work of its source, never who did it or how it was judged.
"""

from __future__ import annotations

from tachograph.domain import errors
from tachograph.domain.event import COMMON
from tachograph.domain.events import EVENT_TYPES
from tachograph.domain.recovery_state import ending_key
from tachograph.domain.run_maintenance import MaintenanceCommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.run_state import RunState

    Fields = dict[str, Any]

SHARED = frozenset(
    {
        "run.expectations-declared",
        "run.phase-started",
        "run.phase-ended",
        "run.batches-planned",
        "run.batch-completed",
        "run.answer-received",
        "run.checkpoint-saved",
        "run.step-completed",
        "run.progress-reported",
        "run.artifact-recorded",
        "run.effect-intended",
        "run.effect-done",
    }
)
"""What a fork records anew. Attempts, resumes, approvals, remarks and verdicts stay the source's:
nobody has agreed to anything in the new run, and it is judged by itself. That an effect may be
done again was said of one run, and allows one execution: in the fork it is in doubt."""


class ForkingCommands(MaintenanceCommands):
    """What a fork records before its first attempt."""

    def inherit(self, cause: Cause, topic: str, fields: Fields, *, epoch: int) -> bool:
        """Record one event of the source anew, and return whether there was anything to record.

        `fields` are those of the source's event, `epoch` is the attempt that the source was in.
        `cause` holds who forks, and when the work was done. Raises ForkRefusedError once the run
        has an attempt or an origin.
        """
        if self.epoch or self.origin is not None or self.finished:
            raise errors.ForkRefusedError(self.id, "it has begun already, so it inherits no more")
        own = inherited(topic, fields, epoch)
        if own is not None:
            self._record(EVENT_TYPES[topic], cause, **own)
        return own is not None


def inherited(topic: str, fields: Fields, epoch: int) -> Fields | None:
    """Return what a fork records of an event of its source; None for nothing.

    A deadline was that of the source. How a wrapped command ended belongs to its attempt.
    """
    if topic not in SHARED:
        return None
    if topic == "run.step-completed" and fields["key"] == ending_key(epoch):
        return None
    own = {name: value for name, value in fields.items() if name not in COMMON}
    if topic == "run.expectations-declared":
        said = own["expectations"] or {}
        own["expectations"] = {name: value for name, value in said.items() if name != "deadline_us"}
    return own


def check_source(source: RunState) -> None:
    """Refuse a source that cannot be shared. Raises ForkRefusedError."""
    if source.bodies == "erased":
        raise errors.ForkRefusedError(source.id, f"it was erased {source.reason}")
    if source.maintenance is not None:
        why = "it is an orchestrator run: its work is done by other runs. Fork one of those"
        raise errors.ForkRefusedError(source.id, why)


def repeated_effects(run: RunState, at: RunState) -> list[str]:
    """Return the effects of a run that a fork would do once more, though that may do harm (G10).

    `at` is the source of the fork as it was at its point: what was begun after it, in the source
    or in another run of its family, the fork does not know of. What `at` knows is done in the
    fork, or in doubt.
    """
    return [
        key
        for key, effect in run.effects.items()
        if not effect["idempotent"] and key not in at.effects
    ]


def begun_in(epoch: int) -> str:
    """Say where an effect was begun, from the attempt that a run has recorded it in.

    >>> begun_in(2)
    'attempt 2'
    """
    return f"attempt {epoch}" if epoch else "the run that this one was forked from"
