"""Records and payloads as lines of JSON, and back without loss. Reads and writes no file.

The first line of an export names its format and the head of the log. Then come the events in
the order of their positions, each payload before the first event that refers to it, and at the
end how far other logs were processed. One file restores everything.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from tachograph.domain.blobref import BlobRef
from tachograph.domain.copies import CopiedBlob, CopiedRecord, CopiedTracking, Heading
from tachograph.domain.errors import MalformedValueError, TachographError
from tachograph.domain.iso_time import iso
from tachograph.domain.records import Head, Record
from tachograph.infra.codec import Codec
from tachograph.infra.jsonl import from_json, to_json
from tachograph.infra.layout import (
    MAX_VERSION,
    digest_body,
    digest_record,
    encode_text,
    stream_key,
    with_length,
)

if TYPE_CHECKING:
    Copy = Heading | CopiedRecord | CopiedBlob | CopiedTracking

FORMAT: Literal["tachograph-export"] = "tachograph-export"
VERSION = 1
"""Raised when a line gets another meaning; a reader refuses a higher one."""
_CODEC = Codec(keep_custom=True)
_DIGEST = Field(pattern="^[0-9a-f]{64}$")
_PLACE = Field(ge=0, le=MAX_VERSION)


class _Line(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, alias_generator=to_camel, populate_by_name=True
    )
    leads: ClassVar[str]
    """Key of the JSON object by which this kind of line is known."""


class HeadLine(_Line):
    """The end of a log."""

    position: int = _PLACE
    digest: str = _DIGEST


class HeadingLine(_Line):
    """The first line."""

    leads = "format"
    format: Literal["tachograph-export"]
    version: int
    head: HeadLine
    run: str | None = None
    """Id of the run when the file holds one run only: such a file cannot be imported."""


class BlobLine(_Line):
    """A payload; `data` is base64, null when the exported store had lost it."""

    leads = "blob"
    blob: str = _DIGEST
    size: int
    data: str | None


class EventLine(_Line):
    """An event."""

    leads = "position"
    position: int = _PLACE
    stream: Any
    """Id of the run; `{"$uuid": …}` for streams of other applications."""
    version: int = _PLACE
    type: Any
    time: str | None
    """ISO 8601, for people; `timeUs` counts."""
    time_us: int
    data: Any = None
    """The event's fields in the notation of `infra.jsonl`."""
    raw: str | None = None
    """The stored bytes in base64, only where `data` would not give them back exactly."""
    body_digest: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """What is left of a body that was erased, or is lost."""
    archive: int | None = Field(default=None, ge=0, le=MAX_VERSION)
    """Number of the archive that the body is lost with; absent when it was erased."""
    digest: str = _DIGEST
    previous_digest: str = _DIGEST


class TrackingLine(_Line):
    """How far another log was processed."""

    leads = "tracking"
    tracking: Any
    at: int


_KINDS: tuple[type[_Line], ...] = (EventLine, BlobLine, TrackingLine, HeadingLine)


def heading(line: Heading) -> dict[str, Any]:
    """Return the first line."""
    head = HeadLine(position=line.head.position, digest=line.head.digest.hex())
    return _shown(HeadingLine(format=FORMAT, version=VERSION, head=head, run=line.run_id))


def event(copy: CopiedRecord) -> dict[str, Any]:
    """Return the line of an event."""
    record, gone = copy.record, copy.body_digest
    data, raw = (None, None) if gone is not None else _body(record.body)
    return _shown(
        EventLine(
            position=record.position,
            stream=to_json(record.stream),
            version=record.version,
            type=to_json(record.topic),
            time=iso(record.time_us, digits=6),
            time_us=record.time_us,
            data=data,
            raw=raw,
            body_digest=None if gone is None else gone.hex(),
            archive=copy.archive,
            digest=record.digest.hex(),
            previous_digest=record.previous_digest.hex(),
        )
    )


def blob(copy: CopiedBlob) -> dict[str, Any]:
    """Return the line of a payload."""
    data = None if copy.data is None else _base64(copy.data)
    return BlobLine(blob=copy.ref.digest, size=copy.ref.size, data=data).model_dump(by_alias=True)


def tracking(copy: CopiedTracking) -> dict[str, Any]:
    """Return the line of a tracked position."""
    return _shown(TrackingLine(tracking=to_json(copy.name), at=copy.position))


def to_text(line: dict[str, Any]) -> str:
    """Return a line as text, without its end."""
    return json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse(text: str) -> Copy:
    """Return what a line says, checked by itself: digests fit what they are digests of.

    Raises ValueError, with what is wrong with the line as its text.
    """
    try:
        return _parse(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"has a wrong {place!r}: {first['msg']}") from error
    except (TachographError, RecursionError) as error:
        raise ValueError(f"holds a value that cannot be read ({error})") from error


def _parse(text: str) -> Copy:
    try:
        obj = json.loads(text)
    except ValueError as error:
        raise ValueError(f"is not JSON ({error})") from error
    for kind in _KINDS:
        if isinstance(obj, dict) and kind.leads in obj:
            parsed: Copy = _PARSERS[kind](kind.model_validate(obj))
            return parsed
    raise ValueError("is no line of an export")


def _parse_heading(line: Any) -> Heading:
    if line.version > VERSION:
        raise ValueError(
            f"has version {line.version} of the export format, and this Tachograph reads up to "
            f"{VERSION}: update Tachograph"
        )
    return Heading(Head(line.head.position, bytes.fromhex(line.head.digest)), line.run)


def _parse_event(line: Any) -> CopiedRecord:
    stream, topic = from_json(line.stream), from_json(line.type)
    if not isinstance(stream, str | UUID) or not isinstance(topic, str):
        raise ValueError("has a stream or type that is no text")  # noqa: TRY004
    gone = None if line.body_digest is None else bytes.fromhex(line.body_digest)
    if gone is None and line.archive is not None:
        raise ValueError("names an archive and has a body")
    body = b"" if gone is not None else _parse_body(line)
    previous = bytes.fromhex(line.previous_digest)
    digest = digest_record(
        previous,
        line.position,
        stream_key(stream)[0],
        line.version,
        line.time_us,
        with_length(encode_text(topic)),
        digest_body(body) if gone is None else gone,
    )
    if digest.hex() != line.digest:
        raise ValueError(f"(position {line.position}) was changed: its digest does not fit it")
    record = Record(
        line.position,
        stream,
        line.version,
        topic,
        line.time_us,
        body,
        digest,
        previous,
        gone is not None,
    )
    return CopiedRecord(record, gone, line.archive)


def _parse_body(line: Any) -> bytes:
    if line.raw is not None:
        return base64.b64decode(line.raw, validate=True)
    return _CODEC.pack(from_json(line.data))


def _parse_blob(line: Any) -> CopiedBlob:
    ref = BlobRef(line.blob, line.size)
    if line.data is None:
        return CopiedBlob(ref, None)
    data = base64.b64decode(line.data, validate=True)
    if len(data) != ref.size or digest_body(data).hex() != ref.digest:
        raise ValueError("holds a payload that was changed: its digest does not fit it")
    return CopiedBlob(ref, data)


def _parse_tracking(line: Any) -> CopiedTracking:
    name = from_json(line.tracking)
    if not isinstance(name, str) or not 0 <= line.at <= MAX_VERSION:
        raise ValueError("names no log, or no position in it")
    return CopiedTracking(name, line.at)


_PARSERS: dict[type[_Line], Any] = {
    HeadingLine: _parse_heading,
    EventLine: _parse_event,
    BlobLine: _parse_blob,
    TrackingLine: _parse_tracking,
}


def _body(body: bytes) -> tuple[Any, str | None]:
    """Return a body as JSON, and as base64 where the JSON would not give it back exactly."""
    try:
        value = _CODEC.unpack(body)
        data = to_json(value)
        exact = _CODEC.pack(from_json(data)) == body
    except (MalformedValueError, TachographError, ValueError, RecursionError):
        return None, _base64(body)  # encrypted, or of another application
    return data, None if exact else _base64(body)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _shown(line: _Line) -> dict[str, Any]:
    """Return a line as a dict, without fields that say nothing."""
    fields = line.model_dump(by_alias=True)
    optional = ("raw", "bodyDigest", "archive", "run")
    return {
        name: value for name, value in fields.items() if value is not None or name not in optional
    }
