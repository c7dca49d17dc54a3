"""Why a run needs a person: the reasons, and what each says. Decides nothing.

The first four texts are those that tools which read a watchdog's report know.
"""

from __future__ import annotations

MAX_RETRIES = "max_retries_reached"
UNSAFE = "unsafe_to_retry"
NO_ADAPTER = "no_adapter"
RESUME_FAILED = "resume_failed"
EFFECTS_IN_DOUBT = "effects_in_doubt"
ARTIFACT_DAMAGED = "artifact_damaged"
APPROVAL = "approval:"
"""The name of the approval follows."""
REJECTED = "approval_rejected"
DEPENDENCY = "dependency_ended"
DEPENDENCY_CYCLE = "dependency_cycle"
WINDOW = "resume_window_passed"
NOT_JUDGED = "owner_not_judged"
ADAPTER_ASKS = "adapter_asks"
NOT_STOPPED = "not_stopped"
NOT_LOOKED_AT = "not_looked_at"
CARD_EDITED = "card_edited"
STATUS_UNKNOWN = "status_unknown"
STOPPED_EMPTY = "stopped_before_output"

TEXTS = {
    MAX_RETRIES: "max retries reached",
    UNSAFE: "task marked unsafe to auto-retry",
    NO_ADAPTER: "stale but no resume command or adapter configured",
    RESUME_FAILED: "auto-resume failed and retries are exhausted",
    EFFECTS_IN_DOUBT: "a side effect may have happened",
    ARTIFACT_DAMAGED: "an artifact is missing or damaged",
    REJECTED: "an approval was rejected",
    DEPENDENCY: "a run that it waits for ended without success",
    DEPENDENCY_CYCLE: "it waits for a run that waits for it",
    WINDOW: "left longer than its resume window",
    NOT_JUDGED: "whether its owner lives cannot be seen from here",
    ADAPTER_ASKS: "its adapter asks for a person",
    NOT_LOOKED_AT: "the watchdog cannot look at it",
    NOT_STOPPED: "its silent owner could not be stopped",
    CARD_EDITED: "its card was edited by hand",
    STATUS_UNKNOWN: "its card has a status that nobody knows",
    STOPPED_EMPTY: "a limit stopped it before anything came out",
}


def text(reason: str) -> str:
    """Return a reason for people.

    >>> text("no_adapter")
    'stale but no resume command or adapter configured'
    >>> text("approval:deploy"), text("of its own")
    ('waits for approval of deploy', 'of its own')
    """
    if reason.startswith(APPROVAL):
        return f"waits for approval of {reason.removeprefix(APPROVAL)}"
    return TEXTS.get(reason, reason)


RETRIED = frozenset({MAX_RETRIES, UNSAFE, NO_ADAPTER, RESUME_FAILED, ARTIFACT_DAMAGED})
"""Reasons that stand until the run gets further: looked at again at its next progress."""
OF_ATTEMPT = frozenset({NOT_JUDGED, NOT_STOPPED, ADAPTER_ASKS, STOPPED_EMPTY})
"""Reasons that concern one attempt: void when another one starts."""
OF_DEPENDENCIES = frozenset({DEPENDENCY, DEPENDENCY_CYCLE})
"""Reasons that are void when the run is made to wait for other runs."""
_TOLD = frozenset(
    {NOT_JUDGED, NOT_STOPPED, NOT_LOOKED_AT, CARD_EDITED, STATUS_UNKNOWN, STOPPED_EMPTY}
)
_PLANNED = RETRIED | OF_DEPENDENCIES | {EFFECTS_IN_DOUBT, REJECTED, WINDOW}


def holds(reason: str) -> bool:
    """Say whether no watchdog resumes the run while this is open.

    Not those that only tell something, nor an approval, which stands in the way itself.

    >>> holds("no_adapter"), holds("card_edited"), holds("approval:deploy")
    (True, False, False)
    """
    return reason not in _TOLD and not reason.startswith(APPROVAL)


def is_word(reason: str) -> bool:
    """Say whether this holds the run by word alone: no plan finds it out by itself.

    >>> is_word("adapter_asks"), is_word("a reason of a job's own"), is_word("no_adapter")
    (True, True, False)
    """
    return holds(reason) and reason not in _PLANNED
