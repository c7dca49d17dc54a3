"""Golden runs whose outcome was named: by an exception, an exit code, a person or another tool.

Each function records a run and returns its id. Holds no test.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

from audit.bench import golden
from audit.by_the_gate import NOTHING_FOUND, work
from recovering import process

from tachograph.domain.ended import Ended
from tachograph.domain.errors import ApprovalPendingError
from tachograph.domain.facts import Facts
from tachograph.executing import PHASE, Expected, conclude
from tachograph.harnessing import skip_run
from tachograph.recording import Recording
from tachograph.starting import Start

if TYPE_CHECKING:
    from audit.bench import Audited

    from tachograph.session import Session


def block(bench: Audited, command: str, error: BaseException) -> str:
    """Leave the block of a Python job, with half of its batches done, by an exception."""
    bench.begun += 1
    pid = 1000 + bench.begun
    bench.processes[pid] = pid
    want = Start(command, {"day": "2026-02-28"})
    recording = Recording(
        lambda: bench.starter.start(want, process(pid)), lambda: 3600.0, log_warnings=False
    )
    with contextlib.suppress(BaseException), recording as run:
        run.session.start_phase("analyse")
        run.session.plan_batches("analyse", 2, 50, "items")
        run.session.complete_batch("analyse", 0, inputs=50, parsed=50, output="ok")
        raise error
    bench.kill(recording.id)
    return recording.id


def wrapped(bench: Audited, command: str = "nightly-backup") -> Session:
    """Start a run that wraps a command."""
    session = bench.job(command)
    session.start_phase(PHASE)
    return session


def ended(bench: Audited, session: Session, end: Ended) -> str:
    """Let the wrapped command end."""
    conclude(session, end, Expected(session.reload(), ()))
    bench.kill(session.run_id)
    return session.run_id


def printed(code: int | None, text: str, *, number: int | None = None, **more: object) -> Ended:
    """Return the end of a command that has printed a text."""
    data = text.encode()
    return Ended(code, number, 12.5, data, len(data), **more)  # type: ignore[arg-type]


@golden
def exception(bench: Audited) -> str:
    """An exception left the block."""
    return block(bench, "reflect-on-incidents", KeyError("incidents"))


@golden
def cancelled_task(bench: Audited) -> str:
    """The asyncio task of the job was cancelled."""
    return block(bench, "reflect-on-incidents", asyncio.CancelledError())


@golden
def left_early(bench: Audited) -> str:
    """The job called sys.exit."""
    return block(bench, "reflect-on-incidents", SystemExit(0))


@golden
def stopped_by_person(bench: Audited) -> str:
    """Ctrl-C."""
    return block(bench, "reflect-on-incidents", KeyboardInterrupt())


@golden
def waits_for_approval(bench: Audited) -> str:
    """A person has to agree first."""
    session = bench.job("deploy-site")
    session.execute(
        lambda run, why: run.request_approval(
            why, "deploy", subject={"version": "1.2"}, subject_digest="ff" * 16
        )
    )
    error = ApprovalPendingError(session.run_id, "deploy")
    bench.ends(session, "partial", reason=str(error), reason_code="waits_for_approval")
    return session.run_id


@golden
def exit_code(bench: Audited) -> str:
    """The wrapped command ended with 3; its last words are in the log."""
    session = wrapped(bench)
    return ended(bench, session, printed(3, "rsync: connection reset by peer (104)\n"))


@golden
def killed(bench: Audited) -> str:
    """The kernel killed the command."""
    session = wrapped(bench)
    return ended(bench, session, printed(None, "reading 12 GB …\n", number=signal.SIGKILL))


@golden
def timed_out(bench: Audited) -> str:
    """The command was stopped at its time limit."""
    session = wrapped(bench)
    end = printed(None, "waiting for the lock\n", number=signal.SIGTERM, timed_out=True)
    return ended(bench, session, end)


@golden
def interrupted(bench: Audited) -> str:
    """The machine asked everybody to end."""
    session = wrapped(bench)
    end = printed(None, "", number=signal.SIGTERM, asked=("SIGTERM",))
    return ended(bench, session, end)


@golden
def phases_open(bench: Audited) -> str:
    """The command ended well and left a planned batch undone."""
    session = wrapped(bench, "index-notes")
    work(session, "embed", [(50, 50, "ok")], total=2, end=False)
    session.judge(Facts(inputs=50, outputs=50))
    return ended(bench, session, printed(0, "done\n"))


@golden
def not_run(bench: Audited) -> str:
    """There is no such program."""
    session = wrapped(bench)
    bench.ends(
        session,
        "failed",
        reason="restic cannot be run: No such file or directory",
        reason_code="not_run",
    )
    return session.run_id


@golden
def gate_failed_in_a_command(bench: Audited) -> str:
    """The command ended with 0, and what it recorded says that nothing came out."""
    session = wrapped(bench, "reflect-on-incidents")
    session.receive_answer(
        source="large", asked=12, answered=12, parsed=0, text=NOTHING_FOUND, fault="parser"
    )
    return ended(bench, session, printed(0, "0 incidents analysed\n"))


@golden
def task_failed(bench: Audited) -> str:
    """The task itself reported that it failed."""
    session = bench.job("translate-docs")
    session.start_phase("translate")
    session.end_phase("translate", status="failed", summary="the glossary is missing")
    bench.ends(session, "failed", reason="the glossary is missing", reason_code="task_failed")
    return session.run_id


@golden
def artifacts_missing(bench: Audited) -> str:
    """A task names files, and none of them is there."""
    session = bench.job("translate-docs")
    bench.ends(
        session,
        "success_with_review",
        reason="none of the 2 artifacts that it names is there",
        reason_code="artifacts_missing",
    )
    return session.run_id


@golden
def skipped_concurrency(bench: Audited) -> str:
    """A cron job whose last run is still at work."""
    other = bench.job("cron-nightly")
    session = bench.job("cron-nightly-again")
    skip_run(session, other.run_id)
    bench.kill(session.run_id)
    return session.run_id


@golden
def not_begun(bench: Audited) -> str:
    """A cron job that was asked to end before its command was run."""
    session = bench.job("cron-nightly")
    bench.ends(session, "partial", reason="interrupted before it began", reason_code="not_begun")
    return session.run_id
