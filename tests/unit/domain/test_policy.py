"""Policies: conditions are read strictly, and a policy that decides nothing is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.errors import PolicyError
from tachograph.domain.facts import DERIVED, MEANINGS, TEXT, Facts
from tachograph.domain.policy import FAILS, HOLDS, UNSAID, Condition, Policy, Rule, said, shadowed


def rule(rule_id: str = "r", *when: str, **fields: Any) -> dict[str, Any]:
    given_fields = {"outcome": "failed", "reason_code": "c", "text": "t", "version": 1, **fields}
    return {"id": rule_id, "when": list(when), **given_fields}


def policy(*rules: dict[str, Any]) -> Policy:
    return Policy.from_fields({"id": "mine", "version": 1, "rules": list(rules)}, "mine.toml")


LAST = rule("last")


class TestConditions:
    @pytest.mark.parametrize(
        ("text", "facts", "state"),
        [
            ("inputs >= 1", Facts(inputs=1), HOLDS),
            ("inputs >= 1", Facts(inputs=0), FAILS),
            ("inputs >= 1", Facts(), UNSAID),
            ("inputs == 1", Facts(inputs=1), HOLDS),
            ("inputs != 1", Facts(inputs=1), FAILS),
            ("inputs != 1", Facts(), UNSAID),
            ("inputs < 1", Facts(inputs=0), HOLDS),
            ("inputs <= 1", Facts(inputs=1), HOLDS),
            ("inputs > 1", Facts(inputs=1), FAILS),
            ("faults < 1", Facts(), HOLDS),
            ("declared set", Facts(declared="x"), HOLDS),
            ("declared set", Facts(), FAILS),
            ("declared unset", Facts(), HOLDS),
            ("work unset", Facts(inputs=0), FAILS),
            ('stopped == "budget"', Facts(stopped="budget"), HOLDS),
            ("stopped != 'two words'", Facts(stopped="two words"), FAILS),
            ('stopped == "budget"', Facts(), UNSAID),
            ("outputs < inputs", Facts(inputs=3, outputs=2), HOLDS),
            ("outputs < inputs", Facts(outputs=2), UNSAID),
            ("accounted < minimum_fraction * work", Facts(3, 1, minimum_fraction=0.5), HOLDS),
            ("accounted < minimum_fraction * work", Facts(4, 2, minimum_fraction=0.5), FAILS),
            ("accounted < minimum_fraction * work", Facts(4, 2), UNSAID),
            ("outputs < 0.5*2*inputs", Facts(4, 3), HOLDS),
            ("  deadline_left_seconds   <=  -1.5 ", Facts(deadline_left_seconds=-2), HOLDS),
        ],
    )
    def test_a_condition_holds_fails_or_asks_for_what_is_unsaid(
        self, text: str, facts: Facts, state: str
    ) -> None:
        assert Condition(text).judge(facts) == state

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "there is no fact '': there are accepted, "),
            ("input >= 1", "there is no fact 'input': did you mean inputs?"),
            ("zzz >= 1", "there is no fact 'zzz': there are accepted, "),
            ("inputs", "'nothing' is no operator. Write such as `inputs >= 1`"),
            ("inputs is 1", "'is' is no operator"),
            ("inputs>=1", "there is no fact 'inputs>=1': did you mean inputs?"),
            ("declared set to", "'to' is one word too many"),
            ("inputs >=", "'' is neither a number nor a fact"),
            ("inputs >= many", "'many' is neither a number nor a fact"),
            ("inputs >= outptus", "did you mean outputs?"),
            ("inputs >= 2 * ", "'' is neither a number nor a fact"),
            ("inputs >= nan", "'nan' is neither a number nor a fact"),
            ("inputs >= inf", "'inf' is neither a number nor a fact"),
            ("inputs >= declared", "declared is a text: it cannot be counted with"),
            ('inputs >= "3"', 'inputs is a number, and "3" is a text'),
            ("stopped == budget", 'compare it with one in quotes, such as `stopped == "budget"`'),
            ("declared >= 1", "declared is a text"),
            ('stopped < "budget"', "a text is compared by == or !=, not by <"),
            ('stopped == "', "stopped is a text"),
        ],
    )
    def test_a_condition_that_makes_no_sense_says_why(self, text: str, problem: str) -> None:
        with pytest.raises(ValueError) as caught:
            Condition(text)

        assert problem in str(caught.value)

    def test_a_condition_knows_what_it_looks_at(self) -> None:
        product = Condition("accounted < 0.5 * minimum_fraction * work")

        assert product.facts == ["accounted", "minimum_fraction", "work"]
        assert product.numbers == [0.5]
        assert product.sides(Facts(4, 1, minimum_fraction=0.5)) == (1, 1.0)
        assert Condition("stopped set").sides(Facts(stopped="x")) == (None, None)
        assert Condition('stopped == "x"').sides(Facts(stopped="x")) == (None, None)


numbers = st.integers(-2, 4)
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
comparisons = st.builds("inputs {} {}".format, operators, numbers)
conditions = (comparisons | st.sampled_from(["inputs set", "inputs unset"])).map(Condition)


class TestShadows:
    @given(conditions, conditions)
    def test_what_is_implied_holds_whenever_the_other_does(
        self, one: Condition, other: Condition
    ) -> None:
        if one.implies(other):
            for value in (None, *range(-4, 8)):
                facts = Facts(inputs=value)
                assert one.judge(facts) != HOLDS or other.judge(facts) == HOLDS

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("inputs >= 2", "inputs >= 1"),
            ("inputs >= 2", "inputs > 1"),
            ("inputs > 1", "inputs >= 1"),
            ("inputs <= 1", "inputs < 2"),
            ("inputs < 1", "inputs < 2"),
            ("inputs == 2", "inputs != 1"),
            ("inputs == 2", "inputs set"),
            ("outputs < inputs", "outputs set"),
            ("inputs unset", "inputs  unset"),
        ],
    )
    def test_an_implication_is_seen(self, one: str, other: str) -> None:
        assert Condition(one).implies(Condition(other))

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("inputs >= 1", "inputs >= 2"),
            ("inputs >= 1", "inputs > 1"),
            ("inputs >= 1", "inputs <= 9"),
            ("inputs != 1", "inputs != 2"),
            ("inputs >= 1", "outputs >= 1"),
            ("inputs unset", "inputs set"),
            ("outputs < inputs", "outputs < 9"),
            ("outputs < 2 * 3", "outputs < 7"),
        ],
    )
    def test_what_does_not_follow_is_no_implication(self, one: str, other: str) -> None:
        assert not Condition(one).implies(Condition(other))

    def test_a_rule_behind_one_that_asks_for_less_can_never_decide(self) -> None:
        made = policy(
            rule("wide", "inputs >= 1"),
            rule("narrow", "inputs >= 2", "outputs == 0"),
            rule("other", "inputs == 0"),
            LAST,
        )

        assert [(hidden.id, by.id) for hidden, by in shadowed(made)] == [("narrow", "wide")]


class TestPolicies:
    def test_the_first_rule_that_holds_decides(self) -> None:
        made = policy(rule("a", "inputs >= 1", "outputs == 0"), rule("b", "inputs >= 1"), LAST)

        assert made.decide(Facts(3, 0)).id == "a"
        assert made.decide(Facts(3)).id == "b"
        assert made.decide(Facts()).id == "last"

    @pytest.mark.parametrize(
        ("rules", "problem"),
        [
            ([rule("a", "input >= 1"), LAST], "rule 'a': there is no fact 'input'"),
            ([rule("a", "inputs >= 1", outcome="good"), LAST], "'good' is no outcome: there are"),
            ([rule("a", "inputs >= 1"), rule("a"), LAST], "rule 'a' occurs twice"),
            ([rule("a"), LAST], "rule 'a' has no condition, so no later rule is ever reached"),
            ([rule("a", "inputs >= 1")], "the last rule has to be one without conditions"),
            ([], "the last rule has to be one without conditions"),
            ([rule("a", text="{input}")], "names no fact by {input}: did you mean inputs?"),
            ([rule("a", text="{}")], "names no fact by {}"),
            ([rule("a", text="{inputs:>9}")], "names no fact by {inputs}"),
            ([rule("a", text="{inputs!r}")], "names no fact by {inputs}"),
            ([rule("a", text="{inputs")], "the text '{inputs' cannot be read: "),
            ([rule("a", otherwise="{nix}")], "names no fact by {nix}"),
        ],
    )
    def test_a_policy_that_cannot_decide_is_refused(
        self, rules: list[dict[str, Any]], problem: str
    ) -> None:
        with pytest.raises(PolicyError) as caught:
            policy(*rules)

        assert problem in str(caught.value)
        assert str(caught.value).startswith("The gate policy mine.toml cannot be used: ")

    def test_a_policy_is_stored_whole(self) -> None:
        made = policy(rule("a", "inputs >= 1", otherwise="no input"), LAST)
        again = Policy.from_fields(made.to_fields(), "the log")

        assert again.to_fields() == made.to_fields()
        assert again.named() == made.named() == {"id": "mine", "version": 1, "digest": made.digest}

    @pytest.mark.parametrize(
        "change",
        [
            {"when": ["inputs >= 2"]},
            {"outcome": "partial"},
            {"reason_code": "d"},
            {"text": "u"},
            {"version": 2},
            {"otherwise": "o"},
        ],
    )
    def test_any_other_rule_is_another_policy(self, change: dict[str, Any]) -> None:
        before = policy(rule("a", "inputs >= 1"), LAST)
        after = policy({**rule("a", "inputs >= 1"), **change}, LAST)

        assert before.digest != after.digest

    def test_where_it_is_stored_is_no_part_of_a_policy(self) -> None:
        made = policy(LAST)

        assert (made.stored, made.kept("blob").stored) == (None, "blob")
        assert made.kept("blob").digest == made.digest

    def test_a_rule_is_found_by_its_id(self) -> None:
        made = policy(rule("a", "inputs >= 1"), LAST)

        assert made.rule("last") is made.rules[1]
        assert made.rule("none") is None


class TestRules:
    @pytest.mark.parametrize(
        ("facts", "obstacle"),
        [
            (Facts(3, 0), None),
            (Facts(3, 1), "outputs == 0"),
            (Facts(3), "outputs == 0"),
            (Facts(None, 1), "outputs == 0"),
            (Facts(0), "inputs >= 1"),
        ],
    )
    def test_what_fails_is_in_the_way_before_what_is_unsaid(
        self, facts: Facts, obstacle: str | None
    ) -> None:
        found = Rule(rule("a", "inputs >= 1", "outputs == 0")).obstacle(facts)

        assert (None if found is None else found.text) == obstacle

    @pytest.mark.parametrize(
        ("facts", "otherwise", "saying"),
        [
            (Facts(3, 0), "x", None),
            (Facts(None, 1), "x", None),
            (Facts(3), "x", None),
            (Facts(0), "there was no input", "there was no input"),
            (Facts(0), None, "`inputs >= 1` does not hold: inputs is 0"),
            (Facts(3, 1), "there was no input", "`outputs == 0` does not hold: outputs is 1"),
            (Facts(3, 1), "{outputs} came out", "1 came out"),
            (Facts(0), "{parsed} were read", None),
        ],
    )
    def test_what_rules_it_out_is_said_when_it_is_known(
        self, facts: Facts, otherwise: str | None, saying: str | None
    ) -> None:
        made = Rule(rule("a", "inputs >= 1", "outputs == 0", otherwise=otherwise))

        assert made.ruled_out(facts) == saying

    def test_a_fact_that_nobody_stated_can_rule_a_rule_out(self) -> None:
        saying = "`declared set` does not hold: declared is unsaid"

        assert Rule(rule("a", "declared set")).ruled_out(Facts()) == saying

    def test_a_text_says_the_facts(self) -> None:
        assert said("{done} of {work}, {stopped}", Facts(3, 1)) == "1 of 3, ?"
        assert said("{declared}", Facts(declared="{work}")) == "{work}"

    def test_every_fact_can_be_asked_for_and_said(self) -> None:
        for name, (kind, _) in {**MEANINGS, **DERIVED}.items():
            condition = f'{name} == "x"' if kind == TEXT else f"{name} >= 0"
            made = policy(rule("a", condition, f"{name} set", text=f"{{{name}}}"), LAST)
            assert made.rules[0].conditions[0].fact == name
