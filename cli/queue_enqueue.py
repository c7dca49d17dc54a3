"""`tacho queue enqueue`: put a job in a queue, or those of a file. Does none of them."""

from __future__ import annotations

import sys

from tachograph.cli.enqueue_lines import of_lines, wanted
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import WHOLE, Argument, Option, Spec, UsageError
from tachograph.infra.payload_models import checker
from tachograph.queues.wanting import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.queue_plans import QueuePlans
    from tachograph.queues.enqueueing import Enqueue
    from tachograph.queues.queueing import Queueing

SPEC = Spec(
    "Put a job in a queue.",
    Argument("queue", "The queue.", complete="queue"),
    Option("--type", "What kind of work it is.", metavar="T"),
    Option("--payload", "What the handler is given, as JSON or @file.", metavar="JSON"),
    Option("--key", "No second job of this key while one waits or is done.", metavar="K"),
    Option("--key-window", "And for so long after it has ended.", metavar="1h"),
    Option("--priority", "Higher ones are taken first; 0 without.", kind=WHOLE, metavar="N"),
    Option("--at", "Not before this time; local unless it says otherwise.", metavar="TIME"),
    Option("--in", "Not before so long from now.", metavar="10m"),
    Option("--max-attempts", "Attempts until it is dead.", kind=WHOLE, metavar="N"),
    Option("--concurrency-key", "Few jobs of this key are done at once.", metavar="K"),
    Option(
        "--jsonl",
        "Jobs from a file, one JSON object a line; @- is standard input.",
        metavar="FILE",
        complete="path",
    ),
    CONFIG,
    details="""Prints the id of the job. Where a job with the same key waits already, or is
being done, nothing is enqueued: the id of that one is printed, and the exit code is 0 as well.

\b
  tacho queue enqueue memory --type embed --payload '{"document": 7}' --key doc-7
  tacho queue enqueue memory --jsonl jobs.jsonl

A line of a file has the same names: type, payload, key, keyWindow, priority, at, in, maxAttempts,
concurrencyKey; --type is that of lines that name none. All lines are checked before the first job
is recorded, and then enqueued by 500.""",
)
_SINGLE = (
    ("--payload", "payload", "payload"),
    ("--key", "key", "key"),
    ("--key-window", "key_window", "keyWindow"),
    ("--priority", "priority", "priority"),
    ("--at", "at", "at"),
    ("--in", "in", "in"),
    ("--max-attempts", "max_attempts", "maxAttempts"),
    ("--concurrency-key", "concurrency_key", "concurrencyKey"),
)
"""Options of a single job: flag, name of the value, name in a line."""


def run(params: Params, out: Output) -> None:
    """Enqueue what is wanted, once all of it is known to be right."""
    from tachograph.bootstrap import find
    from tachograph.queue_plans import plan_in

    plans = plan_in(find(out.store)[0], params.config)
    plans.plan.get(params.queue)  # refused before a store is made for it
    if params.jsonl is None:
        _one(params, out, plans)
    else:
        _many(params, out, plans)


def _one(params: Params, out: Output, plans: QueuePlans) -> None:
    if params.type is None:
        raise UsageError("Which type of job? Give --type, or a file of jobs with --jsonl.")
    said: dict[str, Any] = {"type": params.type}
    said |= {name: getattr(params, value) for _, value, name in _SINGLE}
    if params.payload is not None:
        from tachograph.cli.values import read_json

        said["payload"] = read_json(params.payload, "--payload")
    want = wanted(params.queue, said, _now_us())
    check(plans.plan, want, checker(plans.folder))
    found = _queueing(out, plans).enqueue(want)
    if out.json:
        out.document(
            {
                "jobId": found.job_id,
                "queue": want.queue,
                "type": want.type,
                "created": found.created,
            }
        )
    else:
        out.line(found.job_id)
    if not found.created:
        out.note(f"Not enqueued: job {found.job_id} has the key {want.key!r}.")


def _many(params: Params, out: Output, plans: QueuePlans) -> None:
    for flag, value, _ in _SINGLE:
        if getattr(params, value) is not None:
            raise UsageError(f"{flag} is of a single job: with --jsonl, write it in the lines.")
    from tachograph.cli.bars import Bar

    wants = _wants(params, plans)
    with Bar(out, "enqueue") as bar:
        found = _queueing(out, plans).enqueue_many(wants, bar) if wants else []
    enqueued = sum(each.created for each in found)
    if out.json:
        jobs = [{"jobId": each.job_id, "created": each.created} for each in found]
        out.document(
            {
                "queue": params.queue,
                "enqueued": enqueued,
                "existing": len(found) - enqueued,
                "jobs": jobs,
            }
        )
    else:
        out.line(f"enqueued {enqueued}, {len(found) - enqueued} already there")


def _wants(params: Params, plans: QueuePlans) -> list[Enqueue]:
    """Return the jobs of a file. Raises UsageError before anything is recorded."""
    from tachograph.infra.codec import Codec

    name = params.jsonl.removeprefix("@")
    validate, codec = checker(plans.folder), Codec()

    def read(lines: Iterable[str], source: str) -> list[Enqueue]:
        def right(want: Enqueue) -> None:
            check(plans.plan, want, validate)
            codec.pack(want.payload, "payload")  # what cannot be stored is told here, with its line

        return list(of_lines(params.queue, lines, source, params.type, _now_us(), right))

    if name == "-":
        return read(sys.stdin, "standard input")
    try:
        with open(name, encoding="utf-8") as file:  # noqa: PTH123  # pathlib costs 10 ms
            return read(file, name)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is no UTF-8 text: {error.reason}.") from error


def _queueing(out: Output, plans: QueuePlans) -> Queueing:
    from tachograph.queuekeeping import queues_of

    services = open_store(out, create=True)
    return queues_of(services, plans.plan, validate=checker(plans.folder))


def _now_us() -> int:
    from tachograph.infra.clock import now_us

    return now_us()
