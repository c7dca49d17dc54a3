"""`python -m tachograph.job_main module:function FOLDER` calls the handler of one job.

The worker that started it names job and run in the environment, and stops it at its time limit.
What the handler raises is said in a file; everything else is recorded in the run.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.api import _services
from tachograph.domain.queue_errors import LeaseLostError
from tachograph.infra.named_objects import load
from tachograph.infra.payload_models import PayloadModels
from tachograph.job_surroundings import CONFIG, MODEL, REPORT, follower_of
from tachograph.queue_plans import plan_of
from tachograph.queuekeeping import queues_of
from tachograph.queues.job_calling import call, context_of, said_by
from tachograph.queues.job_recordings import JobRecording

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.queueing import Queueing


def main(argv: Sequence[str]) -> int:
    """Call the handler and return the exit code: 0 when it has returned."""
    try:
        _work(*argv)
    except BaseException as error:  # noqa: BLE001  # told to the worker, whatever it is
        traceback.print_exc()
        said = json.dumps(said_by(error).to_fields())
        Path(os.environ[REPORT]).write_text(said, encoding="utf-8")
        return 1
    return 0


def _work(name: str, folder: str) -> None:
    variables = os.environ
    sys.path.append(os.getcwd())  # noqa: PTH109  # last: it stands in for nothing installed
    services = _services(variables["TACHO_STORE"])
    queueing = queues_of(services, plan_of(services, variables[CONFIG] or None).plan)
    job = queueing.get(variables["TACHO_JOB_ID"])
    session = services.session(variables["TACHO_RUN_ID"], int(variables["TACHO_EPOCH"]))
    session.judge_by(services.policy())
    recording = JobRecording(session, lambda made: follower_of(services, made))
    with recording:
        function = load(name, folder)
        payload = _payload(queueing, job, folder)
        bound = queueing.settings(job.queue).max_attempts
        context = context_of(job, payload, recording, lambda: _beat(queueing, job), bound=bound)
        recording.result = call(function, context)


def _payload(queueing: Queueing, job: QueuedJob, folder: str) -> Any:
    payload = queueing.payloads.load(queueing.repository.payload(job))
    model = os.environ.get(MODEL)
    if not model:
        return payload
    return PayloadModels(folder).load(model, payload, kind=job.type, queue=job.queue)


def _beat(queueing: Queueing, job: QueuedJob) -> None:
    if not queueing.beat(job):
        raise LeaseLostError(job.id, job.epoch, "it was given to another one")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
