"""Record in a run what was not recorded as it happened: at its own times, by the rules of a run.

Nothing is appended to the log here: the run's pending events are the caller's to save.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tachograph.domain.attribution import NOT_ATTRIBUTED, attribute
from tachograph.domain.checkpoint_shapes import BATCH, offset_state, rest_state
from tachograph.domain.event import Cause
from tachograph.domain.owner import UNOWNED, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tachograph.domain.run import Run

    Fields = dict[str, Any]
    Store = Callable[[Any, str], Any]

SOURCE = "import"
"""Source of the notes that an import leaves in a run."""
NOBODY: Fields = Owner(None, kind=UNOWNED).to_fields()
"""Owner of an attempt that nobody here has seen: it is never taken for alive."""


class Voice:
    """Who tells, and to which run.

    `store` puts large values away, `recorded` gives the items of the batches of a phase that the
    run has already.
    """

    def __init__(
        self,
        run: Run,
        by: Cause,
        store: Store,
        recorded: Callable[[str], Iterable[Any]] = lambda _phase: (),
    ) -> None:
        self.run = run
        self.store = store
        self.recorded = recorded
        self.last_us = run.updated_us
        """The time that was told last."""
        self._by = by

    def at(self, time_us: int | None = None) -> Cause:
        """Return a cause of the run's present attempt; without a time, of the last one told."""
        self.last_us = self.last_us if time_us is None else time_us
        by = self._by
        return Cause(self.last_us, by.actor, by.host, by.pid, self.run.epoch)

    def note(self, text: str, time_us: int | None = None, *, level: str = "note") -> None:
        """Leave a remark in the run."""
        self.run.add_note(self.at(time_us), text, level=level, source=SOURCE)


def tell_batches(
    voice: Voice,
    phase: str,
    value: Mapping[str, Any],
    time_us: int | None,
    *,
    items_digest: str | None = None,
    last_inputs: int | None = None,
    times_us: Mapping[int, int | None] = MappingProxyType({}),
) -> str:
    """Record the finished batches of a batch checkpoint that a running phase does not have yet.

    `last_inputs` is the number of items in the very last batch, `times_us` when a batch was
    finished, where that is known. Returns how the items were given to the batches. Raises
    InputsChangedError for another plan.
    """
    run = voice.run
    size, total = value["batchSize"], value["totalBatches"]
    run.plan_batches(voice.at(time_us), phase, total=total, size=size, items_digest=items_digest)
    known = run.phases[phase].done
    recorded = voice.recorded(phase) if known.ranges else ()
    shares = attribute(value, known=known, recorded=recorded)
    is_told = shares.how != NOT_ATTRIBUTED
    for index, items in sorted(shares.outputs.items()):
        in_last = len(items) if last_inputs is None else last_inputs
        went_in = size if index < total - 1 else in_last
        run.complete_batch(
            voice.at(times_us.get(index)),
            phase,
            index,
            inputs=went_in if is_told else None,  # else the gate would miss what came out
            parsed=len(items) if is_told else None,
            output=voice.store(items, "output") if is_told else None,
        )
    own = value["incidentsHash"] == run.fingerprint
    voice.at(time_us)
    _tell_rest(
        voice,
        phase,
        rest_state(
            incidents_hash=None if own else value["incidentsHash"],
            diagnostics=value.get("diagnostics", {}),
            unattributed=shares.unattributed,
        ),
    )
    return shares.how


def _tell_rest(voice: Voice, phase: str, rest: Fields) -> None:
    """Record what no batch of the phase holds, where that is news."""
    saved = voice.run.checkpoint
    stored = voice.store(rest, "state")
    if saved is not None and (saved["kind"], saved["phase"]) == (BATCH, phase):
        is_news = saved["state"] != stored
    else:
        is_news = any(rest.values())
    if is_news:
        voice.run.save_checkpoint(voice.at(), phase=phase, kind=BATCH, state=stored)


def tell_offset(
    voice: Voice, phase: str | None, value: Mapping[str, Any], time_us: int | None
) -> None:
    """Record an offset checkpoint."""
    cause = voice.at(time_us)
    voice.run.save_checkpoint(cause, phase=phase, kind="offset", state=offset_state(value))


def tell_state(voice: Voice, phase: str | None, value: Any, time_us: int | None) -> None:
    """Record a checkpoint of a shape of its own."""
    voice.run.save_checkpoint(voice.at(time_us), phase=phase, state=voice.store(value, "state"))
