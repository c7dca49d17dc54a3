"""Gate policies: rules as data, each with an id, a version, conditions and what it concludes.

A condition is a line such as `inputs >= 1`, `declared unset`, `stopped == "budget"` or
`accounted < minimum_fraction * work`. All conditions of a rule have to hold, and the first rule
that holds decides. A condition on a fact that is unsaid does not hold.
"""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.errors import PolicyError
from tachograph.domain.facts import DERIVED, MEANINGS, NAMES, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tachograph.domain.facts import Facts, Value

    Fields = dict[str, Any]

HOLDS, FAILS, UNSAID = "holds", "fails", "unsaid"
"""What a condition can be."""

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_EXAMPLES = "Write such as `inputs >= 1`, `declared unset` or `done < 0.9 * work`."


class Condition:
    """One condition of a rule, on one fact."""

    __slots__ = ("_factors", "_literal", "fact", "operator", "text")

    def __init__(self, text: str) -> None:
        """Read a condition. Raises ValueError, which says what is wrong with it."""
        self.text = " ".join(text.split())
        self.fact, _, rest = self.text.partition(" ")
        self.operator, _, operand = rest.partition(" ")
        self._factors: list[float | str] = []
        self._literal: str | None = None
        if self.fact not in NAMES:
            raise ValueError(f"there is no fact {self.fact!r}: {_near(self.fact)}")
        if self.operator in ("set", "unset"):
            if operand:
                raise ValueError(f"{operand!r} is one word too many. {_EXAMPLES}")
        elif self.operator not in _COMPARE:
            raise ValueError(f"{self.operator or 'nothing'!r} is no operator. {_EXAMPLES}")
        else:
            self._read(operand)

    def _read(self, operand: str) -> None:
        is_text = _is_text(self.fact)
        if len(operand) >= 2 and operand[0] == operand[-1] and operand[0] in "'\"":
            if not is_text:
                raise ValueError(f"{self.fact} is a number, and {operand} is a text. {_EXAMPLES}")
            if self.operator not in ("==", "!="):
                raise ValueError(f"a text is compared by == or !=, not by {self.operator}")
            self._literal = operand[1:-1]
            return
        if is_text:
            raise ValueError(
                f"{self.fact} is a text: compare it with one in quotes, such as "
                f'`{self.fact} == "budget"`, or write `{self.fact} set`'
            )
        for part in operand.split("*"):
            self._factors.append(_factor(part.strip()))

    @property
    def facts(self) -> list[str]:
        """Names of the facts it looks at."""
        return [self.fact, *(each for each in self._factors if isinstance(each, str))]

    @property
    def numbers(self) -> list[float]:
        """Numbers it compares with."""
        return [each for each in self._factors if not isinstance(each, str)]

    def judge(self, facts: Facts) -> str:
        """Say whether it HOLDS, FAILS, or is UNSAID: a fact it looks at is not known."""
        known = facts.value(self.fact)
        if self.operator in ("set", "unset"):
            return HOLDS if (known is not None) == (self.operator == "set") else FAILS
        against = self.against(facts)
        if known is None or against is None:
            return UNSAID
        return HOLDS if _COMPARE[self.operator](known, against) else FAILS

    def sides(self, facts: Facts) -> tuple[float | None, float | None]:
        """Return the numbers that it compares; None for one that is unsaid, or no number."""
        against = None if self.operator in ("set", "unset") else self.against(facts)
        return facts.number(self.fact), None if isinstance(against, str) else against

    def implies(self, other: Condition) -> bool:
        """Say whether the other one holds whenever this one does, as far as that can be seen."""
        if self.text == other.text:
            return True
        if self.fact != other.fact or self.operator == "unset":
            return False
        if other.operator == "set":
            return True
        bound, asked = self._bound(), other._bound()
        if bound is None or asked is None:
            return False
        if self.operator == "==":
            return _COMPARE[other.operator](bound, asked)
        if self.operator[0] not in "<>" or self.operator[0] != other.operator[0]:
            return False
        # `<= 3` implies `< 4`, and not `< 3`.
        strictly = self.operator.endswith("=") and not other.operator.endswith("=")
        return _COMPARE[other.operator[0] + ("" if strictly else "=")](bound, asked)

    def _bound(self) -> float | None:
        """Return the one number it compares with; None when it compares with something else."""
        numbers = self.numbers
        return numbers[0] if len(self._factors) == len(numbers) == 1 else None

    def against(self, facts: Facts) -> Value:
        """Return what it compares with; None where that is not known, or nothing."""
        if self._literal is not None:
            return self._literal
        product: float = 1
        for factor in self._factors:
            number = facts.number(factor) if isinstance(factor, str) else factor
            if number is None:
                return None
            product *= number
        return product


class Rule:
    """One rule of a policy."""

    __slots__ = ("conditions", "id", "otherwise", "outcome", "reason_code", "text", "version")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Read a rule. Raises ValueError, which says what is wrong with it."""
        self.id: str = fields["id"]
        self.version: int = fields["version"]
        self.conditions = [Condition(text) for text in fields["when"]]
        self.outcome: str = fields["outcome"]
        self.reason_code: str = fields["reason_code"]
        self.text: str = fields["text"]
        self.otherwise: str | None = fields.get("otherwise")
        """What is said when its first condition does not hold, or one whose fact it names; such as
        `it was not stopped`."""
        if not outcome.is_outcome(self.outcome):
            known = ", ".join(outcome.OUTCOMES)
            raise ValueError(f"{self.outcome!r} is no outcome: there are {known}")

    def holds(self, facts: Facts) -> bool:
        """Say whether all its conditions hold."""
        return all(condition.judge(facts) == HOLDS for condition in self.conditions)

    def obstacle(self, facts: Facts) -> Condition | None:
        """Return the condition that keeps it from holding; None when it holds.

        One that fails says more than one about a fact that is unsaid.
        """
        left = [each for each in self.conditions if each.judge(facts) != HOLDS]
        failing = [each for each in left if each.judge(facts) == FAILS]
        return next(iter(failing or left), None)

    def ruled_out(self, facts: Facts) -> str | None:
        """Return why it does not hold, for people; None when it holds, or nobody can tell.

        Nobody can tell of facts that are unsaid.
        """
        obstacle = self.obstacle(facts)
        if obstacle is None or self.conditions[0].judge(facts) == UNSAID:
            return None
        if obstacle.judge(facts) == UNSAID:
            return None
        if self.otherwise is not None and self._speaks_of(obstacle):
            text = said(self.otherwise, facts)
            return None if "?" in text else text
        known = facts.value(obstacle.fact)
        value = "unsaid" if known is None else known
        return f"`{obstacle.text}` does not hold: {obstacle.fact} is {value}"

    def _speaks_of(self, obstacle: Condition) -> bool:
        """Say whether `otherwise` is about a condition: the first, or one whose fact it names."""
        return obstacle is self.conditions[0] or f"{{{obstacle.fact}}}" in str(self.otherwise)

    def to_fields(self) -> Fields:
        """Return the rule as plain values."""
        return {
            "id": self.id,
            "version": self.version,
            "when": [condition.text for condition in self.conditions],
            "outcome": self.outcome,
            "reason_code": self.reason_code,
            "text": self.text,
            "otherwise": self.otherwise,
        }


class Policy:
    """A named, numbered list of rules. The last rule has no condition: something is concluded."""

    __slots__ = ("digest", "id", "rules", "stored", "version")

    def __init__(
        self, policy_id: str, version: int, rules: Sequence[Rule], stored: Any = None
    ) -> None:
        self.id = policy_id
        self.version = version
        self.rules = tuple(rules)
        self.digest = _digest(self)
        """BLAKE2b-128 of its rules, in hex: what "the same policy" means."""
        self.stored = stored
        """BlobRef of the rules in the store; None for a policy that comes with Tachograph."""

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], where: str) -> Policy:
        """Read a policy from plain values, and check it.

        Raises PolicyError, which names the place and the rule, for a condition or text that
        cannot be read, an id that occurs twice, a rule that nothing can reach, and a list whose
        last rule has a condition.
        """
        rules: list[Rule] = []
        for each in fields["rules"]:
            try:
                rules.append(Rule(each))
                for text in (each["text"], each.get("otherwise") or ""):
                    _check_text(text)
            except ValueError as error:
                raise PolicyError(where, f"rule {each['id']!r}: {error}") from None
        _check_order(rules, where)
        return cls(fields["id"], fields["version"], rules)

    def decide(self, facts: Facts) -> Rule:
        """Return the first rule that holds."""
        return next(rule for rule in self.rules if rule.holds(facts))

    def rule(self, rule_id: str) -> Rule | None:
        """Return a rule by its id, or None."""
        return next((rule for rule in self.rules if rule.id == rule_id), None)

    def to_fields(self) -> Fields:
        """Return the policy as plain values; `from_fields` is its inverse."""
        rules = [rule.to_fields() for rule in self.rules]
        return {"id": self.id, "version": self.version, "rules": rules}

    def kept(self, stored: Any) -> Policy:
        """Return this policy with the place where its rules are stored."""
        return Policy(self.id, self.version, self.rules, stored)

    def named(self) -> Fields:
        """Return what tells it from others: id, version and digest."""
        return {"id": self.id, "version": self.version, "digest": self.digest}


def said(text: str, facts: Facts) -> str:
    """Return a rule's text with the facts in it.

    A count of one item is not turned into the singular: the text is data.
    """
    return text.format(**facts.words())


def shadowed(policy: Policy) -> list[tuple[Rule, Rule]]:
    """Return the rules that can never decide, each with the earlier one that always does before.

    Whenever such a rule holds, the earlier one holds too: all that it asks for is asked for here.
    """
    found: list[tuple[Rule, Rule]] = []
    for place, rule in enumerate(policy.rules):
        earlier = next((each for each in policy.rules[:place] if _covers(each, rule)), None)
        if earlier is not None:
            found.append((rule, earlier))
    return found


def _covers(earlier: Rule, rule: Rule) -> bool:
    return all(
        any(given.implies(asked) for given in rule.conditions) for asked in earlier.conditions
    )


def _is_text(fact: str) -> bool:
    return (MEANINGS.get(fact) or DERIVED[fact])[0] == TEXT


def _factor(text: str) -> float | str:
    if text in NAMES:
        if _is_text(text):
            raise ValueError(f"{text} is a text: it cannot be counted with. {_EXAMPLES}")
        return text
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if number - number == 0:  # neither infinite nor NaN, with which no comparison makes sense
            return number
    raise ValueError(f"{text!r} is neither a number nor a fact: {_near(text)}")


def _near(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(NAMES), 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(NAMES))}"


def _check_text(text: str) -> None:
    from string import Formatter

    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"the text {text!r} cannot be read: {error}") from None
    for _, name, form, conversion in parts:
        if name is not None and (name not in NAMES or form or conversion):
            raise ValueError(f"the text {text!r} names no fact by {{{name}}}: {_near(name or '')}")


def _check_order(rules: Sequence[Rule], where: str) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise PolicyError(where, f"rule {rule.id!r} occurs twice")
        seen.add(rule.id)
    for rule in rules[:-1]:
        if not rule.conditions:
            raise PolicyError(
                where, f"rule {rule.id!r} has no condition, so no later rule is ever reached"
            )
    if not rules or rules[-1].conditions:
        raise PolicyError(
            where, "the last rule has to be one without conditions, else a run may fit none"
        )


def _digest(policy: Policy) -> str:
    try:
        from _blake2 import blake2b  # hashlib costs a short command 2 ms, and is the same function
    except ImportError:  # pragma: no cover  # another interpreter than CPython
        from hashlib import blake2b
    parts = [policy.id, str(policy.version)]
    for rule in policy.rules:
        parts.extend(repr(value) for value in rule.to_fields().values())
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()
