"""A store in memory for tests of use cases: real rules and log, hand-made clock and liveness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import BlobMissingError
from tachograph.domain.owner import Owner
from tachograph.infra.codec import Codec
from tachograph.infra.memory_log import MemoryLog
from tachograph.packing import Packing
from tachograph.payloads import Payloads
from tachograph.recording import Recording
from tachograph.runs import RunRepository
from tachograph.session import Actor, Session
from tachograph.starting import Start, Starter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.domain.liveness import Lease


class DictBlobs:
    """Blobs in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> BlobRef:
        import hashlib

        ref = BlobRef(hashlib.blake2b(data, digest_size=32).hexdigest(), len(data))
        self.kept[ref.digest] = data
        return ref

    def get(self, ref: BlobRef) -> bytes:
        if ref.digest not in self.kept:
            raise BlobMissingError(ref.digest, "missing")
        return self.kept[ref.digest]


class DictPresence:
    """Beats in a dict."""

    def __init__(self) -> None:
        self.beats: dict[str, int] = {}

    def beat(self, stream: str, epoch: int, note: Mapping[str, Any] | None = None) -> None:
        self.beats[stream] = max(epoch, self.beats.get(stream, 0))

    def lease(self, stream: str) -> Lease | None:
        return None


class Workbench:
    """Everything a use case needs; `alive` says which runs have a live owner."""

    def __init__(self, snapshot_every: int = 500) -> None:
        self.now = 0
        self.log = MemoryLog()
        self.codec = Codec()
        self.blobs = DictBlobs()
        self.presence = DictPresence()
        packing = Packing(self.codec)
        self.repository = RunRepository(self.log, packing, snapshot_every=snapshot_every)
        self.payloads = Payloads(packing, lambda: self.blobs)
        self.alive: set[str] = set()
        self.actor = Actor("tester", "here", 7, self.tick)
        self.starter = Starter(
            self.repository,
            self.payloads,
            self.presence.beat,
            self.actor,
            lambda run: "process 1 on here" if run.id in self.alive else None,
            lambda process, owner: None if process["pid"] == owner.pid else "process on here",
        )

    def tick(self) -> int:
        """Return one microsecond more than the last time."""
        self.now += 1
        return self.now

    def start(self, command: str = "work", inputs: Any = None, **options: Any) -> Session:
        """Start or resume a run."""
        return self.starter.start(Start(command, inputs, **options), Owner("here", pid=1))

    def record(self, command: str = "work", inputs: Any = None, **options: Any) -> Recording:
        """Return a recording as `tachograph.record` makes it."""
        want = Start(command, inputs, **options)
        owner = Owner("here", pid=1)
        return Recording(lambda: self.starter.start(want, owner), lambda: 3600.0)

    def topics(self, run_id: str) -> list[str]:
        """Return the topics of a run's events, without their `run.`."""
        return [record.topic.removeprefix("run.") for record in self.log.read_stream(run_id)]

    def fields(self, run_id: str, topic: str) -> list[dict[str, Any]]:
        """Return the fields of a run's events of one topic."""
        records = self.log.read_stream(run_id)
        return [self.repository.fields(r) for r in records if r.topic == f"run.{topic}"]
