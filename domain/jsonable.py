"""Turn recorded values into what JSON can hold. Loses no value without saying what it was."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def jsonable(value: Any) -> Any:
    """Return a value made of dicts with text keys, lists, text, numbers, booleans and None.

    Bytes become `{"$bytes": base64}`, payloads kept apart `{"$blob": digest, "size": bytes}`,
    sets and tuples lists, and what else has no JSON form its text. NaN and infinities become
    text: JSON has no number for them.

    >>> jsonable({1: b"ab", "x": (float("nan"), {3})})
    {'1': {'$bytes': 'YWI='}, 'x': ['nan', [3]]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else str(jsonable(key)): jsonable(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(jsonable, value), key=repr)
    return _as_object(value)


def _as_object(value: Any) -> Any:
    from tachograph.domain.blobref import BlobRef

    if isinstance(value, bytes | bytearray | memoryview):
        from base64 import b64encode

        return {"$bytes": b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, BlobRef):
        return {"$blob": value.digest, "size": value.size}
    iso = getattr(value, "isoformat", None)
    return iso() if iso is not None else str(value)
