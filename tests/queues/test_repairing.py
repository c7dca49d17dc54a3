"""Repairs of queues: what they change, what they leave, and that it can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queue_bench import Clock, QueueBench, benches
from stores import gone

from tachograph import storekeeping
from tachograph.domain.errors import InvalidValueError, StoreFullError
from tachograph.domain.queue_errors import (
    AmbiguousJobError,
    JobNotFoundError,
    LeaseLostError,
    UnknownQueueError,
)
from tachograph.domain.queue_selection import (
    CANCEL_RULE,
    PRUNE_RULE,
    REQUEUE_RULE,
    RESTORE_RULE,
    RULES,
    Selection,
)
from tachograph.domain.queue_settings import QueuePlan, QueueSettings
from tachograph.domain.records import ArchivedRecord
from tachograph.domain.repair_errors import RepairDeniedError, RepairWaitError
from tachograph.domain.repair_policy import REQUEUE, RepairPolicy
from tachograph.queue_repairkeeping import full_ids_of, gatekeeper_of, ids_of_repair
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.domain.queue_selection import Rule

WHY = "a test"
DAY = 86_400_000_000
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of everything."""
    return Clock(monkeypatch)


@pytest.fixture
def bench(store_path: Path, clock: Clock) -> Iterator[QueueBench]:
    """A store with the queues memory and summary."""
    yield from benches(store_path, clock)


def head(bench: QueueBench) -> int:
    return bench.services.log.head().position


# Requeue.


def test_a_requeued_job_has_all_its_attempts_and_no_error(bench: QueueBench) -> None:
    """Case 21. Trap: the error stayed, and so did the delay that followed from it."""
    job_id = bench.make("dead", error="the model is away")[0]

    result = bench.repairing().requeue(Selection(), WHY)

    job = bench.job(job_id)
    assert (job.status, job.attempts, job.error, job.failed_us) == ("pending", 0, None, None)
    assert result.message == "requeued 1 dead memory job(s) to pending"
    assert bench.fields(job_id)["repair"] == result.repair == f"{REQUEUE}~1"
    assert bench.fields(job_id)["reason"] == WHY
    assert bench.queueing.lease(["memory"], bench.owner)[0].job.id == job_id


def test_a_bound_of_3_takes_the_3_oldest_of_5(bench: QueueBench) -> None:
    """Case 21."""
    ids = bench.make("dead", number=5)

    result = bench.repairing().requeue(Selection(max_batch=3), WHY)

    assert (result.affected, result.total) == (3, 5)
    assert bench.statuses(*ids) == ["pending"] * 3 + ["dead"] * 2


def test_one_bound_holds_for_all_queues_and_none_is_starved(bench: QueueBench) -> None:
    """Case 31: 101 and 3 dead jobs, 50 at a time."""
    bench.dead("memory", 101)
    bench.dead("summary", 3)
    repairing = bench.repairing()

    shown = repairing.preview(REQUEUE_RULE, Selection())
    assert (shown.total, shown.affected, len(shown.preview)) == (104, 0, 50)
    assert {job.queue for job in shown.preview} == {"memory", "summary"}
    done = repairing.requeue(Selection(), WHY)
    assert done.by_queue == {"memory": (101, 47), "summary": (3, 3)}
    assert done.message == "requeued 47 dead memory job(s) and 3 dead summary job(s) to pending"
    assert (done.total, len(done.preview)) == (104, 50), "these are there when it is applied, too"
    assert repairing.requeue(Selection(queues=["memory"]), WHY).affected == 50
    assert repairing.requeue(Selection(queues=["memory"]), WHY).affected == 4
    assert repairing.requeue(Selection(), WHY).message == "requeued 0 job(s)"


def test_a_bound_of_1_takes_the_job_that_is_dead_for_longest(bench: QueueBench) -> None:
    """Case 31: not always one of the same queue."""
    bench.dead("summary", 1)
    bench.dead("memory", 4)

    shown = bench.repairing().preview(REQUEUE_RULE, Selection(max_batch=1))

    assert (shown.total, [job.queue for job in shown.preview]) == (5, ["summary"])


def test_more_than_1000_go_in_several_commits_with_progress(bench: QueueBench) -> None:
    bench.dead("memory", 1_203)
    seen: list[tuple[int, int | None]] = []

    result = bench.repairing().apply(
        REQUEUE_RULE,
        Selection(max_batch=5_000),
        WHY,
        lambda done, total: seen.append((done, total)),
    )

    assert (result.affected, seen) == (1_203, [(1_000, 1_203), (1_203, 1_203)])
    last = gatekeeper_of(bench.services, bench.plans).get(REQUEUE).last
    assert last is not None
    assert (last["steps"], last["affected"], last["success"]) == (2, 1_203, True)


def test_only_jobs_that_are_dead_for_longer_are_taken(bench: QueueBench, clock: Clock) -> None:
    """Trap: the age counted from when a job was enqueued."""
    waiting = bench.make("leased")[0]
    clock.pass_by(days=2)
    old = bench.make("dead")[0]
    clock.pass_by(days=1)
    bench.queueing.fail(waiting, 1, "late", terminal=True)

    result = bench.repairing().requeue(Selection(older_than_us=DAY // 2), WHY)

    assert [job.id for job in result.preview] == [old]
    assert bench.statuses(waiting, old) == ["dead", "pending"]


def test_errors_are_matched_as_text(bench: QueueBench) -> None:
    """Trap: `_` and `%` of a person were wildcards."""
    ids = [bench.make("dead", error=error)[0] for error in ("rate_limit", "rateXlimit", "100% of")]
    repairing = bench.repairing()

    assert repairing.requeue(Selection(error_pattern="RATE_limit"), WHY).affected == 1
    assert repairing.requeue(Selection(error_pattern="0%"), WHY).affected == 1
    assert bench.statuses(*ids) == ["pending", "dead", "pending"]
    assert repairing.preview(REQUEUE_RULE, Selection(error_pattern="rate*limit")).total == 1


def test_a_job_whose_key_another_has_is_passed_over(bench: QueueBench) -> None:
    first = bench.make("dead", key="doc-1")[0]
    other = bench.make("dead")[0]
    holder = bench.make("pending", key="doc-1")[0]

    result = bench.repairing().requeue(Selection(), WHY)

    assert result.success
    assert result.affected == 1
    assert bench.statuses(first, other) == ["dead", "pending"]
    assert list(result.skipped) == [first]
    assert holder in result.skipped[first]


def test_two_dead_jobs_of_one_key_do_not_both_wait_again(bench: QueueBench) -> None:
    ids = [bench.make("dead", key="doc-1")[0] for _ in range(2)]

    result = bench.repairing().requeue(Selection(), WHY)

    assert bench.statuses(*ids) == ["pending", "dead"]
    assert list(result.skipped) == [ids[1]]


def test_cancelled_jobs_are_requeued_when_they_are_asked_for(bench: QueueBench) -> None:
    job_id = bench.make("pending")[0]
    repairing = bench.repairing()
    repairing.cancel(Selection(ids=[job_id]), WHY)

    assert repairing.requeue(Selection(), WHY).affected == 0
    result = repairing.requeue(Selection(statuses=["cancelled"]), WHY)

    assert result.message == "requeued 1 cancelled memory job(s) to pending"
    assert bench.statuses(job_id) == ["pending"]


# Ids.


def test_an_id_that_does_not_match_is_told_and_stops_no_other(bench: QueueBench) -> None:
    dead, done = bench.make("dead")[0], bench.make("completed")[0]

    result = bench.repairing().requeue(Selection(ids=[done, dead]), WHY)

    assert bench.statuses(dead, done) == ["pending", "completed"]
    assert (result.affected, result.total, result.success) == (1, 1, False)
    assert result.skipped == {done: "it is completed; requeue was to take dead, cancelled"}


@each_rule
def test_an_unknown_id_changes_nothing(bench: QueueBench, rule: Rule) -> None:
    bench.make("dead")
    bench.clock.pass_by(days=100)
    before = head(bench)

    with pytest.raises(JobNotFoundError, match="Nothing was changed"):
        bench.repairing().apply(rule, Selection(ids=["01890a5d-ac96-774b-bcce-b302099a8057"]), WHY)

    assert head(bench) == before


@each_rule
def test_an_unknown_queue_changes_nothing(bench: QueueBench, rule: Rule) -> None:
    """Trap: a wrong name was dropped, and the repair took both queues."""
    bench.make("dead")
    bench.clock.pass_by(days=100)
    before = head(bench)

    for apply in (True, False):
        with pytest.raises(UnknownQueueError, match="Did you mean 'memory'"):
            selection = Selection(queues=["summary", "memmory"])
            if apply:
                bench.repairing().apply(rule, selection, WHY)
            else:
                bench.repairing().preview(rule, selection)
    assert head(bench) == before


def test_a_queue_that_is_not_declared_any_more_can_be_repaired(
    bench: QueueBench, store_path: Path, clock: Clock
) -> None:
    bench.make("dead", "summary")
    bench.close()
    later = QueueBench(store_path, clock, QueuePlan({"memory": QueueSettings("memory")}))

    try:
        assert later.repairing().requeue(Selection(queues=["summary"]), WHY).affected == 1
    finally:
        later.close()


def test_jobs_are_named_by_the_unique_beginning_of_an_id(bench: QueueBench) -> None:
    ids = bench.make("dead", number=2)
    end = next(place for place in range(36) if ids[0][place] != ids[1][place])

    assert full_ids_of(bench.services, [ids[0][: end + 1], ids[1].upper()]) == ids
    with pytest.raises(AmbiguousJobError):
        full_ids_of(bench.services, [ids[0][:end]])
    with pytest.raises(JobNotFoundError):
        full_ids_of(bench.services, ["ffff"])


@each_rule
def test_without_a_reason_nothing_is_done(bench: QueueBench, rule: Rule) -> None:
    with pytest.raises(InvalidValueError):
        bench.repairing().apply(rule, Selection(), "  ")


# Cancel and restore.


@each_rule
def test_a_dry_run_changes_and_records_nothing(bench: QueueBench, rule: Rule) -> None:
    """Case 29. It asks no gate either."""
    for status in ("dead", "completed", "pending"):
        bench.make(status)
    bench.clock.pass_by(days=100)
    repairing = bench.repairing(RepairPolicy(frozen=True))
    before = head(bench)

    result = repairing.preview(rule, Selection())

    assert (result.applied, result.affected, result.repair) == (False, 0, None)
    assert head(bench) == before
    assert result.total == {"requeue": 1, "cancel": 2, "prune": 2, "restore": 0}[rule.verb]


@pytest.mark.parametrize("status", ["dead", "completed", "pending", "leased"])
def test_what_was_cancelled_is_restored_as_it_was(
    bench: QueueBench, clock: Clock, status: str
) -> None:
    job_id = bench.make(status)[0]
    was = bench.job(job_id)
    clock.pass_by(days=40)
    repairing = bench.repairing()

    cancelled = repairing.cancel(Selection(ids=[job_id]), "retired")
    said = bench.fields(job_id)
    clock.pass_by(days=1)
    restored = repairing.restore(Selection(), "needed")

    assert cancelled.message == "cancelled 1 obsolete job(s)"
    assert (said["status_before"], said["reason"], said["by"][0]) == (status, "retired", "test")
    assert restored.message == "restored 1 job(s)"
    job = bench.job(job_id)
    again = "pending" if status == "leased" else status
    assert job.status == again
    for name in ("ended_us", "error", "code", "attempts", "priority", "enqueued_us", "payload"):
        assert getattr(job, name, None) == getattr(was, name, None)


def test_who_holds_a_cancelled_job_is_refused(bench: QueueBench) -> None:
    job_id = bench.make("leased")[0]
    bench.repairing().cancel(Selection(statuses=["leased"]), WHY)

    with pytest.raises(LeaseLostError, match="cancelled"):
        bench.queueing.complete(job_id, 1)
    assert bench.statuses(job_id) == ["cancelled"]


def test_cancel_and_prune_take_1000_in_all(bench: QueueBench, clock: Clock) -> None:
    """Case 30: not 1,000 of each queue; here each queue has its share."""
    bench.dead("memory", 1_001)
    bench.dead("summary", 1_001)
    clock.pass_by(days=100)
    repairing = bench.repairing()

    for rule in (CANCEL_RULE, PRUNE_RULE):
        shown = repairing.preview(rule, Selection())
        assert (shown.total, len(shown.preview)) == (2_002, 100)
        assert len(repairing.preview(rule, Selection(max_batch=50)).preview) == 50
    some_ = repairing.cancel(Selection(max_batch=50), WHY)
    assert some_.by_queue == {"memory": (1_001, 25), "summary": (1_001, 25)}
    assert repairing.cancel(Selection(queues=["memory"], max_batch=50), WHY).affected == 50
    assert repairing.prune(Selection(statuses=["dead"]), WHY).affected == 1_000


def test_all_that_a_repair_did_is_found_by_its_name(bench: QueueBench) -> None:
    ids = bench.make("pending", number=3)
    repairing = bench.repairing()
    first = repairing.cancel(Selection(ids=ids[:2]), WHY)
    repairing.cancel(Selection(ids=ids[2:]), WHY)
    assert first.repair is not None

    assert ids_of_repair(bench.services, first.repair) == ids[:2]
    repairing.restore(Selection(ids=ids[:1]), WHY)
    assert ids_of_repair(bench.services, first.repair) == ids[1:2]


def test_what_cannot_wait_again_because_of_its_key_stays_cancelled(bench: QueueBench) -> None:
    job_id = bench.make("pending", key="doc-1")[0]
    repairing = bench.repairing()
    repairing.cancel(Selection(ids=[job_id]), WHY)
    bench.make("pending", key="doc-1")

    result = repairing.restore(Selection(), WHY)

    assert (result.affected, list(result.skipped)) == (0, [job_id])
    assert bench.statuses(job_id) == ["cancelled"]


# Prune.


def test_events_are_in_an_archive_before_a_job_is_pruned(bench: QueueBench, clock: Clock) -> None:
    """Case 32: whole events, readable as before; a second run finds nothing."""
    ids = bench.make("dead", number=2)
    before = {job_id: bench.queueing.repository.history(job_id) for job_id in ids}
    clock.pass_by(seconds=1)
    repairing = bench.repairing()

    result = repairing.prune(Selection(older_than_us=1_000), WHY)

    assert result.message == "pruned 2 terminal job(s) (archived)"
    assert bench.statuses(*ids) == ["pruned"] * 2
    name = result.archives[0]
    assert (bench.path / "archive" / name).is_file()
    for job_id in ids:
        records = bench.queueing.repository.records(job_id)
        assert [type(record) is ArchivedRecord for record in records] == [True] * 4 + [False]
        history = bench.queueing.repository.history(job_id)
        assert history[:4] == before[job_id]
        assert history[4][1]["archive"] == name
    assert bench.view(lambda view: list(view.jobs())) == []
    assert repairing.prune(Selection(older_than_us=1_000), WHY).affected == 0
    assert list(storekeeping.verify(str(bench.path))) == []


def test_a_pruned_job_comes_back_from_the_archive(bench: QueueBench, clock: Clock) -> None:
    job_id = bench.make("dead")[0]
    was = bench.job(job_id)
    clock.pass_by(days=91)
    repairing = bench.repairing()
    repairing.prune(Selection(), WHY)

    repairing.restore(Selection(ids=[job_id]), WHY)
    assert (bench.job(job_id).status, bench.job(job_id).ended_us) == ("dead", was.ended_us)
    repairing.requeue(Selection(), WHY)
    leased = bench.queueing.lease(["memory"], bench.owner)[0]

    assert (leased.job.id, leased.payload) == (job_id, {"n": 1})


def test_a_job_that_is_pruned_twice_is_in_two_archives(bench: QueueBench, clock: Clock) -> None:
    job_id = bench.make("completed")[0]
    clock.pass_by(days=91)
    repairing = bench.repairing()
    first = repairing.prune(Selection(), WHY).archives
    repairing.restore(Selection(), WHY)
    second = repairing.prune(Selection(), WHY).archives

    assert len({*first, *second}) == 2
    assert bench.topics(job_id)[-3:] == ["pruned", "restored", "pruned"]
    assert bench.fields(job_id, 0)["payload"] == {"n": 1}
    assert list(storekeeping.verify(str(bench.path))) == []


def test_a_pruned_cancelled_job_is_restored_in_two_steps(bench: QueueBench, clock: Clock) -> None:
    job_id = bench.make("pending")[0]
    repairing = bench.repairing()
    repairing.cancel(Selection(ids=[job_id]), WHY)
    clock.pass_by(days=91)
    repairing.prune(Selection(), WHY)

    repairing.restore(Selection(), WHY)
    assert bench.statuses(job_id) == ["cancelled"]
    repairing.restore(Selection(), WHY)
    assert bench.statuses(job_id) == ["pending"]


def test_a_log_without_pruned_bodies_is_smaller(bench: QueueBench, clock: Clock) -> None:
    ids = bench.dead("memory", 400)
    clock.pass_by(days=91)
    result = bench.repairing().prune(Selection(), WHY)
    bench.close()
    before = (bench.path / "log" / "data.mdb").stat().st_size

    storekeeping.compact(str(bench.path))

    assert (bench.path / "log" / "data.mdb").stat().st_size < before * 0.8
    assert result.affected == 400
    again = QueueBench(bench.path, clock)
    try:
        assert again.repairing().restore(Selection(max_batch=400), WHY).affected == 400
        assert again.statuses(*ids[:3]) == ["dead"] * 3
    finally:
        again.close()


def test_an_archive_that_cannot_be_written_changes_nothing(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 33: the repair has failed, which is recorded, and no job was touched."""
    ids = bench.make("dead", number=2)
    clock.pass_by(days=91)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tachograph.infra.body_archive_writing.write", full)
    with pytest.raises(StoreFullError):
        bench.repairing().prune(Selection(), WHY)

    assert bench.statuses(*ids) == ["dead"] * 2
    last = gatekeeper_of(bench.services, bench.plans).get("pruneTerminalJobs").last
    assert last is not None
    assert last["success"] is False
    assert [path.name for path in (bench.path / "archive").iterdir()] == ["lock"]


def test_a_job_that_changed_meanwhile_is_passed_over(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view, and what was copied, may be behind: within the commit each is looked at again."""
    ids = bench.make("dead", number=2)
    clock.pass_by(days=91)
    repairing = bench.repairing()
    change = bench.queueing.change.__func__  # type: ignore[attr-defined]
    once: list[int] = []

    def slow(queueing: object, *arguments: object) -> object:
        if not once:
            once.append(1)
            bench.queueing.change(ids[:1], lambda job, cause: job.requeue(cause, "by another"))
        return change(queueing, *arguments)

    monkeypatch.setattr(type(bench.queueing), "change", slow)
    result = repairing.prune(Selection(), WHY)

    assert (result.affected, list(result.skipped)) == (1, ids[:1])
    assert bench.statuses(*ids) == ["pending", "pruned"]


def test_what_nothing_was_pruned_into_is_removed(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = bench.make("dead")
    clock.pass_by(days=91)
    repairing = bench.repairing()
    monkeypatch.setattr("tachograph.domain.queue_selection.Rule.mismatch", lambda *_: None)
    bench.queueing.change(ids, lambda job, cause: job.requeue(cause, "by another"))
    bench.view(lambda view: view.names())

    result = bench.repairing().prune(Selection(ids=ids), WHY)

    assert (result.affected, result.success, result.archives) == (0, False, [])
    assert [path.name for path in (bench.path / "archive").iterdir()] == ["lock"]
    assert repairing is not None


# Limits.


def test_a_repair_within_the_cooldown_is_denied_and_changes_nothing(
    bench: QueueBench, clock: Clock
) -> None:
    """Trap: for a person the limits did not hold."""
    ids = bench.make("dead", number=2)
    repairing = bench.repairing(RepairPolicy())
    repairing.requeue(Selection(max_batch=1), WHY)

    with pytest.raises(RepairWaitError, match="Try again in"):
        repairing.requeue(Selection(), WHY)

    assert bench.statuses(*ids) == ["pending", "dead"]
    assert repairing.preview(REQUEUE_RULE, Selection()).total == 1
    clock.pass_by(seconds=61)
    assert repairing.requeue(Selection(), WHY).affected == 1


def test_where_nothing_matches_no_limit_is_used_up(bench: QueueBench) -> None:
    repairing = bench.repairing(RepairPolicy())

    for _ in range(3):
        assert repairing.requeue(Selection(), WHY).affected == 0
    assert gatekeeper_of(bench.services, bench.plans).get(REQUEUE).count == 0


@pytest.mark.parametrize("rule", [CANCEL_RULE, PRUNE_RULE, RESTORE_RULE], ids=lambda r: r.verb)
def test_frozen_denies_everyone(bench: QueueBench, clock: Clock, rule: Rule) -> None:
    done = bench.make("completed", number=2)
    bench.repairing().cancel(Selection(ids=done[:1]), WHY)
    clock.pass_by(days=100)

    with pytest.raises(RepairDeniedError, match="frozen"):
        bench.repairing(RepairPolicy(frozen=True)).apply(rule, Selection(), WHY)
    assert bench.statuses(*done) == ["cancelled", "completed"]


def test_restoring_has_no_cooldown_but_no_agent_may_that_may_nothing(bench: QueueBench) -> None:
    ids = bench.make("completed", number=2)
    bench.repairing().cancel(Selection(ids=ids), WHY)
    slow = bench.repairing(RepairPolicy())

    assert slow.restore(Selection(ids=ids[:1]), WHY).affected == 1
    assert slow.restore(Selection(ids=ids[1:]), WHY).affected == 1
    bench.repairing().cancel(Selection(ids=ids), WHY)
    agent = bench.repairing(RepairPolicy(enabled=False), "agent")
    with pytest.raises(RepairDeniedError, match="switched off"):
        agent.restore(Selection(ids=ids), WHY)


def test_leases_of_the_dead_are_no_business_of_requeue(bench: QueueBench) -> None:
    want = Enqueue("memory", "ingest")
    job_id = bench.queueing.enqueue(want).job_id
    bench.queueing.lease(["memory"], gone())

    assert bench.repairing().preview(REQUEUE_RULE, Selection()).total == 0
    assert bench.statuses(job_id) == ["leased"]


def test_an_archive_that_went_before_bodies_were_moved_is_written_anew(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the commit; then `store archive` removed a file that no body was in yet."""
    ids = bench.make("dead", number=2)
    clock.pass_by(days=91)
    with monkeypatch.context() as patch:
        patch.setattr("tachograph.infra.lmdb_log.LMDBLog.move_bodies", _killed)
        with pytest.raises(KeyboardInterrupt):
            bench.repairing().prune(Selection(), WHY)
    name = bench.fields(ids[0])["archive"]
    (bench.path / "archive" / name).unlink()

    bench.sweeper().sweep()

    assert (bench.path / "archive" / name).is_file()
    for job_id in ids:
        kinds = [type(each) is ArchivedRecord for each in bench.queueing.repository.records(job_id)]
        assert kinds == [True] * 4 + [False]
    assert list(storekeeping.verify(str(bench.path))) == []


def test_an_archive_that_was_damaged_before_bodies_were_moved_keeps_them_in_the_log(
    bench: QueueBench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = bench.make("dead", number=2)
    clock.pass_by(days=91)
    with monkeypatch.context() as patch:
        patch.setattr("tachograph.infra.lmdb_log.LMDBLog.move_bodies", _killed)
        with pytest.raises(KeyboardInterrupt):
            bench.repairing().prune(Selection(), WHY)
    path = bench.path / "archive" / bench.fields(ids[0])["archive"]
    path.write_bytes(path.read_bytes()[:-40])

    bench.sweeper().sweep()

    assert [bench.fields(job_id, 0)["payload"] for job_id in ids] == [{"n": 1}] * 2
    assert bench.services.log.archives() == {}


def _killed(*_: object) -> int:
    raise KeyboardInterrupt
