"""An event is as old as the machine has been awake since, whatever was done to the wall clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.ages import STEP_US, Moment, age_us, awake_age_us, was_set

SECOND = 1_000_000
HOUR = 3600 * SECOND
WALL = 1_700_000_000 * SECOND
"""Wall time at which the machine was started."""


def moment(boot: int, *, step: int = 0, suspended: int = 0) -> Moment:
    """Return what the clocks show `boot` µs after the start."""
    return Moment(WALL + boot + step, boot, boot - suspended)


class TestAge:
    def test_without_earlier_moments_the_wall_clock_counts(self) -> None:
        assert awake_age_us(WALL + HOUR, moment(3 * HOUR), []) == 2 * HOUR

    def test_an_event_cannot_be_older_than_the_machine_is_awake(self) -> None:
        assert awake_age_us(WALL - 99 * HOUR, moment(3 * HOUR), []) == 3 * HOUR
        assert awake_age_us(WALL, moment(3 * HOUR, suspended=HOUR), []) == 2 * HOUR

    def test_an_event_of_the_future_has_no_age(self) -> None:
        assert awake_age_us(WALL + 9 * HOUR, moment(3 * HOUR), []) == 0

    def test_it_is_counted_from_the_last_moment_before_the_event(self) -> None:
        seen = [moment(0), moment(HOUR), moment(2 * HOUR)]

        assert awake_age_us(WALL + HOUR + 60 * SECOND, moment(3 * HOUR), seen) == (
            2 * HOUR - 60 * SECOND
        )

    def test_a_clock_set_forward_makes_no_event_old(self) -> None:
        seen = [moment(0), moment(HOUR)]
        now = moment(HOUR + 60 * SECOND, step=100 * HOUR)

        assert awake_age_us(WALL + HOUR, now, seen) == 60 * SECOND

    def test_a_clock_set_back_makes_no_event_young(self) -> None:
        seen = [moment(0), moment(HOUR)]
        now = moment(3 * HOUR, step=-100 * HOUR)

        assert awake_age_us(WALL + HOUR, now, seen) == 2 * HOUR

    def test_an_event_after_a_clock_was_set_back_is_counted_from_its_own_moment(self) -> None:
        seen = [moment(0), moment(HOUR), moment(2 * HOUR, step=-5 * HOUR)]
        event_us = WALL + 2 * HOUR - 5 * HOUR + 60 * SECOND
        now = moment(3 * HOUR, step=-5 * HOUR)

        assert awake_age_us(event_us, now, seen) == HOUR - 60 * SECOND

    def test_an_event_that_no_moment_explains_is_of_the_last_one_before_it(self) -> None:
        """A clock that was set twice between two moments showed times that none of them knows."""
        seen = [moment(0), moment(HOUR)]

        assert awake_age_us(WALL + 50 * HOUR, moment(2 * HOUR), seen) == 0
        assert age_us(WALL + 50 * HOUR, moment(2 * HOUR), seen) == 0

    def test_time_in_which_the_machine_slept_does_not_count(self) -> None:
        seen = [moment(0), moment(HOUR)]
        now = moment(9 * HOUR, suspended=7 * HOUR)

        assert awake_age_us(WALL + HOUR, now, seen) == HOUR

    def test_an_event_before_every_moment_is_as_old_as_the_first_says(self) -> None:
        seen = [moment(2 * HOUR), moment(3 * HOUR)]

        assert awake_age_us(WALL + HOUR, moment(4 * HOUR), seen) == 3 * HOUR

    @given(
        boots=st.lists(st.integers(0, 100 * HOUR), min_size=2, max_size=30).map(sorted),
        steps=st.lists(st.integers(-50 * HOUR, 50 * HOUR), min_size=30, max_size=30),
        event_us=st.integers(WALL - 200 * HOUR, WALL + 300 * HOUR),
    )
    def test_it_is_never_negative_nor_longer_than_the_machine_is_awake(
        self, boots: list[int], steps: list[int], event_us: int
    ) -> None:
        *seen, now = [moment(boot, step=step) for boot, step in zip(boots, steps, strict=False)]

        assert 0 <= awake_age_us(event_us, now, seen) <= now.awake_us

    @given(
        boots=st.lists(st.integers(0, 100 * HOUR), min_size=1, max_size=2000, unique=True).map(
            sorted
        ),
        place=st.integers(0, 10**6),
        later=st.integers(0, HOUR),
        step=st.integers(-50 * HOUR, 50 * HOUR),
    )
    def test_one_step_after_every_moment_changes_no_age(
        self, boots: list[int], place: int, later: int, step: int
    ) -> None:
        """Many moments, an event at one of them, and then the clock is set."""
        seen = [moment(boot) for boot in boots]
        event = boots[place % len(boots)]
        now = moment(boots[-1] + later, step=step)

        assert awake_age_us(WALL + event, now, seen) == boots[-1] + later - event


class TestAgeAsleepOrAwake:
    def test_time_in_which_the_machine_slept_counts(self) -> None:
        seen = [moment(0), moment(HOUR)]
        now = moment(9 * HOUR, suspended=7 * HOUR)

        assert age_us(WALL + HOUR, now, seen) == 8 * HOUR

    @pytest.mark.parametrize("step", [-100 * HOUR, 100 * HOUR])
    def test_a_clock_that_was_set_changes_no_age(self, step: int) -> None:
        seen = [moment(0), moment(HOUR)]

        assert age_us(WALL + HOUR, moment(3 * HOUR, step=step), seen) == 2 * HOUR

    def test_an_event_of_an_earlier_boot_is_as_old_as_the_first_moment_says(self) -> None:
        seen = [moment(HOUR), moment(2 * HOUR, step=50 * HOUR)]

        assert age_us(WALL - 10 * HOUR, moment(3 * HOUR, step=50 * HOUR), seen) == 13 * HOUR

    def test_without_earlier_moments_the_wall_clock_counts(self) -> None:
        assert age_us(WALL - 10 * HOUR, moment(3 * HOUR), []) == 13 * HOUR

    def test_an_event_of_the_future_has_no_age(self) -> None:
        assert age_us(WALL + 9 * HOUR, moment(3 * HOUR), []) == 0


class TestWasSet:
    def test_nothing_is_known_before_the_first_moment(self) -> None:
        assert not was_set(moment(HOUR, step=99 * HOUR), [])

    def test_a_clock_that_was_left_alone_was_not_set(self) -> None:
        assert not was_set(moment(9 * HOUR), [moment(HOUR)])

    def test_a_clock_was_set_forward_or_back(self) -> None:
        assert was_set(moment(9 * HOUR, step=2 * STEP_US), [moment(HOUR)])
        assert was_set(moment(9 * HOUR, step=-2 * STEP_US), [moment(HOUR)])

    def test_drift_is_no_step(self) -> None:
        assert not was_set(moment(9 * HOUR, step=STEP_US), [moment(HOUR)])

    def test_sleep_is_no_step(self) -> None:
        assert not was_set(moment(9 * HOUR, suspended=7 * HOUR), [moment(HOUR)])

    def test_only_the_last_moment_counts(self) -> None:
        seen = [moment(HOUR), moment(2 * HOUR, step=5 * HOUR)]

        assert not was_set(moment(3 * HOUR, step=5 * HOUR), seen)
