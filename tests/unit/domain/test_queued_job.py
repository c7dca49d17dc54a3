"""What may happen to a job of a queue, and what each event makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from given_jobs import (
    AT_WORK,
    DEAD,
    DONE,
    HISTORIES,
    JOB_ID,
    OWNER,
    SECOND_US,
    START_US,
    WAITING,
    after,
    cancelled,
    completed,
    died,
    enqueued,
    failed,
    given,
    holder,
    leased,
    person,
    pruned,
    released,
    requeued,
    restored,
)

from tachograph.domain import queue_events, queued_job
from tachograph.domain.errors import InvalidValueError, VersionGapError
from tachograph.domain.ids import job_of_run
from tachograph.domain.queue_errors import JobStatusError, LeaseLostError
from tachograph.domain.queued_job import (
    FIELDS,
    LIVE,
    STATUSES,
    QueuedJob,
    run_id_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LATER_US = START_US + 60 * SECOND_US
EXPIRED = "lease expired before completion"


class TestEnqueue:
    def test_a_job_waits_with_what_was_said_of_it(self) -> None:
        job = QueuedJob.enqueue(
            person(),
            JOB_ID,
            "memory",
            "ingest",
            {"document": 7},
            priority=5,
            available_us=LATER_US,
            max_attempts=4,
            key="document-7",
            key_window_us=SECOND_US,
            concurrency_key="disk",
        )
        (event,) = job.collect_events()

        assert isinstance(event, queue_events.JobEnqueued)
        assert event.payload == {"document": 7}
        assert (job.status, job.version, job.attempts, job.epoch) == ("pending", 1, 0, 0)
        assert (job.enqueued_us, job.waiting_us) == (START_US, LATER_US)
        assert (job.key, job.key_window_us, job.concurrency_key) == (
            "document-7",
            SECOND_US,
            "disk",
        )
        assert (job.priority, job.max_attempts, job.available_us) == (5, 4, LATER_US)

    def test_a_payload_is_not_kept_in_the_row(self) -> None:
        assert "payload" not in FIELDS

    def test_a_job_whose_time_is_over_waits_since_it_was_enqueued(self) -> None:
        job = QueuedJob.enqueue(person(), JOB_ID, "memory", "ingest", None, available_us=5)

        assert job.waiting_us == START_US

    @pytest.mark.parametrize(
        ("said", "saying"),
        [
            ({"queue": ""}, "queue"),
            ({"queue": "a b"}, "queue"),
            ({"queue": "-a"}, "queue"),
            ({"queue": "a" * 61}, "queue"),
            ({"queue": "ä"}, "queue"),
            ({"queue": None}, "queue"),
            ({"kind": ".a"}, "type"),
            ({"kind": "a/b"}, "type"),
            ({"priority": 1_000_001}, "priority"),
            ({"priority": -1_000_001}, "priority"),
            ({"priority": True}, "priority"),
            ({"priority": 1.5}, "priority"),
            ({"max_attempts": 0}, "max attempts"),
            ({"max_attempts": 1_001}, "max attempts"),
            ({"key": ""}, "key"),
            ({"key": " "}, "key"),
            ({"key": "k" * 501}, "key"),
            ({"concurrency_key": "k" * 501}, "concurrency key"),
            ({"key": "k", "key_window_us": -1}, "key window"),
            ({"key_window_us": 5}, "name a key too"),
            ({"available_us": -1}, "time"),
            ({"available_us": 0.5}, "time"),
            ({"available_us": 2**62 + 1}, "time"),
            ({"key": "k", "key_window_us": 2**62 + 1}, "key window"),
        ],
    )
    def test_a_value_out_of_bounds_is_refused(self, said: dict[str, Any], saying: str) -> None:
        wanted = {"queue": "memory", "kind": "ingest", "payload": None, **said}

        with pytest.raises(InvalidValueError, match=saying):
            QueuedJob.enqueue(person(), JOB_ID, **wanted)

    @pytest.mark.parametrize("name", ["a", "A9", "0", "a.b_c-d", "a" * 60])
    def test_a_name_is_letters_digits_and_three_signs(self, name: str) -> None:
        job = QueuedJob.enqueue(person(), JOB_ID, name, name, None)

        assert (job.queue, job.type) == (name, name)

    def test_bounds_themselves_are_allowed(self) -> None:
        job = QueuedJob.enqueue(
            person(), JOB_ID, "q", "t", None, priority=-1_000_000, max_attempts=1_000, key="k" * 500
        )

        assert (job.priority, job.max_attempts, len(job.key or "")) == (-1_000_000, 1_000, 500)


COMMANDS: dict[str, tuple[Callable[[QueuedJob], object], set[str]]] = {
    "lease": (lambda job: job.lease(person(), OWNER, 300.0), {"pending"}),
    "complete": (lambda job: job.complete(holder(job.epoch)), {"leased"}),
    "fail": (lambda job: job.fail(holder(job.epoch), "boom"), {"leased"}),
    "release": (lambda job: job.release(person(), "owner_gone", "it ended"), {"leased"}),
    "requeue": (lambda job: job.requeue(person(), "so"), {"dead", "cancelled"}),
    "cancel": (
        lambda job: job.cancel(person(), "so"),
        {"pending", "leased", "completed", "dead"},
    ),
    "prune": (
        lambda job: job.prune(person(), "so", "1.zst"),
        {"completed", "dead", "cancelled"},
    ),
    "restore": (lambda job: job.restore(person(), "so"), {"cancelled", "pruned"}),
}
"""Each command, and the statuses in which it may be given."""


class TestStatuses:
    def test_there_is_a_history_for_each(self) -> None:
        assert {name: after(*history).status for name, history in HISTORIES.items()} == {
            name: name for name in STATUSES
        }

    @pytest.mark.parametrize("status", STATUSES)
    @pytest.mark.parametrize("name", COMMANDS)
    def test_a_command_is_done_where_it_may_be_and_refused_elsewhere(
        self, name: str, status: str
    ) -> None:
        command, allowed = COMMANDS[name]
        job = after(*HISTORIES[status])
        before = job.to_row()
        if status in allowed:
            command(job)

            assert len(job.collect_events()) == 1
            assert job.version == before[FIELDS.index("version")] + 1
        else:
            with pytest.raises((JobStatusError, LeaseLostError), match=f"{JOB_ID}.* {status}"):
                command(job)

            assert job.collect_events() == []
            assert job.to_row() == before

    @pytest.mark.parametrize("status", STATUSES)
    def test_only_what_waits_or_is_leased_is_live(self, status: str) -> None:
        assert after(*HISTORIES[status]).live == (status in LIVE)

    def test_the_refusal_says_what_would_be_allowed(self) -> None:
        given(*WAITING).when(QueuedJob.prune, person(), "so", "1.zst").then(
            JobStatusError, saying="Only what is completed or dead or cancelled can be."
        )


class TestLease:
    def test_a_lease_counts_the_attempt_and_names_the_holder(self) -> None:
        job = given(*WAITING).when(QueuedJob.lease, person(5), OWNER, 300.0).then(leased(1))

        assert (job.status, job.attempts, job.epoch, job.owner) == ("leased", 1, 1, OWNER)
        assert (job.lease_seconds, job.leased_us) == (300.0, START_US + 5 * SECOND_US)

    def test_a_lease_says_whether_it_counts_towards_the_rate(self) -> None:
        case = given(*WAITING).when(QueuedJob.lease, person(), OWNER, 300.0, metered=True)

        assert case.then(leased(1, metered=True)).metered

    def test_the_epoch_goes_on_where_the_attempts_begin_anew(self) -> None:
        history = (*DEAD, requeued("dead"))
        case = given(*history).when(QueuedJob.lease, person(), OWNER, 300.0)

        job = case.then(leased(2, attempt=1))

        assert (job.epoch, job.attempts) == (2, 1)

    def test_an_attempt_given_back_is_not_counted_and_fences_all_the_same(self) -> None:
        history = (*AT_WORK, released(1, code="stopped", counted=False))
        job = (
            given(*history).when(QueuedJob.lease, person(), OWNER, 300.0).then(leased(2, attempt=1))
        )

        assert (job.epoch, job.attempts) == (2, 1)


class TestFencing:
    """G5: whoever lost the lease cannot end the job."""

    @pytest.mark.parametrize("epoch", [0, 1, 3])
    @pytest.mark.parametrize(
        ("method", "said"),
        [
            (QueuedJob.complete, ()),
            (QueuedJob.fail, ("boom",)),
        ],
    )
    def test_only_the_holder_of_the_lease_ends_it(
        self, method: Any, said: tuple[Any, ...], epoch: int
    ) -> None:
        history = (*AT_WORK, released(1), leased(2))

        given(*history).when(method, holder(epoch), *said).then(
            LeaseLostError, saying=f"not leased to epoch {epoch} any more: epoch 2 holds it"
        )

    def test_an_earlier_holder_cannot_give_it_back(self) -> None:
        history = (*AT_WORK, released(1), leased(2))

        given(*history).when(QueuedJob.release, holder(1), "stopped", "stop").then(LeaseLostError)

    def test_what_waits_is_not_given_back_by_its_holder_of_before(self) -> None:
        given(*AT_WORK, released(1)).when(QueuedJob.release, holder(1), "stopped", "stop").then(
            LeaseLostError
        )

    def test_the_holder_can_give_it_back(self) -> None:
        given(*AT_WORK).when(QueuedJob.release, holder(1), "stopped", "stop").then(
            released(1, code="stopped", reason="stop", counted=False)
        )

    @pytest.mark.parametrize("ending", [completed(1), cancelled("leased"), released(1)])
    def test_a_completion_after_the_end_is_refused(self, ending: Any) -> None:
        """A job that was cancelled meanwhile is not brought back by its holder."""
        given(*AT_WORK, ending).when(QueuedJob.complete, holder(1)).then(LeaseLostError)


class TestComplete:
    def test_a_success_clears_what_went_wrong_before(self) -> None:
        history = (enqueued(), leased(1), failed(1), leased(2))
        job = (
            given(*history)
            .when(QueuedJob.complete, holder(2, 9), {"n": 1})
            .then(completed(2, result={"n": 1}))
        )

        assert (job.status, job.error, job.code) == ("completed", None, None)
        assert (job.ended_us, job.owner, job.attempts) == (START_US + 9 * SECOND_US, None, 2)

    def test_it_names_the_run_and_its_outcome(self) -> None:
        job = after(*AT_WORK)
        job.complete(holder(1), outcome="partial", run="queue-memory-1")
        (event,) = job.collect_events()

        assert (event.outcome, event.run) == ("partial", "queue-memory-1")  # type: ignore[attr-defined]

    def test_it_is_known_when_it_was_begun(self) -> None:
        job = after(enqueued(), leased(1, 5), completed(1, 9))

        assert (job.leased_us, job.ended_us) == (START_US + 5 * SECOND_US, START_US + 9 * SECOND_US)


class TestFail:
    def test_a_failed_job_waits_until_its_time_with_the_error(self) -> None:
        """Case 2."""
        case = given(*AT_WORK).when(QueuedJob.fail, holder(1), "boom", retry_us=LATER_US)

        job = case.then(failed(1, retry=60))

        assert (job.status, job.error, job.code) == ("pending", "boom", "error")
        assert (job.available_us, job.waiting_us, job.failing) == (LATER_US, LATER_US, True)
        assert (job.owner, job.leased_us, job.attempts) == (None, None, 1)

    def test_the_last_attempt_kills(self) -> None:
        """Case 2."""
        history = (*AT_WORK, failed(1), leased(2), failed(2), leased(3))
        case = given(*history).when(QueuedJob.fail, holder(3, 9), "no", code="x", retry_us=LATER_US)

        job = case.then(
            failed(3, error="no", code="x"), died(code="attempts_exhausted", error="no")
        )

        assert (job.status, job.error, job.code) == ("dead", "no", "attempts_exhausted")
        assert (job.ended_us, job.failed_us) == (START_US + 9 * SECOND_US,) * 2
        assert job.available_us is None

    def test_a_terminal_error_kills_at_the_first_attempt(self) -> None:
        """Cases 2 and 8."""
        case = given(*AT_WORK).when(
            QueuedJob.fail,
            holder(1),
            "Rate limit exceeded: 200/hr for acpx",
            code="rate_limit_exceeded",
            terminal=True,
            retry_us=LATER_US,
        )
        text = "Rate limit exceeded: 200/hr for acpx"

        job = case.then(
            failed(1, error=text, code="rate_limit_exceeded", terminal=True),
            died(code="terminal_error", error=text),
        )

        assert (job.status, job.attempts) == ("dead", 1)

    def test_a_text_alone_is_not_terminal(self) -> None:
        """Case 8: what a message says decides nothing, only its kind does."""
        text = "Rate limit exceeded: 200/hr for acpx"
        case = given(*AT_WORK).when(QueuedJob.fail, holder(1), text)

        assert case.then(failed(1, error=text)).status == "pending"

    def test_the_bound_of_the_queue_kills_earlier(self) -> None:
        """Case 3: the same bound leases and kills, so nothing is left between the two."""
        case = given(*AT_WORK).when(QueuedJob.fail, holder(1), "boom", max_attempts=1)

        assert case.then(failed(1), died()).status == "dead"

    def test_a_larger_bound_of_the_queue_does_not_extend_the_own_one(self) -> None:
        history = (enqueued(max_attempts=1), leased(1))
        case = given(*history).when(QueuedJob.fail, holder(1), "boom", max_attempts=10)

        assert case.then(failed(1), died()).status == "dead"

    def test_an_error_says_something(self) -> None:
        given(*AT_WORK).when(QueuedJob.fail, holder(1), " ").then(InvalidValueError)


class TestRelease:
    @pytest.mark.parametrize("code", ["owner_gone", "lease_expired", "by_hand"])
    def test_a_lost_attempt_stays_counted_and_the_job_waits(self, code: str) -> None:
        """Case 4: attempts 1 of 3."""
        case = given(*AT_WORK).when(QueuedJob.release, person(600), code, "silent")

        job = case.then(released(1, code=code, reason="silent"))

        assert (job.status, job.attempts, job.leased_us, job.owner) == ("pending", 1, None, None)
        assert job.failed_us == START_US + 600 * SECOND_US

    def test_what_was_only_released_has_not_failed(self) -> None:
        """Spec 1.5: the error stays what it was."""
        job = after(*AT_WORK, released(1))

        assert (job.error, job.code, job.failing) == (None, None, False)

    def test_an_earlier_error_is_kept(self) -> None:
        job = after(*AT_WORK, failed(1), leased(2), released(2))

        assert (job.error, job.code, job.failing) == ("boom", "error", True)

    def test_a_good_stop_gives_the_attempt_back(self) -> None:
        case = given(*AT_WORK).when(QueuedJob.release, holder(1), "stopped", "stop", retry_us=None)

        job = case.then(released(1, code="stopped", reason="stop", counted=False))

        assert (job.attempts, job.failed_us, job.status) == (0, None, "pending")

    def test_a_good_stop_of_the_last_attempt_does_not_kill(self) -> None:
        history = (enqueued(max_attempts=1), leased(1))
        case = given(*history).when(QueuedJob.release, holder(1), "stopped", "stop")

        job = case.then(released(1, code="stopped", reason="stop", counted=False))

        assert (job.attempts, job.status) == (0, "pending")

    @pytest.mark.parametrize("code", ["owner_gone", "lease_expired"])
    def test_with_all_attempts_used_it_is_dead_by_that(self, code: str) -> None:
        """Case 4: attempts 3 of 3."""
        history = (enqueued(max_attempts=1), leased(1))
        case = given(*history).when(
            QueuedJob.release, person(600), code, "silent for 600 s", retry_us=LATER_US
        )

        job = case.then(
            released(1, code=code, reason="silent for 600 s"), died(code=code, error=EXPIRED)
        )

        assert (job.status, job.error, job.code) == ("dead", EXPIRED, code)
        assert job.ended_us == START_US + 600 * SECOND_US

    def test_a_person_who_takes_the_last_attempt_away_exhausts_it(self) -> None:
        history = (enqueued(max_attempts=1), leased(1))
        case = given(*history).when(QueuedJob.release, person(), "by_hand", "stuck")

        job = case.then(
            released(1, code="by_hand", reason="stuck"),
            died(code="attempts_exhausted", error=EXPIRED),
        )

        assert job.code == "attempts_exhausted"

    def test_death_keeps_the_error_that_there_was(self) -> None:
        """Spec 1.5: COALESCE(error, …)."""
        history = (enqueued(max_attempts=2), leased(1), failed(1), leased(2))
        case = given(*history).when(QueuedJob.release, person(), "lease_expired", "silent")

        job = case.then(
            released(2, code="lease_expired", reason="silent"),
            died(code="lease_expired", error="boom"),
        )

        assert job.error == "boom"

    def test_the_bound_of_the_queue_counts(self) -> None:
        case = given(*AT_WORK).when(
            QueuedJob.release, person(), "owner_gone", "gone", max_attempts=1
        )

        job = case.then(released(1, reason="gone"), died(code="owner_gone", error=EXPIRED))

        assert job.status == "dead"

    def test_it_can_wait_a_while(self) -> None:
        case = given(*AT_WORK).when(
            QueuedJob.release, person(), "owner_gone", "gone", retry_us=LATER_US
        )

        job = case.then(released(1, reason="gone", retry_us=LATER_US))

        assert (job.available_us, job.waiting_us) == (LATER_US, LATER_US)

    @pytest.mark.parametrize(("code", "reason"), [("bored", "so"), ("by_hand", " ")])
    def test_it_has_a_code_and_a_reason(self, code: str, reason: str) -> None:
        given(*AT_WORK).when(QueuedJob.release, person(), code, reason).then(InvalidValueError)


class TestDieOfAttempts:
    def test_a_lowered_bound_kills_what_waits_beyond_it(self) -> None:
        """Case 3."""
        case = given(*AT_WORK, failed(1)).when(QueuedJob.die_of_attempts, person(9), 1)

        job = case.then(died(code="attempts_exhausted", error="boom"))

        assert (job.status, job.ended_us) == ("dead", START_US + 9 * SECOND_US)

    def test_the_dead_have_an_error_in_any_case(self) -> None:
        """Spec §9, a job that was stuck had none."""
        case = given(*AT_WORK, released(1)).when(QueuedJob.die_of_attempts, person(), 1)

        assert case.then(died(error=EXPIRED)).error == EXPIRED

    @pytest.mark.parametrize("bound", [None, 2, 3])
    def test_what_has_an_attempt_left_lives_on(self, bound: int | None) -> None:
        job = given(*AT_WORK, failed(1)).when(QueuedJob.die_of_attempts, person(), bound).then()

        assert job.status == "pending"

    @pytest.mark.parametrize("status", [name for name in STATUSES if name != "pending"])
    def test_only_what_waits_dies_of_it(self, status: str) -> None:
        job = after(*HISTORIES[status])

        assert job.die_of_attempts(person(), 1) is False
        assert job.status == status

    def test_it_says_whether_it_killed(self) -> None:
        job = after(*AT_WORK, failed(1))

        assert job.die_of_attempts(person(), 1) is True


class TestRequeue:
    def test_a_dead_job_waits_as_if_never_tried(self) -> None:
        case = given(*DEAD).when(QueuedJob.requeue, person(60), "so")

        job = case.then(requeued("dead"))

        assert (job.status, job.attempts, job.error, job.code) == ("pending", 0, None, None)
        assert (job.failed_us, job.ended_us, job.before) == (None, None, None)
        assert (job.waiting_us, job.available_us, job.failing) == (LATER_US, None, False)
        assert (job.enqueued_us, job.position) == (START_US, 0)

    def test_a_cancelled_one_forgets_what_it_was(self) -> None:
        job = after(*DEAD, cancelled("dead"), requeued("cancelled"))

        assert (job.status, job.before, job.attempts) == ("pending", None, 0)

    def test_it_names_the_repair(self) -> None:
        job = after(*DEAD)
        job.requeue(person(), "so", repair="requeueDeadJobs~3")
        (event,) = job.collect_events()

        assert event.repair == "requeueDeadJobs~3"  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("method", "said"),
        [
            (QueuedJob.requeue, ("",)),
            (QueuedJob.cancel, ("",)),
            (QueuedJob.prune, ("", "1.zst")),
            (QueuedJob.prune, ("so", "")),
            (QueuedJob.restore, ("",)),
        ],
    )
    def test_what_a_person_does_has_a_reason(self, method: Any, said: tuple[str, ...]) -> None:
        given(*DEAD).when(method, person(), *said).then(InvalidValueError)


def state(job: QueuedJob) -> dict[str, object]:
    """What is to be as it was before, once a job is restored."""
    kept = set(FIELDS) - {"version", "waiting_us"}
    return {name: getattr(job, name) for name in kept}


class TestRestore:
    @pytest.mark.parametrize("history", [WAITING, DONE, DEAD], ids=["pending", "done", "dead"])
    def test_what_was_cancelled_is_exactly_what_it_was(self, history: tuple[Any, ...]) -> None:
        before = after(*history)
        job = after(*history, cancelled(before.status, 50), restored(before.status, 60))

        assert state(job) == state(before)

    def test_a_time_that_a_job_waited_for_is_kept(self) -> None:
        history = (enqueued(available_us=LATER_US),)
        job = after(*history, cancelled("pending", 5), restored("pending", 10))

        assert (job.available_us, job.waiting_us) == (LATER_US, LATER_US)

    def test_a_failed_attempt_is_still_waited_out(self) -> None:
        history = (*AT_WORK, failed(1, retry=60))
        before = after(*history)
        job = after(*history, cancelled("pending", 5), restored("pending", 10))

        assert state(job) == state(before)
        assert job.failing

    def test_what_was_leased_waits(self) -> None:
        case = given(*AT_WORK, cancelled("leased")).when(QueuedJob.restore, person(60), "so")

        job = case.then(restored("pending"))

        assert (job.status, job.owner, job.leased_us, job.attempts) == ("pending", None, None, 1)
        assert (job.ended_us, job.waiting_us, job.epoch) == (None, LATER_US, 1)

    def test_a_holder_of_before_stays_fenced(self) -> None:
        """G5."""
        history = (*AT_WORK, cancelled("leased"), restored("pending"), leased(2))

        given(*history).when(QueuedJob.complete, holder(1)).then(LeaseLostError)

    @pytest.mark.parametrize(
        "history", [DONE, DEAD, (*DEAD, cancelled("dead", 40))], ids=["done", "dead", "cancelled"]
    )
    def test_what_was_pruned_is_exactly_what_it_was(self, history: tuple[Any, ...]) -> None:
        before = after(*history)
        job = after(*history, pruned(before.status, 50), restored(before.status, 60))

        assert state(job) == state(before)

    def test_a_chain_is_undone_step_by_step(self) -> None:
        chain = (*DEAD, cancelled("dead", 40), pruned("cancelled", 50))
        first = given(*chain).when(QueuedJob.restore, person(60), "so").then(restored("cancelled"))
        second = (
            given(*chain, restored("cancelled", 60))
            .when(QueuedJob.restore, person(70), "so")
            .then(restored("dead"))
        )

        assert (first.status, first.ended_us) == ("cancelled", START_US + 40 * SECOND_US)
        assert state(second) == state(after(*DEAD))

    def test_what_was_restored_can_go_again(self) -> None:
        chain = (*DEAD, pruned("dead", 10), restored("dead", 20), cancelled("dead", 30))
        job = after(*chain, pruned("cancelled", 40), restored("cancelled"), restored("dead"))

        assert state(job) == state(after(*DEAD))

    def test_nothing_that_is_done_to_what_is_pruned_but_restoring(self) -> None:
        for name, (command, allowed) in COMMANDS.items():
            if "pruned" not in allowed:
                with pytest.raises((JobStatusError, LeaseLostError)):
                    command(after(*HISTORIES["pruned"]))
            else:
                assert name == "restore"


class TestRows:
    @pytest.mark.parametrize("status", STATUSES)
    def test_a_row_makes_the_same_job(self, status: str) -> None:
        job = after(*HISTORIES[status])

        again = QueuedJob.from_row(job.to_row())

        assert again.to_row() == job.to_row()
        assert vars(again) == vars(job)

    @pytest.mark.parametrize("change", [-1, 1])
    def test_a_row_of_another_shape_is_refused(self, change: int) -> None:
        row = [*after(*WAITING).to_row(), None]

        with pytest.raises(ValueError, match="zip"):
            QueuedJob.from_row(row[: len(FIELDS) + change])

    def test_every_field_of_a_job_is_in_its_row(self) -> None:
        assert set(vars(QueuedJob())) - set(FIELDS) == {"_pending"}

    def test_a_job_from_its_row_goes_on(self) -> None:
        job = QueuedJob.from_row(after(*AT_WORK).to_row())
        job.complete(holder(1))

        assert (job.status, job.version) == ("completed", 3)


class TestEvolve:
    @pytest.mark.parametrize("version", [0, 1, 3])
    def test_an_event_that_does_not_follow_is_refused(self, version: int) -> None:
        """G3."""
        with pytest.raises(VersionGapError, match="after version 1"):
            leased(1).at(version, person()).mutate(after(*WAITING))

    def test_an_unknown_topic_is_not_applied(self) -> None:
        with pytest.raises(KeyError):
            QueuedJob().evolve("queue.job-vanished", {"originator_version": 1})

    def test_the_first_event_makes_the_job(self) -> None:
        job = enqueued().at(1, person()).mutate(None)

        assert (job.id, job.queue, job.status) == (JOB_ID, "memory", "pending")

    def test_a_later_event_moves_the_same_job(self) -> None:
        job = after(*WAITING)

        assert leased(1).at(2, person()).mutate(job) is job

    def test_applying_an_event_does_not_record_it(self) -> None:
        assert after(*DEAD).pending_events == []

    def test_collected_events_are_forgotten(self) -> None:
        job = after(*WAITING)
        job.cancel(person(), "so")

        assert [event.TOPIC for event in job.collect_events()] == ["queue.job-cancelled"]
        assert job.collect_events() == []

    def test_a_job_can_apply_every_event(self) -> None:
        assert set(queued_job._HANDLERS) == set(queue_events.QUEUE_EVENTS)


def test_a_job_has_one_run() -> None:
    assert run_id_of(after(*WAITING)) == f"queue-memory-{JOB_ID}"


class TestUpcast:
    def test_fields_of_today_stay_as_they_are(self) -> None:
        assert queue_events.upcast("queue.job-cancelled", {"reason": "so"}) == {"reason": "so"}

    def test_an_unknown_topic_is_refused(self) -> None:
        with pytest.raises(KeyError, match=r"queue\.job-vanished"):
            queue_events.upcast("queue.job-vanished", {})

    def test_a_version_of_a_later_tachograph_is_refused(self) -> None:
        """G9: reading it as today's would misread it."""
        with pytest.raises(KeyError, match=r"queue\.job-died version 2"):
            queue_events.upcast("queue.job-died", {"class_version": 2})


@pytest.mark.parametrize(
    "run_id",
    [
        "job-report-01a22f23-ad65-79f3-b004-c5666ab70bf6",
        "queue-short",
        "queue-mail-a-01a22f23-ad65-79f3-b004-c5666ab7",
        "queue-mail-01a22f23-ad65-79f3-b004-c5666ab70bfX",
    ],
)
def test_a_run_of_no_job_is_told_from_one(run_id: str) -> None:
    assert job_of_run(run_id) is None


def test_a_later_execution_is_of_the_same_job() -> None:
    job_id = "01a22f23-ad65-79f3-b004-c5666ab70bf6"

    assert job_of_run(f"queue-mail-old-{job_id}~2") == job_id
