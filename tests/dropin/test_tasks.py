"""What commands on a task record in its run, and how its card shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tachograph import cards
from tachograph.domain import attention
from tachograph.domain.errors import FencedError, RunFinishedError
from tachograph.domain.ids import InvalidIdError
from tachograph.domain.recovery import Recovery
from tachograph.dropin.callers import Caller
from tachograph.dropin.errors import TaskExistsError, TaskFinishedError, TaskNotFoundError
from tachograph.dropin.tasks import Tasks
from tachograph.dropin.wishes import Wish

if TYPE_CHECKING:
    from workspaces import Bench

    from tachograph.domain.run import Run


def create(tasks: Tasks, **wish: Any) -> Run:
    wish = {
        "status": "running",
        "checkpoint": True,
        "phase": "planning",
        "event": "created",
        **wish,
    }
    return tasks.create("report", Wish(**wish), given_id="job")


def change(tasks: Tasks, **wish: Any) -> Run:
    return tasks.change("job", Wish(**wish))


def card(tasks: Tasks) -> dict[str, Any]:
    return tasks.card(tasks.get("job"))


def topics(tasks: Tasks, run_id: str = "job") -> list[str]:
    found = tasks.services.log.read_stream(run_id)
    return [record.topic.removeprefix("run.") for record in found]


def recovery(run: Run) -> Recovery:
    return Recovery.from_fields(run.recovery)


# Beginning.


def test_a_new_task_is_a_run_that_nobody_in_particular_owns(tasks: Tasks) -> None:
    run = create(tasks, title="A report", safe_to_retry=True, stale_after_minutes=30, max_retries=2)

    assert topics(tasks) == [
        "created",
        "card-edited",
        "attempt-started",
        "phase-started",
        "card-edited",
        "checkpoint-saved",
        "recovery-declared",
    ]
    assert (run.id, run.command, run.inputs, run.title) == (
        "job",
        "report",
        {"task": "job"},
        "A report",
    )
    assert run.owner["kind"] == "unowned"
    lease = tasks.services.presence.lease("job")
    assert lease is not None
    assert lease.seconds == 1800


def test_one_command_is_one_commit(tasks: Tasks) -> None:
    """G2: a command that is refused at its last step leaves nothing behind."""
    create(tasks, artifacts={"a": "x"})
    before = topics(tasks)
    with pytest.raises(ValueError, match="adapter"):
        change(tasks, phase="next", checkpoint=True, adapter=" ")

    assert topics(tasks) == before


def test_a_task_that_waits_has_no_checkpoint_and_is_not_resumed(tasks: Tasks) -> None:
    run = create(tasks, status="pending", checkpoint=False, allow_auto_resume=True)

    assert (card(tasks)["status"], card(tasks)["last_checkpoint_at"]) == ("pending", None)
    assert card(tasks)["allow_auto_resume"] is True
    assert recovery(run).auto_resume is False
    assert recovery(change(tasks, checkpoint=True)).auto_resume is True


def test_a_task_may_be_created_done(tasks: Tasks) -> None:
    create(tasks, status="done", checkpoint=False)

    assert card(tasks)["status"] == "done"


@pytest.mark.parametrize("given", ["", "  ", "///", ".."])
def test_an_id_of_which_nothing_is_left_is_refused(tasks: Tasks, given: str) -> None:
    with pytest.raises(InvalidIdError):
        tasks.create("report", Wish(), given_id=given)


def test_without_an_id_the_type_and_the_time_make_one(tasks: Tasks) -> None:
    run = tasks.create("Weekly Report", Wish())

    assert run.id.startswith("weekly-report-20")


def test_an_unfinished_task_is_not_created_again(tasks: Tasks) -> None:
    create(tasks)
    change(tasks, status="failed")

    with pytest.raises(TaskExistsError, match="is failed"):
        create(tasks)


def test_a_task_that_is_not_there_is_not_changed(tasks: Tasks) -> None:
    with pytest.raises(TaskNotFoundError, match="task not found: job"):
        change(tasks, checkpoint=True)


# On the way.


def test_a_new_phase_ends_the_one_before(tasks: Tasks) -> None:
    create(tasks)
    run = change(tasks, phase="render", checkpoint=True, safe_to_retry=False)

    assert {name: phase.status for name, phase in run.phases.items()} == {
        "planning": "completed",
        "render": "running",
    }
    assert run.phases["render"].safe_to_retry is False
    assert card(tasks)["phase"] == "render"


def test_going_back_to_a_phase_that_ended_changes_the_card_only(tasks: Tasks) -> None:
    create(tasks)
    change(tasks, phase="render", checkpoint=True)
    run = change(tasks, phase="planning", checkpoint=True)

    assert {name: phase.status for name, phase in run.phases.items()} == {
        "planning": "completed",
        "render": "completed",
    }
    assert card(tasks)["phase"] == "planning"


def test_a_phase_that_others_started_is_shown(tasks: Tasks) -> None:
    create(tasks)
    tasks.services.session("job", 1).start_phase("theirs")

    assert card(tasks)["phase"] == "theirs"


def test_a_file_among_the_artifacts_is_recorded_with_its_checksum(
    tasks: Tasks, empty: Bench
) -> None:
    empty.write("out/a.txt", "abc")
    run = create(tasks, artifacts={"a": "out/a.txt", "b": "out/none.txt", "c": {"d": "out/a.txt"}})

    assert run.artifacts["a"]["size"] == 3
    assert run.artifacts["c.d"]["path"] == str(empty.root / "out" / "a.txt")
    assert "b" not in run.artifacts
    assert card(tasks)["artifacts"] == {
        "a": "out/a.txt",
        "b": "out/none.txt",
        "c": {"d": "out/a.txt"},
    }


def test_the_same_checkpoint_again_is_no_progress(tasks: Tasks) -> None:
    create(tasks)
    first = change(tasks, checkpoint=True, message="checkpoint").progress_version
    again = change(tasks, checkpoint=True, message="checkpoint").progress_version
    further = change(tasks, checkpoint=True, message="100 more").progress_version

    assert first == again < further


def test_an_update_touches_no_checkpoint(tasks: Tasks) -> None:
    create(tasks)
    before = tasks.get("job").checkpoint
    change(tasks, notes="looks good", meta={"a": "1"}, title="Better", event="update")

    found = card(tasks)
    assert tasks.get("job").checkpoint == before
    assert (found["notes"], found["meta"], found["title"]) == ("looks good", {"a": "1"}, "Better")
    assert found["history"][-1]["event"] == "update"


def test_retries_that_are_marked_count(tasks: Tasks) -> None:
    create(tasks)
    change(tasks, retries=1, error="it fell over", event="resume-attempt")

    found = card(tasks)
    assert (found["retry_count"], found["last_resume_error"]) == (1, "it fell over")
    assert "last_resume_attempt_at" in found


@pytest.mark.parametrize(
    ("wish", "adapter", "command"),
    [
        ({"adapter": "/a.py"}, "/a.py", None),
        ({"resume_command": "make 'a b'"}, None, ["make", "a b"]),
        ({"adapter": "/a.py", "resume_command": "make all"}, None, ["make", "all"]),
        ({"adapter": "/a.py", "resume_command": "python3 task_runtime_resume.py"}, "/a.py", None),
        ({"resume_command": "python3 x/task_runtime_resume.py --task-id job"}, None, None),
        ({"meta": {"resume_adapter": "/m.py"}}, "/m.py", None),
        ({}, None, None),
    ],
)
def test_what_resumes_a_task(
    tasks: Tasks, wish: dict[str, Any], adapter: str | None, command: list[str] | None
) -> None:
    """A command of one's own, else the adapter; never the dispatcher, which would call itself."""
    found = recovery(create(tasks, **wish))

    assert (found.adapter, found.command) == (adapter, command)
    assert (found.python, found.working_folder) == ("python3", str(tasks.workspace.root))


def test_an_adapter_is_run_by_the_dispatcher_on_the_card(tasks: Tasks) -> None:
    create(tasks, adapter="/a.py")

    runner = tasks.workspace.resume_runner
    assert card(tasks)["resume_command_argv"] == ["python3", runner, "--task-id", "job"]


# Ending.


def test_a_task_whose_artifacts_are_there_is_a_success(tasks: Tasks, empty: Bench) -> None:
    empty.write("a.txt", "x")
    create(tasks, artifacts={"a": str(empty.root / "a.txt"), "link": "https://example.org/x"})
    run = change(tasks, result="done", status="done")

    assert (run.outcome, run.reason_code) == ("success", "outputs_present")
    assert (card(tasks)["status"], card(tasks)["phase"]) == ("done", "planning")


@pytest.mark.parametrize(
    ("artifacts", "outcome", "code"),
    [
        ({}, "success_with_review", "not_judged"),
        ({"n": "3 rows"}, "success_with_review", "not_judged"),
        ({"a": "/none/here.txt"}, "success_with_review", "artifacts_missing"),
        ({"a": "AGENTS.md", "b": "/none/here.txt"}, "success_with_review", "fewer_outputs"),
        ({"a": "AGENTS.md"}, "success", "outputs_present"),
    ],
)
def test_success_is_earned_by_what_is_there(
    tasks: Tasks, artifacts: dict[str, str], outcome: str, code: str
) -> None:
    """G12."""
    create(tasks, artifacts=artifacts)
    run = change(tasks, result="done")

    assert (run.outcome, run.reason_code) == (outcome, code)


def test_the_policy_in_force_judges_a_task(
    tasks: Tasks, empty: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = empty.write(
        "policy.toml",
        """
        id = "mine"
        version = 1

        [[rules]]
        id = "two-at-least"
        when = ["outputs < 2"]
        outcome = "failed"
        reason_code = "too_few"
        text = "{outputs} artifacts are too few"
        """,
    )
    monkeypatch.setattr(tasks.services.settings, "policy", str(policy))
    create(tasks, artifacts={"a": "AGENTS.md"})
    run = change(tasks, result="done")

    assert (run.outcome, run.reason) == ("failed", "1 artifacts are too few")


def test_a_task_with_missing_batches_ends_with_a_review(tasks: Tasks) -> None:
    """A good end is not refused because a phase is open, and does not hide what is missing."""
    create(tasks, artifacts={"a": "AGENTS.md"})
    session = tasks.services.session("job", 1)
    session.start_phase("batches")
    session.plan_batches("batches", 3, 0, None)
    run = change(tasks, result="done")

    assert run.phases["batches"].status == "failed"
    assert (run.outcome, run.reason_code) == ("success_with_review", "faults_seen")


def test_a_finished_task_is_final(tasks: Tasks) -> None:
    """G6: only remarks are allowed."""
    create(tasks)
    change(tasks, result="done")
    with pytest.raises(TaskFinishedError, match="Create a new one"):
        change(tasks, checkpoint=True)
    with pytest.raises(TaskFinishedError):
        change(tasks, max_retries=9)
    change(tasks, notes="sent on", event="update")

    assert (card(tasks)["notes"], card(tasks)["status"]) == ("sent on", "done")


def test_a_failed_task_goes_on_in_a_new_attempt(tasks: Tasks) -> None:
    create(tasks, allow_auto_resume=True)
    failed = change(tasks, result="failed", status="failed", message="no disk",
                    allow_auto_resume=False, safe_to_retry=False)  # fmt: skip
    assert (failed.outcome, failed.reason, card(tasks)["status"]) == ("failed", "no disk", "failed")
    assert recovery(failed).auto_resume is False
    again = change(tasks, checkpoint=True, phase="planning")

    assert (again.epoch, again.phases["planning"].status) == (2, "running")
    assert card(tasks)["status"] == "running"


def test_a_blocked_task_is_not_resumed_until_it_goes_on(tasks: Tasks) -> None:
    create(tasks, allow_auto_resume=True)
    blocked = change(tasks, result="blocked", status="blocked", message="waits for a key")
    assert (blocked.blocked, card(tasks)["status"]) == ("waits for a key", "blocked")
    assert recovery(blocked).auto_resume is False
    going = change(tasks, status="running")

    assert (going.blocked, card(tasks)["status"]) == (None, "running")
    assert recovery(going).auto_resume is True


def test_a_task_that_asks_for_a_person_says_so_until_it_goes_on(tasks: Tasks) -> None:
    create(tasks, allow_auto_resume=True)
    asks = change(tasks, status="needs_attention", message="approve the deploy")
    assert asks.attention == {attention.ADAPTER_ASKS: "approve the deploy"}
    assert (card(tasks)["status"], recovery(asks).auto_resume) == ("needs_attention", False)
    going = change(tasks, checkpoint=True)

    assert (going.attention, card(tasks)["status"]) == ({}, "running")


@pytest.mark.parametrize("word", ["done", "completed", "blocked", "failed"])
def test_a_word_means_the_same_in_every_command(tasks: Tasks, word: str) -> None:
    create(tasks)
    change(tasks, checkpoint=True, status=word)

    assert card(tasks)["status"] == word


@pytest.mark.parametrize(
    ("result", "word"), [("done", "shipped"), ("failed", "crashed"), ("blocked", "stuck")]
)
def test_a_word_of_ones_own_is_shown(tasks: Tasks, result: str, word: str) -> None:
    create(tasks)
    run = change(tasks, result=result, status=word, message="m")

    assert card(tasks)["status"] == word
    assert run.finished is (result == "done")


def test_a_word_that_nobody_knows_is_running_and_calls_a_person(tasks: Tasks) -> None:
    create(tasks, allow_auto_resume=True)
    run = change(tasks, checkpoint=True, status="runing")

    assert run.attention == {attention.STATUS_UNKNOWN: "runing"}
    assert recovery(run).auto_resume is True
    assert cards.is_running(card(tasks))
    assert change(tasks, checkpoint=True).attention == {}


def test_what_others_did_is_in_the_history(tasks: Tasks) -> None:
    create(tasks)
    session = tasks.services.session("job", 0)
    session.execute(lambda run, why: run.detect_stall(why, "gone", {"reason": "killed"}))
    session.execute(lambda run, why: run.raise_attention(why, attention.NO_ADAPTER, "none"))
    session.execute(lambda run, why: run.cancel(why, "not needed"))

    found = card(tasks)
    assert [entry["event"] for entry in found["history"]] == [
        "created",
        "watchdog-stale-alerted",
        "watchdog-needs-attention",
        "cancelled",
    ]
    assert found["status"] == "cancelled"
    assert "last_stale_notice" in found["watchdog"]


def test_a_superseded_attempt_may_not_even_take_a_note(tasks: Tasks, empty: Bench) -> None:
    """G5."""
    create(tasks)
    change(tasks, result="failed")
    change(tasks, checkpoint=True)
    old = Caller([], None, tasks.caller._nobody, {"TACHO_EPOCH": "1"})
    for wish in (Wish(notes="x"), Wish(checkpoint=True), Wish(result="done")):
        with pytest.raises(FencedError):
            Tasks(tasks.services, empty.workspace, old).change("job", wish)


def test_an_attempt_named_for_another_run_is_not_meant(tasks: Tasks, empty: Bench) -> None:
    create(tasks)
    other = Caller([], None, tasks.caller._nobody, {"TACHO_EPOCH": "7", "TACHO_RUN_ID": "other"})
    run = Tasks(tasks.services, empty.workspace, other).change("job", Wish(checkpoint=True))

    assert run.epoch == 1


def test_a_task_that_waits_for_an_approval_says_that_a_person_is_needed(tasks: Tasks) -> None:
    create(tasks)
    tasks.services.session("job", 1).execute(
        lambda run, why: run.request_approval(why, "deploy", subject="x", subject_digest="d")
    )

    assert card(tasks)["status"] == "needs_attention"


def test_a_run_that_was_ended_elsewhere_is_shown_as_it_is(tasks: Tasks) -> None:
    create(tasks)
    tasks.services.session("job", 1).finish("partial", reason="time is up")
    assert card(tasks)["status"] == "failed"
    tasks.services.session("job", 0).execute(lambda run, why: run.expire(why, "too old"))

    assert card(tasks)["status"] == "expired"
    with pytest.raises((TaskFinishedError, RunFinishedError)):
        change(tasks, checkpoint=True)


def test_all_tasks_are_found_by_their_newest_execution(tasks: Tasks) -> None:
    create(tasks)
    change(tasks, result="done")
    create(tasks)
    tasks.create("other", Wish(), given_id="two")
    change(tasks, result="done")
    from tachograph.starting import Start

    tasks.services.starter.start(Start("no-task", {}), tasks.services.owner())

    assert [run.id for run in tasks.all()] == ["two", "job~2"]
    assert [run.id for run in tasks.all(unfinished=True)] == ["two"]
