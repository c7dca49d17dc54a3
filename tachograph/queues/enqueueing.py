"""Put jobs in queues: checked first, then all of a chunk in one commit."""

from __future__ import annotations

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.queue_settings import QueueSettings
from tachograph.domain.queued_job import QueuedJob
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.payloads import Payloads
    from tachograph.queues.ports import QueueIndex, QueueStore
    from tachograph.queues.repository import QueueRepository
    from tachograph.session import Actor

CHUNK = 500
"""Jobs that one commit enqueues."""


class Enqueue(_Fields):
    """A job that somebody wants to have done."""

    __slots__ = (
        "available_us",
        "concurrency_key",
        "key",
        "key_window_us",
        "max_attempts",
        "payload",
        "priority",
        "queue",
        "type",
    )

    def __init__(
        self,
        queue: str,
        kind: str,
        payload: Any = None,
        *,
        priority: int = 0,
        available_us: int | None = None,
        max_attempts: int | None = None,
        key: str | None = None,
        key_window_us: int | None = None,
        concurrency_key: str | None = None,
    ) -> None:
        self.queue = queue
        self.type = kind
        self.payload = payload
        self.priority = priority
        self.available_us = available_us
        self.max_attempts = max_attempts
        self.key = key
        self.key_window_us = key_window_us
        self.concurrency_key = concurrency_key


class Enqueued(_Fields):
    """The job that does what was wanted; `created` is False where its key had one already."""

    __slots__ = ("created", "job_id")

    def __init__(self, job_id: str, *, created: bool) -> None:
        self.job_id = job_id
        self.created = created


class _Draft:
    """A job that is about to be recorded."""

    __slots__ = ("job", "job_id", "payload", "want")

    def __init__(self, want: Enqueue, job_id: str, payload: Any) -> None:
        self.want = want
        self.job_id = job_id
        self.payload = payload
        self.job: QueuedJob | None = None


class Enqueueing:
    """The queues of a store, as far as putting jobs in them goes."""

    def __init__(
        self,
        store: QueueStore,
        repository: QueueRepository,
        payloads: Payloads,
        actor: Actor,
        plan: QueuePlan,
        *,
        new_id: Callable[[], str],
        random: Callable[[], float],
        beat: Callable[[str, int, float], None],
        lost: Callable[[QueuedJob], tuple[str, str] | None],
        boottime_us: Callable[[], int | None] = lambda: None,
        validate: Callable[[QueueSettings, str, Any], None] = lambda _queue, _kind, _payload: None,
    ) -> None:
        """Build the use cases.

        `beat(job_id, epoch, lease_seconds)` shows that a holder is there; `lost(job)` says why
        the holder of a leased job is to be taken for lost: code (`queued_job.RELEASES`) and
        reason. `boottime_us` is the clock that measures silence. `validate` raises PayloadError.
        """
        self.store = store
        self.repository = repository
        self.payloads = payloads
        self.actor = actor
        self.plan = plan
        self._new_id = new_id
        self._random = random
        self._beat = beat
        self._lost = lost
        self._boottime_us = boottime_us
        self._validate = validate

    def now_us(self) -> int:
        """Return the time by the clock that dates the events."""
        return self.actor.now_us()

    def settings(self, queue: str) -> QueueSettings:
        """Return what is declared of a queue; defaults for one that is not declared any more."""
        return self.plan.queues.get(queue) or QueueSettings(queue)

    # Enqueueing.

    def enqueue(self, want: Enqueue) -> Enqueued:
        """Put a job in its queue, unless another one that lives has its key.

        Raises UnknownQueueError, InvalidValueError, PayloadError.
        """
        return self.enqueue_many([want])[0]

    def enqueue_many(
        self, wants: Sequence[Enqueue], progress: Callable[[int, int | None], None] | None = None
    ) -> list[Enqueued]:
        """Put jobs in their queues, 500 in a commit; all of them are checked before the first."""
        for want in wants:
            self._validate(self.plan.get(want.queue), want.type, want.payload)
        drafts = [self._draft(want) for want in wants]
        found: list[Enqueued] = []
        for start in range(0, len(drafts), CHUNK):
            found += self._enqueue_chunk(drafts[start : start + CHUNK])
            if progress is not None:
                progress(len(found), len(wants))
        return found

    def _draft(self, want: Enqueue) -> _Draft:
        """Return a job ready to be recorded. Refuses what cannot be, or cannot be stored."""
        for what, text in (("key", want.key), ("concurrency key", want.concurrency_key)):
            if text is not None and self.payloads.redacted(text) != text:
                # G13: without it, different keys would become one.
                raise InvalidValueError(what, "[redacted]", "it holds a secret: write another one")
        draft = _Draft(want, self._new_id(), self.payloads.store(want.payload, "payload"))
        draft.job = self._build(draft, self.actor.cause())
        return draft

    def _enqueue_chunk(self, drafts: Sequence[_Draft]) -> list[Enqueued]:
        def decide(index: QueueIndex) -> list[Enqueued]:
            cause = self.actor.cause()
            keys: dict[tuple[str, str], str] = {}
            found = []
            for draft in drafts:
                want = draft.want
                if want.key is not None:
                    place = want.queue, want.key
                    held = keys.get(place) or index.holder(*place, cause.time_us)
                    if held is not None:
                        found.append(Enqueued(held, created=False))
                        continue
                    keys[place] = draft.job_id
                # Deciding again, the events are gone: they were collected.
                job, draft.job = draft.job, None
                index.save(job or self._build(draft, cause))
                found.append(Enqueued(draft.job_id, created=True))
            return found

        return self.store.decide(decide)

    def _build(self, draft: _Draft, cause: Cause) -> QueuedJob:
        want = draft.want
        settings = self.settings(want.queue)
        most = want.max_attempts
        if most is None:
            most = settings.job_type(want.type).max_attempts or settings.max_attempts
        return QueuedJob.enqueue(
            cause,
            draft.job_id,
            want.queue,
            want.type,
            draft.payload,
            priority=want.priority,
            available_us=want.available_us,
            max_attempts=most,
            key=want.key,
            key_window_us=want.key_window_us,
            concurrency_key=want.concurrency_key,
        )
