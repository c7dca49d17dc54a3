"""A fork shares what its source has done, whole or not at all, and leaves the source alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores import LARGE, gone, opened, record_run
from workbench import Workbench

from tachograph import bodykeeping, erasurekeeping, forking, offloading
from tachograph.domain import errors
from tachograph.domain.ids import InvalidIdError
from tachograph.domain.recovery import Recovery
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.forking import Forked


@pytest.fixture
def bench() -> Workbench:
    """A run with a finished phase, an effect, and a phase that failed half way."""
    bench = Workbench(snapshot_every=5)
    session = bench.start("work", {"n": 1}, run_id="job", title="Night")
    session.start_phase("parse")  # 3
    session.plan_batches("parse", 2, 1, "items")
    session.complete_batch("parse", 0, inputs=1, parsed=1, output="a")
    session.complete_batch("parse", 1, inputs=1, parsed=1, output=LARGE)
    session.end_phase("parse")  # 7
    session.intend_effect("mail")
    session.complete_effect("mail", "sent")  # 9
    session.start_phase("render")  # 10
    session.save_checkpoint({"row": 7}, phase="render")  # 11
    session.complete_step("load(1)", 42)
    session.end_phase("render", status="failed")
    session.finish("failed", reason="crashed")  # 14
    return bench


def fork(bench: Workbench, point: str = "latest", run_id: str = "job", **options: Any) -> Forked:
    return forking.fork(bench.repository, bench.actor, run_id, point, **options)


def run_of(bench: Workbench, run_id: str = "job~2") -> Any:
    run = bench.repository.get(run_id)
    assert run is not None
    return run


# What is shared


def test_a_fork_is_a_new_run_of_the_same_command_and_inputs(bench: Workbench) -> None:
    forked = fork(bench, "9")
    run, source = run_of(bench), run_of(bench, "job")

    assert forked.run_id == "job~2"
    assert (run.command, run.inputs, run.inputs_digest, run.fingerprint, run.title) == (
        source.command,
        source.inputs,
        source.inputs_digest,
        source.fingerprint,
        "Night",
    )
    assert (run.epoch, run.outcome, run.verdict, run.parent) == (0, None, None, None)


def test_work_is_shared_and_attempts_and_endings_are_not(bench: Workbench) -> None:
    fork(bench, "14")

    assert bench.topics("job~2") == [
        "created",
        "phase-started",
        "batches-planned",
        "batch-completed",
        "batch-completed",
        "phase-ended",
        "effect-intended",
        "effect-done",
        "phase-started",
        "checkpoint-saved",
        "step-completed",
        "phase-ended",
        "origin-recorded",
    ]


def test_shared_events_keep_the_time_of_the_work_and_name_who_forked(bench: Workbench) -> None:
    fork(bench, "9")
    source = bench.fields("job", "batch-completed")
    shared = bench.fields("job~2", "batch-completed")

    assert [each["time_us"] for each in shared] == [each["time_us"] for each in source]
    assert {tuple(each["by"]) for each in shared} == {("tester", "here", 7, 0)}


def test_payloads_are_shared_by_reference(bench: Workbench) -> None:
    kept = dict(bench.blobs.kept)
    fork(bench, "9")

    assert bench.blobs.kept == kept
    assert [each["output"] for each in bench.fields("job~2", "batch-completed")] == [
        each["output"] for each in bench.fields("job", "batch-completed")
    ]


def test_a_fork_says_where_it_comes_from(bench: Workbench) -> None:
    fork(bench, "7", reason="other prompt", repeat_effects=True)
    (record,) = bench.log.read_stream("job", after=6, up_to=7)
    (origin,) = bench.fields("job~2", "origin-recorded")

    assert origin["origin"] == {
        "kind": "fork",
        "run": "job",
        "version": 7,
        "position": 7,
        "digest": record.digest.hex(),
        "reason": "other prompt",
        "repeats": ["mail"],
    }


def test_the_source_is_left_as_it_is(bench: Workbench) -> None:
    before = bench.log.read_stream("job")
    fork(bench)

    assert bench.log.read_stream("job") == before


def test_a_fork_is_one_append(bench: Workbench) -> None:
    """G2."""
    before = bench.log.last_transaction()
    fork(bench)

    assert bench.log.last_transaction() == before + 1


def test_how_it_may_be_resumed_is_shared_as_of_then(bench: Workbench) -> None:
    session = bench.start("work", {"n": 1}, run_id="job")
    session.execute(lambda run, why: run.declare_recovery(why, Recovery(adapter="m:f")))
    version = session.run.version
    session.execute(lambda run, why: run.declare_recovery(why, Recovery(adapter="m:other")))
    fork(bench, str(version))

    assert run_of(bench).recovery == {"adapter": "m:f"}


def test_a_deadline_was_that_of_the_source(bench: Workbench) -> None:
    from tachograph.domain.expectations import Expectations

    session = bench.start("work", {"n": 1}, run_id="job")
    session.execute(lambda run, why: run.expect(why, Expectations(inputs=2, deadline_us=5)))
    fork(bench, str(session.run.version))

    assert run_of(bench).expectations == {"inputs": 2}


def test_a_fork_lies_untouched_only_since_it_was_made(bench: Workbench) -> None:
    """Its resume window must not have passed before it begins."""
    bench.now = 1_000_000
    fork(bench)
    run = run_of(bench)

    assert run.worked_us > 1_000_000
    assert run.updated_us > 1_000_000


def test_how_a_wrapped_command_ended_belongs_to_its_attempt() -> None:
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.complete_step("exec:1", {"exit_code": 1})
    session.complete_step("exec:2", "of a job whose function has that name")
    fork(bench, "4")

    assert list(run_of(bench).steps) == ["exec:2"]


# Going on


def test_the_next_start_goes_on_in_the_fork(bench: Workbench) -> None:
    fork(bench, "11")
    session = bench.start("work", {"n": 1}, run_id="job~2")

    assert (session.run_id, session.epoch) == ("job~2", 1)
    assert dict(session.batch_outputs("parse")) == {0: "a", 1: LARGE}
    assert session.saved_checkpoint("state", "render") is not None
    session.start_phase("render")
    session.end_phase("render")
    assert session.finish("success") == "success"


def test_an_effect_that_is_done_stays_done(bench: Workbench) -> None:
    """G10."""
    fork(bench)
    session = bench.start("work", {"n": 1}, run_id="job~2")

    with pytest.raises(errors.EffectDoneError):
        session.intend_effect("mail")


def test_an_effect_in_doubt_stays_in_doubt(bench: Workbench) -> None:
    """G10: even when the source knows better by now."""
    forked = fork(bench, "8")
    session = bench.start("work", {"n": 1}, run_id="job~2")

    assert forked.in_doubt == ["mail"]
    with pytest.raises(errors.EffectInDoubtError):
        session.intend_effect("mail")


def test_an_effect_is_not_repeated_unless_a_person_says_so(bench: Workbench) -> None:
    """G10."""
    with pytest.raises(errors.EffectsRepeatedError, match="'mail'"):
        fork(bench, "7")
    assert bench.repository.get("job~2") is None

    forked = fork(bench, "7", repeat_effects=True)

    assert forked.repeated == ["mail"]


def test_an_effect_that_may_be_done_again_keeps_nobody_from_forking() -> None:
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.intend_effect("put", idempotent=True)
    session.complete_effect("put")

    assert fork(bench, "2").repeated == []


def test_a_fork_of_a_fork_repeats_no_effect_of_the_first_source(bench: Workbench) -> None:
    """G10: the fork in between knows nothing of it, and the world does."""
    fork(bench, "7", repeat_effects=True)
    with pytest.raises(errors.EffectsRepeatedError, match=r"'mail' \(in job\)"):
        fork(bench, "7", "job~2")

    assert fork(bench, "7", "job~2", repeat_effects=True).repeated == ["mail"]


def test_a_fork_repeats_no_effect_of_another_fork() -> None:
    """G10: one of them has done it, so that the next one would do it again."""
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("parse")
    session.finish("failed", reason="crashed")
    fork(bench, "3", run_id="job")
    other = bench.start("work", {"n": 1}, run_id="job~2")
    other.intend_effect("mail")
    other.complete_effect("mail")

    with pytest.raises(errors.EffectsRepeatedError, match=r"'mail' \(in job~2\)"):
        fork(bench, "3")


def test_a_permission_to_repeat_is_for_one_execution(bench: Workbench) -> None:
    """G10: what a person allowed the source is in doubt in the fork."""
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.intend_effect("mail")
    session.execute(lambda run, why: run.allow_effect_retry(why, "mail", "it never went out"))
    forked = fork(bench, "4")
    again = bench.start("work", {"n": 1}, run_id="job~2")

    assert "effect-retry-allowed" not in bench.topics("job~2")
    assert forked.in_doubt == ["mail"]
    with pytest.raises(errors.EffectInDoubtError, match="the run that this one was forked from"):
        again.intend_effect("mail")


@pytest.mark.parametrize("ended", [True, False])
def test_a_source_that_goes_on_is_told(*, ended: bool) -> None:
    """G10: what it begins later, the fork would begin too."""
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("parse")
    if ended:
        session.execute(lambda run, why: run.cancel(why, "no longer wanted"))

    assert fork(bench, "3").source_goes_on is not ended


def test_what_an_erased_relative_has_begun_nobody_can_tell(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as services:
        record_run(services, "job")
        forking.fork(services.repository, services.actor, "job", run_id="copy")
    erasurekeeping.erase(str(tmp_path / "store"), "job", "it names a customer", actor="test")
    with opened(tmp_path / "store") as services:
        forked = forking.fork(services.repository, services.actor, "copy", run_id="copy-2")

    assert forked.unknown == ["job"]


# Points


@pytest.mark.parametrize(
    ("point", "version"),
    [
        ("latest", 11),
        ("9", 9),
        ("14", 14),
        ("render", 9),
        ("phase:render", 9),
    ],
)
def test_a_point_is_a_version_a_phase_or_the_last_checkpoint(
    bench: Workbench, point: str, version: int
) -> None:
    assert fork(bench, point).version == version


def test_without_checkpoints_all_that_was_done_is_shared() -> None:
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.start_phase("7")
    session.complete_batch("7", 0)
    session.complete_step("exec:1", {"exit_code": 1})
    session.end_phase("7", status="failed")
    session.finish("failed")

    assert fork(bench).version == 6
    assert fork(bench, "phase:7").version == 2


def test_long_histories_are_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "PAGE", 2)
    bench = Workbench()
    session = bench.start("work", {"n": 1}, run_id="job")
    session.complete_step("load(1)", 1)
    for _ in range(5):
        session.execute(lambda run, why: run.add_note(why, "slow"))
    forked = fork(bench)

    assert (forked.version, forked.shared) == (3, 1)


@pytest.mark.parametrize("point", ["0", "15", "nothing", "", "-1", "phase:", "Render"])
def test_a_point_that_is_not_there_is_refused(bench: Workbench, point: str) -> None:
    with pytest.raises(errors.ForkPointError):
        fork(bench, point)


def test_a_run_that_has_done_nothing_has_no_latest_point() -> None:
    bench = Workbench()
    bench.start("work", {"n": 1}, run_id="job")

    with pytest.raises(errors.ForkPointError, match="has saved no checkpoint"):
        fork(bench)


# Ids


def test_forks_of_forks_are_further_executions_of_the_same_id(bench: Workbench) -> None:
    assert [fork(bench, run_id=source).run_id for source in ("job", "job~2", "job")] == [
        "job~2",
        "job~3",
        "job~4",
    ]


def test_an_id_that_is_taken_is_refused(bench: Workbench) -> None:
    def named(new_id: str) -> Forked:
        return forking.fork(bench.repository, bench.actor, "job", run_id=new_id)

    named("mine")
    with pytest.raises(errors.RunExistsError):
        named("mine")
    with pytest.raises(InvalidIdError):
        named("-x")


def test_an_id_that_somebody_takes_meanwhile_is_passed_over(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = bench.log.append

    def overtaken(records: Any, **options: Any) -> list[int]:
        monkeypatch.setattr(bench.log, "append", append)
        bench.start("work", {"n": 2}, run_id="job~2")
        return append(records, **options)

    monkeypatch.setattr(bench.log, "append", overtaken)

    assert fork(bench).run_id == "job~3"
    assert bench.topics("job~2") == ["created", "attempt-started"]


def test_who_was_sent_to_resume_a_fork_goes_on_in_the_fork(bench: Workbench) -> None:
    """What it starts has the command and inputs of the source, too."""
    fork(bench, "11")
    forking.fork(bench.repository, bench.actor, "job", "11", run_id="mine")
    session = bench.start("work", {"n": 1}, run_id="mine")
    session.execute(lambda run, why: run.dispatch_resume(why, "m:f", {}))

    assert bench.start("work", {"n": 1}, joins=("mine", 1)).run_id == "mine"
    assert bench.start("work", {"n": 2}, joins=("mine", 1)).run_id != "mine"


# What cannot be forked


def test_no_run_no_fork(bench: Workbench) -> None:
    with pytest.raises(errors.RunNotFoundError):
        fork(bench, run_id="nope")


def test_an_orchestrator_run_is_not_forked() -> None:
    bench = Workbench()
    session = bench.start("nightly", {}, run_id="job")
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", ["compact"]))

    with pytest.raises(errors.ForkRefusedError, match="orchestrator run"):
        fork(bench, "2")


def test_a_fork_inherits_nothing_once_it_has_begun(bench: Workbench) -> None:
    fork(bench)
    run = run_of(bench)
    fields = bench.fields("job", "phase-started")[0]

    with pytest.raises(errors.ForkRefusedError, match="has begun already"):
        run.inherit(bench.actor.cause(), "run.phase-started", fields, epoch=1)


def test_a_source_that_is_erased_meanwhile_is_refused(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bench.log.read_stream

    def erased(*args: Any, **options: Any) -> Any:
        records = read(*args, **options)
        for record in records if "limit" in options else ():
            record.absent = True
        return records

    monkeypatch.setattr(bench.log, "read_stream", erased)
    with pytest.raises(errors.ForkRefusedError, match="its event 1 is erased"):
        fork(bench, "9")
    assert bench.log.stream_version("job~2") == 0


@pytest.mark.parametrize(("limit", "value"), [("MOST_EVENTS", 4), ("MOST_BYTES", 100)])
def test_what_is_too_large_for_one_append_is_refused(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(forking, limit, value)

    with pytest.raises(errors.ForkRefusedError, match="recorded at once"):
        fork(bench)
    assert bench.repository.get("job~2") is None


# Bodies elsewhere


def archived(path: Path) -> None:
    with opened(path) as services:
        record_run(services, batches=2, output=LARGE)
        plans = offloading.plan(services.repository, [("job-1", "success")])
        bodykeeping.offload(services, plans)


def test_a_run_whose_bodies_are_in_an_archive_is_forked_from_it(store_path: Path) -> None:
    archived(store_path)
    with opened(store_path) as services:
        forking.fork(services.repository, services.actor, "job-1", "6")
        session = services.starter.start(Start("report", {"n": 1}, run_id="job-1~2"), gone())

        assert dict(session.batch_outputs("parse")) == {0: LARGE, 1: LARGE}
        assert list(verify(services)) == []


def verify(services: Any) -> Any:
    return services.log.verify(contiguous=True)


def test_a_run_whose_archive_is_lost_is_not_forked(store_path: Path) -> None:
    archived(store_path)
    for archive in (store_path / "archive").glob("*.zst"):
        archive.unlink()
    with opened(store_path) as services:
        with pytest.raises(errors.BodyLostError):
            forking.fork(services.repository, services.actor, "job-1", "6")
        assert services.log.stream_version("job-1~2") == 0


def test_an_erased_run_is_not_forked_and_its_forks_keep_what_they_share(store_path: Path) -> None:
    with opened(store_path) as services:
        record_run(services, batches=2, output=LARGE)
        forking.fork(services.repository, services.actor, "job-1", "6")
    erasurekeeping.erase(str(store_path), "job-1", "it names a customer", actor="test")
    with opened(store_path) as services:
        with pytest.raises(errors.ForkRefusedError, match=r"it was erased .* names a customer"):
            forking.fork(services.repository, services.actor, "job-1", "6")
        session = services.starter.start(Start("report", {"n": 1}, run_id="job-1~2"), gone())

        assert dict(session.batch_outputs("parse")) == {0: LARGE, 1: LARGE}
