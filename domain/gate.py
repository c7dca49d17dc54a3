"""The semantic gate: rules as data that turn counted facts into an outcome (G12).

A rule is an id, a condition on the facts, and what it concludes. The first rule that holds
decides. Facts left unsaid stay None, and a rule that needs them does not hold.
"""

from __future__ import annotations

from tachograph.domain import outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

POLICY_VERSION = 1


class Facts:
    """What a run says about its own work.

    `inputs` items there were to work on, `outputs` usable items that came out, `declared` the
    job's reason for having had nothing to do, `stopped` why it stopped early (`deadline`,
    `budget`), `faults` failures of a model, parser or provider.
    """

    __slots__ = ("declared", "faults", "inputs", "outputs", "stopped")

    def __init__(
        self,
        inputs: int | None = None,
        outputs: int | None = None,
        declared: str | None = None,
        stopped: str | None = None,
        faults: int = 0,
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.declared = declared
        self.stopped = stopped
        self.faults = faults

    def to_fields(self) -> dict[str, object]:
        """Return the facts as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


class Rule:
    """One rule of a policy."""

    __slots__ = ("holds", "id", "outcome", "reason_code", "text")

    def __init__(
        self, rule_id: str, holds: Callable[[Facts], bool], result: str, code: str, text: str
    ) -> None:
        self.id = rule_id
        self.holds = holds
        self.outcome = result
        self.reason_code = code
        self.text = text


class Judgement:
    """What the gate concluded, and by which rule."""

    __slots__ = ("outcome", "reason", "reason_code", "rule")

    def __init__(self, rule: Rule, facts: Facts) -> None:
        self.outcome = rule.outcome
        self.rule = rule.id
        self.reason_code = rule.reason_code
        said = {name: "?" if fact is None else fact for name, fact in facts.to_fields().items()}
        self.reason = rule.text.format(**said)

    def to_fields(self) -> dict[str, str]:
        """Return the conclusion as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


DEFAULT_POLICY = (
    Rule(
        "stopped-early",
        lambda facts: facts.stopped is not None,
        outcome.PARTIAL,
        outcome.STOPPED_BY_BUDGET,
        "stopped early ({stopped}) with {outputs} of {inputs} items done",
    ),
    # A classifier that could not be read lets nothing through: that is not "no input".
    Rule(
        "faults-only",
        lambda facts: facts.faults > 0 and not facts.outputs,
        outcome.FAILED_SEMANTIC_EMPTY,
        "faults_only",
        "{faults} faults and no output, so nothing says that there was nothing to do",
    ),
    Rule(
        "declared-no-work",
        lambda facts: facts.declared is not None and not facts.outputs,
        outcome.EMPTY,
        "declared_no_work",
        "the job declared that there was nothing to do: {declared}",
    ),
    Rule(
        "no-input",
        lambda facts: facts.inputs == 0 and not facts.outputs,
        outcome.EMPTY,
        "no_input",
        "there was no input",
    ),
    Rule(
        "outputs-without-input",
        lambda facts: facts.inputs == 0,
        outcome.SUCCESS_WITH_REVIEW,
        "outputs_without_input",
        "{outputs} outputs although there was no input",
    ),
    Rule(
        "no-item-parsed",
        lambda facts: bool(facts.inputs) and facts.outputs == 0,
        outcome.FAILED_SEMANTIC_EMPTY,
        outcome.NO_ITEM_PARSED,
        "{inputs} items went in, none came out, and nobody declared that there was nothing to do",
    ),
    Rule(
        "fewer-outputs",
        lambda facts: (
            facts.inputs is not None and facts.outputs is not None and facts.outputs < facts.inputs
        ),
        outcome.SUCCESS_WITH_REVIEW,
        "fewer_outputs",
        "{outputs} of {inputs} items came out",
    ),
    Rule(
        "faults-seen",
        lambda facts: facts.faults > 0 and facts.outputs is not None,
        outcome.SUCCESS_WITH_REVIEW,
        "faults_seen",
        "{faults} faults on the way to {outputs} outputs",
    ),
    Rule(
        "all-done",
        lambda facts: facts.outputs is not None and facts.outputs > 0,
        outcome.SUCCESS,
        "outputs_present",
        "{outputs} outputs from {inputs} inputs",
    ),
    Rule(
        "not-judged",
        lambda _facts: True,
        outcome.SUCCESS_WITH_REVIEW,
        outcome.NOT_JUDGED,
        "inputs and outputs were not both declared, so nothing says that the job did its work",
    ),
)


def judge(facts: Facts) -> Judgement:
    """Return what the default policy concludes from the facts.

    >>> judge(Facts(inputs=3, outputs=0)).outcome
    'failed_semantic_empty'
    >>> judge(Facts(inputs=3, outputs=0, declared="all up to date")).outcome
    'empty'
    """
    rule = next(rule for rule in DEFAULT_POLICY if rule.holds(facts))
    return Judgement(rule, facts)
