"""Every command of a run, each in a form that a running attempt may give it.

For rules that hold for all commands. `HISTORY` is what the commands build on; a test fails when
a command of `Run` is missing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from given_when_then import CREATED, OWNER, attempt, do, started

from tachograph.domain.gate import Facts
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from given_when_then import Do, Fact

    from tachograph.domain.event import Cause

HISTORY: tuple[Fact | Do, ...] = (
    CREATED,
    started(1),
    do(Run.start_phase, attempt(1), "open"),
    do(Run.start_phase, attempt(1), "parse"),
    do(Run.plan_batches, attempt(1), "parse", total=1, size=5, items_digest="items"),
    do(Run.complete_batch, attempt(1), "parse", 0, inputs=5, parsed=5),
    do(Run.end_phase, attempt(1), "parse"),
    do(Run.intend_effect, attempt(1), "mail"),
)
"""A run in its first attempt, with a phase still open and an effect in doubt."""

OWNED: dict[str, Callable[[Cause], Do]] = {
    "start_phase": lambda cause: do(Run.start_phase, cause, "new"),
    "plan_batches": lambda cause: do(
        Run.plan_batches, cause, "open", total=2, size=5, items_digest=None
    ),
    "complete_batch": lambda cause: do(Run.complete_batch, cause, "open", 0),
    "end_phase": lambda cause: do(Run.end_phase, cause, "open"),
    "save_checkpoint": lambda cause: do(Run.save_checkpoint, cause, state={"row": 7}),
    "complete_step": lambda cause: do(Run.complete_step, cause, "load(1)", 42),
    "intend_effect": lambda cause: do(Run.intend_effect, cause, "post"),
    "complete_effect": lambda cause: do(Run.complete_effect, cause, "mail"),
    "record_artifact": lambda cause: do(
        Run.record_artifact, cause, "report", path="r.html", size=9, sha256="ab"
    ),
    "report_progress": lambda cause: do(Run.report_progress, cause, 1, 2),
    "schedule_retry": lambda cause: do(Run.schedule_retry, cause, "parse", 1),
    "take_fallback": lambda cause: do(Run.take_fallback, cause, "large", "small"),
    "judge": lambda cause: do(Run.judge, cause, Facts(inputs=5, outputs=5)),
    "finish": lambda cause: do(Run.finish, cause, "failed"),
}
"""Commands that only the current attempt may give."""

ANYBODY: dict[str, Callable[[Cause], Do]] = {
    "allow_effect_retry": lambda cause: do(
        Run.allow_effect_retry, cause, "mail", "the outbox is empty"
    ),
    "complete_effect, settled by a person": lambda cause: do(
        Run.complete_effect, cause, "mail", reason="it is in the outbox"
    ),
    "cancel": lambda cause: do(Run.cancel, cause, "no longer wanted"),
    "expire": lambda cause: do(Run.expire, cause, "30 days old"),
    "block": lambda cause: do(Run.block, cause, "waits for the disk"),
}
"""Commands that a person may give as well, but no superseded attempt."""

TAKEOVER: dict[str, Callable[[Cause], Do]] = {
    "start_attempt": lambda cause: do(Run.start_attempt, cause, OWNER, live_owner=None),
}

REMARKS: dict[str, Callable[[Cause], Do]] = {
    "add_note": lambda cause: do(Run.add_note, cause, "looked at it"),
}
"""Commands that are allowed at any time: they move nothing."""

MOVING = OWNED | ANYBODY | TAKEOVER
"""Commands that move a run."""

EVERY_COMMAND = MOVING | REMARKS
