"""Take known secrets out of a stream of bytes that comes in pieces (G13). Writes nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.redaction import MARKER

if TYPE_CHECKING:
    from tachograph.domain.redaction import Redactor


class RedactedStream:
    """Hands a stream on without its secrets, and holds back only what may be half of one.

    What is held back is shorter than the longest secret. A redactor of None takes nothing out.
    """

    def __init__(self, redactor: Redactor | None) -> None:
        self._redactor = redactor
        self._held = b""
        self._gone = 0
        """How much of what is held back is part of a secret whose marker was handed on."""

    def add(self, data: bytes) -> bytes:
        """Take more of the stream, and return what may be handed on."""
        if self._redactor is None:
            return data
        text = self._held + data
        return self._pass(text, _where_held(text, self._redactor))

    def flush(self) -> bytes:
        """Return what was held back: the stream has ended, or something else follows."""
        return self._pass(self._held, len(self._held))

    def _pass(self, text: bytes, until: int) -> bytes:
        """Return the beginning of a text without its secrets, and hold back the rest."""
        spans = [] if self._redactor is None else self._redactor.spans(text)
        pieces: list[bytes] = []
        done = self._gone
        for start, end in spans:
            if start >= until:
                break
            if start >= done:
                pieces += [text[done:start], MARKER.encode()]
            done = max(done, end)
        if done < until:
            pieces.append(text[done:until])
        self._held = text[until:]
        self._gone = max(0, done - until)
        return b"".join(pieces)


def _where_held(text: bytes, redactor: Redactor) -> int:
    """Return where the earliest secret begins of which the text may hold only the beginning."""
    where = len(text)
    for form in redactor.forms:
        place = text.find(form[:1], max(0, len(text) - len(form) + 1))
        while 0 <= place < where:
            if form.startswith(text[place:]):
                where = place
                break
            place = text.find(form[:1], place + 1)
    return where
