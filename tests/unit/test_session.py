"""Sessions: fencing, conflicts, and state that never runs ahead of the log."""

from __future__ import annotations

import pytest
from workbench import Workbench

from tachograph.domain import errors


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def test_a_superseded_attempt_is_fenced(bench: Workbench) -> None:
    """G5."""
    old = bench.start()
    old.start_phase("one")
    new = bench.start()

    with pytest.raises(errors.FencedError, match=r"Attempt 1 of run .* superseded by attempt 2"):
        old.save_checkpoint({"n": 1})

    new.save_checkpoint({"n": 2})
    assert [fields["state"] for fields in bench.fields(new.run_id, "checkpoint-saved")] == [
        {"n": 2}
    ]


def test_a_superseded_attempt_may_not_even_finish(bench: Workbench) -> None:
    old = bench.start()
    bench.start()

    with pytest.raises(errors.FencedError):
        old.finish("success")


def test_two_processes_of_one_attempt_both_record(bench: Workbench) -> None:
    one = bench.start()
    two = type(one)(
        bench.repository, bench.payloads, bench.presence.beat, bench.actor, one.run_id, one.epoch
    )
    two.start_phase("copy")
    one.plan_batches("copy", 2, 1, None)
    two.complete_batch("copy", 0)
    one.complete_batch("copy", 1)
    two.end_phase("copy")

    assert bench.topics(one.run_id)[2:] == [
        "phase-started",
        "batches-planned",
        "batch-completed",
        "batch-completed",
        "phase-ended",
    ]


def test_a_refused_command_leaves_the_state_as_the_log_has_it(bench: Workbench) -> None:
    session = bench.start()
    session.start_phase("one")
    before = session.run.to_snapshot()

    with pytest.raises(errors.PhasesOpenError):
        session.finish("success")

    assert session.run.to_snapshot() == before
    assert session.run.pending_events == []


def test_a_value_that_cannot_be_stored_is_named_and_nothing_is_recorded(
    bench: Workbench,
) -> None:
    session = bench.start()
    session.start_phase("one")
    head = bench.log.head()

    with pytest.raises(errors.UnstorableValueError, match=r"output\[1\]"):
        session.complete_batch("one", 0, output=[1, object()])

    assert bench.log.head() == head
    session.complete_batch("one", 0, output=[1, 2])


def test_an_unknown_run_is_an_error(bench: Workbench) -> None:
    session = bench.start()
    session.run_id = "nobody"

    with pytest.raises(errors.RunNotFoundError, match="nobody"):
        session.reload()


@pytest.mark.parametrize("every", [1, 2, 7, 500])
def test_a_run_loaded_from_a_snapshot_equals_one_replayed_from_zero(every: int) -> None:
    bench = Workbench(snapshot_every=every)
    session = bench.start(inputs={"a": [1, (2, 3)]})
    session.start_phase("one")
    session.plan_batches("one", 20, 1, None)
    for index in (3, 1, 2, 19, 0, 7):
        session.complete_batch("one", index, inputs=1, parsed=1, output={"n": index})
    session.save_checkpoint({"offset": 3, "total": 9}, kind="offset", phase="one")
    session.intend_effect("mail", idempotent=True)

    loaded = bench.repository.get(session.run_id)
    replayed = Workbench().repository
    replayed.log = bench.log
    bench.log.snapshot = lambda *_args, **_options: None  # type: ignore[method-assign]
    from_zero = replayed.get(session.run_id)

    assert loaded is not None
    assert from_zero is not None
    assert loaded.to_snapshot() == from_zero.to_snapshot() == session.run.to_snapshot()


def test_outputs_come_back_whatever_the_size(bench: Workbench) -> None:
    session = bench.start()
    session.start_phase("one")
    session.complete_batch("one", 0, output=["x" * 50_000])
    session.complete_batch("one", 1, output=("small", 1))

    assert len(bench.blobs.kept) == 1
    assert list(session.batch_outputs("one")) == [(0, ["x" * 50_000]), (1, ("small", 1))]


def test_an_unreadable_snapshot_costs_nothing_but_time() -> None:
    bench = Workbench(snapshot_every=5)
    session = bench.start()
    for number in range(12):
        session.save_checkpoint(number)
    snapshot = bench.log.snapshot(session.run_id)
    assert snapshot is not None
    snapshot.body = b"\xc1"
    bench.log.snapshot = lambda *_args, **_options: snapshot  # type: ignore[method-assign]

    found = bench.repository.get(session.run_id)

    assert found is not None
    assert found.to_snapshot() == session.run.to_snapshot()
