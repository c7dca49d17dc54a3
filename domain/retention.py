"""How long the files of a run are kept: rules as data. Removes nothing, reads no clock.

The log is not meant here: these are files that can be made again from it.
"""

from __future__ import annotations

from tachograph.domain import bodies
from tachograph.domain.artifact_places import CHECKPOINT, EVENTS, REPORT, SUMMARY, VALIDATION
from tachograph.domain.outcome import traits
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.run_state import RunState

SPOOL = "spool"
"""What an adapter wrote to while it was at work."""
TEMPORARY = "temporary"
"""What a writer that was killed has left."""

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000

GOES_ON = "goes_on"
SUCCEEDED = "succeeded"
GIVEN_UP = "given_up"
ERASED = bodies.ERASED
ORCHESTRATED = "orchestrated"
LEFT = "left"
"""How a run stands: it may go on, it ended well, a person ended it, its content was destroyed, it
was an orchestrator run that has ended; and what belongs to no state of a run."""


class Rule(_Fields):
    """Files of these kinds go, `after_us` microseconds after the end of a run that stands so."""

    __slots__ = ("after_us", "id", "kinds", "standing", "text")

    def __init__(
        self, rule_id: str, standing: str, kinds: tuple[str, ...], after_us: int, text: str
    ) -> None:
        self.id = rule_id
        self.standing = standing
        self.kinds = kinds
        self.after_us = after_us
        self.text = text


RULES = (
    Rule(
        "success-drops-checkpoint", SUCCEEDED, (CHECKPOINT,), 0,
        "Nothing resumes a run that ended well: its checkpoint goes at once.",
    ),
    Rule(
        "success-drops-events", SUCCEEDED, (EVENTS,), 0,
        "The events of a run that ended well are in the log: its events.jsonl goes at once.",
    ),
    Rule(
        "success-keeps-summary-30d", SUCCEEDED, (SUMMARY, REPORT, VALIDATION), 30 * DAY_US,
        "The summary and the report of a run that ended well stay for 30 days.",
    ),
    Rule(
        "given-up-keeps-30d", GIVEN_UP,
        (CHECKPOINT, EVENTS, SUMMARY, REPORT, VALIDATION), 30 * DAY_US,
        "What a run left that was cancelled or has expired stays for 30 days.",
    ),
    Rule(
        "orchestrator-keeps-30d", ORCHESTRATED, (SUMMARY, VALIDATION, REPORT), 30 * DAY_US,
        "Summary, validation and report of an orchestrator run stay for 30 days.",
    ),
    Rule(
        "erased-drops-all", ERASED, (CHECKPOINT, EVENTS, SUMMARY, REPORT, VALIDATION), 0,
        "Nothing may tell what a run was about whose content was destroyed.",
    ),
    Rule(
        "spool-of-finished", LEFT, (SPOOL,), DAY_US,
        "What adapters of a run have written goes a day after the run has ended.",
    ),
    Rule(
        "stale-temporary", LEFT, (TEMPORARY,), HOUR_US,
        "A temporary file that nobody has written to for an hour goes.",
    ),
)  # fmt: skip
"""Every rule. A run that may go on keeps everything: no rule is about it."""
BY_ID = {rule.id: rule for rule in RULES}


def standing(run: RunState) -> str:
    """Return how a run stands, as the rules tell runs apart."""
    if run.ended == ERASED:
        return ERASED
    if run.maintenance is not None:
        has_ended = run.ended is not None or (run.outcome is not None and not run.attempt_open)
        return ORCHESTRATED if has_ended else GOES_ON
    if run.ended is not None:
        return GIVEN_UP
    if run.outcome is None or traits(run.outcome, run.reason_code).keeps_checkpoint:
        return GOES_ON
    return SUCCEEDED


def rule_for(
    run: RunState, kind: str, now_us: int | None = None, *, older_than_us: int | None = None
) -> Rule | None:
    """Return the rule by which a file of this kind goes now; None when it stays.

    Without `now_us` only what goes at once goes. `older_than_us` stands in for the days of the
    rules that have some.
    """
    stands = standing(run)
    for rule in RULES:
        if rule.standing != stands or kind not in rule.kinds:
            continue
        if not rule.after_us:
            return rule
        after_us = rule.after_us if older_than_us is None else older_than_us
        if now_us is not None and run.ended_us is not None and now_us - run.ended_us >= after_us:
            return rule
    return None


def is_left(kind: str, changed_us: int, now_us: int) -> Rule | None:
    """Return the rule by which a leftover goes that was last changed at a time, or None."""
    for rule in RULES:
        if rule.standing == LEFT and kind in rule.kinds and now_us - changed_us >= rule.after_us:
            return rule
    return None
