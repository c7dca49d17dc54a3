"""Take known secret values out of whatever is about to be stored (G13). No I/O.

Secrets are known by value, not by the name of a field: a secret shows up in error messages,
command lines and model answers, where no field is called password.
"""

from __future__ import annotations

from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

MARKER = "[redacted]"
MIN_LENGTH = 6
"""Shorter values are left alone: they would turn up inside harmless text."""

_LINE_LENGTH = 16
"""Lines of a secret of several lines count on their own from this length on."""

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_JSON_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


class Redactor:
    """Replaces secret values, as they are or JSON-escaped, URL-quoted or in base64.

    The lines of a value of several lines, such as a private key, are secrets of their own.
    Values shorter than 6 characters, and parts of the marker itself, are not looked for; what
    is encoded twice (base64 inside base64) is not recognised.

    >>> redactor = Redactor(["hunter2!"])
    >>> redactor.redact({"url": "https://me:hunter2%21@host", "n": [1, "hunter2!"]})
    {'url': 'https://me:[redacted]@host', 'n': [1, '[redacted]']}
    """

    __slots__ = ("_data", "_shortest", "_texts")

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values if _is_worth_hiding(value) for form in _forms(value)}
        self._texts = sorted(filter(_is_worth_hiding, forms), key=len)
        self._data = list(dict.fromkeys(_encoded(self._texts)))
        # Where a form holds another one, finding the shorter one tells as much.
        self._shortest: list[bytes] = []
        for data in self._data:
            if not any(shorter in data for shorter in self._shortest):
                self._shortest.append(data)

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._texts)

    def touches(self, packed: bytes) -> bool:
        """Say whether packed bytes hold a secret; the quick test before `redact`."""
        return any(secret in packed for secret in self._shortest)

    @property
    def forms(self) -> Sequence[bytes]:
        """What is looked for in bytes."""
        return self._data

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return where secrets are in bytes, in order; those that overlap are one."""
        return _spans(data, self._data) if self.touches(data) else []

    def redact(self, value: Any) -> Any:
        """Return the value with every secret replaced by `[redacted]`.

        Looks into str, bytes, paths, and keys and items of dict, list, tuple, set and
        frozenset; any other value is returned as it is. The argument is never changed. Keys
        that become equal are told apart by a number, so that no item is lost.
        """
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, bytes | bytearray):
            return self._redact_data(value)
        if isinstance(value, dict):
            return self._redact_dict(value)
        if isinstance(value, list):
            return [self.redact(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.redact(item) for item in value)
        if isinstance(value, set):
            return {self.redact(item) for item in value}
        if isinstance(value, frozenset):
            return frozenset(self.redact(item) for item in value)
        if hasattr(value, "__fspath__"):
            text = value.__fspath__()
            redacted = self.redact(text)
            return value if redacted == text else type(value)(redacted)
        return value

    def _redact_text(self, text: str) -> str:
        spans = _spans(text, self._texts)
        return _replaced(text, spans, MARKER) if spans else text

    def _redact_data(self, data: bytes | bytearray) -> bytes | bytearray:
        spans = _spans(data, self._data)
        return _replaced(data, spans, MARKER.encode()) if spans else data

    def _redact_dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        kept = {key for key in value if self.redact(key) == key}
        for key, item in value.items():
            name = key if key in kept else _free_name(self.redact(key), kept, redacted)
            redacted[name] = self.redact(item)
        return redacted


def _free_name(name: Any, kept: set[Any], taken: dict[Any, Any]) -> Any:
    """Return the redacted key, numbered when another key has become the same."""
    free, number = name, 1
    while free in kept or free in taken:
        number += 1
        if isinstance(name, str):
            free = f"{name} {number}"
        elif isinstance(name, bytes):
            free = name + b" %d" % number
        else:
            free = (name, number)
    return free


def _spans(text: Any, secrets: list[Any]) -> list[tuple[int, int]]:
    """Return where secrets are, in order; those that overlap become one."""
    found = []
    for secret in secrets:
        start = text.find(secret)
        while start >= 0:
            found.append((start, start + len(secret)))
            start = text.find(secret, start + 1)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replaced(text: Any, spans: list[tuple[int, int]], marker: Any) -> Any:
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], marker]
        done = end
    pieces.append(text[done:])
    return text[:0].join(pieces)


def _encoded(texts: list[str]) -> Iterator[bytes]:
    """Yield the bytes that stand for each text, with lone surrogates both ways they occur."""
    for text in texts:
        yield text.encode("utf-8", "surrogatepass")
        try:
            yield text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            continue


def _is_worth_hiding(value: str) -> bool:
    return len(value) >= MIN_LENGTH and value not in MARKER


def _forms(value: str) -> Iterator[str]:
    """Yield a secret in every form in which it is looked for."""
    yield value
    data = value.encode("utf-8", "surrogatepass")
    yield from _base64_forms(data)
    if not _UNRESERVED.issuperset(data):
        yield from _json_forms(value)
        yield from _url_forms(data)
    if "\n" in value:
        lines = (line.strip() for line in value.splitlines())
        yield from (line for line in lines if len(line) >= _LINE_LENGTH and line[0] != "-")


def _json_forms(value: str) -> Iterator[str]:
    """Yield the inside of a JSON string, with characters outside ASCII kept and escaped."""
    kept = "".join(_JSON_ESCAPES.get(letter) or _control(letter) for letter in value)
    escaped = "".join(
        letter if letter < "\x7f" else _json_unicode(letter, "04x") for letter in kept
    )
    for form in (kept, escaped):
        yield form
        yield form.replace("/", "\\/")  # as PHP writes it
    if escaped != kept:
        yield "".join(
            letter if letter < "\x7f" else _json_unicode(letter, "04X") for letter in kept
        )


def _control(letter: str) -> str:
    return letter if letter >= " " else f"\\u{ord(letter):04x}"


def _json_unicode(letter: str, spec: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:{spec}}" for at in range(0, len(units), 2))


def _url_forms(data: bytes) -> Iterator[str]:
    """Yield percent-encoded forms: of a path, of a component, and of a form field."""
    for safe in (b"", b"/"):
        for spec in ("02X", "02x"):
            quoted = [
                chr(byte) if byte in _UNRESERVED or byte in safe else f"%{byte:{spec}}"
                for byte in data
            ]
            yield "".join(quoted)
            yield "".join("+" if part == "%20" else part for part in quoted)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield base64 forms, also from inside a longer text such as `user:password`.

    Three bytes make four digits, so the digits depend on where the secret starts, modulo 3.
    Digits shared with the bytes before and after it are left out: at most two at either end.
    """
    for shift in range(3):
        first = (shift * 8 + 5) // 6
        last = (shift + len(data)) * 8 // 6
        digits = b2a_base64(bytes(shift) + data, newline=False).decode("ascii")
        inner = digits[first:last]
        for form in (digits, digits.rstrip("="), inner) if shift == 0 else (inner,):
            yield form
            yield form.replace("+", "-").replace("/", "_")
