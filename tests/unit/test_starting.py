"""Ids, executions and attempts: who gets which run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from workbench import Workbench

from tachograph.domain import errors
from tachograph.domain.ids import InvalidIdError
from tachograph.domain.owner import Owner
from tachograph.starting import Start, Starter

if TYPE_CHECKING:
    from tachograph.domain.run import Run
    from tachograph.session import Session


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


class Resumed(Workbench):
    """A workbench with a run `job` that is being resumed: attempt 2, whose adapter is process 10.

    `parents` says which process each living one was started by.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parents = {10: 1, 11: 10, 12: 10, 13: 11}
        self.starter = Starter(
            self.repository,
            self.payloads,
            self.presence.beat,
            self.actor,
            lambda run: "the dispatcher" if run.attempt_open and run.epoch == 2 else None,
            self.in_the_way,
        )
        self.start(run_id="job")
        session = self.start(run_id="job")
        session.execute(lambda run, why: run.dispatch_resume(why, "make", {}))
        session.execute(lambda run, why: run.start_worker(why, owned_by(10).to_fields()))

    def in_the_way(self, process: dict[str, Any], owner: Owner) -> str | None:
        above = owner.pid
        while above is not None:
            if above == process["pid"]:
                return None
            above = self.parents.get(above)
        return f"process {process['pid']}" if process["pid"] in self.parents else None

    def join(self, pid: int | None, epoch: int = 2) -> Session:
        """Start the run as a process that the adapter has started; None is nobody."""
        return self.starter.start(Start("work", run_id="job", joins=("job", epoch)), owned_by(pid))

    def joined(self) -> list[int]:
        """Return the pids that were recorded as joined, the earliest first."""
        return [
            fields["worker"]["pid"]
            for fields in self.fields("job", "worker-started")
            if fields["joined"]
        ]


def owned_by(pid: int | None) -> Owner:
    return Owner("here", pid=pid, kind="process" if pid else "unowned")


class TestJoiningAResume:
    """One process at a time goes on in the attempt of the resume that it was started by."""

    @pytest.fixture
    def resumed(self) -> Resumed:
        return Resumed()

    def test_the_first_one_is_recorded_and_takes_no_attempt(self, resumed: Resumed) -> None:
        session = resumed.join(11)

        assert session.epoch == 2
        assert resumed.joined() == [11]
        assert resumed.topics("job").count("attempt-started") == 2
        assert session.run.worker == owned_by(10).to_fields()

    def test_a_second_one_beside_it_is_refused(self, resumed: Resumed) -> None:
        resumed.join(11)
        before = resumed.topics("job")
        with pytest.raises(errors.RunOwnedError, match="process 11"):
            resumed.join(12)

        assert resumed.topics("job") == before

    def test_of_two_at_the_same_instant_one_is_refused(
        self, resumed: Resumed, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save = resumed.repository.save

        def second_was_faster(run: Run) -> None:
            monkeypatch.setattr(resumed.repository, "save", save)
            resumed.join(12)
            save(run)

        monkeypatch.setattr(resumed.repository, "save", second_was_faster)
        with pytest.raises(errors.RunOwnedError, match="process 12"):
            resumed.join(11)

        assert resumed.joined() == [12]

    def test_who_has_joined_may_do_so_again(self, resumed: Resumed) -> None:
        epochs = [resumed.join(11).epoch for _ in range(2)]

        assert (epochs, resumed.joined()) == ([2, 2], [11])

    def test_what_the_joined_one_has_started_may_join(self, resumed: Resumed) -> None:
        resumed.join(11)

        assert resumed.join(13).epoch == 2
        assert resumed.joined() == [11, 13]

    def test_the_end_of_what_it_has_started_lets_nobody_work_beside_it(
        self, resumed: Resumed
    ) -> None:
        resumed.join(11)
        resumed.join(13)
        del resumed.parents[13]
        with pytest.raises(errors.RunOwnedError, match="process 11"):
            resumed.join(12)

        assert resumed.join(11).epoch == 2
        assert resumed.joined() == [11, 13]

    def test_after_its_end_another_one_may(self, resumed: Resumed) -> None:
        resumed.join(11)
        del resumed.parents[11]

        assert resumed.join(12).epoch == 2
        assert resumed.joined() == [11, 12]

    def test_the_adapter_itself_is_known_already(self, resumed: Resumed) -> None:
        before = resumed.topics("job")

        assert resumed.join(10).epoch == 2
        assert resumed.topics("job") == before

    def test_the_adapter_does_not_work_beside_one_that_it_has_started(
        self, resumed: Resumed
    ) -> None:
        resumed.join(11)
        with pytest.raises(errors.RunOwnedError, match="process 11"):
            resumed.join(10)

    def test_nobody_in_particular_records_nothing(self, resumed: Resumed) -> None:
        before = resumed.topics("job")
        epochs = [resumed.join(None).epoch for _ in range(2)]

        assert epochs == [2, 2]
        assert resumed.topics("job") == before

    def test_one_that_was_started_for_an_earlier_attempt_does_not_join(
        self, resumed: Resumed
    ) -> None:
        with pytest.raises(errors.RunOwnedError, match="the dispatcher"):
            resumed.join(11, epoch=1)

        assert resumed.joined() == []

    def test_nobody_joins_when_the_resume_has_returned(self, resumed: Resumed) -> None:
        """It starts an attempt of its own then."""
        resumed.repository.save(returned(resumed))

        assert resumed.join(11).epoch == 3
        assert resumed.joined() == []

    def test_the_next_attempt_knows_nothing_of_who_joined_before(self, resumed: Resumed) -> None:
        resumed.join(11)
        resumed.repository.save(returned(resumed))
        session = resumed.start(run_id="job")
        session.execute(lambda run, why: run.dispatch_resume(why, "make", {}))

        assert resumed.join(12, epoch=3).epoch == 3


def returned(resumed: Resumed) -> Run:
    run = resumed.repository.get("job")
    assert run is not None
    run.return_resume(resumed.actor.cause(), {})
    return run
