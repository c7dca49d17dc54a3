"""What surrounds the jobs of a worker: processes, payload models, files of runs. Decides nothing.

Like bootstrap it knows both sides. The environment of this process is never changed: what a job's
process is told dies with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph.domain.errors import TachographError
from tachograph.domain.jsonable import jsonable
from tachograph.domain.liveness import ALIVE
from tachograph.domain.owner import Owner
from tachograph.domain.worker_errors import NotStoppableError
from tachograph.infra import stopping
from tachograph.infra.job_child import JobChild
from tachograph.infra.payload_models import PayloadModels
from tachograph.queues.job_calling import Said
from tachograph.queues.job_processes import ChildEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.ended import Ended
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.run import Run
    from tachograph.keeping import Keeper
    from tachograph.queues.handlers import Handler
    from tachograph.queues.holds import Hold
    from tachograph.queues.queueing import Queueing
    from tachograph.recording import Recording
    from tachograph.session import Session

LEFTOVER_SECONDS = 5.0
"""What an earlier holder left at work has to end within, before it is killed."""
REPORT = "TACHO_JOB_REPORT"
"""Where a handler in a process of its own says what it raised."""
CONFIG = "TACHO_JOB_CONFIG"
"""The project's file, for such a handler."""
MODEL = "TACHO_JOB_MODEL"
"""What such a handler is given its payload as: module:Class."""


def name_of(handler: Handler) -> str:
    """Return the name by which another process can import a handler. Raises NotStoppableError."""
    module = getattr(handler.function, "__module__", None)
    name = getattr(handler.function, "__qualname__", None)
    if not module or not name or module == "__main__" or "<" in name:
        raise NotStoppableError(str(handler), handler.kind)
    return f"{module}:{name}"


def follower_of(services: Services, recording: Recording) -> Keeper | None:
    """Return what keeps the artifact files of a run, where the settings want that."""
    if services.settings.artifacts_folder is None:
        return None
    from tachograph.artifact_trees import follower

    def tell(text: str) -> None:
        with contextlib.suppress(TachographError):
            recording.note(text, level="warning", source="artifacts")

    return follower(services, recording.id, tell)


class Around:
    """What is outside of a worker: processes, payload models, files of runs."""

    def __init__(
        self,
        services: Services,
        queueing: Queueing,
        folder: str,
        folder_of: Callable[[Handler], str | None],
        config: str | None,
    ) -> None:
        self._services = services
        self._queueing = queueing
        self._folder = folder
        self._folder_of = folder_of
        self._config = config
        self._models = PayloadModels(folder)

    def model(self, handler: Handler, job: QueuedJob, payload: Any) -> Any:
        """Return a payload as its handler wants it. Raises PayloadError."""
        model = self._model_of(handler, job)
        if model is None:
            return payload
        return self._models.load(model, payload, kind=job.type, queue=job.queue)

    def _model_of(self, handler: Handler, job: QueuedJob) -> Any:
        if handler.model is not None:
            return handler.model
        return self._queueing.settings(job.queue).job_type(job.type).model

    def follow(self, recording: Recording) -> Keeper | None:
        """Return what keeps the artifact files of a run, where the settings want that."""
        return follower_of(self._services, recording)

    def describe(self, pid: int) -> Owner:
        """Describe a process. Raises ProcessNotFoundError."""
        return self._services.owner(pid)

    def end_leftover(self, run: Run) -> str | None:
        """End the process that an earlier holder left at work; say what lives on all the same.

        The holder itself is left alone: it may have other jobs, and is fenced.
        """
        left = run.worker
        if left is None or not run.attempt_open or self._services.process_state(left) != ALIVE:
            return None
        process = Owner.from_fields(left)
        stopped = stopping.stop(
            process, None, here=self._services.observer, grace_seconds=LEFTOVER_SECONDS, kill=True
        )
        return None if stopped.ended else f"{process} ({stopped.reason or 'it does not end'})"

    def command(
        self, hold: Hold, session: Session, handler: Handler, timeout_seconds: float | None
    ) -> CommandChild:
        """Return the process of an executable that is given the job."""
        program, *words = handler.command or [""]
        return CommandChild(
            [os.path.expanduser(program), *words],  # noqa: PTH111  # "./x" stays as it is
            hold,
            self._variables(hold, session),
            timeout_seconds,
            folder=self._folder_of(handler),
        )

    def isolated(
        self, hold: Hold, session: Session, handler: Handler, timeout_seconds: float
    ) -> CommandChild:
        """Return the process in which a Python handler can be stopped."""
        # -P: a file of the job's folder stands in for no module of ours.
        words = [sys.executable, "-P", "-m", "tachograph.job_main", name_of(handler)]
        words.append(self._folder)
        variables = self._variables(hold, session)
        variables[MODEL] = _model_name(self._model_of(handler, hold.job))
        variables[CONFIG] = self._config or ""
        return CommandChild(words, hold, variables, timeout_seconds, reports=True)

    def _variables(self, hold: Hold, session: Session) -> dict[str, str]:
        job = hold.job
        return {
            "TACHO_STORE": self._services.folder,
            "TACHO_RUN_ID": session.run_id,
            "TACHO_EPOCH": str(session.epoch),
            "TACHO_JOB_ID": job.id,
            "TACHO_JOB_QUEUE": job.queue,
            "TACHO_JOB_TYPE": job.type,
            "TACHO_JOB_ATTEMPT": str(job.attempts),
        }


class CommandChild:
    """The process of one job: its payload in a file and on stdin, its result on its last line."""

    def __init__(
        self,
        argv: Sequence[str],
        hold: Hold,
        variables: Mapping[str, str],
        timeout_seconds: float | None,
        *,
        folder: str | None = None,
        reports: bool = False,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tacho-job-", ignore_cleanup_errors=True)
        payload = json.dumps(jsonable(hold.payload), allow_nan=False).encode()
        self._payload = Path(self._folder.name, "payload.json")
        self._report = Path(self._folder.name, "report.json") if reports else None
        self._payload.write_bytes(payload)
        environment = {
            **os.environ,
            **variables,
            "TACHO_JOB_PAYLOAD_FILE": str(self._payload),
            REPORT: "" if self._report is None else str(self._report),
        }
        self._child = JobChild(
            argv,
            environment,
            stdin=payload + b"\n",
            folder=folder,
            timeout_seconds=timeout_seconds,
        )

    def stop(self, *, at_once: bool) -> None:
        """End it and all it has started."""
        self._child.stop(at_once=at_once)

    def run(self, on_started: Callable[[int], None]) -> ChildEnd:
        """Run it to its end. Raises OSError when it cannot be run."""
        with self._folder:
            ended = self._child.run(on_started)
            if self._report is not None:
                return ChildEnd(ended, said=_said(self._report))
        return ChildEnd(ended, result=result_in(self._child.stdout) if _well(ended) else None)


def _model_name(model: Any) -> str:
    if model is None or isinstance(model, str):
        return model or ""
    return f"{model.__module__}:{model.__qualname__}"


def result_in(stdout: bytes) -> Any:
    r"""Return the JSON object or list on the last line of an output; None where there is none.

    >>> result_in(b'working\n{"rows": 3}\n'), result_in(b"done 3")
    ({'rows': 3}, None)
    """
    lines = stdout.strip().splitlines()
    if not lines or lines[-1][:1] not in (b"{", b"["):
        return None
    try:
        return json.loads(lines[-1])
    except ValueError:
        return None


def _well(ended: Ended) -> bool:
    return ended.exit_code == 0 and not ended.timed_out


def _said(report: Path) -> Said | None:
    """Return what a handler in a process of its own raised, None where it raised nothing."""
    try:
        return Said.from_fields(json.loads(report.read_bytes()))
    except (OSError, ValueError, KeyError):
        return None
