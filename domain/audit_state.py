"""The part of a run's state that its verdict is made of: what was expected, asked and answered.

Facts only, folded from events: it decides nothing and refuses nothing.
"""

from __future__ import annotations

from tachograph.domain.recovery_state import RecoveryState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.answers import Answers

    Fields = dict[str, Any]

FORK = "fork"
"""Kind of origin of a run that took over what another one had done."""
LOOKED_UP = frozenset({"batches_done", "batches_missing", "files_expected", "files_present"})
"""Facts of a verdict that may have no evidence although no job states them."""


class AuditState(RecoveryState):
    """What a verdict needs to know of a run besides its phases."""

    def __init__(self) -> None:
        super().__init__()
        self.expectations: Any = None
        """Fields of `domain.expectations.Expectations`; None when nothing was declared."""
        self.expectations_version = 0
        self.answers: dict[str, Answers] = {}
        """By phase; under the empty name what belongs to none."""
        self.verdict: Fields | None = None
        """The gate's last judgement of this attempt: gate, outcome, rule, reason_code, reason, its
        version, and the facts that the job stated for it."""
        self.revision: Fields | None = None
        """The last judgement of this attempt by another policy: outcome, rule, reason_code, reason,
        version."""
        self.origin: Any = None
        """Where the run comes from, when it was not recorded as it happened."""
        self.bodies: str | None = None
        """`archived` or `erased`, once its events' bodies are no longer in the log; `gone` as long
        as nothing says which of the two it was."""
        self.validation: Fields | None = None
        """What the validation of a cron job found: its version, and what became of the guard."""


def attempt_started(run: AuditState, fields: Fields) -> None:
    """Forget a deadline that has passed: it was that of an earlier attempt."""
    deadline_us = (run.expectations or {}).get("deadline_us")
    if deadline_us is not None and deadline_us <= fields["time_us"]:
        run.expectations = {
            name: value for name, value in run.expectations.items() if name != "deadline_us"
        }


def _expectations_declared(run: AuditState, fields: Fields) -> None:
    run.expectations = fields["expectations"]
    run.expectations_version = fields["originator_version"]


def _answer_received(run: AuditState, fields: Fields) -> None:
    from tachograph.domain.answers import Answers  # most short commands meet none

    run.answers.setdefault(fields["phase"] or "", Answers()).take(fields)


def _judged(run: AuditState, fields: Fields) -> None:
    names = ("gate", "outcome", "rule", "reason_code", "reason")
    run.verdict = {name: fields[name] for name in names}
    run.verdict["version"] = fields["originator_version"]
    run.verdict["stated"] = {
        name: value
        for name, value in fields["facts"].items()
        if value is not None and name not in fields["evidence"] and name not in LOOKED_UP
    }


def _verdict_revised(run: AuditState, fields: Fields) -> None:
    names = ("outcome", "rule", "reason_code", "reason")
    run.revision = {name: fields[name] for name in names}
    run.revision["version"] = fields["originator_version"]


def _origin_recorded(run: AuditState, fields: Fields) -> None:
    run.origin = fields["origin"]
    if isinstance(run.origin, dict) and run.origin.get("kind") == FORK:
        # Its work is of another time; it lies there untouched only from now on.
        run.worked_us = fields["time_us"]


def _exit_validated(run: AuditState, fields: Fields) -> None:
    run.validation = {"version": fields["originator_version"], "guard": fields["guard"]}


def _files_removed(_run: AuditState, _fields: Fields) -> None:
    """Change nothing: a run's own files are a projection of it."""


HANDLERS: dict[str, Callable[[AuditState, Fields], None]] = {
    "run.expectations-declared": _expectations_declared,
    "run.answer-received": _answer_received,
    "run.semantic-gate-judged": _judged,
    "run.verdict-revised": _verdict_revised,
    "run.origin-recorded": _origin_recorded,
    "run.exit-validated": _exit_validated,
    "run.files-removed": _files_removed,
}
"""What each event that the audit cares for changes."""
