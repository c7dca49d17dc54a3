"""Stored values as JSON: readable, and refused when it is not what was written."""

from __future__ import annotations

import json
from datetime import datetime, time, timedelta, timezone
from fractions import Fraction
from typing import Any

import pytest
from stored_values import Nowhere, exact

from tachograph.domain.errors import MalformedValueError, UnstorableValueError
from tachograph.infra.codec import Codec
from tachograph.infra.codec_extensions import CustomValue
from tachograph.infra.jsonl import from_json, to_json


def through_json(value: Any) -> Any:
    """Write and read a value as a line of JSON."""
    return from_json(json.loads(json.dumps(to_json(value), allow_nan=False)))


def test_an_ordinary_body_reads_as_it_is() -> None:
    body = {"index": 3, "files": ["a", "b"], "ratio": 0.5, "note": None, "nested": {"x": True}}

    assert to_json(body) == body
    assert to_json(body) is not body


@pytest.mark.parametrize(
    "value",
    [
        {"$dict": 1},
        {"$": {"$datetime": "x"}},
        {"a": {"$uuid": "x"}},
        {"": 1},
        {"a": 1, "$b": 2},
        {"\udce9": 1},
        {None: {1: {(): {}}}},
    ],
)
def test_a_dict_that_looks_like_a_tag_comes_back(value: Any) -> None:
    assert exact(through_json(value)) == exact(value)


def test_the_order_of_keys_is_kept() -> None:
    assert list(through_json({"b": 1, "a": 2})) == ["b", "a"]
    assert list(through_json({2: 1, 1: 2})) == [2, 1]


@pytest.mark.parametrize(
    "value",
    [
        2**53 - 1,
        2**53,
        -(2**53),
        10**5000,
        -(10**5000),
        Fraction(10**5000, 7),
        -0.0,
        5e-324,
        float("nan"),
        "\ud83d\ude00",
        "\\ud83d\udce9\\",
        "\\ud83d",
        "\0",
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_and_text_at_the_edge_of_json_come_back(value: Any) -> None:
    assert exact(through_json(value)) == exact(value)


def test_the_bits_of_nan_come_back() -> None:
    codec = Codec()
    body = b"\xcb\xff\xf8\x00\x00\x00\x00\x00\x07"

    assert codec.pack(through_json(codec.unpack(body))) == body


@pytest.mark.parametrize(
    "offset",
    [timedelta(microseconds=1), timedelta(microseconds=-1), timedelta(hours=-1, microseconds=7)],
)
def test_an_offset_below_a_second_comes_back(offset: timedelta) -> None:
    value = datetime(2025, 1, 31, 12, tzinfo=timezone(offset, "odd"))

    assert exact(through_json(value)) == exact(value)
    assert exact(through_json(value.timetz())) == exact(value.timetz())


def test_an_event_of_an_unknown_custom_type_can_be_copied() -> None:
    codec = Codec(keep_custom=True)
    body = codec.pack({"a": {CustomValue("point", codec.pack((1, CustomValue("x", b"\xc0"))))}})

    assert codec.pack(through_json(codec.unpack(body))) == body


@pytest.mark.parametrize("value", [object(), memoryview(b""), [1j], time(1, tzinfo=Nowhere())])
def test_a_value_that_no_codec_gives_is_refused(value: Any) -> None:
    with pytest.raises(UnstorableValueError):
        to_json(value)


@pytest.mark.parametrize(
    "obj",
    [
        {"$unknown": 1},
        {"$": 1},
        {"$uuid": "x"},
        {"$uuid": "b2723fe2c01a40d2875ea3aac6a09ff5", "more": 1},
        {"$uuid": 1},
        {"$tuple": "ab"},
        {"$tuple": {"a": 1}},
        {"$set": [[]]},
        {"$dict": [[[], 1]]},
        {"$dict": [[1]]},
        {"$dict": 7},
        {"$int": "x"},
        {"$int": 7},
        {"$float": "1.5x"},
        {"$str": 1},
        {"$bytes": "a"},
        {"$bytes": "*AP8="},
        {"$date": "2025-02-30"},
        {"$datetime": "today"},
        {"$datetime": "2025-01-31T12:00:00", "zone": "X/Y"},
        {"$datetime": "2025-01-31T12:00:00", "name": "CET"},
        {"$datetime": "2025-01-31T12:00:00", "fold": 2},
        {"$timedelta": "1"},
        {"$timedelta": "99999999999999999999.000000"},
        {"$decimal": "x"},
        {"$fraction": [1, 0]},
        {"$fraction": [1]},
        {"$fraction": ["1", 2]},
        {"$path": "a"},
        {"$path": "a", "flavour": "Path"},
        {"$blob": "ab", "size": 1},
        {"$custom": "x"},
        {1: 2},
        (1,),
        b"",
    ],
    ids=str,
)
def test_other_json_is_refused(obj: Any) -> None:
    with pytest.raises(MalformedValueError):
        from_json([obj])
