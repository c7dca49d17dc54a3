"""A set of indexes kept as ranges behaves as a set does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.index_set import IndexSet

indexes = st.lists(st.integers(0, 40), max_size=60)


def filled(numbers: list[int]) -> IndexSet:
    done = IndexSet()
    for number in numbers:
        done.add(number)
    return done


@given(indexes)
def test_it_holds_what_was_added(numbers: list[int]) -> None:
    done = filled(numbers)

    assert {number for number in range(-2, 45) if number in done} == set(numbers)
    assert len(done) == len(set(numbers))


@given(indexes, st.integers(0, 50))
def test_what_is_missing_is_the_rest(numbers: list[int], total: int) -> None:
    assert filled(numbers).missing(total) == sorted(set(range(total)) - set(numbers))


@given(indexes)
def test_ranges_are_in_order_and_never_touch(numbers: list[int]) -> None:
    ranges = filled(numbers).ranges

    assert all(first <= last for first, last in ranges)
    assert all(ranges[at][1] + 1 < ranges[at + 1][0] for at in range(len(ranges) - 1))


@given(indexes)
def test_equal_sets_are_equal_however_they_came_about(numbers: list[int]) -> None:
    done = filled(numbers)

    assert filled(sorted(numbers)) == done
    assert filled([*reversed(numbers), *numbers]) == done
    assert IndexSet([list(pair) for pair in done.ranges]) == done


@given(indexes, st.integers(0, 40))
def test_another_index_makes_another_set(numbers: list[int], number: int) -> None:
    assert (filled([*numbers, number]) == filled(numbers)) == (number in numbers)


def test_finished_batches_in_order_are_one_pair() -> None:
    assert filled(list(range(1000))).ranges == [[0, 999]]


def test_a_gap_that_is_filled_joins_its_neighbours() -> None:
    assert filled([0, 2, 1]).ranges == [[0, 2]]


def test_it_is_not_a_list_of_ranges() -> None:
    assert filled([1]) != [[1, 1]]
    assert repr(filled([1])) == "IndexSet([[1, 1]])"


@given(indexes, st.integers(0, 50), st.integers(0, 60))
def test_the_first_that_are_missing_are_told_without_the_rest(
    numbers: list[int], total: int, most: int
) -> None:
    done = filled(numbers)

    assert done.missing(total, most) == done.missing(total)[:most]


@given(indexes, st.integers(0, 50))
def test_what_is_missing_is_counted_and_told_as_ranges(numbers: list[int], total: int) -> None:
    done = filled(numbers)
    ranges = done.missing_ranges(total)

    assert done.count_missing(total) == len(done.missing(total))
    assert [index for first, last in ranges for index in range(first, last + 1)] == done.missing(
        total
    )
    assert all(ranges[at][1] + 1 < ranges[at + 1][0] for at in range(len(ranges) - 1))


def test_what_is_missing_of_very_many_is_counted_without_listing_it() -> None:
    done = filled([0, 5])

    assert done.count_missing(10**18) == 10**18 - 2
    assert done.missing(10**18, 3) == [1, 2, 3]
