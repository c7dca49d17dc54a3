"""The policy in examples/ decides as its comments say, and the page on gates is up to date."""

from __future__ import annotations

from importlib import import_module

import pytest
from project_files import ROOT

from tachograph.domain.default_policy import default_policy
from tachograph.domain.facts import DERIVED, MEANINGS
from tachograph.domain.gate import Facts, judge
from tachograph.domain.policy import shadowed
from tachograph.infra.policies import policy_of

POLICY = policy_of(str(ROOT / "examples" / "policy.toml"))


@pytest.mark.parametrize(
    ("facts", "outcome", "rule"),
    [
        (Facts(inputs=100, outputs=95), "success", "lost-a-few"),
        (Facts(inputs=100, outputs=95, faults=1), "failed", "lost-too-many"),
        (Facts(inputs=100, outputs=94), "failed", "lost-too-many"),
        (Facts(inputs=100, outputs=10, stopped="budget"), "partial", "stopped-early"),
        (Facts(inputs=100, outputs=50, stopped="deadline"), "partial", "stopped-early"),
        (Facts(inputs=100, outputs=49, stopped="deadline"), "failed", "too-slow"),
        (
            Facts(inputs=100, outputs=49, batches_missing=1, deadline_left_seconds=-1),
            "partial",
            "deadline-passed",
        ),
        (Facts(inputs=100, outputs=0), "failed_semantic_empty", "no-item-parsed"),
        (Facts(inputs=100, outputs=100), "success", "all-done"),
    ],
)
def test_it_decides_as_it_says(facts: Facts, outcome: str, rule: str) -> None:
    verdict = judge(facts, POLICY)

    assert (verdict.outcome, verdict.rule) == (outcome, rule)


def test_each_of_its_rules_can_decide() -> None:
    assert shadowed(POLICY) == []
    assert POLICY.rule("fewer-outputs") is None


def test_the_page_has_every_rule_and_every_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    generate_docs = import_module("generate_docs")

    pages = generate_docs.policy_pages()
    page = (ROOT / generate_docs.GATES).read_text("utf-8")

    assert {path: (ROOT / path).read_text("utf-8") for path in pages} == pages
    for rule in default_policy().rules:
        assert f"| `{rule.id}` {rule.version} |" in page
    for name in (*MEANINGS, *DERIVED):
        assert f"\n| `{name}` |" in page
