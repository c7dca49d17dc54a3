"""Golden runs that a cron harness, an orchestrator or an importer has brought to their end.

Each function records a run and returns its id. Holds no test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audit.bench import BEGIN_US, golden
from audit.by_its_end import printed, wrapped
from audit.by_the_gate import NOTHING_FOUND
from job_run_trees import JOB, at, batches, cut_off, ending, event, opening, phase, put, summary

from tachograph.domain import outcome
from tachograph.domain.errors import RefusalError
from tachograph.domain.event import Cause
from tachograph.domain.exit_validation import Evidence, validate
from tachograph.domain.maintenance_plan import Gate, MaintenancePlan, MaintenanceStep
from tachograph.domain.outcome import RATE_LIMITED
from tachograph.executing import PHASE
from tachograph.harnessing import end_run
from tachograph.import_desk import Desk
from tachograph.importing_checkpoints import Expected, take_checkpoint
from tachograph.infra import job_run_files
from tachograph.job_run_records import record_of
from tachograph.orchestrating import Maintenance
from tachograph.orders import Orders, Worked
from tachograph.projections.maintenance_guards import NEVER
from tachograph.taking_over import take_family

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from audit.bench import Audited

    from tachograph.orders import Bounds
    from tachograph.session import Session

# Cron jobs.

ROW = "2026-03-01T02:30:31Z "
BOOT = f"{ROW}harness-bootstrap exit=0 status=started reason=harness_bootstrap_started\n"


def cron(
    bench: Audited,
    required: Sequence[str],
    rows: Sequence[str],
    code: int = 0,
    *,
    told: dict[str, Any] | None = None,
    allow_skip: bool = False,
    log: str | None = None,
) -> str:
    """Let a cron job end, by what its ledger says."""
    session = wrapped(bench, "cron-nightly")
    report = validate(
        Evidence(
            "nightly",
            required,
            exit_path="/var/log/nightly.exit.txt",
            ledger=BOOT + "".join(f"{ROW}{row}\n" for row in rows),
            log_path=None if log is None else "/var/log/nightly.log",
            log=log,
            summary_path=None,
            summary=None,
            allow_skip=allow_skip,
            left=[],
        )
    )
    end_run(session, printed(code, "nightly: done\n"), report, told)
    bench.kill(session.run_id)
    return session.run_id


@golden
def steps_failed(bench: Audited) -> str:
    """The command ended with 0, and a row of its ledger says that a step failed."""
    return cron(bench, ["compact", "reflect"], ["compact exit=0", "reflect exit=3"])


@golden
def steps_missing(bench: Audited) -> str:
    """A required step has no row."""
    return cron(bench, ["compact", "reflect"], ["compact exit=0"])


@golden
def steps_skipped(bench: Audited) -> str:
    """All steps were passed over, each for a reason of its own."""
    rows = [
        "compact exit=0 status=skipped reason=guard",
        "reflect exit=0 status=skipped reason=feature_disabled",
    ]
    return cron(bench, ["compact", "reflect"], rows, allow_skip=True)


@golden
def steps_deferred(bench: Audited) -> str:
    """The command is an orchestrator of its own, and says that a step is still to be done."""
    told = {"exitCode": 2, "summaryLine": "2 of 3 steps done, reflect deferred"}
    return cron(bench, ["compact"], ["compact exit=0"], 2, told=told)


@golden
def wrapper_aborted(bench: Audited) -> str:
    """The wrapper ended before its first step."""
    return cron(bench, ["compact"], [], log="wrapper_exit=2\n")


@golden
def semantic_marker(bench: Audited) -> str:
    """All rows are good, and the log of a step says that nothing came out."""
    log = "--- reflect ---\nfailed_suspect_zero_parsed\n"
    return cron(bench, ["reflect"], ["reflect exit=0"], log=log)


# Orchestrator runs.


class Surroundings:
    """A machine on which steps end as they are told to."""

    def __init__(self, bench: Audited, ends: dict[str, Callable[[Session], Worked]]) -> None:
        self.bench = bench
        self.ends = ends
        self.orchestrator = ""

    def now_us(self) -> int:
        return self.bench.now

    def monotonic(self) -> float:
        return (self.bench.now - BEGIN_US) / 1_000_000

    def sleep(self, seconds: float) -> None:
        self.bench.passes(seconds)

    def interrupted(self) -> str | None:
        return None

    def gate_open(self, step: MaintenanceStep) -> bool:
        return step.gate.is_open({})

    def standing(self, step: str, *, once: bool) -> Any:
        return NEVER

    def holder(self, step: str, started: int | None) -> str | None:
        return None

    def work(self, step: MaintenanceStep, bounds: Bounds) -> Worked:
        session = self.bench.job(step.name, {"step": step.name}, parent=self.orchestrator)
        worked = self.ends[step.name](session)
        self.bench.kill(session.run_id)
        return worked

    def say(self, step: str, words: str) -> None:
        pass


def orchestrate(
    bench: Audited,
    ends: dict[str, Callable[[Session], Worked]],
    *steps: MaintenanceStep,
    orders: Orders | None = None,
) -> str:
    """Go through maintenance steps."""
    around = Surroundings(bench, ends)
    session = bench.job("maintenance-cycle", {"tier": "cycle"}, title="Maintenance cycle")
    around.orchestrator = session.run_id
    given = orders or Orders()
    Maintenance(around, MaintenancePlan(steps), "cycle", steps, given, session).run()
    bench.kill(session.run_id)
    return session.run_id


def step(name: str, **more: Any) -> MaintenanceStep:
    """Return a step with a command."""
    return MaintenanceStep(name, "cycle", **{"command": [f"./{name}.sh"], **more})


def does_well(session: Session) -> Worked:
    """Finish with all that was to come out."""
    session.start_phase("compact")
    session.complete_batch("compact", 0, inputs=12, parsed=12, output="ok")
    session.end_phase("compact")
    return _worked(session)


def says_so(session: Session) -> Worked:
    """Say that all went well, and nothing else."""
    session.finish("success", reason="done")
    return _worked(session)


def comes_back_empty(session: Session) -> Worked:
    """Ask, and get nothing that can be read."""
    session.start_phase("reflect")
    session.receive_answer(
        phase="reflect", source="large", asked=9, answered=9, parsed=0, text=NOTHING_FOUND
    )
    session.end_phase("reflect")
    return _worked(session)


def is_limited(session: Session) -> Worked:
    """Be told to come back later."""
    session.finish("partial", reason="HTTP 429: too many requests", reason_code=RATE_LIMITED)
    return Worked("partial", RATE_LIMITED, "HTTP 429: too many requests", runs=[session.run_id])


def _worked(session: Session) -> Worked:
    if session.run.attempt_open:
        session.finish()
    run = session.run
    return Worked(str(run.outcome), run.reason_code, run.reason or "", runs=[session.run_id])


@golden
def orchestrator_at_fault(bench: Audited) -> str:
    """One step did well, one came back empty, one waited for it."""
    return orchestrate(
        bench,
        {"compact": does_well, "reflect": comes_back_empty},
        step("compact"),
        step("reflect"),
        step("digest", depends_on=["reflect"]),
    )


@golden
def orchestrator_steps_done(bench: Audited) -> str:
    """All steps that were due did their work, as they say."""
    switched_off = step("sensors", gate=Gate(variable="SENSORS"))
    return orchestrate(bench, {"compact": says_so}, step("compact"), switched_off)


@golden
def orchestrator_nothing_due(bench: Audited) -> str:
    """No step was due."""
    return orchestrate(bench, {}, step("sensors", gate=Gate(opened=False)))


@golden
def orchestrator_rate_limited(bench: Audited) -> str:
    """The provider said `not now`."""
    return orchestrate(
        bench, {"compact": does_well, "reflect": is_limited}, step("compact"), step("reflect")
    )


@golden
def orchestrator_out_of_time(bench: Audited) -> str:
    """The time was up before the first step."""
    return orchestrate(bench, {}, step("compact"), orders=Orders(max_runtime_seconds=0))


@golden
def orchestrator_cut_off(bench: Audited) -> str:
    """The orchestrator was killed while a step was at work."""
    session = bench.job("maintenance-cycle", {"tier": "cycle"}, title="Maintenance cycle")
    session.execute(lambda run, why: run.plan_maintenance(why, "cycle", ["compact", "reflect"]))
    session.execute(lambda run, why: run.start_maintenance_step(why, "compact"))
    bench.kill(session.run_id)
    return session.run_id


# Imports.


def desk(bench: Audited) -> Desk:
    """Return what an import works with, an hour later."""
    bench.passes(3600)
    by = Cause(bench.now, "import", "ada", 4711)
    return Desk(bench.repository, bench.payloads, by, apply=True)


def imported_from(bench: Audited, *record: Any) -> str:
    """Take one folder of a job run into the log."""
    working, folder = desk(bench), str(put(bench.folder, *record))
    files = job_run_files.read_folder(folder)
    told, problems = record_of(folder, JOB, files, working.latest_us)
    assert told is not None, problems
    (row,) = take_family(working, JOB, [(told, problems)])
    return row.runs[-1]


@golden
def imported(bench: Audited) -> str:
    """Another tool recorded a run that went well."""
    events = [*opening(), event("batch_complete", at(40), phase="analyze", batchIndex=0)]
    events += ending("success")
    return imported_from(bench, summary(), events)


@golden
def imported_contradictory(bench: Audited) -> str:
    """A record of another tool that contradicts itself: success, and a phase without an end."""
    phases = [phase("extract", "completed", at(6), at(7)), phase("analyze", "running", at(8))]
    return imported_from(bench, summary(phases=phases), opening())


@golden
def imported_cut_off(bench: Audited) -> str:
    """A run of another tool that was killed."""
    return imported_from(bench, cut_off(semanticOutcome=None), opening(), batches([0, 1]))


@golden
def imported_checkpoint(bench: Audited) -> str:
    """A checkpoint file that a job kept by itself."""
    path = put(bench.folder, None, None, batches([0, 1])) / "checkpoint.json"
    file = job_run_files.read(str(path))
    assert file is not None
    named = Expected(command="tidy-index")
    row = take_checkpoint(
        desk(bench), file, "m3-batches-0dc845e1.json", BEGIN_US, named, lambda _run: None
    )
    assert not row.problems, row.problems
    return row.runs[-1]


@golden
def nested_run(bench: Audited) -> str:
    """A step that is a command, judged by the run that the command made."""
    session = wrapped(bench, "reflect")
    bench.ends(
        session,
        outcome.FAILED,
        reason="as its run job-reflect-1: 3 of 9 items came out",
        reason_code="nested_run",
    )
    return session.run_id


@golden
def refused(bench: Audited) -> str:
    """A step that ended well, and left a side effect in doubt."""
    session = wrapped(bench, "mail-digest")
    session.intend_effect("mail the digest")
    session.end_phase(PHASE)
    try:
        session.finish(outcome.SUCCESS, reason="exit code 0", reason_code="exit_code")
    except RefusalError as refusal:
        bench.ends(session, outcome.FAILED, reason=str(refusal), reason_code="refused")
    return session.run_id


@golden
def still_at_work(bench: Audited) -> str:
    """A step whose run was left behind at work when its command ended."""
    session = wrapped(bench, "reflect")
    bench.ends(
        session,
        outcome.PARTIAL,
        reason="a run of it is still at work",
        reason_code="still_at_work",
    )
    return session.run_id


@golden
def returned(bench: Audited) -> str:
    """A step that is a Python function, which says by what it returns that it failed."""
    session = wrapped(bench, "reflect")
    bench.ends(session, outcome.FAILED, reason="it returned failed", reason_code="returned")
    return session.run_id


@golden
def exit_code_75(bench: Audited) -> str:
    """A command that recorded nothing, and said by its exit code that it is to be tried later."""
    session = wrapped(bench, "reflect")
    how, code = outcome.for_exit_code(75)
    bench.ends(session, how, reason="exit code 75", reason_code=code)
    return session.run_id
