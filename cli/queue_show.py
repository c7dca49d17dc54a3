"""`tacho queue show`: all that is known of a job: its state and why, and every event of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.cli.cards import card
from tachograph.cli.event_lines import brief, cut_end, details
from tachograph.cli.finding import ask
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec
from tachograph.cli.queue_jobs import job_shape
from tachograph.cli.tables import shown
from tachograph.domain.errors import BlobMissingError
from tachograph.domain.owner import Owner
from tachograph.domain.queue_errors import JobNotFoundError
from tachograph.domain.queue_events import PREFIX
from tachograph.domain.queue_settings import QueueSettings
from tachograph.domain.queued_job import LEASED, run_id_of
from tachograph.projections.queue_health import SCHEDULED, matters_us, state_of
from tachograph.queue_plans import plan_of
from tachograph.queues.looking import find_job
from tachograph.queues.reasons import why
from tachograph.queues.repository import QueueRepository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.queued_job import QueuedJob
    from tachograph.domain.records import Record

    Fields = dict[str, Any]

PAYLOAD = 400
"""Characters of a payload that are shown to people; --json has all of it."""

SPEC = Spec(
    "Show all that is known of a job: its state, why, and what happened to it.",
    Argument("job", "The job; a prefix of its id will do.", complete="job"),
    CONFIG,
)


def run(params: Params, out: Output) -> None:
    """Print the job and its history."""
    services = open_store(out, read_only=True)
    found = _Found(services, params, out)
    if out.json:
        out.document(found.document())
    else:
        found.show(out)


class _Found:
    """A job, and what there is to say of it."""

    def __init__(self, services: Services, params: Params, out: Output) -> None:
        self._services = services
        self._repository = QueueRepository(services.log, services.packing)
        self.now_us = services.actor.now_us()
        self.job = self._load(params.job, out)
        self.history = self._repository.history(self.job.id)
        self.run_id = self._run()
        plan = plan_of(services, params.config).plan
        settings = plan.queues.get(self.job.queue) or QueueSettings(self.job.queue)
        events = [fields for _, fields in self.history]
        holder = self._holder()
        self.why = ask(
            services,
            out,
            lambda view: why(self.job, events, settings, view.queues, self.now_us, holder),
        )

    def document(self) -> Fields:
        """Return all of it as JSON has it."""
        from tachograph.storekeeping import event_line

        payload, missing = self._payload()
        leased = self.job.status == LEASED
        return {
            **job_shape(self.job, self.now_us),
            "why": self.why,
            "holder": self.job.owner if leased else None,
            "epoch": self.job.epoch,
            "leaseSeconds": self.job.lease_seconds if leased else None,
            "runId": self.run_id,
            "payload": payload,
            "payloadMissing": missing,
            "history": [event_line(self._services, record) for record, _ in self.history],
        }

    def show(self, out: Output) -> None:
        """Print it for people."""
        card(out, self._rows(out))
        out.line()
        for record, fields in self.history:
            out.line(_line(record, fields, out))

    def _rows(self, out: Output) -> Iterator[tuple[str, str | None]]:
        job = self.job
        payload, missing = self._payload()
        yield "Job", f"{job.id}  ({job.type} in {job.queue})"
        state = state_of(job, self.now_us)
        yield "State", f"{state}, {'due ' * (state == SCHEDULED)}{out.when(matters_us(job))}"
        yield "Why", self.why
        yield "Attempts", f"{job.attempts} of {job.max_attempts}"
        yield "Error", job.error
        yield "Priority", str(job.priority) if job.priority else None
        yield "Key", job.key
        yield "Concurrency key", job.concurrency_key
        yield "Enqueued", out.when(job.enqueued_us)
        yield "Run", self.run_id
        yield "Payload", missing or cut_end(brief(payload), PAYLOAD)

    def _load(self, text: str, out: Output) -> QueuedJob:
        """Return the job that is meant. Raises AmbiguousJobError or JobNotFoundError."""
        job = self._repository.get(text)
        if job is not None:
            return job
        job_id = ask(self._services, out, lambda view: find_job(view.queues, text))
        job = self._repository.get(job_id)
        if job is None:
            raise JobNotFoundError(text, "")
        return job

    def _run(self) -> str | None:
        """Return the id of the run of its executions; None while there is none."""
        run_id = run_id_of(self.job)
        return run_id if self._services.log.stream_version(run_id) else None

    def _holder(self) -> str:
        if self.job.status != LEASED:
            return ""
        from tachograph.queuekeeping import lost

        owner = Owner.from_fields(self.job.owner or {})
        gone = lost(self._services, self.job)
        if gone is not None:
            return f"its holder is lost ({gone[1]}): the next worker takes it back"
        return f"{owner} is at it, with a lease of {self.job.lease_seconds:g}s"

    def _payload(self) -> tuple[Any, str | None]:
        """Return the payload, and why there is none where it is lost."""
        try:
            return self._services.payloads.load(self._repository.payload(self.job)), None
        except BlobMissingError as error:
            return None, str(error)


def _line(record: Record, fields: Fields, out: Output) -> str:
    """Return an event as one line: when, what, by whom, and its own fields."""
    actor, host, pid, _epoch = fields.get("by") or ("?", "?", "?", 0)
    own = {name: value for name, value in fields.items() if name not in ("payload", "owner")}
    when = out.when(record.time_us, "iso")
    what = record.topic.removeprefix(PREFIX)
    text = f"{record.version:>4}  {when}  {what:<13}  by {actor} ({pid} on {host})  {details(own)}"
    return shown(text.rstrip())
