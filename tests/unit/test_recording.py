"""What a Python job relies on: restored work, truthful ends, one implementation for asyncio."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from workbench import Workbench

import tachograph
from tachograph.domain import errors


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def last(bench: Workbench, run_id: str, topic: str = "finished") -> dict[str, object]:
    return bench.fields(run_id, topic)[-1]


def test_a_job_that_did_its_work_is_a_success(bench: Workbench) -> None:
    with bench.record(inputs={"items": [1, 2]}) as run:
        with run.phase("one") as phase:
            for batch in phase.batches([1, 2], size=1):
                batch.complete([batch.items[0] * 2])
        assert run.outputs("one") == [2, 4]
        assert run.judge(inputs=2, outputs=2) == "success"

    assert last(bench, run.id)["outcome"] == "success"
    assert bench.topics(run.id) == [
        "created",
        "attempt-started",
        "phase-started",
        "batches-planned",
        "batch-completed",
        "batch-completed",
        "phase-ended",
        "semantic-gate-judged",
        "finished",
    ]


def test_success_is_earned_a_job_that_produced_nothing_has_failed(bench: Workbench) -> None:
    """G12."""
    with bench.record() as run, run.phase("one") as phase:
        for batch in phase.batches(["a", "b"], size=2):
            batch.complete([])

    assert last(bench, run.id)["outcome"] == "failed_semantic_empty"


def test_a_job_that_declares_nothing_is_not_called_a_success(bench: Workbench) -> None:
    """G12."""
    with bench.record() as run:
        pass

    assert last(bench, run.id)["outcome"] == "success_with_review"
    assert last(bench, run.id)["reason_code"] == "not_judged"


def test_an_exception_ends_the_attempt_as_failed_and_is_not_swallowed(bench: Workbench) -> None:
    with pytest.raises(ZeroDivisionError), bench.record() as run:
        _ = 1 / 0

    assert last(bench, run.id)["outcome"] == "failed"
    assert last(bench, run.id)["reason"] == "ZeroDivisionError: division by zero"


def test_ctrl_c_ends_the_attempt_as_partial(bench: Workbench) -> None:
    with pytest.raises(KeyboardInterrupt), bench.record() as run:
        raise KeyboardInterrupt

    assert last(bench, run.id)["outcome"] == "partial"
    assert last(bench, run.id)["reason_code"] == "stopped_by_person"


def test_finished_batches_are_not_run_again_and_their_outputs_are_restored(
    bench: Workbench,
) -> None:
    ran: list[int] = []

    def job(stop_at: int) -> list[int]:
        with bench.record(inputs={"n": 10}) as run:
            with run.phase("one") as phase:
                for batch in phase.batches(list(range(10)), size=2):
                    if batch.index == stop_at:
                        raise RuntimeError("cut off")
                    ran.append(batch.index)
                    batch.complete([n * n for n in batch.items])
            return run.outputs("one")

    with pytest.raises(RuntimeError):
        job(stop_at=3)
    assert job(stop_at=-1) == [n * n for n in range(10)]

    assert ran == [0, 1, 2, 3, 4]


def test_a_resume_over_other_items_is_refused(bench: Workbench) -> None:
    def job(items: list[int]) -> None:
        with bench.record() as run, run.phase("one") as phase:
            for _batch in phase.batches(items, size=2):
                raise RuntimeError("cut off")

    with pytest.raises(RuntimeError):
        job([1, 2, 3])
    with pytest.raises(errors.InputsChangedError, match="batches"):
        job([1, 2, 4])


def test_a_phase_cannot_end_while_a_batch_is_open(bench: Workbench) -> None:
    with pytest.raises(errors.BatchesOpenError, match="1 unfinished"), bench.record() as run:
        with run.phase("one") as phase:
            for batch in phase.batches([1, 2], size=1):
                if batch.index == 0:
                    batch.complete()

    assert "phase-ended" not in bench.topics(run.id)


def test_a_phase_that_was_completed_stays_completed(bench: Workbench) -> None:
    seen: list[bool] = []
    for stop in (True, False):
        try:
            with bench.record() as run:
                with run.phase("one") as phase:
                    seen.append(phase.completed)
                if stop:
                    raise RuntimeError("cut off")
        except RuntimeError:
            continue

    assert seen == [False, True]
    assert bench.topics(run.id).count("phase-started") == 1


def test_batches_may_run_side_by_side_and_finish_in_any_order(bench: Workbench) -> None:
    barrier = threading.Barrier(2)

    def double(items: Sequence[int]) -> list[int]:
        barrier.wait()
        return [2 * n for n in items]

    with bench.record() as run, run.phase("one") as phase, ThreadPoolExecutor(2) as pool:
        out = phase.map(double, list(range(8)), size=2, executor=pool)

    assert out == [2 * n for n in range(8)]


def test_the_first_exception_of_a_batch_ends_the_phase_but_keeps_what_is_finished(
    bench: Workbench,
) -> None:
    def work(items: Sequence[int]) -> list[int]:
        if 3 in items:
            raise ValueError("three")
        return list(items)

    with pytest.raises(ValueError, match="three"), bench.record() as run:
        with run.phase("one") as phase, ThreadPoolExecutor(1) as pool:
            phase.map(work, [1, 2, 3, 4], size=1, executor=pool)

    assert 2 not in run.state.phases["one"].done
    assert {0, 1} <= set(range(4)) - set(run.state.phases["one"].done.missing(4))


def test_a_step_is_called_once_per_run(bench: Workbench) -> None:
    calls: list[int] = []

    @tachograph.step
    def measure(number: int) -> int:
        calls.append(number)
        return number + 1

    for stop in (True, False):
        try:
            with bench.record():
                results = [measure(1), measure(2), measure(1)]
                if stop:
                    raise RuntimeError("cut off")
        except RuntimeError:
            continue

    assert results == [2, 3, 2]
    assert calls == [1, 2]
    assert measure(5) == 6  # outside a recording it is a plain function


def test_a_lambda_is_no_step(bench: Workbench) -> None:
    """All lambdas of a function have one name: one would get another one's result."""
    with pytest.raises(errors.InvalidValueError, match="use a def"), bench.record() as run:
        run.step(lambda: 1)


def test_an_async_step_is_called_once_per_run(bench: Workbench) -> None:
    calls: list[int] = []

    @tachograph.step(name="fetch")
    async def fetch(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0)
        return number * 10

    async def job() -> list[int]:
        async with bench.record() as run:
            results = [*await asyncio.gather(fetch(1), fetch(2)), await fetch(1)]
            assert tachograph.current() is run
        assert tachograph.current() is None
        return results

    assert asyncio.run(job()) == [10, 20, 10]
    assert calls == [1, 2]


def test_asyncio_jobs_use_the_same_objects(bench: Workbench) -> None:
    async def job() -> str:
        async with bench.record() as run:
            async with run.phase("one") as phase:
                async for batch in phase.batches([1, 2, 3], size=2):
                    await asyncio.sleep(0)
                    batch.complete(list(batch.items))
            return run.id

    run_id = asyncio.run(job())

    assert last(bench, run_id)["outcome"] == "success"


def test_a_cancelled_task_leaves_a_partial_run(bench: Workbench) -> None:
    async def job() -> None:
        async with bench.record(run_id="mine"):
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.sleep(1)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(job())

    assert last(bench, "mine")["outcome"] == "partial"


def test_an_effect_happens_once_and_its_result_is_restored(bench: Workbench) -> None:
    sent: list[str] = []

    def send(text: str) -> str:
        sent.append(text)
        return "receipt"

    for stop in (True, False):
        try:
            with bench.record() as run:
                receipt = run.effect("mail", send, "hello")
                if stop:
                    raise RuntimeError("cut off")
        except RuntimeError:
            continue

    assert (receipt, sent) == ("receipt", ["hello"])


def test_an_effect_that_may_have_happened_is_in_doubt(bench: Workbench) -> None:
    """G10."""
    with pytest.raises(RuntimeError), bench.record() as run:
        run.effect("mail", _cut_off)
    assert run.state.effects_in_doubt == ["mail"]

    with pytest.raises(errors.EffectInDoubtError, match="it may have happened"):
        with bench.record() as run:
            run.effect("mail", _cut_off)


def test_an_idempotent_effect_is_repeated(bench: Workbench) -> None:
    """G10."""
    with pytest.raises(RuntimeError), bench.record() as run:
        run.effect("mail", _cut_off, idempotent=True)
    with bench.record() as run:
        assert run.effect("mail", lambda: 5, idempotent=True) == 5


def _cut_off() -> None:
    raise RuntimeError("cut off")


def test_the_last_checkpoint_is_there_on_resume(bench: Workbench) -> None:
    with pytest.raises(RuntimeError), bench.record() as run:
        assert run.checkpoint is None
        run.save_checkpoint({"page": 1})
        run.save_offset(20, 100, migrated=18)
        raise RuntimeError

    with bench.record() as run:
        assert run.resumed
        assert run.checkpoint == {"offset": 20, "total": 100, "migrated": 18}


def test_warnings_that_the_job_logs_are_noted(bench: Workbench) -> None:
    with bench.record() as run:
        logging.getLogger("parser").warning("odd %s", "line")
        logging.getLogger("parser").info("fine")
        logging.getLogger("provider").error("gone")
    logging.getLogger("parser").warning("after the run")

    notes = bench.fields(run.id, "note-added")
    assert [(n["level"], n["source"], n["text"]) for n in notes] == [
        ("warning", "parser", "odd line"),
        ("error", "provider", "gone"),
    ]


def test_a_flood_of_warnings_is_cut_off_and_says_so(bench: Workbench) -> None:
    with bench.record() as run:
        for number in range(250):
            logging.getLogger("parser").warning("line %d", number)

    notes = bench.fields(run.id, "note-added")
    assert len(notes) == 201
    assert notes[-1]["text"] == "further warnings of this attempt are not noted"


def test_an_artifact_is_recorded_with_size_and_checksum(bench: Workbench, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("abc")
    with bench.record() as run:
        run.artifact("out", tmp_path / "out.txt")

    (fields,) = bench.fields(run.id, "artifact-recorded")
    assert fields["size"] == 3
    assert fields["sha256"].startswith("ba7816bf")


def test_retries_fallbacks_and_progress_are_history(bench: Workbench) -> None:
    with bench.record() as run:
        run.retry("transient", 1, delay_seconds=5, error=TimeoutError("slow"), model="large")
        run.fallback("large", "small", "too slow")
        run.progress(3, 10, "pages")

    assert (run.state.retries, run.state.fallbacks) == (1, 1)
    assert run.state.progress == {"completed": 3, "total": 10, "unit": "pages"}
    assert bench.fields(run.id, "retry-scheduled")[0]["error"] == "TimeoutError: slow"


def test_a_fenced_job_does_not_write_its_end(bench: Workbench) -> None:
    """G5."""
    with pytest.raises(errors.FencedError), bench.record(run_id="mine") as run:
        bench.start(run_id="mine")
        run.note("too late")
        run.save_checkpoint(1)

    assert "finished" not in bench.topics("mine")


def test_a_job_that_finished_itself_is_left_alone(bench: Workbench) -> None:
    with bench.record() as run:
        assert run.finish("skipped", reason="cooldown") == "skipped"

    assert bench.topics(run.id).count("finished") == 1


def test_a_recording_outside_its_block_says_so(bench: Workbench) -> None:
    with pytest.raises(RuntimeError, match=r"with tachograph\.record"):
        bench.record().note("hello")
