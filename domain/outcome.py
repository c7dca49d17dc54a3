"""The one place that says what an outcome means. Nothing else compares outcome strings.

Sources: the outcome vocabulary and mappings of the job-run design (seven outcomes, command
statuses, step statuses, validator statuses). Where published code disagreed with itself (an
allow-list here, a deny-list there), one row per outcome and reason code decides.
"""

from __future__ import annotations

SUCCESS = "success"
SUCCESS_WITH_REVIEW = "success_with_review"
PARTIAL = "partial"
FAILED = "failed"
SKIPPED = "skipped"
EMPTY = "empty"
FAILED_SEMANTIC_EMPTY = "failed_semantic_empty"

OUTCOMES = (
    SUCCESS,
    SUCCESS_WITH_REVIEW,
    PARTIAL,
    FAILED,
    SKIPPED,
    EMPTY,
    FAILED_SEMANTIC_EMPTY,
)

# Reason codes that change what an outcome means; others are free.
STOPPED_BY_BUDGET = "stopped_by_budget"
STOPPED_BEFORE_OUTPUT = "stopped_before_output"
NO_ITEM_PARSED = "no_item_parsed"
NOT_JUDGED = "not_judged"
STOPPED_BY_PERSON = "stopped_by_person"
WAITS_FOR_APPROVAL = "waits_for_approval"
RATE_LIMITED = "rate_limited"
STILL_AT_WORK = "still_at_work"


class Traits:
    """What an outcome means for everything that acts on it.

    `terminal`: it absorbs, nothing moves the run any more (G6). `resumable`: a new attempt may go
    on from the last checkpoint. `keeps_checkpoint`: retention must not drop what a resume needs.
    `unattended`: the watchdog may do so where the job lets it. `fails_step`: an orchestrator step
    with it has failed. `withholds_guard`: the cadence guard is not written, the step is due
    again. `alerts`: a person should look at it: lists, pages and fault paths mark it, and a run
    that stopped without failing calls for attention.
    `validator_status`: ok, degraded or semantic_fail. `exit_code`: of a command that ends so.
    """

    __slots__ = (
        "alerts",
        "exit_code",
        "fails_step",
        "keeps_checkpoint",
        "resumable",
        "terminal",
        "unattended",
        "validator_status",
        "withholds_guard",
    )

    def __init__(
        self,
        *,
        terminal: bool,
        fails_step: bool,
        withholds_guard: bool,
        alerts: bool,
        validator_status: str,
        exit_code: int,
        unattended: bool = False,
    ) -> None:
        self.terminal = terminal
        self.unattended = unattended
        self.resumable = not terminal
        self.keeps_checkpoint = not terminal
        self.fails_step = fails_step
        self.withholds_guard = withholds_guard
        self.alerts = alerts
        self.validator_status = validator_status
        self.exit_code = exit_code


def _good(validator_status: str = "ok", *, alerts: bool = False) -> Traits:
    return Traits(
        terminal=True,
        fails_step=False,
        withholds_guard=False,
        alerts=alerts,
        validator_status=validator_status,
        exit_code=0,
    )


def _bad(validator_status: str, exit_code: int, *, unattended: bool = True) -> Traits:
    return Traits(
        terminal=False,
        fails_step=True,
        withholds_guard=True,
        alerts=True,
        validator_status=validator_status,
        exit_code=exit_code,
        unattended=unattended,
    )


def _waits(*, alerts: bool = False, unattended: bool = False) -> Traits:
    """Return what a stop means that is no failure: due again, by a schedule or a person."""
    return Traits(
        terminal=False,
        fails_step=False,
        withholds_guard=True,
        alerts=alerts,
        validator_status="degraded",
        exit_code=75,
        unattended=unattended,
    )


_TABLE: dict[tuple[str, str | None], Traits] = {
    (SUCCESS, None): _good(),
    (SUCCESS_WITH_REVIEW, None): _good("degraded", alerts=True),
    (SKIPPED, None): _good(),
    (EMPTY, None): _good(),
    (PARTIAL, None): _bad("degraded", 75),
    # A bounded run that made progress is healthy: due again, but no failure and no alarm.
    (PARTIAL, STOPPED_BY_BUDGET): _waits(),
    # One that stopped before anything came out may do so every night: a person should know.
    (PARTIAL, STOPPED_BEFORE_OUTPUT): _waits(alerts=True),
    # Ctrl-C: what a person has stopped, no watchdog starts again.
    (PARTIAL, STOPPED_BY_PERSON): _waits(),
    # It goes on when the approval is given.
    (PARTIAL, WAITS_FOR_APPROVAL): _waits(),
    # The provider said "not now" (HTTP 429): nothing is broken, and asking at once would not help.
    (PARTIAL, RATE_LIMITED): _waits(),
    # What a killed attempt has left at work: once that has ended, the run can go on by itself.
    (PARTIAL, STILL_AT_WORK): _waits(unattended=True),
    (FAILED, None): _bad("semantic_fail", 1),
    # The model or parser was asked and nothing came out: asking again unseen changes nothing.
    (FAILED_SEMANTIC_EMPTY, None): _bad("semantic_fail", 7, unattended=False),
}


def is_outcome(text: str) -> bool:
    """Say whether the text is one of the seven outcomes."""
    return text in OUTCOMES


def traits(outcome: str, reason_code: str | None = None) -> Traits:
    """Return what an outcome means, by its reason code where that matters.

    Raises KeyError for a text that is no outcome.

    >>> traits("partial").fails_step, traits("partial", "stopped_by_budget").fails_step
    (True, False)
    """
    row = _TABLE.get((outcome, reason_code))
    return row if row is not None else _TABLE[(outcome, None)]


def is_terminal(outcome: str | None, reason_code: str | None = None) -> bool:
    """Say whether a run with this outcome can never move again; False while it has none."""
    return outcome is not None and traits(outcome, reason_code).terminal


_DUE_AGAIN = {(PARTIAL, STOPPED_BY_BUDGET): 1.0, (PARTIAL, WAITS_FOR_APPROVAL): 60.0}


def due_again_seconds(outcome: str, reason_code: str | None) -> float | None:
    """Return after how long a job whose run stopped without failing is to be taken up again.

    None for a run that is over, or that failed.
    """
    return _DUE_AGAIN.get((outcome, reason_code or ""))


_VALIDATOR_STATUSES = ("ok", "degraded", "semantic_fail")
_OF_WORK = (SKIPPED, EMPTY, SUCCESS)
"""Outcomes that mean no harm, from the one that says least that work was done."""


def severity(outcome: str, reason_code: str | None = None) -> tuple[int, ...]:
    """Return what outcomes are compared by: the greater, the worse, or the more was done.

    >>> severity("partial") > severity("partial", "stopped_by_budget") > severity("success")
    True
    """
    row = traits(outcome, reason_code)
    return (
        row.fails_step,
        row.withholds_guard,
        _VALIDATOR_STATUSES.index(row.validator_status),
        outcome == FAILED_SEMANTIC_EMPTY,
        row.alerts,
        _OF_WORK.index(outcome) if outcome in _OF_WORK else len(_OF_WORK),
    )


def for_exit_code(code: int) -> tuple[str, str]:
    """Return outcome and reason code of a command that reported nothing but its exit code.

    The codes are those that our own commands end with: see `Traits.exit_code`.

    >>> for_exit_code(0), for_exit_code(75), for_exit_code(7)
    (('success', 'exit_code'), ('partial', 'try_later'), ('failed_semantic_empty', 'exit_code'))
    """
    if code == 0:
        return SUCCESS, "exit_code"
    if code == traits(PARTIAL).exit_code:
        return PARTIAL, "try_later"
    if code == traits(FAILED_SEMANTIC_EMPTY).exit_code:
        return FAILED_SEMANTIC_EMPTY, "exit_code"
    return FAILED, "exit_code"


_COMMAND_STATUS = {
    "success_analyzed": SUCCESS,
    "success_no_incidents": EMPTY,
    "skipped_cooldown": SKIPPED,
    "skipped_concurrency": SKIPPED,
    "failed_partial": PARTIAL,
    "failed_suspect_zero_parsed": FAILED_SEMANTIC_EMPTY,
    "semantic_empty": FAILED_SEMANTIC_EMPTY,  # a marker printed in logs
    "failed_parse": FAILED,
    "failed": FAILED,
    "monitoring": SUCCESS_WITH_REVIEW,  # a later addition: degraded, never blocks
}


def from_command_status(status: str | None) -> str:
    """Map the status a command prints to an outcome; anything unknown is `failed`.

    >>> from_command_status("failed_suspect_zero_parsed"), from_command_status("surprise")
    ('failed_semantic_empty', 'failed')
    """
    if status in OUTCOMES:
        return str(status)
    return _COMMAND_STATUS.get(status or "", FAILED)


def is_command_status(status: object) -> bool:
    """Say whether `from_command_status` knows a text, or takes it for `failed`."""
    return status in OUTCOMES or (isinstance(status, str) and status in _COMMAND_STATUS)


_STEP_STATUS = {
    "ok": SUCCESS,
    "skipped_guard": SKIPPED,
    "skipped_gate": SKIPPED,
    "skipped_dep": SKIPPED,
    "skipped_missing_runner": SKIPPED,
    "deferred": PARTIAL,
    "rate_limited": PARTIAL,
    "failed": FAILED,
}

STEP_STATUSES = tuple(_STEP_STATUS)


def from_step_status(status: str, nested: str | None = None) -> str:
    """Map an orchestrator's step status to an outcome; a nested run's outcome overrides `ok`.

    `nested` may be the outcome or the status of the command, old or new; anything unknown is
    `failed`. Raises KeyError for a text that is no step status.
    """
    outcome = _STEP_STATUS[status]
    return from_command_status(nested) if status == "ok" and nested is not None else outcome


def for_light_run(
    *,
    skipped: bool = False,
    dry_run: bool = False,
    partial_failure: bool = False,
    semantic_empty: bool = False,
    inputs: int = 0,
    outputs: int = 0,
) -> str:
    """Decide the outcome of a run without checkpoints; the first rule that holds wins."""
    if skipped or dry_run:
        return SKIPPED
    if partial_failure:
        return PARTIAL
    if semantic_empty:
        return FAILED_SEMANTIC_EMPTY
    return SUCCESS if inputs and outputs else EMPTY


def phase_status(outcome: str) -> str:
    """Return the status of a phase that ended with this outcome: completed or failed."""
    return "completed" if traits(outcome).terminal else "failed"
