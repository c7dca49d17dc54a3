"""Latencies in buckets: exact enough, the same on every machine, and able to be added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.projections.queue_traffic import (
    Traffic,
    bucket_of,
    middle_of,
    note,
    percentile,
)

SPANS = st.integers(0, 10**13)


@given(SPANS)
def test_a_bucket_is_at_most_a_sixteenth_off(span_us: int) -> None:
    assert abs(middle_of(bucket_of(span_us)) - span_us) <= span_us / 16


@given(SPANS, SPANS)
def test_longer_is_never_in_an_earlier_bucket(one: int, other: int) -> None:
    low, high = sorted((one, other))

    assert bucket_of(low) <= bucket_of(high)


@given(st.lists(SPANS, min_size=1), st.sampled_from([0.01, 0.5, 0.95, 1.0]))
def test_a_percentile_is_within_a_tenth(spans: list[int], share: float) -> None:
    buckets: dict[int, int] = {}
    for span_us in spans:
        note(buckets, span_us)
    rank = next(n for n in range(1, len(spans) + 1) if n >= share * len(spans))
    exact = sorted(spans)[rank - 1]
    found = percentile(buckets, share)

    assert found is not None
    assert abs(found - exact) <= exact / 10


def test_nothing_has_no_percentile() -> None:
    assert percentile({}, 0.5) is None


@given(st.lists(SPANS), st.lists(SPANS))
def test_sums_are_those_of_everything(first: list[int], second: list[int]) -> None:
    parts, whole = [Traffic(), Traffic()], Traffic()
    for part, spans in zip(parts, (first, second), strict=True):
        for span_us in spans:
            for traffic in (part, whole):
                traffic.enqueued += 1
                note(traffic.waits, span_us)
                note(traffic.works, span_us + 1)
    total = Traffic()
    for part in parts:
        total.add(Traffic.from_row(part.to_row()))

    assert total == whole
    assert total.to_row() == whole.to_row()


@pytest.mark.parametrize("row", [[], [1, 2, 3, 4, 5], [1, 2, 3, 4, [1, 1], [1, 1]]])
def test_a_row_of_another_shape_is_refused(row: list[object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Traffic.from_row(row)


def test_a_row_with_half_a_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Traffic.from_row([1, 2, 3, 4, 5, [1], []])
