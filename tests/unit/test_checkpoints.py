"""Checkpoint stores give back what was saved, from the log, in a later attempt too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from workbench import Workbench

from tachograph.checkpoints import (
    BatchCheckpointStore,
    FileCheckpointStore,
    OffsetCheckpointStore,
)
from tachograph.domain.errors import InputsChangedError, InvalidValueError, PhaseEndedError

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "9d1a7bde"


def state(done: list[int], **changes: Any) -> dict[str, Any]:
    items = [{"incidentIndex": index * 2 + place} for index in done for place in range(2)]
    return {
        "incidentsHash": FINGERPRINT,
        "batchSize": 2,
        "totalBatches": 3,
        "completedBatchIndexes": sorted(done),
        "analysed": items,
        "diagnostics": {"retryCount": 1},
        **changes,
    }


def without_time(loaded: dict[str, Any] | None) -> dict[str, Any]:
    assert loaded is not None
    return {name: value for name, value in loaded.items() if name not in ("updatedAt", "ts")}


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


# File.


def test_a_file_store_keeps_any_shape(bench: Workbench) -> None:
    with pytest.raises(KeyboardInterrupt), bench.record() as run:
        store = FileCheckpointStore(run)
        assert store.load() is None
        store.save({"page": 3, "seen": ["a"]})
        raise KeyboardInterrupt
    with bench.record() as run:
        assert FileCheckpointStore(run).load() == {"page": 3, "seen": ["a"]}


def test_a_cleared_store_has_nothing(bench: Workbench) -> None:
    with bench.record() as run:
        store = FileCheckpointStore(run)
        store.clear()
        store.save([1])
        store.clear()
        store.clear()

        assert store.load() is None
        assert bench.topics(run.id).count("checkpoint-saved") == 2


def test_stores_of_other_kinds_and_phases_do_not_disturb_each_other(bench: Workbench) -> None:
    with bench.record() as run, run.phase("embed"):
        FileCheckpointStore(run).save("outside")
        FileCheckpointStore(run, phase="embed").save("inside")
        OffsetCheckpointStore(run).save({"offset": 1, "total": 2, "migrated": 1, "skipped": 0})

        assert FileCheckpointStore(run).load() == "outside"
        assert FileCheckpointStore(run, phase="embed").load() == "inside"


# Offset.


def test_an_offset_store_stamps_the_time(bench: Workbench) -> None:
    bench.now = 5_000_000
    with bench.record() as run:
        store = OffsetCheckpointStore(run)
        store.save({"offset": 40, "total": 100, "migrated": 38, "skipped": 2})
        loaded = store.load()

        assert without_time(loaded) == {"offset": 40, "total": 100, "migrated": 38, "skipped": 2}
        assert loaded is not None and loaded["ts"] == 5_000
        assert run.state.checkpoint is not None


def test_an_offset_of_another_total_is_not_gone_on_from(bench: Workbench) -> None:
    with bench.record() as run:
        store = OffsetCheckpointStore(run)
        store.save({"offset": 40, "total": 100, "migrated": 38, "skipped": 2})

        assert store.load(total=100) is not None
        assert store.load(total=99) is None


@pytest.mark.parametrize("offset", ["1", -1, 101, 1.5, float("nan"), None])
def test_an_offset_that_cannot_be_is_refused(bench: Workbench, offset: Any) -> None:
    with bench.record() as run:
        store = OffsetCheckpointStore(run)
        with pytest.raises(InvalidValueError):
            store.save({"offset": offset, "total": 100, "migrated": 0, "skipped": 0})

        assert store.load() is None


def test_a_cleared_offset_store_has_nothing(bench: Workbench) -> None:
    with bench.record() as run:
        store = OffsetCheckpointStore(run)
        store.save({"offset": 1, "total": 2})
        store.clear()

        assert store.load() is None
        store.save({"offset": 2, "total": 2})
        assert without_time(store.load())["offset"] == 2


# Batch.


def test_a_batch_store_gives_back_what_was_saved(bench: Workbench) -> None:
    with pytest.raises(KeyboardInterrupt), bench.record() as run:
        store = BatchCheckpointStore(run)
        assert store.load() is None
        store.save(state([0]))
        store.save(state([0, 2]))
        raise KeyboardInterrupt
    with bench.record() as run:
        loaded = BatchCheckpointStore(run).load(FINGERPRINT, 2, 3)

        assert without_time(loaded) == {"version": 1, **state([0, 2])}
        BatchCheckpointStore(run).save(state([0, 1, 2]))
        BatchCheckpointStore(run).clear()
        assert run.state.phases["analyze"].status == "completed"


def test_each_batch_is_recorded_once_with_its_items(bench: Workbench) -> None:
    with bench.record() as run:
        store = BatchCheckpointStore(run)
        store.save(state([1]))
        store.save(state([1, 0]))
        store.save(state([1, 0]))
        recorded = bench.fields(run.id, "batch-completed")

        assert [(each["index"], each["parsed"]) for each in recorded] == [(1, 2), (0, 2)]
        assert recorded[0]["output"] == [{"incidentIndex": 2}, {"incidentIndex": 3}]
        assert bench.topics(run.id).count("checkpoint-saved") == 1
        store.save(state([0, 1, 2]))
        store.clear()


def test_items_without_an_index_find_their_batch_in_any_order(bench: Workbench) -> None:
    with bench.record() as run:
        store = BatchCheckpointStore(run)
        store.save(state([1], analysed=["c", "d"]))
        store.save(state([0, 1], analysed=["c", "d", "a", "b"]))

        assert without_time(store.load())["analysed"] == ["a", "b", "c", "d"]
        store.save(state([0, 1, 2], analysed=["c", "d", "a", "b", "e"]))
        assert without_time(store.load())["analysed"] == ["a", "b", "c", "d", "e"]
        store.clear()


def test_items_of_no_batch_are_kept_all_the_same(bench: Workbench) -> None:
    with bench.record() as run:
        store = BatchCheckpointStore(run)
        store.save(state([0], analysed=["a", "b", "c"]))

        assert without_time(store.load())["analysed"] == ["a", "b", "c"]
        store.save(state([0, 1], analysed=["a", "b", "c", "d"]))
        assert sorted(without_time(store.load())["analysed"]) == ["a", "b", "c", "d"]
        store.save(state([0, 1, 2], analysed=["a", "b", "c", "d"]))
        store.clear()


@pytest.mark.parametrize("asked", [("0dc845e1", 2, 3), (FINGERPRINT, 5, 3), (FINGERPRINT, 2, 4)])
def test_a_state_of_other_inputs_is_not_gone_on_from(
    bench: Workbench, asked: tuple[str, int, int]
) -> None:
    with bench.record() as run:
        store = BatchCheckpointStore(run)
        store.save(state([0, 1, 2]))

        assert store.load(FINGERPRINT, 2, 3) is not None
        assert store.load(*asked) is None
        store.clear()


def test_another_plan_is_refused_and_records_nothing(bench: Workbench) -> None:
    with bench.record() as run:
        store = BatchCheckpointStore(run)
        store.save(state([0, 1, 2]))
        before = bench.topics(run.id)
        with pytest.raises(InputsChangedError):
            store.save(state([0], batchSize=5))
        with pytest.raises(InvalidValueError):
            store.save(state([9]))

        assert bench.topics(run.id) == before
        store.clear()
        assert store.load() is None
        with pytest.raises(PhaseEndedError):
            store.save(state([0]))


def test_a_phase_that_the_job_began_is_the_stores(bench: Workbench) -> None:
    with bench.record() as run, run.phase("parse"):
        BatchCheckpointStore(run, phase="parse").save(state([0, 1, 2]))

        assert run.state.phases["parse"].done.ranges == [[0, 2]]
    assert run.state.phases["parse"].status == "completed"


def test_clearing_what_was_never_begun_records_nothing(bench: Workbench) -> None:
    with bench.record() as run:
        BatchCheckpointStore(run).clear()

        assert bench.topics(run.id) == ["created", "attempt-started"]


def test_a_large_state_goes_to_the_blobs_and_comes_back(bench: Workbench) -> None:
    with bench.record() as run:
        store = BatchCheckpointStore(run)
        items = [{"incidentIndex": index, "text": "x" * 20_000} for index in range(5)]
        store.save(state([0, 1, 2], analysed=items))

        assert without_time(store.load())["analysed"] == items
        assert bench.blobs.kept
        store.clear()


# Path.


def test_the_path_is_the_file_that_was_written(bench: Workbench, tmp_path: Path) -> None:
    with bench.record() as run:
        assert FileCheckpointStore(run).path is None
        store = FileCheckpointStore(run, folder=tmp_path)
        assert store.path is None
        (tmp_path / "checkpoint.json").write_text("{}", encoding="utf-8")

        assert store.path == str(tmp_path / "checkpoint.json")
