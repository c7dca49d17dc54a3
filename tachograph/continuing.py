"""What a job of many short commands needs: each call may be the first one after a kill.

Unlike the blocks of the Python API, a shell script repeats its calls after a resume. What an
earlier attempt ended well stays as it is; everything else goes through the `Session`.
"""

from __future__ import annotations

from tachograph.domain import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.owner import Owner
    from tachograph.domain.run import Run
    from tachograph.session import Session

ENDED_WELL = ("completed", "skipped")


def beat(session: Session) -> None:
    """Renew the lease of the attempt. Raises FencedError when another one owns the run by now."""
    run = session.run
    if run.epoch != session.epoch:
        raise errors.FencedError(run.id, session.epoch, run.epoch)
    session.beat()


def record_worker(session: Session, describe: Callable[[int], Owner], pid: int) -> None:
    """Record the process that is about to run a command: while it lives, the run does.

    One that has ended meanwhile is not recorded. Raises what forbids it, and then the command must
    not run: a copy that nobody knows of would work on when we are killed, beside the one that
    takes the run up.
    """
    try:
        worker = describe(pid).to_fields()
    except errors.ProcessNotFoundError:
        return  # a signal has ended it meanwhile
    session.execute(lambda run, cause: run.start_worker(cause, worker))


def start_phase(
    session: Session, name: str, *, safe_to_retry: bool = True, batches: int | None = None
) -> str:
    """Start a phase, or take it up again, and return its status: `running`, or how it ended.

    A phase that an earlier attempt ended well records nothing.
    """
    known = session.run.phases.get(name)
    if known is not None and known.status in ENDED_WELL and known.epoch < session.epoch:
        return known.status

    def start(run: Run, why: Cause) -> None:
        run.start_phase(why, name, safe_to_retry=safe_to_retry)
        if batches is not None:
            run.plan_batches(why, name, total=batches, size=0, items_digest=None)

    session.execute(start)
    return "running"


def end_phase(
    session: Session, name: str, *, status: str = "completed", summary: str | None = None
) -> None:
    """End a phase. One that an earlier attempt ended the same way records nothing."""
    known = session.run.phases.get(name)
    if known is not None and known.status == status and known.epoch < session.epoch:
        return
    session.end_phase(name, status=status, summary=summary)


def complete_batch(
    session: Session,
    name: str,
    index: int,
    *,
    inputs: int | None = None,
    parsed: int | None = None,
    output: Any = None,
) -> None:
    """Record a finished batch; without `parsed` the usable items of the output are counted."""
    if parsed is None and output is not None:
        from tachograph.measuring import count_items

        parsed = count_items(output)
    session.complete_batch(name, index, inputs=inputs, parsed=parsed, output=output)


def pending_batches(session: Session, name: str) -> list[int]:
    """Return the indexes of a phase's planned batches that are not finished.

    Raises PhaseNotOpenError for a phase that was never started, and InvalidValueError for one
    without a plan.
    """
    phase = session.run.phases.get(name)
    if phase is None:
        raise errors.PhaseNotOpenError(session.run_id, name, "not started")
    if phase.total is None:
        raise errors.InvalidValueError(
            "phase", name, "it has no batch plan; start it with --batches"
        )
    return phase.missing()


def batch_output(session: Session, name: str, index: int) -> Any:
    """Return the recorded output of a finished batch; None when it is not finished."""
    for finished, output in session.batch_outputs(name):
        if finished == index:
            return output
    return None


def checkpoint(session: Session) -> dict[str, Any] | None:
    """Return the last saved checkpoint with its state loaded; None when there is none."""
    saved = session.run.checkpoint
    if saved is None:
        return None
    return {**saved, "state": session.payloads.load(saved["state"])}


def record_artifact(session: Session, name: str, path: str) -> dict[str, Any]:
    """Record a file that the run made, and return its absolute path, size and SHA-256.

    Raises OSError when the file cannot be read.
    """
    from pathlib import Path

    from tachograph.measuring import measure

    size, sha256 = measure(Path(path))
    absolute = str(Path(path).absolute())
    session.execute(
        lambda run, why: run.record_artifact(why, name, path=absolute, size=size, sha256=sha256)
    )
    return {"path": absolute, "size": size, "sha256": sha256}
