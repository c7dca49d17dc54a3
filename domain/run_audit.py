"""The commands by which a run says what is expected, what came back, and is judged.

What judges is imported when something is judged: most short commands judge nothing.
"""

from __future__ import annotations

from tachograph.domain import checks, errors, events, outcome
from tachograph.domain.run_recovery import RecoveryCommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.counting import Counted
    from tachograph.domain.event import Cause
    from tachograph.domain.expectations import Expectations
    from tachograph.domain.facts import Facts
    from tachograph.domain.gate import Judgement
    from tachograph.domain.policy import Policy


class AuditCommands(RecoveryCommands):
    """What a verdict is made of, and the verdict."""

    def expect(
        self, cause: Cause, expectations: Expectations, *, reason: str | None = None
    ) -> None:
        """Record what the run is measured by. The same as before records nothing."""
        self._not_fenced(cause)
        expectations.check()
        if reason is not None:
            checks.text("reason", reason)
        fields = expectations.to_fields()
        if fields != (self.expectations or {}):
            self._record(events.ExpectationsDeclared, cause, expectations=fields, reason=reason)

    def receive_answer(
        self,
        cause: Cause,
        *,
        asked: int,
        answered: int,
        phase: str | None = None,
        batch: int | None = None,
        source: str | None = None,
        parsed: int | None = None,
        accepted: int | None = None,
        filtered: int | None = None,
        declared: str | None = None,
        fault: str | None = None,
        error: str | None = None,
        text: Any = None,
    ) -> None:
        """Record that a model, parser, filter or tool was asked, and what came back.

        A fault within a batch counts as made good once the batch is finished. Raises
        InvalidValueError for counts that cannot be: more parsed than answered, for one.
        """
        self._owned(cause)
        _check_answer(asked, answered, parsed, accepted, filtered)
        if phase is not None:
            checks.text("phase", phase)
        if batch is not None:
            checks.whole("batch index", batch, 0)
            checks.text("phase of the batch", phase)
        for what, said in (("source", source), ("declared", declared), ("error", error)):
            if said is not None:
                checks.text(what, said)
        if fault is not None:
            from tachograph.domain.answers import FAULTS

            checks.one_of("fault", fault, FAULTS)
        self._record(
            events.AnswerReceived,
            cause,
            phase=phase,
            batch=batch,
            source=source,
            asked=asked,
            answered=answered,
            parsed=parsed,
            accepted=accepted,
            filtered=filtered,
            declared=declared,
            fault=fault,
            error=error,
            text=text,
        )

    # Judging.

    def judge(
        self,
        cause: Cause,
        facts: Facts,
        gate: str = "default",
        *,
        policy: Policy | None = None,
    ) -> str:
        """Let the semantic gate judge the run, record its verdict and return the outcome.

        What `facts` leave unsaid is counted from the run's events.
        """
        self._owned(cause)
        checks.text("gate", gate)
        checks.facts(facts)
        counted, judgement = self._judged_now(cause, facts, policy)
        self._record_verdict(cause, facts, counted, judgement, gate, policy)
        return judgement.outcome

    def _judged_now(
        self, cause: Cause, facts: Facts | None, policy: Policy | None
    ) -> tuple[Counted, Judgement]:
        """Return what the events say, and what the policy concludes from that and the facts."""
        from tachograph.domain.gate import judge

        counted = self.counted(cause.time_us)
        return counted, judge(counted.facts if facts is None else facts.over(counted.facts), policy)

    def counted(self, now_us: int | None = None) -> Counted:
        """Return the facts that the run's events hold, and where each was counted."""
        from tachograph.domain.counting import count

        return count(self, now_us)

    def stated_facts(self) -> Facts:
        """Return the facts that the job stated for its last judgement."""
        from tachograph.domain.facts import Facts

        return Facts.from_fields({} if self.verdict is None else self.verdict["stated"])

    def counted_facts(self, now_us: int | None = None) -> Facts:
        """Return the facts that the run's events hold."""
        return self.counted(now_us).facts

    def revise_verdict(
        self,
        cause: Cause,
        judgement: Judgement,
        counted: Counted,
        policy: Policy,
        why: str,
    ) -> None:
        """Record that another policy judges a run otherwise. What is recorded stays (G6).

        Its outcome does not change: a finished run is final. Raises AttemptRunningError while an
        attempt is open, and VerdictSameError when nothing differs from the newest verdict.
        """
        self._not_superseded(cause)
        checks.text("reason", why)
        if self.attempt_open:
            raise errors.AttemptRunningError(self.id)
        newest = self.revision or self.verdict or {}
        same = ("outcome", "rule", "reason_code")
        if all(newest.get(name) == getattr(judgement, name) for name in same):
            raise errors.VerdictSameError(self.id, judgement.outcome, judgement.rule)
        self._record(
            events.VerdictRevised,
            cause,
            **judgement.to_fields(),
            facts=counted.facts.to_fields(),
            evidence=counted.evidence,
            policy={**policy.named(), "rules": policy.stored},
            revises=newest.get("version", 0),
            why=why,
        )

    def _record_verdict(
        self,
        cause: Cause,
        said: Facts | None,
        counted: Counted,
        judgement: Judgement,
        gate: str,
        policy: Policy | None,
    ) -> None:
        from tachograph.domain.default_policy import default_policy

        policy = policy or default_policy()
        stated = {} if said is None else said.to_fields()
        known = counted.facts.to_fields()
        evidence = {
            name: span
            for name, span in counted.evidence.items()
            if stated.get(name, known[name]) == known[name]
        }
        self._record(
            events.SemanticGateJudged,
            cause,
            gate=gate,
            **judgement.to_fields(),
            facts={**known, **stated},
            evidence=evidence,
            policy={**policy.named(), "rules": policy.stored},
        )

    def _earned(self, result: str) -> None:
        """G12: a verdict that the gate failed is not talked away by naming another outcome."""
        if self.verdict is not None and outcome.traits(self.verdict["outcome"]).fails_step:
            raise errors.GateFailedError(
                self.id, self.verdict["outcome"], self.verdict["reason"], result
            )

    # What is known of the run besides its own work.

    def record_origin(self, cause: Cause, origin: Mapping[str, Any]) -> None:
        """Record where the run's history comes from: a fork, or another recorder's files."""
        self._not_superseded(cause)
        checks.text("kind of origin", origin.get("kind"))
        self._record(events.OriginRecorded, cause, origin=dict(origin))


def _check_answer(
    asked: int, answered: int, parsed: int | None, accepted: int | None, filtered: int | None
) -> None:
    checks.whole("asked", asked, 0)
    checks.whole("answered", answered, 0)
    if answered > asked:
        raise errors.InvalidValueError("answered", answered, f"{asked} were asked")
    bounds = (("parsed", parsed), ("accepted", accepted), ("filtered", filtered))
    for what, count in bounds:
        if count is not None:
            checks.whole(what, count, 0)
            # A parser may find more items than were asked about; a filter cannot.
            if what == "filtered" and count > answered:
                raise errors.InvalidValueError(what, count, f"{answered} were answered")
    if parsed is not None and accepted is not None and accepted > parsed:
        raise errors.InvalidValueError("accepted", accepted, f"{parsed} were parsed")
