"""The program `scripts/task_runtime_resume.py`: continue one task, and say what came of it."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from tachograph.domain import attention
from tachograph.domain.errors import TachographError
from tachograph.domain.event import Cause
from tachograph.domain.owner import UNOWNED, Owner
from tachograph.dropin.adopting import adopt
from tachograph.dropin.opening import FENCED, RESUME_FAILED, exit_code, open_tasks
from tachograph.dropin.places import VARIABLE
from tachograph.dropin.runtime import fail, warn
from tachograph.dropin.syncing import write_card

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.run import Run
    from tachograph.dropin.places import Workspace
    from tachograph.dropin.tasks import Tasks
    from tachograph.resuming import Resumption

    Answer = dict[str, Any]

PROGRAM = "task_runtime_resume.py"
TIMEOUT_SECONDS = 180
DESPITE = ("blocked", attention.UNSAFE)
"""What keeps a watchdog from a resume, and nobody who asks for it. Adapters guard their phases."""


def run(workspace: Workspace, argv: Sequence[str]) -> int:
    """Resume the task that the command line names, and return the exit code."""
    args = parser().parse_args(argv)
    os.environ[VARIABLE] = str(workspace.root)  # adapters outside it ask for it
    try:
        tasks = open_tasks(workspace)
        try:
            code, answer = _resume(tasks, args.task_id, args.timeout_seconds)
        finally:
            tasks.services.close()
    except (TachographError, OSError, ValueError) as error:
        fail(error)
        return exit_code(error, RESUME_FAILED)
    text = json.dumps(answer, ensure_ascii=False, indent=2) + "\n"
    (sys.stderr if code else sys.stdout).write(text)
    return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(PROGRAM, description="Resume a task through its adapter.")
    found.add_argument("--task-id", required=True)
    found.add_argument("--timeout-seconds", type=int, default=TIMEOUT_SECONDS)
    return found


def _resume(tasks: Tasks, given: str, timeout_seconds: int) -> tuple[int, Answer]:
    task_id = tasks.task_id(given)
    if tasks.newest(task_id) is None:
        adopt(tasks, task_id)
    run = tasks.get(task_id)
    asking = tasks.caller.hands_over(run)
    nobody = _is_nobody(run)
    try:
        done = tasks.services.dispatcher.resume(
            run.id,
            timeout_seconds=timeout_seconds,
            despite=(*DESPITE, attention.NOT_JUDGED) if nobody else DESPITE,
            takeover=asking is not None or nobody,
            reason=f"resumed by {PROGRAM}",
        )
        if asking is not None:
            _goes_on(tasks, run.id, asking)
    finally:
        problem = write_card(tasks, task_id)[1]
        if problem:
            warn(problem)
    return _answer(tasks, task_id, done)


def _is_nobody(run: Run) -> bool:
    """Say whether no process is known that could be at work: whoever asks knows better."""
    owner = Owner.from_fields(run.owner or {})
    return run.attempt_open and owner.kind == UNOWNED and run.worker is None


def _goes_on(tasks: Tasks, run_id: str, asking: dict[str, Any]) -> None:
    """Let the process that asked for the resume of its own task go on with it."""

    def take_on(run: Run, why: Cause) -> None:
        if run.finished:
            return
        if not run.attempt_open:
            run.start_attempt(why, {**asking, "kind": UNOWNED}, live_owner=None)
        run.start_worker(Cause(why.time_us, why.actor, why.host, why.pid, run.epoch), asking)

    session = tasks.services.session(run_id, 0)
    session.execute(take_on)
    tasks.beat(session.run)


def _answer(tasks: Tasks, task_id: str, done: Resumption) -> tuple[int, Answer]:
    execute = done.execute
    ok = done.error is None and done.progressed and not done.fenced
    answer: Answer = {
        "ok": ok,
        "task_id": task_id,
        "adapter": execute.get("name"),
        "command": execute.get("argv"),
        "progressed": done.progressed,
        "attempt": done.epoch,
    }
    if ok:
        return 0, {**answer, "result": _result(done.reply)}
    result = done.result
    code, signal = result.get("exit_code"), result.get("signal")
    if done.fenced:
        error = "another attempt took the task over meanwhile"
    else:
        error = done.error or "the adapter ended well, and the task got no further"
    stderr = tasks.services.payloads.load(result.get("stderr"))
    answer.update(
        error=error,
        stdout=_printed(done.reply),
        stderr=(stderr or "").strip(),
        returncode=code if signal is None else -signal,
    )
    return FENCED if done.fenced else RESUME_FAILED, answer


def _result(reply: dict[str, Any]) -> Any:
    """Return what the adapter said: its JSON, or its text; None when it said nothing."""
    if "raw_stdout" in reply:
        return {"raw_stdout": reply["raw_stdout"].strip()}
    return reply or None


def _printed(reply: dict[str, Any]) -> str:
    if "raw_stdout" in reply:
        return str(reply["raw_stdout"]).strip()
    return json.dumps(reply, ensure_ascii=False) if reply else ""
