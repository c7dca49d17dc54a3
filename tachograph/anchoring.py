"""State where the log ends, so that whoever keeps the statement elsewhere can tell it was changed.

Reads the log; writes and signs nothing itself.
"""

from __future__ import annotations

from tachograph.domain.errors import InvalidAnchorError
from tachograph.domain.records import Head, Problem, _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from tachograph.ports import EventLog

    Checks = Callable[[bytes, bytes, bytes], bool]
    """Says whether a public key signed a statement: key, statement, signature."""

FILE = "anchor-file"
"""Kind of the problems of a file of anchors, which say nothing of the log."""
MARK = "tachograph anchor 1"
"""Begins what is signed: a signature of it means nothing else."""


class Anchor(_Fields):
    """The end of a log at a time: its head, and the digest of its first event.

    `time_us` is microseconds since 1970 in UTC, None where nobody said. `public_key` (32 bytes)
    and `signature` (64 bytes) are Ed25519, None when it is not signed. `place` says where it was
    found, for people.
    """

    __slots__ = ("first", "head", "place", "public_key", "signature", "time_us")

    def __init__(
        self,
        head: Head,
        time_us: int | None = None,
        first: bytes | None = None,
        *,
        public_key: bytes | None = None,
        signature: bytes | None = None,
        place: str = "the anchor",
    ) -> None:
        self.head = head
        self.time_us = time_us
        self.first = first
        self.public_key = public_key
        self.signature = signature
        self.place = place


def anchor_of(log: EventLog, time_us: int) -> Anchor:
    """Return the anchor of a log as it is now."""
    head = log.head()
    begin = log.read(limit=1) if head.position else []
    return Anchor(head, time_us, begin[0].digest if begin else None)


def statement(anchor: Anchor) -> bytes:
    """Return the bytes that are signed: lines of text that anybody can write again."""
    first = "-" if anchor.first is None else anchor.first.hex()
    return f"{MARK}\n{text_of(anchor.head)}\n{anchor.time_us}\n{first}\n".encode("ascii")


def text_of(head: Head) -> str:
    """Return a head as `POSITION:DIGEST`."""
    return f"{head.position}:{head.digest.hex()}"


def to_fields(anchor: Anchor) -> dict[str, Any]:
    """Return an anchor as the JSON object of its line."""
    from tachograph.domain.iso_time import iso

    fields = {
        "anchor": text_of(anchor.head),
        "time": iso(anchor.time_us),
        "timeUs": anchor.time_us,
        "first": None if anchor.first is None else anchor.first.hex(),
    }
    if anchor.signature is not None and anchor.public_key is not None:
        fields["publicKey"] = anchor.public_key.hex()
        fields["signature"] = anchor.signature.hex()
    return fields


def from_line(line: str, place: str) -> Anchor:
    """Return the anchor in a line: a JSON object, or POSITION:DIGEST.

    Raises InvalidAnchorError.
    """
    import json

    from tachograph.verifying import parse_anchor

    if not line.startswith("{"):
        return Anchor(parse_anchor(line), place=place)
    try:
        fields = json.loads(line)
        time_us = fields["timeUs"]
        if not isinstance(time_us, int):
            raise TypeError(time_us)
        return Anchor(
            parse_anchor(fields["anchor"]),
            time_us,
            _bytes(fields["first"]),
            public_key=_bytes(fields.get("publicKey")),
            signature=_bytes(fields.get("signature")),
            place=place,
        )
    except InvalidAnchorError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidAnchorError(line) from error


def read_lines(name: str, lines: Iterable[str]) -> tuple[list[Anchor], list[Problem]]:
    """Return the anchors of a file, and a problem for each line that is none.

    A file without any is a problem: it compares nothing.
    """
    anchors, problems = [], []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text:
            continue
        try:
            anchors.append(from_line(text, f"line {number} of {name}"))
        except InvalidAnchorError:
            what = f"line {number} of {name} is no anchor: it was cut off, or changed"
            problems.append(Problem(FILE, 0, what))
    if not anchors:
        problems.append(Problem(FILE, 0, f"{name} holds no anchor: nothing was compared"))
    return anchors, problems


def check(log: EventLog, anchors: Sequence[Anchor]) -> Iterator[Problem]:
    """Compare a log with each anchor at its own position.

    Its chain must have been verified by itself: then a log that has the digest of an anchor at
    its position is the same one up to there.
    """
    if not anchors:
        return
    end = log.head()
    begin = log.read(limit=1) if end.position else []
    for anchor in anchors:
        head = anchor.head
        if anchor.first is not None and (not begin or begin[0].digest != anchor.first):
            what = f"the log begins with another event than {anchor.place} says: it was replaced"
            yield Problem("anchor", 1, what)
        if head.position > end.position:
            what = f"the log had {head.position} records, by {anchor.place}"
            yield Problem("cut-off", end.position, what)
        elif head.position and log.read(after=head.position - 1, limit=1)[0].digest != head.digest:
            what = f"the log up to here is not the one of {anchor.place}"
            yield Problem("anchor", head.position, what)


def check_signatures(
    anchors: Iterable[Anchor], signed: Checks, known: bytes | None
) -> Iterator[Problem]:
    """Check every signature; with a `known` key, each anchor must be signed with that one.

    An anchor with a key or a signature alone was signed, and somebody took the rest away.
    """
    for anchor in anchors:
        position, wrong = anchor.head.position, None
        if anchor.signature is None and anchor.public_key is None:
            wrong = "is not signed" if known is not None else None
        elif anchor.signature is None or anchor.public_key is None:
            wrong = "has half of a signature: its key or the signature itself is missing"
        elif known is not None and anchor.public_key != known:
            wrong = f"is signed with another key, {anchor.public_key.hex()}"
        elif not signed(anchor.public_key, statement(anchor), anchor.signature):
            wrong = "has a wrong signature: it is not what was signed"
        if wrong is not None:
            yield Problem("signature", position, f"{anchor.place} {wrong}")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
