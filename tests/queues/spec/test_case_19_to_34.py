"""Acceptance cases 19 to 34, and the traps of spec §3.3 and §4: repairs of queues and their gate.

Cases 23 to 26 are about embeddings and duplicate memories, of which there are none here. Case 22
is about the full-text index: what is derived from the log, and can differ, are the views here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Done, here

from tachograph.domain.queue_selection import REQUEUE_RULE, Selection
from tachograph.domain.queue_settings import DAY_US
from tachograph.domain.queued_job import FIELDS
from tachograph.domain.repair_errors import RepairDeniedError, RepairWaitError
from tachograph.domain.repair_policy import ACTIONS, CHECK_VIEWS, REQUEUE, RepairPolicy
from tachograph.healthkeeping import HealthKeeping, StoredViews
from tachograph.queue_repairkeeping import gatekeeper_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from queue_bench import Clock, QueueBench

    from tachograph.health.caring import CareReport

    Cycle = Callable[..., CareReport]

APPLY = ("--apply", "--reason", "the model is back")


def queue(capsys: pytest.CaptureFixture[str], *words: str) -> Done:
    """Run `tacho queue` in this process."""
    return here(capsys, "queue", *words)


def document(done: Done) -> dict[str, Any]:
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def spoil(bench: QueueBench) -> None:
    """Put a row into the stored views that the log knows nothing of."""
    bench.services.views().update(lambda rows: rows._tables.put(b"queue_order", b"odd", b""))


# 19, 20: the gate.


@pytest.mark.parametrize("kind", ["operator", "agent", "daemon"])
@pytest.mark.parametrize("action", ACTIONS)
def test_case_19_the_limits_hold_for_everybody(
    bench: QueueBench, clock: Clock, action: str, kind: str
) -> None:
    """Cases 19 and 20, §3.3: operator and daemon went past the limiter (issues 1784, 1785).

    Exactly at the cooldown it is allowed; it is another gate each time, as after a restart.
    """
    seconds = 300 if action == CHECK_VIEWS else 60

    def ask() -> None:
        gatekeeper_of(bench.services, bench.plans).gate(action, kind, "because")

    ask()
    clock.pass_by(seconds=seconds - 0.001)
    with pytest.raises(RepairWaitError) as denied:
        ask()
    clock.pass_by(seconds=0.001)
    ask()

    assert (denied.value.rule, denied.value.remaining_us) == ("cooldown", 1_000)


def test_case_20_frozen_comes_first_then_enabled_then_the_limits(bench: QueueBench) -> None:
    """§3.3: the order of the gate's rules. A person's word does not overrule frozen."""
    bench.plans.repair = RepairPolicy()
    gatekeeper_of(bench.services, bench.plans).gate(REQUEUE, "agent", "because")
    rules = []
    for policy in (
        RepairPolicy(frozen=True, enabled=False),
        RepairPolicy(enabled=False),
        RepairPolicy(),
    ):
        bench.plans.repair = policy
        denial = gatekeeper_of(bench.services, bench.plans).look(REQUEUE, "agent")
        assert denial is not None
        rules.append(denial.rule)
    bench.plans.repair = RepairPolicy(frozen=True)

    assert rules == ["frozen", "disabled", "cooldown"]
    for kind in ("operator", "agent", "daemon"):
        with pytest.raises(RepairDeniedError, match="frozen"):
            gatekeeper_of(bench.services, bench.plans).gate(
                REQUEUE, kind, "because", force=kind == "operator"
            )


def test_a_person_and_the_maintenance_worker_have_one_limiter(
    bench: QueueBench, cycle: Cycle, capsys: pytest.CaptureFixture[str]
) -> None:
    """§3.3: the routes had one, the worker another, and both were lost at a restart."""
    bench.dead("memory", 60)
    bench.dead("summary", 60)
    bench.plans.repair = RepairPolicy()
    cycle()
    denied = queue(capsys, "requeue", *APPLY)

    assert denied.returncode == 75
    assert document(queue(capsys, "requeue", *APPLY, "--json"))["denied"]["rule"] == "cooldown"


def test_dry_runs_use_up_nothing_and_are_never_denied(
    bench: QueueBench, capsys: pytest.CaptureFixture[str]
) -> None:
    """§3.3, §4.2: some consumed a slot of the limiter, and all were subject to the gate."""
    bench.dead("memory", 3)
    shown = [queue(capsys, "requeue").returncode for _ in range(3)]
    first = queue(capsys, "requeue", "--max-batch", "1", *APPLY).returncode
    while_denied = queue(capsys, "requeue")
    keeper = gatekeeper_of(bench.services, bench.plans)

    assert (shown, first, while_denied.returncode) == ([0, 0, 0], 0, 0)
    assert while_denied.stdout.startswith("[dry-run] requeueDeadJobs: 2 job(s) match ")
    assert keeper.get(REQUEUE).count == 1


# 22: what is derived from the log.


def test_case_22_views_that_agree_with_the_log_are_left_alone(bench: QueueBench) -> None:
    """Case 22: consistent → affected 0."""
    bench.dead("memory", 2)
    keeping = HealthKeeping(bench.services, bench.plans, check_views=True)

    assert keeping.view_facts()["differences"] == 0
    assert StoredViews(bench.services).wrong() == (0, None)


def test_case_22_a_look_tells_of_a_difference_and_repairs_nothing(
    bench: QueueBench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 22: made anew only where a repair is asked for."""
    bench.dead("memory", 2)
    spoil(bench)
    done = here(capsys, "maintenance", "diagnose", "--check-views", "--domain", "views", "--json")
    again = here(capsys, "maintenance", "diagnose", "--check-views", "--domain", "views", "--json")

    assert document(done)["facts"]["differences"] == 1
    assert document(again)["facts"]["differences"] == 1


def test_case_22_a_cycle_finds_views_that_differ_and_makes_them_anew(
    bench: QueueBench, cycle: Cycle
) -> None:
    """Case 22, §2.2, §3.1: a difference is recommended, repaired, and gone in the next cycle."""
    bench.make("completed", number=2)
    bench.view(lambda view: view.names())
    spoil(bench)
    report = cycle()

    assert [(each.action, each.success) for each in report.executed] == [(CHECK_VIEWS, True)]
    assert StoredViews(bench.services).wrong() == (0, None)


# 21, 29 to 34: repairs of queues.


def test_jobs_that_cannot_wait_again_hold_up_no_others(bench: QueueBench) -> None:
    """§4.2, §9 (a poison row blocks the tracker): the oldest are refused each time.

    Five dead jobs whose keys others hold by now are older than three that could wait again.
    """
    for number in range(5):
        bench.make("dead", key=f"doc-{number}")
    able = bench.make("dead", number=3)
    for number in range(5):
        bench.make("pending", key=f"doc-{number}")
    first = bench.repairing().requeue(Selection(max_batch=5), "mended")
    second = bench.repairing().requeue(Selection(max_batch=5), "mended")

    assert bench.statuses(*able) == ["pending"] * 3, (first.message, second.message)


def test_jobs_that_cannot_be_restored_hold_up_no_others(bench: QueueBench) -> None:
    """§4.6: the same of what is undone."""
    unable = [bench.make("pending", key=f"doc-{number}")[0] for number in range(3)]
    bench.repairing().cancel(Selection(ids=unable), "retired")
    for number in range(3):
        bench.make("pending", key=f"doc-{number}")
    able = bench.make("completed", number=2)
    bench.repairing().cancel(Selection(ids=able), "retired")
    for _ in range(2):
        bench.repairing().restore(Selection(max_batch=3), "a mistake")

    assert bench.statuses(*able) == ["completed", "completed"]


def test_case_34_a_repair_that_could_do_nothing_does_not_end_with_0(
    bench: QueueBench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 34, §4.7 (issue 1051): all that matched was refused, and why is told."""
    (job_id,) = bench.make("dead", key="doc-1")
    bench.make("pending", key="doc-1")
    done = queue(capsys, "requeue", *APPLY)

    assert job_id in done.stdout
    assert bench.statuses(job_id) == ["dead"]
    assert done.returncode == 1


def test_an_error_is_found_by_any_part_of_it(bench: QueueBench) -> None:
    """§4.2: `error LIKE %pattern%` looks at the whole error, of which 2,000 characters are kept.

    What a program wrote last, and what says what is wrong, stands at the end.
    """
    (job_id,) = bench.make("dead", error="x" * 900 + " connection refused")
    asked = Selection(error_pattern="connection refused")

    assert "connection refused" in (bench.job(job_id).error or "")
    assert bench.repairing().preview(REQUEUE_RULE, asked).total == 1
    assert bench.repairing().requeue(asked, "the model is back").affected == 1


@pytest.mark.parametrize("verb", ["requeue", "cancel", "prune"])
@pytest.mark.parametrize("words", [("--apply=false",), ("--apply", "false"), ("--no-apply",)])
def test_case_29_only_the_flag_itself_applies(
    bench: QueueBench, capsys: pytest.CaptureFixture[str], verb: str, words: tuple[str, ...]
) -> None:
    """Case 29: a text that looks like a switch changes nothing."""
    ids = bench.make("dead", number=2)
    bench.clock.pass_by(days=100)
    done = queue(capsys, verb, *words, "--reason", "because")

    assert done.returncode == 2
    assert bench.statuses(*ids) == ["dead", "dead"]


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("requeue", "requeued 2 dead memory job(s) and 1 dead summary job(s) to pending"),
        ("cancel", "cancelled 3 obsolete job(s)"),
        ("prune", "pruned 3 terminal job(s) (archived)"),
    ],
)
def test_what_was_done_is_said_in_the_words_of_the_spec(
    bench: QueueBench, capsys: pytest.CaptureFixture[str], verb: str, message: str
) -> None:
    """§4.2 to §4.4; total and preview are there when it is applied, too (§4.5)."""
    ids = [*bench.make("dead", number=2), *bench.make("dead", "summary")]
    bench.clock.pass_by(days=100)
    shown = document(queue(capsys, verb, "--json"))
    done = document(queue(capsys, verb, *APPLY, "--json"))

    assert (shown["success"], shown["affected"], shown["totalMatching"]) == (True, 0, 3)
    assert shown["message"] == f"3 job(s) match {verb} filter; preview shows 3"
    assert shown["preview"] == ids
    assert (done["success"], done["affected"], done["message"]) == (True, 3, message)
    assert (done["totalMatching"], done["preview"]) == (3, ids)


def test_case_30_the_other_queue_gets_what_one_does_not_need(
    bench: QueueBench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 30: 10 and 70 with a bound of 50: one bound for both, and all of it used."""
    bench.dead("memory", 10)
    bench.dead("summary", 70)
    bench.clock.pass_by(days=100)
    done = document(queue(capsys, "cancel", "--max-batch", "50", *APPLY, "--json"))

    assert done["affected"] == 50
    assert done["byQueue"] == {
        "memory": {"matching": 10, "affected": 10},
        "summary": {"matching": 70, "affected": 40},
    }


def test_case_32_what_was_cancelled_and_pruned_can_be_restored_step_by_step(
    bench: QueueBench, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 32, §4.6: nothing restored what `job_cancellations` and `job_archive` held."""
    (job_id,) = bench.make("dead", error="boom")
    before = bench.job(job_id).to_row()
    cancelled = document(queue(capsys, "cancel", "--ids", job_id, *APPLY, "--json"))
    again = document(queue(capsys, "cancel", "--ids", job_id, *APPLY, "--json"))
    clock.pass_by(days=91)
    pruned = document(queue(capsys, "prune", *APPLY, "--json"))
    clock.pass_by(seconds=61)
    none = document(queue(capsys, "prune", *APPLY, "--json"))
    queue(capsys, "restore", "--repair", pruned["repair"], *APPLY)
    status = bench.job(job_id).status
    queue(capsys, "restore", "--repair", cancelled["repair"], *APPLY)
    after = bench.job(job_id)

    assert (again["affected"], again["success"]) == (0, False)
    assert none["totalMatching"] == 0
    assert (status, after.status, after.error) == ("cancelled", "dead", "boom")
    changed = [
        name for name, was in zip(FIELDS, before, strict=True) if getattr(after, name) != was
    ]
    assert changed == ["version"]


def test_case_31_a_job_that_has_waited_is_not_old_because_it_was_enqueued_long_ago(
    bench: QueueBench, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """§4.5: the age was that of `created_at`: of a job that died a minute ago, 31 days."""
    (job_id,) = bench.make("leased")
    clock.pass_by(days=31)
    bench.queueing.fail(job_id, 1, "boom", terminal=True)
    clock.pass_by(seconds=60)
    young = [document(queue(capsys, verb, "--json")) for verb in ("cancel", "prune")]
    clock.pass_by(days=31)
    old = document(queue(capsys, "cancel", "--json"))

    assert [each["totalMatching"] for each in young] == [0, 0]
    assert old["totalMatching"] == 1


@pytest.mark.parametrize("verb", ["requeue", "cancel", "prune"])
def test_without_a_config_that_makes_sense_nothing_is_repaired(
    bench: QueueBench,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
) -> None:
    """§4.1: a configuration that cannot be had is an error that changes nothing."""
    ids = bench.make("dead")
    bench.clock.pass_by(days=100)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tachograph.toml").write_text("[repair]\nfrozen = 'perhaps'\n", encoding="utf-8")
    done = queue(capsys, verb, *APPLY)

    assert done.returncode not in (0, 75)
    assert "frozen" in done.stderr
    assert bench.statuses(*ids) == ["dead"]


def test_the_reason_and_who_asked_are_in_every_event(
    bench: QueueBench, capsys: pytest.CaptureFixture[str]
) -> None:
    """§3.3: reason, actor and what was affected are in the log, of the repair and of each job."""
    ids = bench.make("dead", number=2)
    queue(capsys, "requeue", *APPLY)
    topics = [
        (topic.removeprefix("repair."), fields.get("reason") or fields.get("message"))
        for topic, fields in gatekeeper_of(bench.services, bench.plans).history(REQUEUE)
    ]

    assert topics == [
        ("allowed", "the model is back"),
        ("ended", "requeued 2 dead memory job(s) to pending"),
    ]
    for job_id in ids:
        told = bench.fields(job_id)
        assert (told["reason"], told["repair"]) == ("the model is back", f"{REQUEUE}~1")


def test_a_repair_of_no_job_of_an_old_age_takes_nothing_else(bench: QueueBench) -> None:
    """§4.7: an age that is asked for is never left out, not even where nothing is so old."""
    bench.dead("memory", 3)
    asked = Selection(older_than_us=365 * DAY_US)

    assert bench.repairing().preview(REQUEUE_RULE, asked).total == 0
    assert bench.repairing().requeue(asked, "old ones").affected == 0
