"""What is declared of queues: how long failures wait, and what holds where nothing is said."""

from __future__ import annotations

import pytest

from tachograph.domain.queue_errors import RetryLaterError, UnknownQueueError
from tachograph.domain.queue_settings import (
    DAY_US,
    DEFAULT_QUEUES,
    Backoff,
    JobType,
    QueuePlan,
    QueueSettings,
    Rate,
)

MS_US = 1_000
ALMOST_ONE = 1.0 - 2**-53
"""The largest that a random number can be."""


class TestBackoff:
    @pytest.mark.parametrize(
        ("failures", "least_ms", "most_ms"),
        [
            (1, 1_000, 1_500),
            (2, 2_000, 2_500),
            (3, 4_000, 4_500),
            (4, 8_000, 8_500),
            (5, 16_000, 16_500),
            (6, 30_000, 30_500),
            (7, 30_000, 30_500),
            (1_000, 30_000, 30_500),
        ],
    )
    def test_it_doubles_from_one_second_to_thirty_with_half_a_second_of_jitter(
        self, failures: int, least_ms: int, most_ms: int
    ) -> None:
        """Case 6; the original's first failure waited 2,000 ms and more."""
        backoff = Backoff()

        assert backoff.delay_us(failures, lambda: 0.0) == least_ms * MS_US
        assert least_ms * MS_US < backoff.delay_us(failures, lambda: ALMOST_ONE) < most_ms * MS_US

    @pytest.mark.parametrize("failures", [0, -1])
    def test_nothing_is_waited_for_after_no_failure(self, failures: int) -> None:
        """Case 6: a success resets it."""
        assert Backoff().delay_us(failures, lambda: ALMOST_ONE) == 0

    def test_a_queue_may_wait_otherwise(self) -> None:
        backoff = Backoff(base_us=10, cap_us=50, jitter_us=0)

        assert [backoff.delay_us(n, lambda: 0.9) for n in (1, 2, 3, 4, 5)] == [10, 20, 40, 50, 50]


class TestSettings:
    def test_what_holds_where_nothing_is_said(self) -> None:
        settings = QueueSettings("memory")

        assert (settings.max_attempts, settings.lease_seconds, settings.poll_seconds) == (
            3,
            300.0,
            2.0,
        )
        assert (settings.concurrency, settings.per_key, settings.rate) == (None, 1, None)
        assert (settings.completed_kept_us, settings.dead_kept_us) == (14 * DAY_US, 30 * DAY_US)
        assert settings.backoff == Backoff()

    def test_what_is_said_holds(self) -> None:
        backoff = Backoff(base_us=5)
        settings = QueueSettings("memory", backoff=backoff, rate=Rate(5, 60))

        assert settings.backoff is backoff
        assert settings.rate == Rate(5, 60)

    def test_any_type_is_one_of_the_queue(self) -> None:
        """Types are free; what is declared of one holds for it."""
        declared = JobType("ingest", command=("python", "ingest.py"), max_attempts=5)
        settings = QueueSettings("memory", types={"ingest": declared})

        assert settings.job_type("ingest") is declared
        assert declared.command == ["python", "ingest.py"]
        assert settings.job_type("other") == JobType("other")
        assert settings.job_type("other").command is None


class TestPlan:
    @pytest.mark.parametrize("declared", [None, {}])
    def test_there_are_two_queues_where_none_is_declared(
        self, declared: dict[str, QueueSettings] | None
    ) -> None:
        plan = QueuePlan(declared)

        assert tuple(plan.queues) == DEFAULT_QUEUES == ("memory", "summary")
        assert plan.get("summary").name == "summary"

    def test_a_queue_that_is_not_declared_is_refused_with_a_near_name(self) -> None:
        with pytest.raises(UnknownQueueError) as caught:
            QueuePlan().get("memroy")

        assert "Did you mean 'memory'?" in str(caught.value)
        assert "memory, summary" in str(caught.value)

    def test_a_name_that_is_near_to_none_is_refused_too(self) -> None:
        with pytest.raises(UnknownQueueError) as caught:
            QueuePlan({"mail": QueueSettings("mail")}).get("bogus")

        assert "Did you mean" not in str(caught.value)


class TestRetryLater:
    @pytest.mark.parametrize(
        ("arguments", "seconds"),
        [((), None), (("busy",), None), ((30,), 30.0), (("busy", 1.5), 1.5), ((True,), None)],
    )
    def test_a_handler_may_name_a_time(
        self, arguments: tuple[object, ...], seconds: float | None
    ) -> None:
        assert RetryLaterError(*arguments).seconds == seconds
