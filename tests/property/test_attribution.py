"""No item of a batch checkpoint is lost, doubled or given to a wrong batch."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.attribution import BY_INDEX, BY_PLACE, attribute
from tachograph.domain.ids import compact_json

SIZES = st.integers(1, 6)
TOTALS = st.integers(1, 8)


def count(items: Any) -> Counter[str]:
    return Counter(compact_json(item, sort_keys=True) for item in items)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[int, list[Any]]]:
    """Draw a job's checkpoint, and what really came out of each finished batch."""
    size, total = draw(SIZES), draw(TOTALS)
    last = draw(st.integers(1, size))
    done = draw(st.lists(st.integers(0, total - 1), unique=True))
    named = draw(st.booleans())
    truth: dict[int, list[Any]] = {}
    for index in done:
        length = last if index == total - 1 else size
        numbers = range(index * size, index * size + length)
        truth[index] = [
            {"incidentIndex": number, "text": f"t{number}"} if named else f"t{number}"
            for number in numbers
        ]
    order = draw(st.permutations(done)) if named else sorted(done)
    checkpoint = {
        "version": 1,
        "incidentsHash": "h",
        "batchSize": size,
        "totalBatches": total,
        "completedBatchIndexes": sorted(done),
        "analysed": [item for index in order for item in truth[index]],
        "diagnostics": {},
    }
    return checkpoint, truth


@given(jobs())
def test_every_batch_gets_what_came_out_of_it(
    job: tuple[dict[str, Any], dict[int, list[Any]]],
) -> None:
    checkpoint, truth = job
    shares = attribute(checkpoint)

    assert shares.outputs == truth
    assert shares.unattributed == []
    assert not truth or shares.how in (BY_INDEX, BY_PLACE)


@given(jobs(), st.data())
def test_batches_that_were_recorded_before_change_nothing(
    job: tuple[dict[str, Any], dict[int, list[Any]]], data: st.DataObject
) -> None:
    checkpoint, truth = job
    known = (
        set(data.draw(st.lists(st.sampled_from(sorted(truth)), unique=True))) if truth else set()
    )
    recorded = [item for index in known for item in truth[index]]
    shares = attribute(checkpoint, known=known, recorded=recorded)

    assert shares.outputs == {index: truth[index] for index in truth if index not in known}
    assert shares.unattributed == []


@given(
    st.lists(st.one_of(st.integers(), st.dictionaries(st.just("incidentIndex"), st.integers()))),
    SIZES,
    st.lists(st.integers(0, 7), unique=True),
)
def test_no_item_is_lost_or_doubled_whatever_they_say(
    items: list[Any], size: int, done: list[int]
) -> None:
    value = {
        "batchSize": size,
        "totalBatches": 8,
        "completedBatchIndexes": done,
        "analysed": items,
    }
    shares = attribute(value)
    told = [item for share in shares.outputs.values() for item in share]

    assert count([*told, *shares.unattributed]) == count(items)
    assert sorted(shares.outputs) == sorted(done)
