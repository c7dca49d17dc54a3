"""What an outcome means is written once: the table, every mapping, and nobody else compares."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from project_files import modules

from tachograph.domain import outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = (
    "terminal",
    "resumable",
    "keeps_checkpoint",
    "fails_step",
    "withholds_guard",
    "alerts",
    "validator_status",
    "exit_code",
    "unattended",
)

# fmt: off
YES, NO = True, False
TABLE = {
    # outcome, reason: terminal resumable keeps fails withholds alerts validator exit unattended
    ("success", None): (YES, NO, NO, NO, NO, NO, "ok", 0, NO),
    ("success_with_review", None): (YES, NO, NO, NO, NO, YES, "degraded", 0, NO),
    ("skipped", None): (YES, NO, NO, NO, NO, NO, "ok", 0, NO),
    ("empty", None): (YES, NO, NO, NO, NO, NO, "ok", 0, NO),
    ("partial", None): (NO, YES, YES, YES, YES, YES, "degraded", 75, YES),
    ("partial", "stopped_by_budget"): (NO, YES, YES, NO, YES, NO, "degraded", 75, NO),
    ("partial", "stopped_by_person"): (NO, YES, YES, NO, YES, NO, "degraded", 75, NO),
    ("partial", "waits_for_approval"): (NO, YES, YES, NO, YES, NO, "degraded", 75, NO),
    ("partial", "rate_limited"): (NO, YES, YES, NO, YES, NO, "degraded", 75, NO),
    ("partial", "still_at_work"): (NO, YES, YES, NO, YES, NO, "degraded", 75, YES),
    ("failed", None): (NO, YES, YES, YES, YES, YES, "semantic_fail", 1, YES),
    ("failed_semantic_empty", None): (NO, YES, YES, YES, YES, YES, "semantic_fail", 7, NO),
}
# fmt: on


class TestTable:
    @pytest.mark.parametrize(("result", "code"), TABLE)
    def test_an_outcome_means_this(self, result: str, code: str | None) -> None:
        traits = outcome.traits(result, code)
        meant = {column: getattr(traits, column) for column in COLUMNS}

        assert meant == dict(zip(COLUMNS, TABLE[result, code], strict=True))

    def test_the_table_has_every_outcome_and_every_column(self) -> None:
        assert {result for result, _ in TABLE} == set(outcome.OUTCOMES)
        assert len(outcome.OUTCOMES) == 7
        assert sorted(COLUMNS) == sorted(outcome.Traits.__slots__)

    @pytest.mark.parametrize("result", outcome.OUTCOMES)
    @pytest.mark.parametrize("code", ["not_judged", "anything", "stopped_by_budget", ""])
    def test_a_reason_code_changes_the_meaning_of_partial_only(
        self, result: str, code: str
    ) -> None:
        special = (result, code) in TABLE
        plain = outcome.traits(result)

        assert (outcome.traits(result, code) is plain) != special

    @pytest.mark.parametrize("result", outcome.OUTCOMES)
    def test_what_is_final_needs_no_checkpoint_and_what_is_not_keeps_it(self, result: str) -> None:
        """G6: either nothing moves the run any more, or a new attempt may go on."""
        traits = outcome.traits(result)

        assert traits.resumable != traits.terminal
        assert traits.keeps_checkpoint == traits.resumable
        assert traits.withholds_guard == traits.resumable
        assert (traits.exit_code == 0) == traits.terminal

    @pytest.mark.parametrize("text", ["", "done", "Success", "monitoring", "ok"])
    def test_an_unknown_outcome_means_nothing(self, text: str) -> None:
        assert not outcome.is_outcome(text)
        with pytest.raises(KeyError):
            outcome.traits(text)
        with pytest.raises(KeyError):
            outcome.is_terminal(text)

    @pytest.mark.parametrize("result", outcome.OUTCOMES)
    def test_each_of_the_seven_is_an_outcome(self, result: str) -> None:
        assert outcome.is_outcome(result)
        assert outcome.is_terminal(result) == outcome.traits(result).terminal

    def test_a_run_without_an_outcome_is_not_terminal(self) -> None:
        assert not outcome.is_terminal(None)


class TestCommandStatus:
    @pytest.mark.parametrize(
        ("status", "expected"),
        {
            "success_analyzed": "success",
            "success_no_incidents": "empty",
            "skipped_cooldown": "skipped",
            "skipped_concurrency": "skipped",
            "failed_partial": "partial",
            "failed_suspect_zero_parsed": "failed_semantic_empty",
            "semantic_empty": "failed_semantic_empty",
            "failed_parse": "failed",
            "monitoring": "success_with_review",
            **{result: result for result in outcome.OUTCOMES},
        }.items(),
    )
    def test_a_status_maps_to_an_outcome(self, status: str, expected: str) -> None:
        assert outcome.from_command_status(status) == expected

    @pytest.mark.parametrize("status", [None, "", "surprise", "SUCCESS", "success "])
    def test_an_unknown_status_is_a_failure(self, status: str | None) -> None:
        """G12: what nobody understands is no success."""
        assert outcome.from_command_status(status) == "failed"


class TestStepStatus:
    STATUSES = (
        ("ok", "success"),
        ("skipped_guard", "skipped"),
        ("skipped_gate", "skipped"),
        ("skipped_dep", "skipped"),
        ("skipped_missing_runner", "skipped"),
        ("deferred", "partial"),
        ("rate_limited", "partial"),
        ("failed", "failed"),
    )

    @pytest.mark.parametrize(("status", "expected"), STATUSES)
    def test_a_step_status_maps_to_an_outcome(self, status: str, expected: str) -> None:
        assert outcome.from_step_status(status) == expected

    def test_there_are_eight_step_statuses(self) -> None:
        assert tuple(status for status, _ in self.STATUSES) == outcome.STEP_STATUSES

    @pytest.mark.parametrize(
        ("nested", "expected"),
        [
            ("partial", "partial"),
            ("failed_semantic_empty", "failed_semantic_empty"),
            ("success", "success"),
            ("failed_parse", "failed"),
            ("monitoring", "success_with_review"),
            ("surprise", "failed"),
            ("", "failed"),
        ],
    )
    def test_what_a_nested_run_says_overrides_ok(self, nested: str, expected: str) -> None:
        """G12: an unknown word from a nested run is no success."""
        assert outcome.from_step_status("ok", nested) == expected

    @pytest.mark.parametrize(("status", "expected"), STATUSES[1:])
    def test_a_nested_run_overrides_nothing_else(self, status: str, expected: str) -> None:
        assert outcome.from_step_status(status, "success") == expected

    def test_an_unknown_step_status_is_refused(self) -> None:
        with pytest.raises(KeyError):
            outcome.from_step_status("skipped")


class TestLightRun:
    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ({"skipped": True, "partial_failure": True, "inputs": 5, "outputs": 5}, "skipped"),
            ({"dry_run": True, "semantic_empty": True}, "skipped"),
            ({"partial_failure": True, "semantic_empty": True, "inputs": 5}, "partial"),
            ({"semantic_empty": True}, "failed_semantic_empty"),
            ({}, "empty"),
            ({"inputs": 0, "outputs": 5}, "empty"),
            ({"inputs": 5, "outputs": 0}, "empty"),
            ({"inputs": 5, "outputs": 1}, "success"),
        ],
    )
    def test_the_first_rule_that_holds_wins(self, said: dict[str, int], expected: str) -> None:
        assert outcome.for_light_run(**said) == expected  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("result", "status"),
        [
            ("success", "completed"),
            ("success_with_review", "completed"),
            ("empty", "completed"),
            ("skipped", "completed"),
            ("partial", "failed"),
            ("failed", "failed"),
            ("failed_semantic_empty", "failed"),
        ],
    )
    def test_a_phase_ends_as_its_run_does(self, result: str, status: str) -> None:
        assert outcome.phase_status(result) == status


class TestNobodyElseDecides:
    """Two copies of a rule drift apart: outcomes are compared in `domain/outcome.py` alone."""

    SHARED_WORDS = frozenset({"failed", "skipped"})
    """Also words for the status of a phase, a step or a job, which others may compare."""

    def test_no_other_module_compares_outcomes(self) -> None:
        found = [
            f"{path}:{line}"
            for name, path in modules().items()
            if name != outcome.__name__
            for line in self._comparisons(ast.parse(path.read_text(encoding="utf-8")))
        ]

        assert found == [], "ask domain/outcome.py what the outcome means instead"

    @pytest.mark.parametrize(
        "source",
        [
            "result == 'partial'",
            "'success' != run.outcome",
            "run.outcome in ('success', 'empty')",
            "result in {'partial'}",
            "result == outcome.FAILED",
            "result in (FAILED, PARTIAL)",
            "run.outcome == 'failed'",
            "match result:\n    case 'a' | 'partial': pass",
            "match result:\n    case outcome.EMPTY: pass",
        ],
    )
    def test_a_comparison_is_found(self, source: str) -> None:
        assert list(self._comparisons(ast.parse(source))) != []

    @pytest.mark.parametrize(
        "source",
        [
            "phase.status == 'failed'",
            "status in ('failed', 'skipped')",
            "fields['status'] != 'skipped'",
            "colours = {'partial': 'yellow'}",
            "result == 'other'",
            "outcome.traits(result).terminal == True",
        ],
    )
    def test_what_is_no_comparison_of_outcomes_is_let_through(self, source: str) -> None:
        assert list(self._comparisons(ast.parse(source))) == []

    def _comparisons(self, tree: ast.AST) -> Iterator[int]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                allowed = self.SHARED_WORDS if any(map(_is_a_status, sides)) else frozenset()
                if any(_outcomes_in(side) - allowed for side in sides):
                    yield node.lineno
            elif isinstance(node, ast.MatchValue) and _outcomes_in(node.value):
                yield node.value.lineno


CONSTANTS = {result.upper(): result for result in outcome.OUTCOMES}


def _outcomes_in(node: ast.expr) -> set[str]:
    """Return the outcomes that an operand names, as text or by its constant."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return set().union(*map(_outcomes_in, node.elts))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value} & set(outcome.OUTCOMES)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return {CONSTANTS[name]} if name in CONSTANTS else set()


def _is_a_status(node: ast.expr) -> bool:
    """Whether an operand is called status: `status`, `phase.status`, `fields["status"]`."""
    if isinstance(node, ast.Subscript):
        node = node.slice
    name = node.value if isinstance(node, ast.Constant) else ""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", name)
    return str(name).endswith("status")
