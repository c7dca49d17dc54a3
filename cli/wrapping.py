"""The work of `tacho run exec`: start the run, run the command, record how it ended, report.

A keeper does it, a child of the process that was called: whoever kills that one leaves a run
that is nevertheless brought to its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.bootstrap import joined, orchestrator
from tachograph.cli.exit_codes import of_error
from tachograph.cli.failing import report
from tachograph.cli.limits import check_time_limit
from tachograph.cli.opening import open_store
from tachograph.cli.recoveries import declared
from tachograph.cli.starts import environment
from tachograph.cli.values import pairs
from tachograph.continuing import record_worker, start_phase
from tachograph.domain.errors import FencedError, TachographError
from tachograph.domain.expectations import Expectations
from tachograph.domain.outcome import is_outcome, traits
from tachograph.domain.recovery import Recovery
from tachograph.executing import PHASE, Expected, conclude
from tachograph.infra import keeper
from tachograph.infra.child import in_foreground, run_child
from tachograph.infra.feeding import is_fed
from tachograph.keeping import Heartbeat
from tachograph.starting import Start

if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.ended import Ended
    from tachograph.executing import Verdict
    from tachograph.keeping import Keeper
    from tachograph.session import Session

CANNOT_RUN = 126
NOT_THERE = 127
"""Exit codes that shells give for a command that is not executable, or not there."""


def wrap(params: Params, out: Output) -> int:
    """Run the command as a run, with a keeper where there can be one, and return its exit code.

    Nothing is run when the start cannot be recorded.
    """
    if not keeper.possible():
        return execute(params, out)
    code = keeper.keep(partial(_kept, params, out), shared=in_foreground())
    if code >= 0:
        return code
    name = signal.Signals(-code).name
    out.warn(f"tacho: the keeper of the run was killed by {name}; the command may live on.")
    return 128 - code


def _kept(params: Params, out: Output) -> int:
    """Do the work to its end, errors included: nobody above is there to report them."""
    try:
        code = execute(params, out)
        sys.stdout.flush()
        return code
    except BaseException as error:  # noqa: BLE001  # the last line of defence
        return report(error, as_json=out.json)
    finally:
        out.close()


def execute(params: Params, out: Output) -> int:
    """Run the command as a run of this process and return its exit code."""
    want = Start(
        params.name or Path(params.argv[0]).name,
        {**pairs(params.input, "--input"), "argv": list(params.argv)},
        run_id=params.id,
        title=params.title,
        parent=params.parent or orchestrator(),
        recovery=_recovery(params, out),
        joins=joined(),
    )
    check_time_limit("--timeout", params.timeout)
    services = open_store(out, create=True)
    policy = services.policy()  # first of all: one that cannot be used is no surprise at the end
    session = services.starter.start(want, services.owner())
    session.judge_by(policy)
    start_phase(session, PHASE)
    if params.expect_output:
        session.expect(Expectations(), files=params.expect_output)
    out.note(f"tacho: run {session.run_id}, attempt {session.epoch}")
    follower = _follower(services, session, out)
    try:
        return _wrapped(session, services, follower, params, out)
    finally:
        if follower is not None:
            follower.stop()


def _wrapped(
    session: Session, services: Services, follower: Keeper | None, params: Params, out: Output
) -> int:
    try:
        ended = _run(session, services, follower, params)
    except OSError as error:
        return _not_run(session, error, params, out)
    except TachographError:
        out.warn(f"tacho: {params.argv[0]} was not run: that it starts cannot be recorded.")
        raise
    return _report(session, ended, params, out)


def _follower(services: Services, session: Session, out: Output) -> Keeper | None:
    """Return what keeps the artifact files of the run up to date, where settings want that."""
    if services.settings.artifacts_folder is None:
        return None
    from tachograph.artifact_trees import follower

    return follower(services, session.run_id, lambda text: out.warn(f"tacho: {text}"))


def _recovery(params: Params, out: Output) -> Recovery | None:
    """Return how the run may be continued: by this very command, where nothing else is named.

    What is fed to the command is gone by then: it would run with empty input, and seem to do well.
    """
    given = declared(params)
    said = given or Recovery()
    if said.can_be_dispatched:
        return said
    try:
        said = said.changed(command=_this_command(params), working_folder=str(Path.cwd()))
    except FileNotFoundError:  # the folder was deleted: nothing can be started in it
        return given
    if not is_fed(0):
        return said
    if said.auto_resume:
        out.note(
            "tacho: the command gets its input through a pipe or from a file, which a resume "
            "cannot repeat: the watchdog will ask a person. If it reads none, add </dev/null."
        )
    return said.changed(safe_to_retry=False)


def _this_command(params: Params) -> list[str]:
    """Return the words that wrap the same command once more, as it was wrapped now."""
    # -P: a file of the job's folder, such as signal.py, stands in for no module of ours.
    words = [sys.executable, "-P", "-m", "tachograph", "run", "exec", "--quiet"]
    for name in ("name", "id", "title", "parent"):
        if getattr(params, name) is not None:
            words += [f"--{name}", getattr(params, name)]
    for flag, values in (
        ("--input", params.input),
        ("--expect-output", params.expect_output),
        ("--success-code", params.success_code),
    ):
        for value in values:
            words += [flag, str(value)]
    words += ["--tail-bytes", str(params.tail_bytes)]
    if params.timeout is not None:
        words += ["--timeout", repr(params.timeout)]
    return [*words, "--", *params.argv]


def _run(session: Session, services: Services, follower: Keeper | None, params: Params) -> Ended:
    variables = environment(services.folder, session.run_id, session.epoch)
    sys.stdout.flush()
    with contextlib.ExitStack() as until_it_ended:

        def begin(pid: int) -> None:
            record_worker(session, services.owner, pid)
            # Not earlier: the child is forked while there is no other thread.
            heartbeat = Heartbeat(session.beat, services.settings.heartbeat_seconds)
            heartbeat.start()
            until_it_ended.callback(heartbeat.stop)
            if follower is not None:
                follower.start()

        return run_child(
            params.argv,
            {**os.environ, **variables},
            tail_bytes=params.tail_bytes,
            timeout_seconds=params.timeout,
            on_started=begin,
        )


def _not_run(session: Session, error: OSError, params: Params, out: Output) -> int:
    reason = f"{params.argv[0]} cannot be run: {error.strerror}"
    session.finish("failed", reason=reason, reason_code="not_run")
    out.warn(f"tacho: {reason}")
    return NOT_THERE if isinstance(error, FileNotFoundError) else CANNOT_RUN


def _report(session: Session, ended: Ended, params: Params, out: Output) -> int:
    code = ended.shell_code
    try:
        expected = Expected(session.reload(), params.expect_output)
        verdict = conclude(session, ended, expected, params.success_code or (0,))
    except (TachographError, OSError) as error:
        what = "belongs to another attempt by now" if isinstance(error, FencedError) else str(error)
        out.warn(f"tacho: the end of run {session.run_id} was not recorded: {what}")
        return code or of_error(error)
    _tell(session, verdict, code, out)
    if code == 0 and is_outcome(verdict.outcome):
        code = traits(verdict.outcome, verdict.reason_code).exit_code
    return code


def _tell(session: Session, verdict: Verdict, code: int, out: Output) -> None:
    for path, problem in verdict.missing.items():
        out.warn(f"tacho: expected output {path} {problem}")
    out.note(f"tacho: run {session.run_id}: {verdict.outcome}, {verdict.reason}")
    if out.json:
        # On stderr: stdout belongs to the command.
        from tachograph.cli.output import to_json

        out.warn(
            to_json(
                {
                    "jobRunId": session.run_id,
                    "epoch": session.epoch,
                    "outcome": verdict.outcome,
                    "reasonCode": verdict.reason_code,
                    "reason": verdict.reason,
                    "exitCode": code,
                    "missing": dict(verdict.missing),
                }
            )
        )
