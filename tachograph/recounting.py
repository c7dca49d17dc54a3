"""Judge a run once more from its log, to see whether its verdict follows from the evidence.

Reads the log and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.default_policy import default_policy, known_policy
from tachograph.domain.errors import BlobMissingError, MalformedValueError, PolicyError
from tachograph.domain.facts import Facts
from tachograph.domain.gate import judge
from tachograph.domain.policy import Policy
from tachograph.explaining import event_at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.counting import Counted
    from tachograph.domain.gate import Judgement
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

BEFORE_RULES_HAD_VERSIONS = 0
"""`rule_version` of verdicts from a time when the evidence was less exact."""


class Difference:
    """A fact for which the verdict and the log do not say the same."""

    __slots__ = ("counted", "fact", "recorded", "stated")

    def __init__(self, fact: str, recorded: Any, counted: Any, *, stated: bool) -> None:
        self.fact = fact
        self.recorded = recorded
        self.counted = counted
        self.stated = stated
        """Whether the job stated the fact: then it is a contradiction, and no fault of the gate."""


class Recount:
    """A verdict, and what the log says about it.

    Without a verdict `facts` are those that the log holds now, and `judgement` is what the gate
    would have concluded from them.
    """

    __slots__ = (
        "counted",
        "differences",
        "evidence",
        "facts",
        "judgement",
        "policy",
        "policy_problem",
        "run",
        "verdict",
    )

    def __init__(
        self,
        run: Run,
        verdict: Fields | None,
        counted: Counted,
        policy: Policy | None,
        policy_problem: str | None,
    ) -> None:
        self.run = run
        """The run as it was when it was judged."""
        self.verdict = verdict
        """Fields of the verdict's event, with version, position and time_us; None without one."""
        self.counted = counted
        """The facts that the events before the verdict hold."""
        self.policy = policy
        """The policy that judged it; None when its rules are not known any more."""
        self.policy_problem = policy_problem
        recorded = counted.facts if verdict is None else Facts.from_fields(verdict["facts"])
        self.facts = recorded
        self.evidence: dict[str, list[int]] = (
            counted.evidence if verdict is None else verdict["evidence"]
        )
        self.judgement: Judgement | None = None if policy is None else judge(recorded, policy)
        """What the policy concludes from the recorded facts."""
        self.differences = [] if verdict is None else _differences(verdict, counted)

    @property
    def follows(self) -> bool | None:
        """Whether the verdict follows from the evidence; None when that cannot be told."""
        if self.verdict is None or self.judgement is None:
            return None
        same = ("outcome", "rule", "reason_code")
        return self.evidence_agrees and all(
            getattr(self.judgement, name) == self.verdict[name] for name in same
        )

    @property
    def evidence_agrees(self) -> bool:
        """Whether the log still counts what the gate counted."""
        return all(each.stated for each in self.differences)

    @property
    def stated(self) -> list[str]:
        """Names of the facts that the verdict has from the job alone, or looked up."""
        return [name for name in self.facts.said() if self.is_stated(name)]

    def is_stated(self, fact: str) -> bool:
        """Say whether the job stated a fact itself (or looked it up), rather than record it."""
        return fact not in self.evidence and getattr(self.counted.facts, fact, None) != getattr(
            self.facts, fact, None
        )


def recount(repository: RunRepository, payloads: Payloads, run_id: str) -> Recount | None:
    """Return the last verdict of a run's last attempt with what the log says; None for no run.

    A run whose events were erased has no verdict any more, and no facts.
    """
    run = repository.get(run_id)
    if run is None:
        return None
    if run.verdict is None:
        return Recount(run, None, run.counted(run.updated_us), default_policy(), None)
    version = run.verdict["version"]
    verdict = event_at(repository, run_id, version)
    before = repository.get(run_id, up_to=version - 1)
    if verdict is None or before is None:
        return Recount(run, None, run.counted(run.updated_us), default_policy(), None)
    policy, problem = policy_of(verdict["policy"], payloads)
    return Recount(before, verdict, before.counted(verdict["time_us"]), policy, problem)


def policy_of(named: Mapping[str, Any], payloads: Payloads) -> tuple[Policy | None, str | None]:
    """Return the policy of a verdict; None and why, when its rules cannot be had.

    One that comes with Tachograph is known for ever, all others are kept in the store.
    """
    known = known_policy(named["id"], named["version"])
    if known is not None and named["digest"] in ("", known.digest):
        return known, None
    if named["rules"] is None:
        return None, f"this Tachograph does not know policy {named['id']} {named['version']}"
    try:
        fields = payloads.load(named["rules"])
        policy = Policy.from_fields(fields, f"{named['id']} {named['version']}")
    except BlobMissingError as error:
        return None, f"the stored rules are lost. {error}"
    except (PolicyError, MalformedValueError, KeyError, TypeError, AttributeError) as error:
        return None, f"the stored rules of {named['id']} {named['version']} cannot be used: {error}"
    if policy.digest != named["digest"]:
        return None, "the stored rules are not those that the verdict names"
    return policy.kept(named["rules"]), None


def _differences(verdict: Fields, counted: Counted) -> list[Difference]:
    recorded = Facts.from_fields(verdict["facts"]).said()
    inexact = verdict["rule_version"] == BEFORE_RULES_HAD_VERSIONS
    found = []
    for fact, value in counted.facts.said().items():
        stated = inexact or fact not in verdict["evidence"]
        if fact in recorded and recorded[fact] != value:
            found.append(Difference(fact, recorded[fact], value, stated=stated))
        elif fact not in recorded and not inexact:
            found.append(Difference(fact, None, value, stated=False))
    lost = verdict["evidence"].keys() & recorded.keys() - counted.facts.said().keys()
    if not inexact:
        found.extend(Difference(fact, recorded[fact], None, stated=False) for fact in sorted(lost))
    return found
