"""Every command of a run, each in a form that a running attempt may give it.

For rules that hold for all commands. `HISTORY` is what the commands build on; a test fails when
a command of `Run` is missing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from given_when_then import CREATED, OWNER, attempt, do, started

from tachograph.domain.counting import Counted
from tachograph.domain.default_policy import default_policy
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import Facts, judge
from tachograph.domain.recovery import Recovery
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
    do(Run.request_approval, attempt(1), "deploy", subject={"v": 1}, subject_digest="d1"),
    do(Run.raise_attention, attempt(1), "no_adapter"),
    do(Run.plan_maintenance, attempt(1), "cycle", ["compact"]),
    do(Run.dispatch_resume, attempt(1), "jobs:resume", {"unattended": True}),
)
"""A run in its first attempt: a phase is open, an effect in doubt, an approval and a person
asked for, and a resume under way."""

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
    "receive_answer": lambda cause: do(Run.receive_answer, cause, asked=5, answered=5, parsed=4),
    "plan_maintenance": lambda cause: do(Run.plan_maintenance, cause, "nightly", ["prune"]),
    "start_maintenance_step": lambda cause: do(Run.start_maintenance_step, cause, "compact"),
    "end_maintenance_step": lambda cause: do(
        Run.end_maintenance_step, cause, "compact", "ok", "12 files"
    ),
    "finish": lambda cause: do(Run.finish, cause, "failed"),
    "start_worker": lambda cause: do(Run.start_worker, cause, {**OWNER, "pid": 18}),
    "request_approval": lambda cause: do(
        Run.request_approval, cause, "publish", subject="v2", subject_digest="d2"
    ),
    "dispatch_resume": lambda cause: do(Run.dispatch_resume, cause, "jobs:other", {}),
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
    "declare_recovery": lambda cause: do(
        Run.declare_recovery, cause, Recovery(adapter="jobs:resume", auto_resume=True)
    ),
    "depend_on": lambda cause: do(Run.depend_on, cause, ["job-collect"]),
    "approve": lambda cause: do(Run.approve, cause, "deploy", "looks right"),
    "reject": lambda cause: do(Run.reject, cause, "deploy", "not on a Friday"),
    "detect_stall": lambda cause: do(
        Run.detect_stall, cause, "gone", {"reason": "process 17 has ended"}
    ),
    "expect": lambda cause: do(Run.expect, cause, Expectations(inputs=5)),
    "raise_attention": lambda cause: do(Run.raise_attention, cause, "effects_in_doubt", "mail"),
}
"""Commands that a person may give as well, but no superseded attempt."""

TAKEOVER: dict[str, Callable[[Cause], Do]] = {
    "start_attempt": lambda cause: do(Run.start_attempt, cause, OWNER, live_owner=None),
}

REMARKS: dict[str, Callable[[Cause], Do]] = {
    "add_note": lambda cause: do(Run.add_note, cause, "looked at it"),
    "archive": lambda cause: do(Run.archive, cause, "old.tar.zst", "ab"),
}

BOOKKEEPING: dict[str, Callable[[Cause], Do]] = {
    "change_card": lambda cause: do(
        Run.change_card, cause, {"notes": "ask first"}, [{"event": "update"}]
    ),
    "return_resume": lambda cause: do(Run.return_resume, cause, {"exit_code": 0}),
    "record_origin": lambda cause: do(Run.record_origin, cause, {"kind": "job-runs"}),
    "clear_attention": lambda cause: do(Run.clear_attention, cause, "no_adapter"),
    "record_exit_validation": lambda cause: do(
        Run.record_exit_validation, cause, {"maintenanceStatus": "success"}, "written"
    ),
    "record_files_removed": lambda cause: do(
        Run.record_files_removed, cause, "checkpoint", ["/a/b.json"], 12, "success-drops-checkpoint"
    ),
}
"""Commands that a finished run takes too, but from no superseded attempt."""
"""Commands that are allowed to anybody at any time: they move nothing."""

AFTERWARDS: dict[str, Callable[[Cause], Do]] = {
    "revise_verdict": lambda cause: do(
        Run.revise_verdict,
        cause,
        judge(Facts(inputs=5, outputs=0)),
        Counted(Facts(inputs=5, outputs=0), {}, None),
        default_policy(),
        "blank answers had passed",
    ),
    "inherit": lambda cause: do(
        Run.inherit, cause, "run.step-completed", {"key": "load(1)", "result": 42}, epoch=1
    ),
    "record_bodies_archived": lambda cause: do(
        Run.record_bodies_archived, cause, "17.zst", sha256="ab", up_to=9, records=9
    ),
    "erase_bodies": lambda cause: do(Run.erase_bodies, cause, "it names a customer", records=9),
}
"""Commands that a run takes only when no attempt is open."""

MOVING = OWNED | ANYBODY | TAKEOVER
"""Commands that move a run."""

EVERY_COMMAND = MOVING | BOOKKEEPING | REMARKS
