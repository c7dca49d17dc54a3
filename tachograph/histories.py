"""Read one run's history for a comparison, event by event, in bounded memory. Writes nothing."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from tachograph.domain.blobref import BlobRef
from tachograph.domain.bodies import ERASED
from tachograph.domain.comparing import COMPARED, essence, portrait
from tachograph.domain.errors import BlobMissingError, BodyLostError
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

PAGE = 500
"""Events of a run in memory at a time."""
LARGEST_SHOWN = 200
"""Packed bytes of a value that is shown itself; of a larger one the digest is."""
MOST_NAMES = 100
"""Models, retries and fallbacks that are told apart in a run."""
ERASURE = "run.bodies-erased"
REVISION = "run.verdict-revised"
_OF_VERDICT = ("outcome", "rule", "rule_version", "reason_code", "reason")


class Happening:
    """An event that can be compared; `fields` are None when its body is erased or lost."""

    __slots__ = ("fields", "position", "topic", "version")

    def __init__(self, record: Record, fields: Fields | None) -> None:
        self.version = record.version
        self.position = record.position
        self.topic = record.topic
        self.fields = fields


class Values:
    """Digests of values, and what is shown of them."""

    def __init__(self, repository: RunRepository, payloads: Payloads) -> None:
        self._pack = repository.packing.pack
        self._payloads = payloads

    def digest(self, value: Any) -> str:
        """Return the BLAKE2b-256 of a value's stored form: that of its blob where it has one."""
        if isinstance(value, BlobRef):
            return value.digest
        return blake2b(self._pack(value, "value"), digest_size=32).hexdigest()

    def shown(self, value: Any) -> Any:
        """Return a value, or the digest and size of a large one."""
        if isinstance(value, BlobRef):
            return {"digest": value.digest, "bytes": value.size}
        packed = self._pack(value, "value")
        if len(packed) <= LARGEST_SHOWN:
            return value
        return {"digest": blake2b(packed, digest_size=32).hexdigest(), "bytes": len(packed)}

    def loaded(self, value: Any) -> Any:
        """Return a value from its blob; the reference itself when that is missing."""
        try:
            return self._payloads.load(value)
        except BlobMissingError:
            return value


class History:
    """A run as far as its events were read. `happenings` goes through it once."""

    def __init__(
        self, repository: RunRepository, values: Values, run_id: str, step: Callable[[], None]
    ) -> None:
        self.run_id = run_id
        self.run = Run()
        self.events = 0
        self.unread = 0
        """Events whose bodies are erased or lost."""
        self.why: str | None = None
        """Why bodies could not be read."""
        self.models: dict[str, int] = {}
        self.retries: dict[str, int] = {}
        self.fallbacks: dict[str, int] = {}
        self.verdict: Fields | None = None
        self.revision: Fields | None = None
        self._repository = repository
        self._values = values
        self._step = step

    def happenings(self) -> Iterator[Happening]:
        """Yield the events that can be compared; afterwards the whole run has been read."""
        total = self._repository.log.stream_version(self.run_id)
        for record in self._records(total):
            self.events += 1
            fields = self._take(record)
            if record.topic in COMPARED:
                counts = None if fields is None else essence(record.topic, fields, self.run.epoch)
                yield Happening(record, counts)
            self._step()

    def portrait(self) -> Fields | None:
        """Return what the run has come to; None when events of it could not be read."""
        if self.unread:
            return None
        whole = portrait(self.run)
        # What changes most seldom comes first; the outcome stays at the end.
        outcome = whole.pop("outcome")
        return {
            "inputs": self._values.loaded(self.run.inputs),
            **whole,
            "retries": self.retries,
            "fallbacks": self.fallbacks,
            "models": self.models,
            "verdict": self.verdict or {"facts": {}},
            "revision": self.revision or {"facts": {}},
            "outcome": outcome,
        }

    def timings(self) -> dict[str, float | None]:
        """Return how long the run and each of its phases took, in seconds of that time's clock.

        None for what has not ended. The whole run, under the empty name, counts from its creation.
        Nothing is known when events could not be read.
        """
        if self.unread:
            return {}
        run = self.run
        found = {"": _seconds(run.created_us, run.ended_us)}
        found.update(
            (name, _seconds(phase.started_us, phase.ended_us)) for name, phase in run.phases.items()
        )
        return found

    def _records(self, up_to: int) -> Iterator[Record]:
        after = 0
        read = self._repository.log.read_stream
        while records := read(self.run_id, after=after, up_to=up_to, limit=PAGE):
            yield from records
            after = records[-1].version

    def _take(self, record: Record) -> Fields | None:
        """Fold one event, and return its fields; None when its body is not there."""
        try:
            fields = self._repository.fields(record)
        except BodyLostError as error:
            self._miss(str(error).rstrip("."))
            return None
        if ERASED in fields:
            self._miss("its events are erased")
        if not self.unread:
            self.run.evolve(record.topic, fields)
            self._count(record, fields)
        elif record.topic == ERASURE and ERASED not in fields:
            self.run.version = record.version - 1
            self.run.evolve(record.topic, fields)
            self.why = f"it was erased {self.run.reason}"
        return None if ERASED in fields else fields

    def _miss(self, why: str) -> None:
        self.unread += 1
        self.why = self.why or why

    def _count(self, record: Record, fields: Fields) -> None:
        topic = record.topic
        if topic == "run.answer-received" and fields["source"] is not None:
            _add(self.models, fields["source"])
        elif topic == "run.retry-scheduled":
            _add(self.retries, fields["kind"])
            if fields["model"] is not None:
                _add(self.models, fields["model"], 0)
        elif topic == "run.fallback-taken":
            _add(self.fallbacks, f"{fields['source']} → {fields['target']}")
        elif topic == "run.attempt-started":
            self.verdict = self.revision = None
        elif topic == "run.semantic-gate-judged":
            self.verdict = _verdict(fields)
        elif topic == REVISION:
            self.revision = _verdict(fields)


def _verdict(fields: Fields) -> Fields:
    policy = fields["policy"] or {}
    facts = {
        name: value
        for name, value in (fields["facts"] or {}).items()
        if name != "deadline_left_seconds"
    }
    return {
        **{name: fields[name] for name in _OF_VERDICT},
        "policy": f"{policy.get('id')} {policy.get('version')}",
        "facts": facts,
    }


def _add(counts: dict[str, int], name: str, times: int = 1) -> None:
    """Count something by name, as long as there are not too many names."""
    if name in counts or len(counts) < MOST_NAMES:
        counts[name] = counts.get(name, 0) + times


def _seconds(start_us: int, end_us: int | None) -> float | None:
    return None if end_us is None or not start_us else (end_us - start_us) / 1_000_000
