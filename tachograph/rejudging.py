"""Judge runs once more by another policy, and record where that judges otherwise.

History is never rewritten: a revision is one more event of the run. A run's outcome stays (G6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import errors, outcome
from tachograph.domain.counting import Counted
from tachograph.domain.facts import Facts
from tachograph.domain.gate import judge
from tachograph.domain.records import _Fields
from tachograph.recounting import BEFORE_RULES_HAD_VERSIONS, recount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.gate import Judgement
    from tachograph.domain.policy import Policy
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.ports import Progress
    from tachograph.recounting import Recount
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]
    Execute = Callable[[str, Callable[[Run, Cause], bool]], bool]
    """Gives a command to a run, again where another writer was first; returns what it returned."""

SAME, DIFFERENT, UNJUDGEABLE, LEFT_ALONE, REVISED = (
    "same",
    "different",
    "unjudgeable",
    "skipped",
    "revised",
)
STATES = (SAME, DIFFERENT, UNJUDGEABLE, LEFT_ALONE, REVISED)
_COMPARED = ("outcome", "rule", "reason_code")


class Rejudged(_Fields):
    """What another policy says of one run.

    `recorded` is its newest verdict or revision (outcome, rule, reason_code, reason, version), or
    the outcome that it was given without one. `judgement` is what the policy concludes from what
    was `counted`; None where nothing can be concluded, and `why` says so. `other_rules` says that
    a policy of the same id and version, with other rules, has judged it before.
    """

    __slots__ = (
        "counted",
        "judgement",
        "other_rules",
        "recorded",
        "run_id",
        "state",
        "verdict_version",
        "why",
    )

    def __init__(
        self, run_id: str, state: str, why: str | None = None, recorded: Fields | None = None
    ) -> None:
        self.run_id = run_id
        self.state = state
        self.why = why
        self.recorded = recorded
        self.judgement: Judgement | None = None
        self.counted: Counted | None = None
        self.other_rules = False
        self.verdict_version = 0
        """Version of the verdict that was judged anew; 0 without one."""


def rejudge(
    repository: RunRepository,
    payloads: Payloads,
    run_ids: Iterable[str],
    policy: Policy,
    progress: Progress | None = None,
    total: int | None = None,
) -> list[Rejudged]:
    """Return what a policy says of runs that were judged, or that ended unjudged. Records nothing.

    Raises RunNotFoundError.
    """
    found = []
    for done, run_id in enumerate(run_ids, 1):
        found.append(_rejudged(repository, payloads, run_id, policy))
        if progress is not None:
            progress(done, total)
    return found


def revise(
    execute: Execute,
    rejudged: Iterable[Rejudged],
    policy: Policy,
    reason: str,
    progress: Progress | None = None,
    total: int | None = None,
) -> None:
    """Record a revision in each run that is judged otherwise, one after the other.

    Each is durable by itself; a second time records nothing. `policy` is one whose rules are in
    the store where they have to be, see `judging.kept_policy`. What became of each is its new
    state.
    """
    for done, each in enumerate(rejudged, 1):
        if each.state == DIFFERENT:
            _revise(execute, each, policy, reason)
        if progress is not None:
            progress(done, total)


def _rejudged(
    repository: RunRepository, payloads: Payloads, run_id: str, policy: Policy
) -> Rejudged:
    try:
        found = recount(repository, payloads, run_id)
        run = repository.get(run_id)
    except errors.BodyLostError as error:
        return Rejudged(run_id, UNJUDGEABLE, str(error).rstrip("."))
    if found is None or run is None:
        raise errors.RunNotFoundError(run_id, "")
    recorded = _recorded(run)
    obstacle = _obstacle(run)
    if obstacle is not None:
        return Rejudged(run_id, *obstacle, recorded)
    counted = _counted(found, run)
    result = Rejudged(run_id, SAME, None, recorded)
    result.judgement = judge(counted.facts, policy)
    result.counted = counted
    result.other_rules = _has_other_rules(repository, run_id, recorded, policy)
    if found.verdict is not None:
        result.verdict_version = found.verdict["version"]
    elif result.judgement.reason_code == outcome.NOT_JUDGED:
        result.state, result.judgement = UNJUDGEABLE, None
        result.why = "it recorded nothing to judge it by"
        return result
    newest = recorded or {}
    if any(newest.get(name) != getattr(result.judgement, name) for name in _COMPARED):
        result.state = DIFFERENT
    return result


def _has_other_rules(
    repository: RunRepository, run_id: str, recorded: Fields | None, policy: Policy
) -> bool:
    """Say whether the newest verdict is of a policy that only calls itself the same."""
    version = (recorded or {}).get("version")
    if version is None:
        return False
    (record,) = repository.log.read_stream(run_id, after=version - 1, up_to=version)
    named = repository.fields(record).get("policy") or {}
    same = (named.get("id"), named.get("version")) == (policy.id, policy.version)
    return same and named.get("digest") not in ("", None, policy.digest)


def _obstacle(run: Run) -> tuple[str, str] | None:
    """Return why a run is not judged again, None when it is."""
    if run.attempt_open:
        return LEFT_ALONE, "an attempt of it is open: it may still be judged"
    if run.ended == "erased":
        return UNJUDGEABLE, f"it was erased {run.reason}"
    if run.ended is not None:
        return UNJUDGEABLE, f"it was {run.ended}: {run.reason}"
    if run.verdict is not None:
        return None
    if run.outcome is None:
        return LEFT_ALONE, "it has not ended"
    if outcome.traits(run.outcome, run.reason_code).fails_step:
        return UNJUDGEABLE, f"it ended as {run.outcome} by its own word, and no gate was asked"
    return None


def _recorded(run: Run) -> Fields | None:
    newest: Fields | None = run.revision or run.verdict
    if newest is not None:
        return {name: newest[name] for name in (*_COMPARED, "reason", "version")}
    if run.outcome is None:
        return None
    names = ("outcome", "reason_code", "reason")
    return {**{name: getattr(run, name) for name in names}, "rule": None, "version": None}


def _counted(found: Recount, run: Run) -> Counted:
    """Return the facts to judge by: what the job stated stays, the rest is counted anew.

    A verdict from before rules had versions does not say exactly which were which.
    """
    if found.verdict is None:
        return run.counted(run.ended_us or run.updated_us)
    recorded, counted = found.facts.said(), found.counted.facts.said()
    evidence = found.evidence
    if found.verdict["rule_version"] == BEFORE_RULES_HAD_VERSIONS:
        evidence = {}
    stated = {
        fact: value
        for fact, value in recorded.items()
        if fact not in evidence or fact not in counted
    }
    known = {fact: span for fact, span in found.counted.evidence.items() if fact not in stated}
    return Counted(Facts.from_fields({**counted, **stated}), known, found.counted.phase)


def _revise(execute: Execute, each: Rejudged, policy: Policy, reason: str) -> None:
    judgement, counted = each.judgement, each.counted

    def command(run: Run, why: Cause) -> bool:
        same_verdict = (run.verdict or {}).get("version", 0) == each.verdict_version
        if judgement is None or counted is None or not same_verdict:
            return False
        run.revise_verdict(why, judgement, counted, policy, reason)
        return True

    try:
        each.state = REVISED if execute(each.run_id, command) else LEFT_ALONE
        if each.state == LEFT_ALONE:
            each.why = "it has gone on meanwhile"
    except errors.VerdictSameError:
        each.state = SAME
