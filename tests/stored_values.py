"""Values that a codec stores, as Hypothesis strategies, and what makes two of them the same."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from tachograph.domain.blobref import BlobRef
from tachograph.infra.codec_extensions import CustomValue
from tachograph.infra.msgpack_plain import write

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

ZONES = ("Europe/Zurich", "America/St_Johns", "Africa/Monrovia", "Asia/Kathmandu", "UTC")


class Nowhere(tzinfo):
    """A time zone that no other process can find again."""

    def utcoffset(self, _: object) -> timedelta:
        return timedelta(hours=1)

    def dst(self, _: object) -> None:
        return None

    def tzname(self, _: object) -> str:
        return "Nowhere"


def exact(value: Any) -> Any:
    """Return something that is equal only for values of the same type, bits and order."""
    kind = type(value)
    return kind.__module__, kind.__qualname__, _CONTENT.get(kind, _shown)(value)


def _shown(value: Any) -> str:
    return repr(value)


def _parts(value: Any) -> list[Any]:
    return [exact(part) for part in value]


def _zone(zone: Any) -> Any:
    return zone.key if type(zone) is ZoneInfo else repr(zone)


_CONTENT: dict[type, Any] = {
    int: hex,  # Python does not show large numbers in decimal
    Fraction: lambda value: (hex(value.numerator), hex(value.denominator)),
    float: lambda value: struct.pack(">d", value),
    list: _parts,
    tuple: _parts,
    set: lambda value: sorted(_parts(value), key=repr),
    frozenset: lambda value: sorted(_parts(value), key=repr),
    dict: lambda value: [(exact(key), exact(item)) for key, item in value.items()],
    datetime: lambda value: (value.replace(tzinfo=None), value.fold, _zone(value.tzinfo)),
    time: lambda value: (value.replace(tzinfo=None), value.fold, _zone(value.tzinfo)),
    Decimal: lambda value: value.as_tuple(),
}


def _zones() -> SearchStrategy[Any]:
    day = timedelta(days=1) - timedelta(microseconds=1)
    offsets = st.timedeltas(min_value=-day, max_value=day)
    return st.one_of(
        st.none(),
        st.just(UTC),
        st.builds(timezone, offsets),
        st.builds(timezone, offsets, any_text),
        st.builds(ZoneInfo, st.sampled_from(ZONES)),
    )


def _folded(value: Any, fold: int) -> Any:
    return value.replace(fold=fold)


def _windows_path(parts: list[str]) -> PureWindowsPath:
    return PureWindowsPath(*parts)


def _decimals() -> SearchStrategy[Decimal]:
    special = st.sampled_from(("NaN", "-NaN12", "Infinity", "-0E+3", "1E-99999"))
    digits = st.lists(st.integers(0, 9), min_size=1, max_size=40).map(tuple)
    numbers = st.tuples(st.integers(0, 1), digits, st.integers(-(10**6), 10**6))
    return st.one_of(special.map(Decimal), numbers.map(Decimal))


def _custom_values() -> SearchStrategy[CustomValue]:
    return st.builds(_custom_value, any_text, st.recursive(plain_leaves, st.lists, max_leaves=3))


def _custom_value(name: str, value: object) -> CustomValue:
    out = bytearray()
    write(value, out, 0, lambda *_: (1, b""))
    return CustomValue(name, bytes(out))


any_text = st.text(st.characters(exclude_categories=()), max_size=40)
surrogate_text = st.text(st.characters(categories=("Cs", "L")), min_size=1, max_size=5)
edges = [2**bits + step for bits in (7, 8, 15, 16, 31, 32, 53, 63, 64, 127) for step in (-1, 0, 1)]
large_ints = st.integers() | st.sampled_from([*edges, *(-edge for edge in edges), 2**9000])
any_float = st.binary(min_size=8, max_size=8).map(lambda data: struct.unpack(">d", data)[0])
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)

plain_leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary()
hashable_leaves: SearchStrategy[Any] = st.one_of(
    plain_leaves,
    large_ints,
    st.floats(),
    any_float,
    st.text(),
    surrogate_text,
    st.builds(_folded, st.datetimes(timezones=_zones()), st.integers(0, 1)),
    st.dates(),
    st.builds(_folded, st.times(timezones=_zones()), st.integers(0, 1)),
    st.timedeltas(),
    st.uuids(),
    _decimals(),
    st.fractions(),
    st.builds(PurePosixPath, any_text),
    st.builds(Path, st.text()),
    st.lists(st.from_regex(r"[A-Za-z0-9_. -]{1,9}", fullmatch=True)).map(_windows_path),
    st.builds(BlobRef, digests, st.integers(0, 2**64 - 1)),
    _custom_values(),
)
hashables = st.recursive(
    hashable_leaves,
    lambda parts: st.lists(parts, max_size=4).map(tuple) | st.frozensets(parts, max_size=4),
    max_leaves=6,
)
values = st.recursive(
    st.one_of(
        hashable_leaves,
        hashables,
        st.binary().map(bytearray),
        st.sampled_from(("sNaN", "-sNaN7")).map(Decimal),
    ),
    lambda parts: st.one_of(
        st.lists(parts, max_size=5),
        st.lists(parts, max_size=5).map(tuple),
        st.sets(hashables, max_size=5),
        st.dictionaries(st.text(max_size=8) | hashables, parts, max_size=5),
    ),
    max_leaves=20,
)
"""Every type that a codec stores, in every container, as elements and as keys."""
