"""Bodies may leave the log once a run is finished; what is left of an erased run is consistent."""

from __future__ import annotations

from typing import Any

import pytest
from given_when_then import CREATED, PERSON, RUN_ID, Case, attempt, do, fact, given, started

from tachograph.domain import events
from tachograph.domain.bodies import ERASED
from tachograph.domain.errors import BodiesStayError, FencedError, RunFinishedError
from tachograph.domain.run import Run

FINISHED = (CREATED, started(1), do(Run.finish, attempt(1), "success"))
ERASE = do(Run.erase_bodies, PERSON, "it names a customer", records=3, blobs=["ab"])


def replayed(case: Case) -> Run:
    """Return the run as its events fold to it once their bodies are gone."""
    run = Run()
    for number, event in enumerate(case.events, 1):
        fields: dict[str, Any] = dict(vars(event))
        if number < len(case.events):
            names = ("originator_id", "originator_version", "time_us")
            fields = {ERASED: True, **{name: fields[name] for name in names}}
        run.evolve(type(event).TOPIC, fields)
    return run


def test_the_bodies_of_a_finished_run_may_be_archived() -> None:
    given(*FINISHED).when(
        Run.record_bodies_archived,
        PERSON,
        "17.zst",
        sha256="ab",
        up_to=3,
        records=3,
        reason="monthly",
    ).then(
        fact(
            events.BodiesArchived,
            archive="17.zst",
            sha256="ab",
            up_to=3,
            records=3,
            reason="monthly",
        )
    )


def test_erasing_says_what_the_run_was() -> None:
    given(*FINISHED).when_asked(ERASE).then(
        fact(
            events.BodiesErased,
            reason="it names a customer",
            up_to=3,
            records=3,
            blobs=["ab"],
            outcome="success",
        )
    )
    cancelled = given(CREATED, do(Run.cancel, PERSON, "no"), ERASE).events[-1]
    assert (vars(cancelled)["outcome"], vars(cancelled)["ended"]) == (None, "cancelled")


@pytest.mark.parametrize(
    "history",
    [(CREATED,), (CREATED, started(1)), (*FINISHED[:2], do(Run.finish, attempt(1), "failed"))],
)
def test_an_unfinished_run_keeps_its_bodies(history: tuple[Any, ...]) -> None:
    case = given(*history)
    with pytest.raises(BodiesStayError, match=f"tacho run cancel {RUN_ID}"):
        ERASE.call(case.run)
    with pytest.raises(BodiesStayError, match="it is unfinished"):
        case.run.record_bodies_archived(PERSON, "a", sha256="b", up_to=1, records=1)
    assert case.run.pending_events == []


def test_a_superseded_attempt_erases_nothing() -> None:
    run = given(CREATED, started(1), started(2), do(Run.finish, attempt(2), "success")).run
    with pytest.raises(FencedError):
        run.erase_bodies(attempt(1), "old", records=1)


def test_what_is_left_is_what_the_events_without_bodies_say() -> None:
    """The run in memory and the one that is loaded later are the same."""
    case = given(*FINISHED, do(Run.add_note, PERSON, "a remark"), ERASE)

    assert replayed(case).to_snapshot() == case.run.to_snapshot()


def test_an_erased_run_is_finished_for_good() -> None:
    """G6: nobody takes up again what was erased."""
    run = replayed(given(*FINISHED, ERASE))

    assert (run.finished, run.ended, run.outcome, run.bodies) == (
        True,
        "erased",
        "success",
        "erased",
    )
    assert run.reason is not None
    assert run.reason.endswith("because: it names a customer")
    assert (run.command, run.inputs, run.phases) == ("", None, {})
    with pytest.raises(RunFinishedError):
        run.start_attempt(PERSON, {}, live_owner=None)
    with pytest.raises(BodiesStayError, match="they were erased on"):
        run.erase_bodies(PERSON, "again", records=1)
    run.add_note(PERSON, "it had to go")


def test_a_copy_without_the_archive_is_finished_all_the_same() -> None:
    case = given(
        *FINISHED,
        do(Run.record_bodies_archived, PERSON, "17.zst", sha256="ab", up_to=3, records=3),
    )
    run = replayed(case)

    assert (run.finished, run.ended) == (True, "unreadable")
    assert run.reason == "its events are in the archive 17.zst, which is lost"
    assert case.run.ended is None
