"""Runs begin, and at most one attempt writes to them (G5)."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from given_when_then import (
    CREATED,
    NOW_US,
    OWNER,
    PERSON,
    RUN_ID,
    attempt,
    do,
    fact,
    given,
    running,
    started,
)
from run_commands import AFTERWARDS, ANYBODY, BOOKKEEPING, EVERY_COMMAND, HISTORY, OWNED, REMARKS

from tachograph.domain import errors
from tachograph.domain.event import Cause
from tachograph.domain.events import AttemptStarted, NoteAdded, RunCreated
from tachograph.domain.run import Run


def created() -> Run:
    return Run.create(
        PERSON,
        RUN_ID,
        command="code-report",
        fingerprint="0dc845e1",
        inputs={"root": "/src"},
        inputs_digest="digest-1",
    )


class TestCreate:
    def test_a_new_run_has_one_event_and_no_attempt(self) -> None:
        run = created()

        assert run.pending_events == [CREATED.at(1, PERSON)]
        assert (run.id, run.version, run.epoch, run.attempt_open) == (RUN_ID, 1, 0, False)
        assert not run.finished

    def test_a_new_run_keeps_its_inputs_title_parent_and_model_policy(self) -> None:
        run = Run.create(
            PERSON,
            RUN_ID,
            command="code-report",
            fingerprint="0dc845e1",
            inputs=[1, 2],
            inputs_digest="digest-2",
            title="Weekly report",
            parent="orch-1",
            model_policy={"model": "m", "fallbacks": []},
        )

        assert run.pending_events == [
            fact(
                RunCreated,
                command="code-report",
                fingerprint="0dc845e1",
                inputs=[1, 2],
                inputs_digest="digest-2",
                title="Weekly report",
                parent="orch-1",
                model_policy={"model": "m", "fallbacks": []},
            ).at(1, PERSON)
        ]

    def test_a_run_needs_a_command(self) -> None:
        with pytest.raises(errors.InvalidValueError, match="command is ' ': write some text"):
            Run.create(PERSON, RUN_ID, command=" ", fingerprint="f", inputs=None, inputs_digest="d")

    def test_collecting_events_forgets_them(self) -> None:
        run = created()

        assert len(run.collect_events()) == 1
        assert list(run.collect_events()) == []

    def test_a_run_has_no_outcome_before_it_is_finished(self) -> None:
        """A crash must never look like success."""
        run = running().run

        assert run.outcome is None
        assert not run.finished

    def test_the_time_of_creation_and_of_the_latest_event_are_kept(self) -> None:
        run = running().run

        assert (run.created_us, run.updated_us) == (NOW_US, NOW_US)


class TestSameInputs:
    def test_the_same_command_over_the_same_inputs_continues(self) -> None:
        run = created()

        run.check_same("code-report", "digest-1")

        assert run.version == 1

    def test_another_command_is_refused(self) -> None:
        with pytest.raises(errors.CommandChangedError, match="Use another id"):
            created().check_same("distill", "digest-1")

    def test_other_inputs_are_refused(self) -> None:
        with pytest.raises(errors.InputsChangedError, match="give the same inputs to continue"):
            created().check_same("code-report", "digest-2")


class TestAttempts:
    def test_the_first_attempt_has_epoch_1(self) -> None:
        given(CREATED).when(Run.start_attempt, PERSON, OWNER, live_owner=None).then(
            fact(AttemptStarted, epoch=1, owner=OWNER)
        )

    def test_a_later_attempt_has_the_next_epoch(self) -> None:
        given(CREATED, started(1)).when(Run.start_attempt, PERSON, OWNER, live_owner=None).then(
            fact(AttemptStarted, epoch=2, owner=OWNER)
        )

    def test_starting_an_attempt_returns_its_epoch(self) -> None:
        run = running().run

        assert run.start_attempt(PERSON, OWNER, live_owner=None) == 2

    def test_a_live_owner_is_not_robbed(self) -> None:
        """G5."""
        running().when(Run.start_attempt, PERSON, OWNER, live_owner="process 17 on ada").then(
            errors.RunOwnedError, saying="is at work: process 17 on ada. Wait for it"
        )

    def test_a_live_owner_is_robbed_for_a_reason(self) -> None:
        running().when(
            Run.start_attempt, PERSON, OWNER, live_owner="process 17", reason="it hangs"
        ).then(fact(AttemptStarted, epoch=2, owner=OWNER, reason="it hangs"))

    def test_an_empty_reason_robs_nobody(self) -> None:
        """G5."""
        running().when(Run.start_attempt, PERSON, OWNER, live_owner="process 17", reason=" ").then(
            errors.InvalidValueError, saying="reason is ' ': write some text"
        )

    def test_a_new_attempt_forgets_the_outcome_and_the_verdict_of_the_last(self) -> None:
        run = running(
            do(Run.block, attempt(1), "waits"),
            do(Run.finish, attempt(1), "failed", reason="crashed", reason_code="boom"),
            started(2),
        ).run

        assert (run.outcome, run.reason, run.reason_code, run.verdict) == (None, None, None, None)
        assert (run.blocked, run.ended_us, run.attempt_open) == (None, None, True)


class TestFencing:
    @pytest.mark.parametrize("name", OWNED | ANYBODY | BOOKKEEPING)
    def test_a_superseded_attempt_is_fenced(self, name: str) -> None:
        """G5."""
        command = EVERY_COMMAND[name](attempt(1))
        given(*HISTORY, started(2)).when_asked(command).then(
            errors.FencedError, saying="was superseded by attempt 2; its writes are refused. Stop"
        )

    @pytest.mark.parametrize("name", OWNED)
    def test_an_attempt_that_ended_writes_no_more(self, name: str) -> None:
        """G5."""
        given(*HISTORY, do(Run.finish, attempt(1), "partial")).when_asked(
            OWNED[name](attempt(1))
        ).then(errors.AttemptEndedError, saying="(partial) and may not write any more. Start")

    @pytest.mark.parametrize("name", OWNED)
    def test_nobody_but_an_attempt_does_the_work(self, name: str) -> None:
        """G5."""
        given(*HISTORY).when_asked(OWNED[name](PERSON)).then(
            errors.NoAttemptError, saying="Start one with `tacho run start`"
        )

    @pytest.mark.parametrize("name", OWNED)
    def test_a_run_without_an_attempt_does_no_work(self, name: str) -> None:
        """G5."""
        given(CREATED).when_asked(OWNED[name](PERSON)).then(
            errors.NoAttemptError, saying="Start one with `tacho run start`"
        )

    @pytest.mark.parametrize("name", OWNED)
    def test_an_epoch_that_was_never_given_out_is_fenced(self, name: str) -> None:
        """G5: a store restored from a backup may have forgotten the attempt."""
        given(*HISTORY).when_asked(OWNED[name](attempt(3))).then(
            errors.FencedError, saying="Attempt 3 of run"
        )

    @pytest.mark.parametrize("name", EVERY_COMMAND)
    def test_the_current_attempt_may_give_every_command(self, name: str) -> None:
        case = given(*HISTORY)
        before = case.run.version
        EVERY_COMMAND[name](attempt(1)).call(case.run)

        assert case.run.version > before

    @pytest.mark.parametrize("name", ANYBODY | BOOKKEEPING | REMARKS)
    def test_a_person_may_do_what_needs_no_attempt(self, name: str) -> None:
        case = given(*HISTORY)
        before = case.run.version
        EVERY_COMMAND[name](PERSON).call(case.run)

        assert case.run.version > before

    @pytest.mark.parametrize(
        ("history", "cause", "refusal"),
        [
            ((CREATED, started(1), started(2)), attempt(1), errors.FencedError),
            ((CREATED, started(1)), PERSON, errors.NoAttemptError),
            (
                (CREATED, started(1), do(Run.finish, attempt(1), "failed")),
                attempt(1),
                errors.AttemptEndedError,
            ),
            (
                (CREATED, started(1), do(Run.finish, attempt(1), "success")),
                attempt(1),
                errors.RunFinishedError,
            ),
        ],
        ids=["superseded", "person", "ended", "finished"],
    )
    def test_who_may_not_write_is_told_so_before_anything_is_prepared(
        self, history: Any, cause: Cause, refusal: type[errors.RefusalError]
    ) -> None:
        """G5."""
        given(*history).when(Run.check_attempt, cause).then(refusal)

    def test_the_current_attempt_may_prepare_its_work(self) -> None:
        running().when(Run.check_attempt, attempt(1)).then()

    def test_a_fenced_error_is_caught_by_one_class(self) -> None:
        assert issubclass(errors.NoAttemptError, errors.FencedError)
        assert issubclass(errors.AttemptEndedError, errors.FencedError)


def test_the_table_of_commands_is_complete() -> None:
    """Whatever takes a cause is a command; what is not listed escapes the rules tested here."""
    commands = {
        name
        for name, method in inspect.getmembers(Run)
        if name[0] != "_"
        and name != "check_attempt"  # it records nothing
        and inspect.isfunction(method)
        and "cause" in inspect.signature(method).parameters
    }

    assert {name.partition(",")[0] for name in EVERY_COMMAND | AFTERWARDS} == commands


class TestNotes:
    def test_anybody_may_add_a_note(self) -> None:
        running().when(Run.add_note, PERSON, "looks slow").then(
            fact(NoteAdded, level="note", text="looks slow")
        )

    def test_a_warning_names_its_logger(self) -> None:
        running().when(
            Run.add_note, attempt(1), "timeout", level="warning", source="http.client"
        ).then(fact(NoteAdded, level="warning", text="timeout", source="http.client"))

    def test_notes_are_counted(self) -> None:
        run = running(do(Run.add_note, PERSON, "a"), do(Run.add_note, PERSON, "b")).run

        assert run.notes == 2

    def test_a_note_says_something(self) -> None:
        running().when(Run.add_note, PERSON, "").then(
            errors.InvalidValueError, saying="note is '': write some text"
        )

    def test_a_note_has_a_known_level(self) -> None:
        running().when(Run.add_note, PERSON, "hm", level="debug").then(
            errors.InvalidValueError, saying="it must be one of note, warning, error"
        )
