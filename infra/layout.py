"""Byte layout of the log: keys, headers and digests. Never reads, writes or keeps anything."""

from __future__ import annotations

from struct import Struct

from tachograph.domain.errors import RecordOutOfRangeError
from tachograph.domain.records import GENESIS_DIGEST

try:
    from _blake2 import blake2b  # hashlib costs a short command 2 ms and is the same function
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.records import NewRecord, StreamId

FORMAT = 1
"""Version of the record layout; a reader refuses a higher one."""
ABSENT = 1
"""Flag: the body was archived or erased, its 32-byte digest stands in its place."""
TEXT = 2
"""Flag: the stream id is a text, kept beside the records; otherwise it is a UUID."""
ARCHIVED = 4
"""Flag, with ABSENT: the body is in an archive, whose number follows the digest."""
FLAGS = ABSENT | TEXT | ARCHIVED
"""All flags that have a meaning."""

DIGEST_SIZE = 32
MAX_VERSION = 2**63 - 1
MAX_BODY = 2**30
"""LMDB stores up to 4 GiB in a value, and a commit needs as much memory: stay far below."""
MAX_TOPIC = 2**16 - 1

HEADER = Struct(">BBHI16sQq32s")
"""Format, flags, reserved, type number, stream key, version, time in µs, previous digest."""
TYPE = 4
"""Where the type number is in a header."""
BODY = HEADER.size
"""Where the body begins in a stored record."""
U64 = Struct(">Q")
U32 = Struct(">I")
STREAM_VERSION = Struct(">16sQ")
"""Key of the stream index and of snapshots: stream key, version."""
_DIGESTED = Struct(">Q16sQq")
_TOPIC_LENGTH = Struct(">H")
_MEMO_SIZE = 1000
_keys: dict[str, bytes] = {}
_topics: dict[str, bytes] = {}
"""What was computed last: a run appends to one stream, with a dozen topics."""

HEAD = Struct(">Q32s")
"""Last position and its digest, so that a change of the last record shows too."""
pack_position = U64.pack
pack_head = HEAD.pack
pack_version_key = STREAM_VERSION.pack
pack_header = HEADER.pack
unpack_header = HEADER.unpack_from


class Packed:
    """A new record, checked and ready to be placed: all that does not depend on its position."""

    __slots__ = ("body", "body_digest", "flags", "key", "record", "topic")

    def __init__(self, record: NewRecord) -> None:
        self.record = record
        self.key, self.flags = stream_key(record.stream)
        self.topic = pack_topic(record)
        self.body = record.body
        check_ranges(record)
        self.body_digest = digest_body(record.body)


def stream_key(stream: StreamId) -> tuple[bytes, int]:
    """Return the 16 bytes that stand for a stream, and the flag that says how to read them."""
    if isinstance(stream, str):
        return name_key(stream), TEXT
    return stream.bytes, 0


def name_key(name: str) -> bytes:
    """Return the 16-byte key of a text: user strings never become keys, which LMDB limits."""
    key = _keys.get(name)
    if key is None:
        key = blake2b(encode_text(name), digest_size=16).digest()
        _remember(_keys, name, key)
    return key


def _remember(memo: dict[str, bytes], name: str, value: bytes) -> None:
    """Keep a result of a pure function, and not too many."""
    if len(memo) >= _MEMO_SIZE:
        memo.clear()
    memo[name] = value


def encode_text(text: str) -> bytes:
    """Return the bytes of any text, including file names with lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """Undo `encode_text`."""
    return str(data, "utf-8", "surrogatepass")


def pack_topic(record: NewRecord) -> bytes:
    """Return the topic with its length before it, as the digest covers it."""
    packed = _topics.get(record.topic)
    if packed is None:
        topic = encode_text(record.topic)
        if len(topic) > MAX_TOPIC:
            raise RecordOutOfRangeError(record.stream, f"topic of {len(topic)} bytes", MAX_TOPIC)
        packed = with_length(topic)
        _remember(_topics, record.topic, packed)
    return packed


def with_length(topic: bytes) -> bytes:
    """Return a topic with its length before it."""
    return _TOPIC_LENGTH.pack(len(topic)) + topic


def check_ranges(record: NewRecord) -> None:
    """Refuse what has no place in the layout, before anything of it is written."""
    check_version(record.stream, record.version)
    if not -(2**63) <= record.time_us < 2**63:
        raise RecordOutOfRangeError(record.stream, f"time {record.time_us!r} µs", 2**63 - 1)
    if len(record.body) > MAX_BODY:
        raise RecordOutOfRangeError(record.stream, f"body of {len(record.body)} bytes", MAX_BODY)


def check_version(stream: StreamId, version: int) -> None:
    """Refuse a version that is no whole number from 0 to MAX_VERSION."""
    if type(version) is not int or not 0 <= version <= MAX_VERSION:
        raise RecordOutOfRangeError(stream, f"version {version!r}", MAX_VERSION)


def check_position(name: str, position: int) -> None:
    """Refuse a position of another log that is no whole number from 0 to MAX_VERSION."""
    if not 0 <= position <= MAX_VERSION:
        raise RecordOutOfRangeError(name, f"position {position!r}", MAX_VERSION)


def unpack_head(value: bytes | None) -> tuple[int, bytes]:
    """Return the last position and its digest; those of an empty log for what is no head."""
    if value is None or len(value) != HEAD.size:
        return 0, GENESIS_DIGEST
    position, digest = HEAD.unpack(value)
    return position, digest


def digest_body(body: bytes) -> bytes:
    """Return the BLAKE2b-256 digest of a body: what remains of it when it is erased."""
    return blake2b(body, digest_size=DIGEST_SIZE).digest()


def digest_record(
    previous: bytes,
    position: int,
    key: bytes,
    version: int,
    time_us: int,
    topic: bytes,
    body_digest: bytes,
) -> bytes:
    """Return the digest of a record, chained to the previous one.

    It covers the topic's text and not its number, so that a log exported and imported
    elsewhere keeps its head digest. `topic` comes from `pack_topic`.
    """
    place = _DIGESTED.pack(position, key, version, time_us)
    return blake2b(previous + place + topic + body_digest, digest_size=DIGEST_SIZE).digest()


def stored_body_digest(value: bytes) -> bytes:
    """Return the body digest of a stored record, whether its body is there or not."""
    if value[1] & ABSENT:
        return value[BODY : BODY + DIGEST_SIZE]
    return digest_body(value[BODY:])


def stored_archive(value: bytes) -> int | None:
    """Return the number of the archive that holds the body of a stored record, None if none does.

    Also reads buffers, of which it keeps nothing.
    """
    if value[1] & ARCHIVED:
        return int(U64.unpack_from(value, BODY + DIGEST_SIZE)[0])
    return None


def without_body(value: bytes, archive: int | None) -> bytes | None:
    """Return a stored record with the digest of its body in the place of it.

    The body is in the archive of that number then, or (None) gone for good. Returns None where
    nothing has to be done: what was erased stays erased, what was archived stays where it is.
    """
    flags = value[1]
    if flags & ABSENT and (archive is not None or not flags & ARCHIVED):
        return None
    flags = flags & ~ARCHIVED | ABSENT
    rest = b""
    if archive is not None:
        flags |= ARCHIVED
        rest = U64.pack(archive)
    return value[:1] + bytes((flags,)) + value[2:BODY] + stored_body_digest(value) + rest
