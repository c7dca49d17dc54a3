"""Ids, executions and attempts: who gets which run."""

from __future__ import annotations

import pytest
from workbench import Workbench

from tachograph.domain import errors
from tachograph.domain.ids import InvalidIdError


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def test_a_new_run_gets_an_id_from_command_and_fingerprint(bench: Workbench) -> None:
    session = bench.start("code report", {"empty": True})

    assert session.run_id.startswith("job-code-report-")
    assert session.epoch == 1
    assert bench.topics(session.run_id) == ["created", "attempt-started"]


def test_the_order_of_inputs_does_not_matter(bench: Workbench) -> None:
    first = bench.start(inputs={"a": 1, "b": 2})
    second = bench.start(inputs={"b": 2, "a": 1})

    assert second.run_id == first.run_id
    assert second.epoch == 2


def test_an_unfinished_run_of_the_same_inputs_is_resumed(bench: Workbench) -> None:
    first = bench.start(inputs={"a": 1})
    first.start_phase("one")

    second = bench.start(inputs={"a": 1})

    assert (second.run_id, second.epoch) == (first.run_id, 2)


def test_a_finished_run_is_never_touched_its_next_execution_is_a_new_run(
    bench: Workbench,
) -> None:
    """G6."""
    ids = []
    for _ in range(5):
        session = bench.start(inputs={"a": 1})
        session.finish("success")
        ids.append(session.run_id)

    assert ids == [ids[0], *(f"{ids[0]}~{n}" for n in range(2, 6))]
    assert bench.topics(ids[0]) == ["created", "attempt-started", "finished"]


@pytest.mark.parametrize("outcome", ["failed", "partial", "failed_semantic_empty"])
def test_a_run_that_did_not_end_well_is_resumed(bench: Workbench, outcome: str) -> None:
    bench.start(inputs={"a": 1}).finish(outcome)

    assert bench.start(inputs={"a": 1}).epoch == 2


def test_a_live_owner_is_not_robbed(bench: Workbench) -> None:
    """G5."""
    session = bench.start()
    bench.alive.add(session.run_id)

    with pytest.raises(errors.RunOwnedError, match="process 1 on here"):
        bench.start()

    assert bench.topics(session.run_id) == ["created", "attempt-started"]


def test_a_person_may_take_a_run_over_with_a_reason(bench: Workbench) -> None:
    session = bench.start()
    bench.alive.add(session.run_id)

    taken = bench.start(takeover_reason="it hangs")

    assert taken.epoch == 2
    assert bench.fields(taken.run_id, "attempt-started")[1]["reason"] == "it hangs"


def test_an_id_of_ones_own_is_kept(bench: Workbench) -> None:
    assert bench.start(run_id="nightly.1").run_id == "nightly.1"


def test_a_reused_id_with_other_inputs_is_refused(bench: Workbench) -> None:
    bench.start(inputs={"a": 1}, run_id="nightly")
    before = bench.topics("nightly")

    with pytest.raises(errors.InputsChangedError, match="nightly"):
        bench.start(inputs={"a": 2}, run_id="nightly")

    assert bench.topics("nightly") == before


def test_a_reused_id_with_another_command_is_refused(bench: Workbench) -> None:
    bench.start("one", run_id="nightly")

    with pytest.raises(errors.CommandChangedError):
        bench.start("two", run_id="nightly")


@pytest.mark.parametrize("text", ["", "a b", "../x", "-x", "~2", "x" * 201, "ä"])
def test_an_id_that_cannot_be_one_is_refused(bench: Workbench, text: str) -> None:
    with pytest.raises(InvalidIdError):
        bench.start(run_id=text)

    assert bench.log.head().position == 0


def test_other_inputs_with_the_same_short_fingerprint_get_their_own_run(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.domain.ids.fingerprint", lambda *_a, **_k: "00000000")
    first = bench.start(inputs={"a": 1})
    second = bench.start(inputs={"a": 2})

    assert second.run_id == f"{first.run_id}~2"
    assert bench.start(inputs={"a": 1}).run_id == first.run_id
    assert bench.start(inputs={"a": 2}).epoch == 2


def test_an_input_that_cannot_be_stored_is_named_and_nothing_is_written(
    bench: Workbench,
) -> None:
    with pytest.raises(errors.UnstorableValueError, match=r"inputs\.files\[1\]\.mtime"):
        bench.start(inputs={"files": [{"mtime": 1}, {"mtime": object()}]})

    assert bench.log.head().position == 0


def test_large_inputs_go_to_the_blobs_and_come_back(bench: Workbench) -> None:
    names = [f"file-{n}" for n in range(10_000)]
    session = bench.start(inputs={"names": names})

    assert len(bench.blobs.kept) == 1
    assert session.payloads.load(session.run.inputs) == {"names": names}
