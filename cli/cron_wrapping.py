"""The work of `tacho cron exec`: traces first, then the run, then the verdict on both.

An error of a disk or of the store is said on stderr and in the exit code, and stops the job only
where it could not be told apart from one that never ran.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.bootstrap import joined, orchestrator
from tachograph.cli.artifact_following import at_end
from tachograph.cli.cron_ending import Ending
from tachograph.cli.cron_names import check_name, check_run_id, check_steps
from tachograph.cli.cron_redaction import redactor_in_force, store_of
from tachograph.cli.cron_waiting import wait_for_command
from tachograph.cli.failing import report as report_error
from tachograph.cli.limits import check_time_limit
from tachograph.cli.opening import open_store
from tachograph.cli.starts import environment
from tachograph.cli.wrapping import CANNOT_RUN, NOT_THERE
from tachograph.continuing import record_worker, start_phase
from tachograph.domain.cron_log import OURS, STEPS
from tachograph.domain.exit_ledger import BOOTSTRAP, BOOTSTRAP_REASON, of_the_harness, row_time
from tachograph.domain.ids import check_run_id as check_parent
from tachograph.domain.liveness import GONE
from tachograph.domain.recovery import Recovery
from tachograph.executing import PHASE
from tachograph.harnessing import ENDING_SIGNALS, skip_run
from tachograph.infra import clock, cron_files, keeper
from tachograph.infra.child import in_foreground, run_child
from tachograph.infra.feeding import is_fed
from tachograph.infra.job_lock import JobLock
from tachograph.infra.passing_on import PassingOn
from tachograph.infra.store_folder import cron_folder
from tachograph.keeping import Heartbeat
from tachograph.nesting import runs_within, worst_within
from tachograph.starting import Start

if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.ended import Ended
    from tachograph.infra.cron_files import CronPaths
    from tachograph.session import Session

HIDING = (
    "OPENCLAW_SKIP_HYBRID_MEMORY_CLI", "OPENCLAW_CLI", "OPENCLAW_SERVICE_KIND",
    "OPENCLAW_SERVICE_MARKER",
)  # fmt: skip
"""Variables that make OpenClaw hide the commands of its plugins."""
TAIL_BYTES = 16_384


class StoppedEarlyError(Exception):
    """A signal came before the command was begun."""


def wrap(params: Params, out: Output) -> int:
    """Run a cron line with a keeper where there can be one, and return its exit code."""
    job = check_name("The job (--job)", params.job)
    required = check_steps(params.required_steps)
    check_time_limit("--timeout", params.timeout)
    check_run_id(params.id)
    if params.parent is not None:
        check_parent(params.parent)
    store = store_of(out)
    paths, run_id = _begin(params, job, store, out)
    ending = Ending(
        out,
        job,
        required,
        paths,
        run_id,
        allow_skip=params.allow_skip,
        redactor=redactor_in_force(store),
    )
    work = partial(_kept, params, out, ending)
    if not keeper.possible():
        return work()
    code = keeper.keep(work, shared=in_foreground())
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    out.warn(f"tacho: the keeper of the run was killed by {name}; the command may live on.")
    if wait_for_command(out, ending, params.timeout):
        ending.take_over(128 - code)
    return 128 - code


def _begin(
    params: Params, job: str, store: str | None, out: Output
) -> tuple[CronPaths | None, str]:
    """Leave the first traces, before anything else can go wrong; and tell what did."""
    now_us = clock.now_us()
    row = of_the_harness(now_us, BOOTSTRAP_REASON)
    choices = cron_files.roots(
        params.root, os.environ, str(Path("~").expanduser()), store, tempfile.gettempdir()
    )
    paths, problems = cron_files.begin(
        choices, job, params.id, new_run_id, str(row), partial(_head, job, now_us)
    )
    for error in problems:
        out.warn(f"tacho: no cron log in {error.filename}: {error.strerror}")
    if paths is None:
        out.warn(f"tacho: job {job} runs without log and ledger: no folder can be written.")
        return None, params.id or new_run_id()
    if problems:
        out.warn(f"tacho: the log of job {job} is {paths.log}")
    return paths, paths.run_id


def new_run_id() -> str:
    """Return an id as the original has them: the time in UTC, and a random number."""
    time = row_time(clock.now_us()).replace("-", "").replace(":", "")
    return f"{time}-{secrets.randbelow(1_000_000_000)}"


def _head(job: str, now_us: int, run_id: str) -> str:
    now = row_time(now_us)
    return "\n".join([
        f"{now} {BOOTSTRAP}: HM_JOB={job} RUN_ID={run_id}",
        f"HM_JOB={job}",
        f"RUN_ID={run_id}",
        f"DAY_UTC={now[:10].replace('-', '')}",
        f"DATE_UTC={now}",
        OURS,
    ])  # fmt: skip


def _kept(params: Params, out: Output, ending: Ending) -> int:
    """Do the work to its end, errors included: nobody above is there to report them."""
    with PassingOn(tuple(ENDING_SIGNALS)) as signals:
        ending.signals = signals.received
        try:
            code = _execute(params, out, ending)
        except BaseException as error:  # noqa: BLE001  # the last line of defence
            code = ending.without_run(report_error(error, as_json=out.json), error)
        finally:
            out.close()
        sys.stdout.flush()
        return code


def _execute(params: Params, out: Output, ending: Ending) -> int:
    services = open_store(out, create=True)
    try:
        return _go(services, params, out, ending)
    finally:
        at_end(services, [ending.run_id], out)


def _go(services: Services, params: Params, out: Output, ending: Ending) -> int:
    want = Start(
        ending.job,
        {"argv": list(params.argv), "required_steps": ending.required},
        run_id=ending.run_id,
        title=params.title,
        parent=params.parent or _parent(ending.run_id),
        recovery=_recovery(params, ending),
        joins=joined(),
    )
    with JobLock(cron_folder(services.folder), ending.job, ending.run_id) as lock:
        other = _at_work(services, lock, ending.run_id)
        if other is not None and not lock.taken:
            lock.name(other)
        session = services.starter.start(want, services.owner())
        ending.began(session)
        if other is not None:
            out.warn(f"tacho: job {ending.job} is at work already, in run {other}.")
            return ending.refused(session, skip_run(session, other))
        lock.name(session.run_id)
        start_phase(session, PHASE)
        out.note(f"tacho: job {ending.job}, run {session.run_id}")
        begun = services.log.head().position
        try:
            ended = _run(session, services, params, ending)
        except OSError as error:
            return _not_run(session, error, params, ending)
        except StoppedEarlyError:
            session.finish("partial", reason="interrupted before it began", reason_code="not_begun")
            return ending.aborted(session, 0)
        return ending.ended(session, ended, _within(services, ending.run_id, begun))


def _at_work(services: Services, lock: JobLock, run_id: str) -> str | None:
    """Return the run of the same job that is at work; None when there is none.

    A command that outlived its keeper holds no lock any more, and is at work all the same.
    """
    if lock.taken:
        return lock.last_run or "(not named yet)"
    for name in lock.last_runs:
        run = None if name == run_id else services.repository.get(name)
        if run is not None and services.live_owner(run) is not None:
            return run.id
    return None


def _parent(run_id: str) -> str | None:
    """Return the run that this line is part of, by what the environment says; never itself.

    The nearest one counts: a run may have been wrapped in another.
    """
    at = joined()
    named = orchestrator() if at is None else at[0]
    return None if named is None or named.partition("~")[0] == run_id else named


def _recovery(params: Params, ending: Ending) -> Recovery:
    """Return how the run may be taken up: by hand, by this very line."""
    # -P: a file of the job's folder, such as signal.py, stands in for no module of ours.
    words = [sys.executable, "-P", "-m", "tachograph", "cron", "exec", "--quiet"]
    words += ["--job", ending.job, "--id", ending.run_id]
    if ending.paths is not None:
        words += ["--root", ending.paths.root]
    if params.required_steps:
        words += ["--required-steps", ",".join(ending.required)]
    words += ["--allow-skip"] if params.allow_skip else []
    words += [] if params.timeout is None else ["--timeout", repr(params.timeout)]
    words += [] if params.parent is None else ["--parent", params.parent]
    said = Recovery(command=[*words, "--", *params.argv], safe_to_retry=not is_fed(0))
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        return said.changed(working_folder=str(Path.cwd()))
    return said


def _run(session: Session, services: Services, params: Params, ending: Ending) -> Ended:
    variables = {name: value for name, value in os.environ.items() if name not in HIDING}
    variables.update(environment(services.folder, session.run_id, session.epoch))
    variables.update(ending.variables())
    if ending.paths is not None and services.settings.artifacts_folder is None:
        variables["TACHO_ARTIFACTS"] = ending.paths.root  # of the runs within: beside our own files
    sys.stdout.flush()
    with contextlib.ExitStack() as until_it_ended:

        def begin(pid: int) -> None:
            record_worker(session, services.owner, pid)
            if ending.signals:
                raise StoppedEarlyError
            if not ending.is_wrapper:
                ending.note(STEPS)
            # Not earlier: the child is forked while there is no other thread.
            heartbeat = Heartbeat(session.beat, services.settings.heartbeat_seconds)
            heartbeat.start()
            until_it_ended.callback(heartbeat.stop)

        return run_child(
            params.argv,
            variables,
            tail_bytes=TAIL_BYTES,
            timeout_seconds=params.timeout,
            on_started=begin,
            on_output=ending.add_output,
        )


def _within(services: Services, run_id: str, begun: int) -> tuple[str, str, str] | None:
    """Return what the runs came to that the command has started, such as one of maintenance."""
    found = runs_within(services.repository, run_id, begun)
    return worst_within(found, lambda run: services.liveness(run).state != GONE)


def _not_run(session: Session, error: OSError, params: Params, ending: Ending) -> int:
    reason = f"{params.argv[0]} cannot be run: {error.strerror}"
    session.finish("failed", reason=reason, reason_code="not_run")
    ending.out.warn(f"tacho: {reason}")
    ending.note(reason)
    code = NOT_THERE if isinstance(error, FileNotFoundError) else CANNOT_RUN
    return ending.aborted(session, code)
