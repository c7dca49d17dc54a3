"""A verdict is judged again from the events before it, by the policy that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audit.bench import Audited
from audit.by_the_gate import no_item_parsed, work
from audit.unfinished import STRICT, custom_policy

from tachograph.domain.default_policy import default_policy
from tachograph.domain.facts import Facts
from tachograph.recounting import Recount, policy_of, recount


@pytest.fixture
def bench(tmp_path: Path) -> Audited:
    return Audited(tmp_path)


def counted(bench: Audited, run_id: str) -> Recount:
    found = recount(bench.repository, bench.payloads, run_id)
    assert found is not None
    return found


class TestRecounts:
    def test_of_no_run_there_is_none(self, bench: Audited) -> None:
        assert recount(bench.repository, bench.payloads, "nobody") is None

    def test_the_facts_before_the_verdict_are_the_recorded_ones(self, bench: Audited) -> None:
        found = counted(bench, no_item_parsed(bench))

        assert found.verdict is not None
        assert found.run.version == found.verdict["version"] - 1
        assert found.counted.facts == found.facts
        assert found.evidence == found.counted.evidence
        assert (found.follows, found.evidence_agrees, found.differences) == (True, True, [])
        assert found.stated == []

    def test_what_came_after_the_verdict_does_not_count(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 0, "?")])
        session.judge(Facts())
        work(session, "store", [(50, 50, "ok")])
        found = counted(bench, "job")

        assert found.facts.value("outputs") == 0
        assert found.follows is True

    def test_the_last_verdict_of_the_last_attempt_counts(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        session.judge(Facts(inputs=3, outputs=0))
        session.judge(Facts(inputs=3, outputs=1))
        bench.ends(session, "failed", reason="boom", reason_code="exception")
        first = counted(bench, "job")
        bench.job("index-notes", run_id="job")
        second = counted(bench, "job")

        assert first.verdict is not None
        assert first.verdict["outcome"] == "success_with_review"
        assert second.verdict is None

    def test_without_a_verdict_it_is_what_the_gate_would_conclude(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 0, "?")])
        found = counted(bench, "job")

        assert (found.verdict, found.follows) == (None, None)
        assert found.judgement is not None
        assert found.judgement.outcome == "failed_semantic_empty"
        assert found.facts == found.counted.facts

    def test_a_stated_fact_is_a_contradiction_and_no_forgery(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 0, "?")])
        session.judge(Facts(outputs=50, stopped="budget"))
        found = counted(bench, "job")

        assert found.stated == ["outputs", "stopped"]
        assert [(d.fact, d.recorded, d.counted, d.stated) for d in found.differences] == [
            ("outputs", 50, 0, True)
        ]
        assert found.follows is True

    def test_a_stated_fact_that_the_events_say_too_is_counted(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 0, "?")])
        session.judge(Facts(inputs=50, outputs=0))
        found = counted(bench, "job")

        assert found.stated == []
        assert found.evidence["outputs"] == [5, 5, 1]


class TestPolicies:
    def named(self, **changes: Any) -> dict[str, Any]:
        return {**default_policy().named(), "rules": None, **changes}

    def test_one_that_comes_with_us_is_known_for_ever(self, bench: Audited) -> None:
        for version in (1, 2):
            named = {**default_policy(version).named(), "rules": None}

            assert policy_of(named, bench.payloads) == (default_policy(version), None)

    def test_the_oldest_verdicts_name_no_digest(self, bench: Audited) -> None:
        policy, problem = policy_of(self.named(version=1, digest=""), bench.payloads)

        assert (policy, problem) == (default_policy(1), None)

    def test_one_of_our_name_with_other_rules_is_not_ours(self, bench: Audited) -> None:
        policy, problem = policy_of(self.named(digest="00" * 16), bench.payloads)

        assert policy is None
        assert problem == "this Tachograph does not know policy default 2"

    def test_a_project_s_own_is_kept_in_the_store(self, bench: Audited) -> None:
        run_id = custom_policy(bench)
        found = counted(bench, run_id)

        assert found.policy is not None
        assert found.policy.to_fields() == STRICT.to_fields()
        assert found.policy_problem is None
        assert found.follows is True
