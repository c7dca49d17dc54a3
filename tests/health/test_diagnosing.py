"""How health is scored: by facts, rules and thresholds, always anew."""

from __future__ import annotations

from typing import Any

import pytest

from tachograph.domain.health import (
    WEIGHTS,
    DomainHealth,
    Health,
    Penalty,
    Rule,
    band,
    composite_score,
    worst,
)
from tachograph.domain.queue_thresholds import HealthThresholds, QueueThresholds
from tachograph.health.diagnosing import Domain, diagnose, look_at
from tachograph.health.other_domains import (
    RING,
    provider_domain,
    provider_facts,
    run_domain,
    storage_domain,
    storage_facts,
    view_domain,
)
from tachograph.health.queue_domain import queue_domain
from tachograph.health.recommending import recommend

QUIET = {"dead": 0, "oldestAgeSec": 0, "oldestDeadAgeSec": 0}
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000
GIB = 2**30


def facts(*, depth: int = 0, rate: float = 0.0, stale: int = 0, **queues: Any) -> dict[str, Any]:
    """Facts about the queues, those of each by its name."""
    named = {"memory": QUIET, "summary": QUIET} | {
        name: QUIET | counts for name, counts in queues.items()
    }
    return {"depth": depth, "deadRate": rate, "leaseAnomalies": stale, "queues": named}


def queue(thresholds: HealthThresholds | None = None, **said: Any) -> DomainHealth:
    """Return the health of queues with these facts."""
    return look_at(queue_domain(lambda: facts(**said), thresholds or HealthThresholds()))


def whole(**said: Any) -> Health:
    """Return the health of everything, with these facts about queues and nothing amiss else."""
    others = [DomainHealth(name, weight, {}) for name, weight in WEIGHTS.items() if name != "queue"]
    return Health(0, [queue(**said), *others])


class TestQueues:
    """Spec §2.3, with what it promises and the original did not do."""

    def test_empty_ones_are_healthy(self) -> None:
        """Case 9."""
        found = queue()

        assert (found.score, found.status, found.penalties) == (1.0, "healthy", [])

    def test_51_jobs_that_wait_are_too_many(self) -> None:
        """Case 10."""
        assert queue(depth=50).score == 1.0
        assert queue(depth=51).score == 0.7

    def test_half_of_the_ended_ones_dead_is_degraded(self) -> None:
        """Case 10."""
        found = queue(rate=0.5, memory={"dead": 5})

        assert (found.score, found.status) == (0.7, "degraded")
        assert [penalty.rule for penalty in found.penalties] == ["queue.dead-rate"]

    def test_jobs_that_died_long_ago_are_in_no_rate(self) -> None:
        """Case 10: and 20 are within the threshold of their queue."""
        assert queue(rate=0.0, memory={"dead": 20}).score == 1.0

    @pytest.mark.parametrize(
        ("dead", "status"),
        [(50, "healthy"), (51, "degraded"), (275, "degraded"), (500, "unhealthy")],
    )
    def test_an_old_backlog_counts_by_the_thresholds(self, dead: int, status: str) -> None:
        """Case 12: a backlog older than the hour of the dead rate is seen all the same."""
        health = whole(summary={"dead": dead})
        found = health.domain("queue")

        assert found is not None
        assert (found.status, health.status) == (status, status)

    def test_an_age_just_beyond_its_threshold_is_degraded(self) -> None:
        """The original said healthy, since .9 is in the healthy band."""
        found = queue(memory={"oldestAgeSec": 301})

        assert found.status == "degraded"
        assert found.score_in("memory") == pytest.approx(0.9, abs=0.001)

    def test_an_age_beyond_the_last_threshold_is_unhealthy(self) -> None:
        """The original said degraded."""
        assert queue(memory={"oldestAgeSec": 1800}).status == "unhealthy"

    def test_a_job_that_died_a_day_ago_is_told(self) -> None:
        found = queue(summary={"dead": 1, "oldestDeadAgeSec": 86_401})

        assert (found.score, found.status) == (0.9, "degraded")
        assert found.penalties[0].rule == "queue.oldest-dead"

    def test_one_queue_does_not_add_to_another(self) -> None:
        """The score is that of the worst one."""
        found = queue(memory={"dead": 275}, summary={"dead": 275})

        assert found.score == 0.6

    def test_the_thresholds_are_those_that_are_set(self) -> None:
        """The original showed them, and scored by its own."""
        own = HealthThresholds(queues={"summary": QueueThresholds(dead_warn=1, dead_fail=3)})

        assert queue(own, summary={"dead": 2}).status == "degraded"
        assert queue(own, memory={"dead": 2}).status == "healthy"
        assert queue(own, summary={"dead": 3}).penalties[0].threshold == 3

    def test_a_higher_threshold_for_ages_counts_for_all_queues_too(self) -> None:
        patient = HealthThresholds(
            QueueThresholds(oldest_pending_warn_seconds=3600, oldest_pending_fail_seconds=7200)
        )

        assert queue(patient, memory={"oldestAgeSec": 1800}).score == 1.0

    def test_stale_leases_are_told(self) -> None:
        assert queue(stale=1).score == 0.8

    def test_it_never_falls_below_nothing(self) -> None:
        bad = {"dead": 900, "oldestAgeSec": 9999, "oldestDeadAgeSec": 10**6}

        assert queue(memory=bad, depth=99, rate=1.0, stale=4).score == 0.0


class TestComposite:
    """By weights, and by the worst."""

    def test_the_weights_come_to_one(self) -> None:
        assert sum(WEIGHTS.values()) == pytest.approx(1.0)

    def test_nothing_amiss_is_one(self) -> None:
        """Case 9."""
        health = whole()

        assert (health.score, health.status) == (1.0, "healthy")

    def test_one_unhealthy_domain_makes_all_unhealthy(self) -> None:
        """Case 17: the score may still be good (#711)."""
        health = whole(summary={"dead": 500})

        assert health.score > 0.75
        assert health.status == "unhealthy"

    def test_another_domain_brings_its_weight(self) -> None:
        lost = Penalty("mine.rule", 1, 0, 1.0, "lost")
        domains = [DomainHealth("queue", 1.0, {}), DomainHealth("mine", 1.0, {}, [lost])]

        assert composite_score(domains) == 0.5

    def test_without_domains_nothing_is_wrong(self) -> None:
        assert (composite_score([]), worst([])) == (1.0, "healthy")

    @pytest.mark.parametrize(
        ("score", "status"),
        [
            (1, "healthy"),
            (0.8, "healthy"),
            (0.7999, "degraded"),
            (0.5, "degraded"),
            (0, "unhealthy"),
        ],
    )
    def test_bands(self, score: float, status: str) -> None:
        assert band(score) == status


class TestDomains:
    """One that cannot be looked at stops no other."""

    def test_it_is_told_and_costs_points(self) -> None:
        def broken() -> dict[str, Any]:
            raise OSError("no such disk")

        bad, good = diagnose([Domain("mine", 0.1, broken), Domain("well", 0.9, dict)], 7).domains

        assert (bad.score, bad.status, bad.error) == (0.5, "degraded", "no such disk")
        assert bad.penalties[0].rule == "mine.unreadable"
        assert good.score == 1.0

    def test_it_looks_anew_each_time(self) -> None:
        """Case 13: a repair's second diagnosis sees its effect; the original kept it for 30 s."""
        seen = iter([60, 0])
        domain = queue_domain(lambda: facts(depth=next(seen)), HealthThresholds())

        assert [look_at(domain).score, look_at(domain).score] == [0.7, 1.0]

    def test_a_fact_that_is_not_known_breaks_no_rule(self) -> None:
        rule = Rule("mine.rule", "number", 3, 0.4, "{value} > {threshold}")

        assert rule.judge({"number": None}) is None
        found = rule.judge({"number": 4})
        assert found is not None
        assert found.text == "4 > 3"

    def test_each_penalty_is_told_with_its_numbers(self) -> None:
        told = whole(depth=51).to_fields()["domains"][0]["penalties"][0]

        assert (told["rule"], told["value"], told["threshold"], told["points"]) == (
            "queue.depth",
            51,
            50,
            0.3,
        )


class TestProviders:
    """Case 16."""

    def answers(self, *faults: str | None, age_us: int = 0) -> list[dict[str, Any]]:
        """Answers with these faults, newest first."""
        return [{"time_us": DAY_US - age_us, "fault": fault, "error": None} for fault in faults]

    def score(self, answers: list[dict[str, Any]]) -> float:
        """Return the score of the providers with these answers."""
        found = provider_facts(answers, DAY_US, DAY_US)
        return look_at(provider_domain(lambda: found)).score

    def test_without_answers_all_is_well(self) -> None:
        assert self.score([]) == 1.0

    def test_eight_of_ten_are_healthy(self) -> None:
        answers = self.answers(*[None] * 8, "provider", "parser")

        assert (self.score(answers), band(self.score(answers))) == (0.8, "healthy")

    def test_only_the_newest_count(self) -> None:
        answers = self.answers(*[None] * RING, *["provider"] * 50)

        assert self.score(answers) == 1.0

    def test_those_of_yesterday_do_not(self) -> None:
        assert self.score(self.answers("provider", age_us=DAY_US)) == 1.0

    def test_a_fault_of_a_tool_is_not_the_provider_s(self) -> None:
        assert self.score(self.answers("tool")) == 1.0

    def test_timeouts_are_counted_apart(self) -> None:
        said = [{"time_us": 5, "fault": "provider", "error": "TimeoutError: timed out"}]
        found = provider_facts(said, 10, 10)

        assert (found["recentTimeouts"], found["recentFailures"]) == (1, 0)


class TestStorage:
    """Case 14, as it applies: what is free, and what was killed."""

    def storage(self, **changed: Any) -> DomainHealth:
        """Return the health of a store of 1 GiB, all of it used, with this changed."""
        pages = {"size": 4096, "all": 262_144, "used": 262_144} | changed.pop("pages", {})
        said: dict[str, Any] = {"free_bytes": 9 * GIB, "stale_readers": 0, "most_bytes": 1024 * GIB}
        found = storage_facts({"log": GIB}, pages=pages, **(said | changed))
        return look_at(storage_domain(lambda: found))

    def test_nothing_amiss(self) -> None:
        assert self.storage().score == 1.0

    def test_mostly_free_pages(self) -> None:
        found = self.storage(pages={"used": 100_000})

        assert [penalty.rule for penalty in found.penalties] == ["storage.free-pages"]
        assert found.status == "degraded"

    def test_a_small_log_is_not_worth_compacting(self) -> None:
        assert self.storage(pages={"all": 1000, "used": 100}).score == 1.0

    def test_a_full_disk(self) -> None:
        assert self.storage(free_bytes=GIB // 2).status == "healthy"
        assert self.storage(free_bytes=2**20).status == "unhealthy"

    def test_a_map_that_cannot_grow(self) -> None:
        assert self.storage(most_bytes=GIB).status == "unhealthy"

    def test_killed_readers(self) -> None:
        assert self.storage(stale_readers=1).score == 0.8


def test_a_stopped_view_is_degraded() -> None:
    assert look_at(view_domain(lambda: {"stoppedViews": 1, "differences": None})).score == 0.5


def test_runs_that_need_somebody_are_told() -> None:
    said = {"needingPerson": 2, "interrupted": 1, "overdue": 0}
    found = look_at(run_domain(lambda: said))

    assert (found.score, found.status) == (0.5, "degraded")


class TestRecommendations:
    """Spec §3.1, and the backlogs that the original never saw."""

    def wanted(self, **said: Any) -> list[str]:
        """Return what is recommended with these facts about queues."""
        return [each.action for each in recommend(whole(**said))]

    def test_nothing_amiss_needs_nothing(self) -> None:
        """Case 35."""
        assert self.wanted() == []

    def test_a_dead_rate_asks_for_a_requeue(self) -> None:
        """Case 35, with the text of the original."""
        (found,) = recommend(whole(rate=0.5, memory={"dead": 5}))

        assert found.to_fields() == {
            "domain": "queue",
            "action": "requeueDeadJobs",
            "trigger": "dead rate 50.0% > 1%",
        }
        assert found.expected == 5

    def test_a_backlog_of_summaries_alone_does_too(self) -> None:
        """The original's dead rate covered one queue only, and one hour."""
        (found,) = recommend(whole(summary={"dead": 51}))

        assert found.trigger == "summary: 51 dead jobs, threshold 50"

    def test_so_does_one_job_that_has_been_dead_for_long(self) -> None:
        (found,) = recommend(whole(summary={"dead": 1, "oldestDeadAgeSec": 90_000}))

        assert found.trigger == "summary: oldest dead job died 25.0 h ago, threshold 24 h"

    def test_jobs_that_died_and_are_not_dead_any_more_do_not(self) -> None:
        assert self.wanted(rate=0.5) == []

    def test_stale_leases(self) -> None:
        (found,) = recommend(whole(stale=2))

        assert (found.action, found.trigger) == ("releaseStaleLeases", "2 stale lease(s)")

    def test_the_order_is_that_of_the_actions(self) -> None:
        said = facts(stale=1, rate=1.0, memory={"dead": 1})
        said |= {"expired": 3, "obsolete": 2, "prunable": 1}
        domains = [
            look_at(queue_domain(lambda: said, HealthThresholds())),
            DomainHealth("views", 0.1, {"stoppedViews": 1}),
            DomainHealth("storage", 0.1, {"staleReaders": 1}),
        ]

        assert [each.action for each in recommend(Health(0, domains))] == [
            "requeueDeadJobs",
            "releaseStaleLeases",
            "checkViewConsistency",
            "triggerRetentionSweep",
            "cancelObsoleteJobs",
            "pruneTerminalJobs",
            "clearStaleReaders",
        ]

    def test_without_the_domain_of_queues_nothing_is_asked_of_them(self) -> None:
        assert recommend(Health(0, [DomainHealth("views", 1.0, {})])) == []

    def test_rows_that_differ_ask_for_a_check(self) -> None:
        domains = [DomainHealth("views", 0.1, {"stoppedViews": 0, "differences": 4})]
        (found,) = recommend(Health(0, domains))

        assert found.trigger == "4 row(s) differ from the log"
