"""The JSON of the three checkpoint stores: loaded by the same rules, written in the same shape."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import CREATED, attempt, do, given, started

from tachograph.domain import checkpoint_shapes as shapes
from tachograph.domain.attribution import (
    BY_INDEX,
    BY_PLACE,
    NOT_ATTRIBUTED,
    attribute,
    item_index,
)
from tachograph.domain.event import Cause
from tachograph.domain.run import Run

ME = attempt(1)
GOOD: dict[str, Any] = {
    "version": 1,
    "incidentsHash": "9d1a7bde",
    "batchSize": 2,
    "totalBatches": 3,
    "completedBatchIndexes": [0, 2],
    "analysed": [{"incidentIndex": 0}, {"incidentIndex": 1}, {"incidentIndex": 4}],
    "diagnostics": {"retryCount": 1},
    "updatedAt": "2026-03-01T02:31:40.500Z",
}
OFFSET = {"offset": 4, "total": 9, "migrated": 3, "skipped": 1, "ts": 1_700_000_000_000}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"diagnostics": None, "batchSize": "two"}, None),
        ({"version": 2}, "its version is 2, not 1"),
        ({"version": True}, "its version is True, not 1"),
        ({"version": "1"}, "its version is '1', not 1"),
        ({"incidentsHash": 9}, "incidentsHash is no text"),
        ({"completedBatchIndexes": None}, "completedBatchIndexes is no list"),
        ({"analysed": {}}, "analysed is no list"),
    ],
)
def test_a_batch_checkpoint_is_loaded_by_its_version_hash_and_lists(
    changes: dict[str, Any], fault: str | None
) -> None:
    assert shapes.batch_fault({**GOOD, **changes}) == fault


@pytest.mark.parametrize("value", [None, [], "text", 7])
def test_what_is_no_object_is_no_checkpoint(value: Any) -> None:
    assert shapes.batch_fault(value) == "it is no JSON object"
    assert shapes.offset_fault(value) == "it is no JSON object"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"batchSize": 0}, "batchSize is 0, not a whole number of 1 or more"),
        ({"batchSize": 2.5}, "batchSize is 2.5, not a whole number of 1 or more"),
        ({"totalBatches": None}, "totalBatches is None, not a whole number of 0 or more"),
        ({"completedBatchIndexes": [3]}, "completedBatchIndexes holds 3, and there are 3 batches"),
        ({"completedBatchIndexes": [True]}, "completedBatchIndexes holds True, and there are 3"),
        ({"completedBatchIndexes": [0, 0]}, "completedBatchIndexes holds an index twice"),
        ({"analysed": [{}] * 7}, "analysed holds 7 items, more than all batches together"),
        ({"diagnostics": {"a": "b"}}, "diagnostics are no numbers by name"),
        ({"diagnostics": []}, "diagnostics are no numbers by name"),
    ],
)
def test_sizes_that_cannot_be_are_named(changes: dict[str, Any], fault: str | None) -> None:
    found = shapes.batch_size_fault({**GOOD, **changes})

    assert found == fault or (fault is not None and (found or "").startswith(fault))


@pytest.mark.parametrize(
    ("now", "mismatch"),
    [
        (("9d1a7bde", 2, 3), None),
        (("0dc845e1", 2, 3), "incidentsHash is '9d1a7bde', and the run's is '0dc845e1'"),
        (("9d1a7bde", 5, 3), "batchSize is 2, and the run's is 5"),
        (("9d1a7bde", 2, 4), "totalBatches is 3, and the run's is 4"),
    ],
)
def test_a_resume_needs_the_same_hash_size_and_total(
    now: tuple[str, int, int], mismatch: str | None
) -> None:
    assert shapes.batch_mismatch(GOOD, *now) == mismatch


@pytest.mark.parametrize(
    ("changes", "loading", "sizes"),
    [
        ({}, None, None),
        ({"offset": "4"}, "offset is '4', not a number", None),
        ({"total": float("inf")}, "total is inf, not a number", None),
        ({"total": True}, "total is True, not a number", None),
        ({"offset": 10}, None, "offset is 10, beyond the total of 9"),
        ({"offset": 1.5}, None, "offset is 1.5, not a whole number of 0 or more"),
        ({"skipped": -1}, None, "skipped is -1, not a whole number of 0 or more"),
    ],
)
def test_an_offset_checkpoint_needs_finite_numbers(
    changes: dict[str, Any], loading: str | None, sizes: str | None
) -> None:
    value = {**OFFSET, **changes}

    assert shapes.offset_fault(value) == loading
    if loading is None:
        assert shapes.offset_size_fault(value) == sizes


def test_a_resume_of_an_offset_needs_the_same_total() -> None:
    assert shapes.offset_mismatch(OFFSET, 9) is None
    assert shapes.offset_mismatch(OFFSET, 8) == "total is 9, and there are 8 now"


def test_an_offset_comes_back_as_it_went_in() -> None:
    state = shapes.offset_state(OFFSET)

    assert shapes.offset_json(state, OFFSET["ts"] * 1000) == OFFSET


# Which item came out of which batch.


@pytest.mark.parametrize(
    ("item", "index"),
    [
        ({"incidentIndex": 7}, 7),
        ({"incidentIndex": "7"}, 7),
        ({"incidentIndex": 7.0}, 7),
        ({"incident_index": 2}, 2),
        ({"_batchIndex": 3}, 3),
        ({"incidentIndex": -1}, None),
        ({"incidentIndex": True}, None),
        ({"incidentIndex": 1.5}, None),
        ({"incidentIndex": float("nan")}, None),
        ({"incidentIndex": "seven"}, None),
        ({"incidentIndex": "9" * 30}, None),
        ({}, None),
        ("text", None),
    ],
)
def test_the_index_that_an_item_names(item: Any, index: int | None) -> None:
    assert item_index(item) == index


def of(items: list[Any], done: list[int], **changes: Any) -> dict[str, Any]:
    return {**GOOD, "analysed": items, "completedBatchIndexes": done, **changes}


def test_items_go_to_the_batch_of_their_global_index() -> None:
    shares = attribute(GOOD)

    assert shares.how == BY_INDEX
    assert shares.outputs == {
        0: [{"incidentIndex": 0}, {"incidentIndex": 1}],
        2: [{"incidentIndex": 4}],
    }
    assert shares.unattributed == []


def test_an_item_of_a_batch_that_is_not_finished_is_kept_apart() -> None:
    shares = attribute(of([{"incidentIndex": 3}], [0]))

    assert (shares.outputs, shares.unattributed) == ({0: []}, [{"incidentIndex": 3}])


def test_items_without_an_index_go_by_place_when_their_number_fits() -> None:
    shares = attribute(of(["a", "b", "c"], [1, 2]))

    assert (shares.how, shares.outputs) == (BY_PLACE, {1: ["a", "b"], 2: ["c"]})


@pytest.mark.parametrize(("items", "done"), [(["a"], [0]), (["a", "b", "c"], [0]), (["a"], [])])
def test_items_whose_number_does_not_fit_go_to_no_batch(items: list[str], done: list[int]) -> None:
    shares = attribute(of(items, done))

    assert (shares.how, shares.unattributed) == (NOT_ATTRIBUTED, items)
    assert shares.outputs == {index: [] for index in done}


def test_indexes_that_count_within_each_batch_say_nothing() -> None:
    items = [{"incidentIndex": index} for index in (0, 1, 0, 1)]
    shares = attribute(of(items, [0, 1]))

    assert (shares.how, shares.outputs) == (BY_PLACE, {0: items[:2], 1: items[2:]})


def test_a_batch_that_is_recorded_already_gets_nothing_twice() -> None:
    shares = attribute(of(["c", "d", "a", "b"], [0, 1]), known={1}, recorded=["c", "d"])

    assert (shares.outputs, shares.unattributed) == ({0: ["a", "b"]}, [])


# From a run.


def running(*more: Any) -> Run:
    return given(
        CREATED,
        started(1),
        do(Run.start_phase, ME, "parse"),
        do(Run.plan_batches, ME, "parse", total=3, size=2, items_digest=None),
        do(Run.complete_batch, ME, "parse", 2, inputs=1, parsed=1, output=["e"]),
        do(Run.complete_batch, ME, "parse", 0, inputs=2, parsed=2, output=["a", "b"]),
        *more,
    ).run


OUTPUTS = [(2, ["e"]), (0, ["a", "b"])]


def test_a_batch_phase_is_written_in_the_shape_of_a_batch_checkpoint() -> None:
    run = running(do(Run.schedule_retry, ME, "parse", 1))
    shape = shapes.checkpoint_json(run, OUTPUTS)

    assert shapes.checkpoint_phase(run) == "parse"
    assert shape == {
        "version": 1,
        "incidentsHash": "0dc845e1",
        "batchSize": 2,
        "totalBatches": 3,
        "completedBatchIndexes": [0, 2],
        "analysed": ["a", "b", "e"],
        "diagnostics": {"retries": 1},
        "updatedAt": "2023-11-14T22:13:20.000Z",
    }
    assert shapes.batch_fault(shape) is None
    assert shapes.batch_size_fault(shape) is None


def test_what_no_batch_holds_is_written_too() -> None:
    rest = shapes.rest_state(incidents_hash="ff", diagnostics={"n": 2}, unattributed=["z"])
    run = running(do(Run.save_checkpoint, ME, phase="parse", kind="batch", state=rest))
    shape = shapes.checkpoint_json(run, OUTPUTS, state=rest)

    assert shape["incidentsHash"] == "ff"
    assert shape["diagnostics"] == {"n": 2}
    assert shape["analysed"] == ["a", "b", "e", "z"]


def test_a_checkpoint_of_the_jobs_own_that_is_newer_wins() -> None:
    run = running(do(Run.save_checkpoint, ME, state={"row": 7}))

    assert shapes.checkpoint_phase(run) is None
    assert shapes.checkpoint_json(run, state={"row": 7}) == {"row": 7}


def test_an_offset_is_written_in_the_shape_of_an_offset_checkpoint() -> None:
    state = {"offset": 4, "total": 9, "seen": 5}
    run = running(do(Run.save_checkpoint, ME, kind="offset", state=state))

    assert shapes.checkpoint_json(run, state=state, updated_us=5_000) == {
        "offset": 4,
        "total": 9,
        "migrated": 0,
        "skipped": 0,
        "seen": 5,
        "ts": 5,
    }


def test_a_run_without_a_checkpoint_has_none() -> None:
    assert shapes.checkpoint_json(given(CREATED, started(1)).run) is None


def test_outputs_that_are_no_lists_count_as_one_item() -> None:
    assert [shapes.items_of(each) for each in (["a"], ("a",), None, {"a": 1}, "text")] == [
        ["a"],
        ["a"],
        [],
        [{"a": 1}],
        ["text"],
    ]


def test_the_time_of_the_last_event_is_that_of_the_checkpoint() -> None:
    run = running()
    run.report_progress(Cause(1_800_000_000_000_000, "tacho", "ada", 17, 1), 1, 2)

    assert shapes.checkpoint_json(run, OUTPUTS)["updatedAt"] == "2027-01-15T08:00:00.000Z"
