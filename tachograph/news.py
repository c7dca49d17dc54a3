"""What the log holds for those who want to hear of it: signals, in the order of the log.

A signal is told from the event that stands for it, so it can be told late, by whoever comes
next, and not twice: who hears it remembers the position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph import signals
from tachograph.domain.records import _Fields
from tachograph.resuming import Resumption

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.domain.run import Run
    from tachograph.runs import RunRepository
    from tachograph.signals import Signal

STALLED = "run.stall-detected"
RETURNED = "run.resume-returned"
NEEDED = "run.attention-raised"
PAGE = 500


class News(_Fields):
    """A signal, the position of its event, and the time of that in µs."""

    __slots__ = ("position", "signal", "time_us")

    def __init__(self, position: int, time_us: int, signal: Signal) -> None:
        self.position = position
        self.time_us = time_us
        self.signal = signal


def news(
    repository: RunRepository, *, after: int, up_to: int, command: str | None = None
) -> Iterator[News]:
    """Yield the signals of events with `after` < position <= `up_to`; of one command only.

    Each has an `id` of its own, the same whenever it is told, and its `kind`: alert, recovery
    or needs_attention.
    """
    while after < up_to:
        records = repository.log.read(
            after=after, up_to=up_to, topics=(STALLED, RETURNED, NEEDED), limit=PAGE
        )
        for record in records:
            signal = _signal(repository, record)
            if signal is not None and command in (None, signal["task_type"]):
                signal = {**signal, "id": f"{record.stream}:{record.version}"}
                yield News(record.position, record.time_us, signal)
        if len(records) < PAGE:
            return
        after = records[-1].position


def _signal(repository: RunRepository, record: Record) -> Signal | None:
    run = repository.get(str(record.stream), up_to=record.version)
    if run is None or record.absent:
        return None
    fields = repository.fields(record)
    if record.topic == STALLED:
        return _alert(run, fields["evidence"])
    if record.topic == NEEDED:
        signal = signals.needs_attention(run, fields["reason"], fields["detail"], record.time_us)
        return {**signal, "kind": "needs_attention"}
    return _recovery(repository, run, fields, record)


def _alert(run: Run, evidence: Any) -> Signal:
    said = evidence if isinstance(evidence, dict) else {}
    age_us = int(said.get("silent_seconds") or 0) * 1_000_000
    kind, reason = str(said.get("kind")), str(said.get("reason"))
    return {**signals.alert(run, kind, reason, age_us), "kind": "alert"}


def _recovery(
    repository: RunRepository, after: Run, fields: dict[str, Any], record: Record
) -> Signal | None:
    """Return the recovery that a resume was; None when it brought nothing, or a person sent it."""
    during = repository.get(after.id, up_to=record.version - 1)
    dispatch = during.dispatch if during is not None else None
    if not fields["progressed"] or dispatch is None or not dispatch["unattended"]:
        return None
    before = repository.get(after.id, up_to=dispatch["version"] - 1) or after
    done = Resumption(
        {"name": dispatch["adapter"]},
        dispatch["progress_version"],
        dispatch["epoch"],
        {},
        progressed=True,
        outcome=after.outcome or after.ended,
    )
    signal = signals.recovery(before, after, done, record.time_us)
    return {**signal, "kind": "recovery"}
