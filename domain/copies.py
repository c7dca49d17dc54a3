"""What an export file holds, as it passes between use cases and storage. No I/O, no behaviour."""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.blobref import BlobRef
    from tachograph.domain.records import Head, Record


class Heading(_Fields):
    """The first line: the head of the exported log, and the run when it holds one run only."""

    __slots__ = ("head", "run_id")

    def __init__(self, head: Head, run_id: str | None = None) -> None:
        self.head = head
        self.run_id = run_id


class CopiedRecord(_Fields):
    """A record on its way to another log; `body_digest` stands in for a body that is not there.

    It was erased, or (with `archive`) is lost with the archive of that number.
    """

    __slots__ = ("archive", "body_digest", "record")

    def __init__(
        self, record: Record, body_digest: bytes | None = None, archive: int | None = None
    ) -> None:
        self.record = record
        self.body_digest = body_digest
        self.archive = archive


class CopiedBlob(_Fields):
    """A payload that events refer to; `data` is None when the exported store had lost it."""

    __slots__ = ("data", "ref")

    def __init__(self, ref: BlobRef, data: bytes | None) -> None:
        self.ref = ref
        self.data = data


class CopiedTracking(_Fields):
    """How far the log `name` was processed, as of the end of the exported log."""

    __slots__ = ("name", "position")

    def __init__(self, name: str, position: int) -> None:
        self.name = name
        self.position = position
