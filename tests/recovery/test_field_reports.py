"""What users of other systems reported does not happen here. Named by the number of the report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import FINISHES, abandon, watch
from command_line import tacho, topics
from recovering import AUTO, FakeEnd, Recovering, nothing, one_batch, process, to_the_end
from stores import gone, opened

from tachograph.domain import errors
from tachograph.domain.owner import Owner
from tachograph.infra.processes import describe
from tachograph.starting import Start

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.session import Session

on_disk = pytest.mark.usefixtures("store_environment")

WORKS = """
import sys
import tachograph

with tachograph.record("report", run_id="job", auto_resume="resumable" in sys.argv) as run:
    with run.phase("parse") as phase:
        for batch in phase.batches(["a", "b"]):
            if batch.index == 1 and not run.resumed:
                print("at work", flush=True)
                sys.stdin.readline()
            batch.complete(1)
    run.judge(inputs=2, outputs=2)
"""


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def at_work(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a job, and return when it is in the middle of its work."""
    script = folder / "works.py"
    script.write_text(WORKS)
    job = subprocess.Popen(
        [sys.executable, str(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "at work\n"
    return job


def shown() -> dict[str, Any]:
    (card,) = json.loads(tacho("run", "list", "--json").stdout)
    return dict(card)


@on_disk
def test_report_11_a_killed_run_is_not_shown_as_running(tmp_path: Path) -> None:
    """G7: judged at each reading, though nothing was written since."""
    with at_work(tmp_path) as job:
        alive = shown()
        job.kill()
    dead = shown()

    assert (alive["status"], alive["liveness"]) == ("running", "alive")
    assert (dead["status"], dead["liveness"]) == ("interrupted", "gone")
    assert topics("job")[-1] == "batch-completed"


def test_report_15_no_verdict_of_death_after_a_success(bench: Recovering) -> None:
    session = bench.cut_off_alive(AUTO)
    to_the_end(session)
    bench.kill()
    bench.passes(100_000)
    report = bench.watch()

    assert (report.alerts, report.stale, report.resumed) == ([], [], [])
    assert bench.run().outcome == "success"


def test_report_15_no_verdict_of_death_right_after_the_start(bench: Recovering) -> None:
    bench.begin()

    assert bench.watch().alerts == []


def test_report_15_the_same_death_is_told_once(bench: Recovering) -> None:
    bench.cut_off(recovery=None)
    alerts = []
    for _ in range(5):
        alerts.append(len(bench.watch().alerts))
        bench.passes(3600)

    assert alerts == [1, 0, 0, 0, 0]
    assert bench.topics("job").count("stall-detected") == 1


def test_report_16_a_dead_run_is_found_by_its_process_and_not_by_its_age(
    bench: Recovering,
) -> None:
    """Of 91 days nothing is waited for: neither for the dead, nor to the harm of the living."""
    quarter = AUTO.changed(stale_after_seconds=91 * 86_400)
    bench.begin("living", quarter)
    bench.cut_off("dead", quarter)
    bench.adapters.work = to_the_end
    report = bench.watch()

    assert [each["task_id"] for each in report.recoveries] == ["dead"]
    assert bench.run("living").epoch == 1


def test_report_24_a_stale_plan_executes_nothing(bench: Recovering) -> None:
    """What the watchdog planned by is gone when the resume begins: the run was ended meanwhile."""
    bench.cut_off()

    def cancelled_meanwhile(_run_id: str, work: Any) -> bool:
        bench.person().execute(lambda run, why: run.cancel(why, "no longer wanted"))
        work()
        return True

    report = bench.watch(spawn=cancelled_meanwhile)

    assert bench.adapters.calls == []
    assert report.resumed == []
    assert bench.run().epoch == 1


def test_report_24_a_stale_plan_robs_nobody_who_came_first(bench: Recovering) -> None:
    bench.cut_off()

    def started_meanwhile(_run_id: str, work: Any) -> bool:
        bench.begin()
        work()
        return True

    bench.watch(spawn=started_meanwhile)

    assert bench.adapters.calls == []
    assert bench.run().epoch == 2


def test_report_25_who_takes_its_run_up_again_and_dies_strands_nothing(bench: Recovering) -> None:
    """A process that is being drained gives its run back, takes it again under its id, and dies."""
    bench.cut_off_alive(AUTO).finish("partial", reason_code="interrupted")
    bench.begin()
    bench.kill()
    bench.adapters.work = to_the_end
    report = bench.watch()

    assert [each["task_id"] for each in report.recoveries] == ["job"]
    assert bench.run().outcome == "success"


def test_report_28_a_long_run_is_never_resumed_beside_itself(bench: Recovering) -> None:
    """It takes 47 minutes, where others count a run as dead after 6."""
    bench.cut_off_alive(AUTO.changed(stale_after_seconds=360))
    reports = []
    for _ in range(47):
        bench.passes(60)
        reports.append(bench.watch())

    assert sum(len(report.alerts) for report in reports) == 1
    assert (bench.adapters.calls, bench.run().epoch) == ([], 1)


def test_report_28_where_it_may_be_stopped_it_ends_before_the_next_begins(
    bench: Recovering,
) -> None:
    bench.cut_off_alive(AUTO.changed(stale_after_seconds=360, kill_stalled=True))
    owner = bench.run().owner["pid"]
    bench.passes(361)
    lived: list[bool] = []
    bench.adapters.work = lambda session: lived.append(owner in bench.processes)
    bench.watch()

    assert lived == [False]
    assert bench.stopped == ["job"]


@on_disk
def test_report_28_a_silent_owner_that_may_be_stopped_is_gone_before_the_next_begins(
    store_path: Path,
) -> None:
    """The same with a real process."""
    silent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        owner = describe(silent.pid)
        abandon(store_path, FINISHES, owner=owner, stale_after_seconds=0, kill_stalled=True)
        report = watch()
        code = silent.wait()
    finally:
        silent.kill()

    assert code == -signal.SIGTERM
    assert [each["situation"] for each in report["alerts"]] == ["silent"]
    assert [each["task_id"] for each in report["recoveries"]] == ["job"]


def test_report_29_a_restarted_watchdog_starts_nothing_that_still_runs(bench: Recovering) -> None:
    bench.cut_off()
    epochs: list[int] = []

    def work(session: Session) -> None:
        one_batch(session)
        bench.watch()  # another watchdog, at this very moment
        epochs.append(bench.run().epoch)

    bench.adapters.work = work
    bench.watch()

    assert (len(bench.adapters.calls), epochs) == (1, [2])


def test_report_29_what_outlives_its_adapter_keeps_others_away(bench: Recovering) -> None:
    bench.cut_off()
    bench.processes[500] = 500
    bench.adapters.work = lambda session: FakeEnd(timed_out=True, left_running=(500,))
    bench.watch()
    bench.passes(3600)
    meanwhile = bench.watch()
    del bench.processes[500]
    bench.adapters.work = to_the_end
    afterwards = bench.watch()

    assert (meanwhile.alerts, meanwhile.resumed) == ([], [])
    assert [each["task_id"] for each in afterwards.recoveries] == ["job"]


def test_report_30_no_checkpoint_of_an_attempt_whose_lease_ended_and_was_succeeded(
    bench: Recovering,
) -> None:
    nobody = Owner("here", "boot", kind="unowned")
    late = bench.starter.start(Start("work", run_id="job", recovery=AUTO), nobody)
    late.save_checkpoint({"row": 1})
    bench.passes(31)
    bench.adapters.work = lambda session: session.save_checkpoint({"row": 2})
    bench.watch()
    before = bench.topics("job")
    late.beat()

    with pytest.raises(errors.FencedError):
        late.save_checkpoint({"row": 1})
    assert bench.topics("job") == before
    assert bench.run().checkpoint == {**(bench.run().checkpoint or {}), "state": {"row": 2}}


def test_report_31_fifteen_steps_killed_in_the_eleventh(bench: Recovering) -> None:
    """The whole of it, with real processes, is in `test_acceptance.py`."""
    late = bench.begin()
    late.start_phase("parse")
    late.plan_batches("parse", 15, 1, None)
    for step in range(10):
        late.complete_batch("parse", step)
    bench.kill()
    bench.adapters.work = to_the_end
    bench.watch()

    assert [fields["index"] for fields in bench.fields("job", "batch-completed")] == list(range(15))
    with pytest.raises(errors.FencedError):
        late.complete_batch("parse", 10)
    assert bench.run().outcome == "success"


def test_report_32_a_very_old_run_is_not_resurrected(bench: Recovering) -> None:
    bench.cut_off(recovery=AUTO.changed(resume_window_seconds=7 * 86_400))
    bench.passes(90 * 86_400)
    report = bench.watch()

    assert [each["task_id"] for each in report.expired] == ["job"]
    assert (bench.adapters.calls, bench.run().ended) == ([], "expired")
    with pytest.raises(errors.RunFinishedError, match="expired"):
        bench.dispatcher.resume("job", despite=["resume_window_passed"], reason="all the same")


@on_disk
def test_report_32_a_person_is_told_that_it_is_too_old(store_path: Path) -> None:
    abandon(store_path, FINISHES, resume_window_seconds=0)
    done = tacho("run", "resume", "job")

    assert done.returncode == 8
    assert "longer than its resume window" in done.stderr
    assert topics("job").count("attempt-started") == 1


@on_disk
def test_report_11_a_killed_run_goes_on_by_itself(tmp_path: Path) -> None:
    with at_work(tmp_path, "resumable") as job:
        job.kill()
    report = watch()

    assert [each["to_phase"] for each in report["recoveries"]] == ["completed"]
    assert shown()["status"] == "success"


def test_report_16_a_resume_that_hangs_ends_at_its_limit(bench: Recovering) -> None:
    """A limit is kept by whoever runs the adapter, and told; `test_spec_faults.py` kills one."""
    bench.cut_off(recovery=AUTO.changed(timeout_seconds=3600))
    bench.adapters.work = lambda session: FakeEnd(timed_out=True, seconds=3600)
    report = bench.watch()

    assert bench.adapters.calls[0]["timeout_seconds"] == 3600
    assert "time limit" in report.resumed[0]["error"]
    assert not bench.run().attempt_open


def test_report_25_a_superseded_process_does_not_get_its_run_back(bench: Recovering) -> None:
    """While the one that took it lives, a start under the same id is refused."""
    bench.cut_off()
    bench.begin()

    with pytest.raises(errors.RunOwnedError):
        bench.starter.start(Start("work", run_id="job"), process(4000))


def test_an_ineffective_recovery_is_told_as_one(bench: Recovering) -> None:
    """Not reported as five recoveries, of which none helped (part 1, line 6)."""
    bench.cut_off(recovery=AUTO.changed(backoff_seconds=0, max_retries=5))
    bench.adapters.work = nothing
    reports = [bench.watch() for _ in range(7)]

    assert sum(len(report.recoveries) for report in reports) == 0
    assert [each["action"] for report in reports for each in report.resumed] == ["ineffective"] * 5


@on_disk
def test_nobody_runs_what_nobody_asked_for(store_path: Path) -> None:
    """A run without a word about recovery is told of, and left alone."""
    with opened(store_path) as services:
        services.starter.start(Start("report", run_id="job"), gone())
    report = watch()

    assert [each["task_id"] for each in report["alerts"]] == ["job"]
    assert report["resumed"] == []
    assert topics("job") == ["created", "attempt-started", "stall-detected"]
