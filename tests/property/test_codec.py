"""What is packed comes back exactly; what is not packed is refused in one way."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stored_values import exact, hashables, values

from tachograph.domain.errors import MalformedValueError, UnstorableValueError
from tachograph.infra.codec import Codec
from tachograph.infra.jsonl import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = Codec(keep_custom=True, plain_bytes=2**62)
FAST = Codec(keep_custom=True, plain_bytes=0)
FAST.unpack(FAST.pack("from now on the C extension is used"))

storable = pytest.mark.parametrize("codec", [PLAIN, FAST], ids=["plain", "fast"])


@storable
@given(value=values)
def test_a_value_comes_back_exactly(codec: Codec, value: Any) -> None:
    assert exact(codec.unpack(codec.pack(value))) == exact(value)


@given(value=values)
def test_both_ways_of_packing_give_the_same_bytes(value: Any) -> None:
    assert FAST.pack(value) == PLAIN.pack(value)


@storable
@given(elements=st.frozensets(hashables, max_size=8), seed=st.integers())
def test_the_order_of_insertion_into_a_set_leaves_no_trace(
    codec: Codec, elements: frozenset[Any], seed: int
) -> None:
    shuffled = list(elements)
    random.Random(seed).shuffle(shuffled)

    assert codec.pack(frozenset(shuffled)) == codec.pack(elements)


native = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
)


@given(value=native)
def test_a_value_that_msgpack_knows_has_the_bytes_of_msgpack(value: Any) -> None:
    assert PLAIN.pack(value) == msgpack.packb(value)


@given(value=values)
def test_json_is_lossless(value: Any) -> None:
    body = FAST.pack(value)
    line = json.dumps(to_json(FAST.unpack(body)), allow_nan=False)

    assert FAST.pack(from_json(json.loads(line))) == body
    assert exact(from_json(json.loads(line))) == exact(value)


# Bytes that no codec wrote


def outcome(codec: Codec, data: bytes) -> Any:
    """Return the exact value, or the class of the refusal. Any other error goes through."""
    try:
        return exact(codec.unpack(data))
    except MalformedValueError:
        return MalformedValueError


def check_reading(data: bytes) -> None:
    """Both ways of reading agree; what can be read can be stored, and comes back exactly."""
    read = outcome(PLAIN, data)

    assert outcome(FAST, data) == read
    if read is not MalformedValueError:
        assert outcome(PLAIN, PLAIN.pack(PLAIN.unpack(data))) == read


@given(data=st.binary(max_size=60))
@example(b"")
@example(b"\xc1")
@example(b"\xd6\xff\0\0\0\0")
@example(b"\xc8\0\x0c\xff" + bytes(12))
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\xdf\xff\xff\xff\xff")
@example(b"\xc9\xff\xff\xff\xff\x01")
@example(b"\x91" * 5000 + b"\xc0")
@example(b"\x81\x90\xc0")
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    check_reading(data)


@given(code=st.integers(0, 20) | st.integers(0, 255), payload=st.binary(max_size=40))
def test_any_extension_is_a_value_or_refused(code: int, payload: bytes) -> None:
    check_reading(bytes((0xC7, len(payload), code)) + payload)


@given(value=values, data=st.data())
def test_damaged_bytes_are_a_value_or_refused(value: Any, data: st.DataObject) -> None:
    damaged = bytearray(PLAIN.pack(value))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    check_reading(bytes(damaged))


@given(value=values, data=st.data())
def test_cut_off_bytes_are_refused(value: Any, data: st.DataObject) -> None:
    body = PLAIN.pack(value)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]

    assert outcome(PLAIN, cut) is MalformedValueError
    assert outcome(FAST, cut) is MalformedValueError


# Values that have no stored form


class Text(str):
    """A subclass: its type would be lost."""

    __slots__ = ()


strangers = st.sampled_from(
    [Text("a"), object(), 1j, range(3), memoryview(b"a"), msgpack.ExtType(1, b"\xc0"), len]
)


@storable
@given(stranger=strangers, value=values, data=st.data())
def test_a_value_without_a_stored_form_is_refused_wherever_it_stands(
    codec: Codec, stranger: Any, value: Any, data: st.DataObject
) -> None:
    around: list[Callable[[Any], Any]] = [
        lambda part: [value, part],
        lambda part: (part, value),
        lambda part: {"key": value, "other": part},
    ]
    whole = stranger
    for wrap in data.draw(st.lists(st.sampled_from(around), max_size=4)):
        whole = wrap(whole)

    with pytest.raises(UnstorableValueError) as caught:
        codec.pack(whole, "root")
    assert caught.value.args[0].startswith("root")
