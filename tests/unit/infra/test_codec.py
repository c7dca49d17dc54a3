"""The codec stores every listed type exactly, names what it refuses, and its bytes are frozen."""

from __future__ import annotations

import enum
import io
import json
import pickle
import subprocess
import sys
from collections import OrderedDict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack
import pytest
from stored_values import Nowhere, exact

import tachograph
from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import (
    MalformedValueError,
    TachographError,
    UnregisteredTypeError,
    UnstorableValueError,
)
from tachograph.infra import codec_types, msgpack_fast, msgpack_plain
from tachograph.infra.codec import Codec
from tachograph.infra.codec_extensions import CustomValue
from tachograph.infra.jsonl import from_json, to_json
from tachograph.infra.msgpack_plain import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN_FILE = Path(__file__).parents[2] / "golden" / "codec.jsonl"
ZURICH = ZoneInfo("Europe/Zurich")
DIGEST = "0123456789abcdef" * 4

GOLDEN: dict[str, Any] = {
    "none": None,
    "false": False,
    "true": True,
    "int, smallest form": 127,
    "int, negative": -33,
    "int, 64 bits": 2**64 - 1,
    "int, larger": 2**64,
    "int, lower": -(2**63) - 1,
    "float": 1.5,
    "float, negative zero": -0.0,
    "float, NaN": float("nan"),
    "float, infinity": float("-inf"),
    "text": "Zürich\0",
    "text with a surrogate": "caf\udce9\\",
    "bytes": b"\0\xff",
    "bytearray": bytearray(b"\0\xff"),
    "list": [1, [2]],
    "tuple": (1, (2,)),
    "set": {3, 1, 2},
    "set, empty": set(),
    "frozenset": frozenset({"b", "a"}),
    "dict": {"b": 1, "a": 2},
    "dict with other keys": {1: "a", None: "b", (1, 2): "c", "$x": "d"},
    "datetime": datetime(2025, 1, 31, 12, 30, 45, 678901),  # noqa: DTZ001
    "datetime, UTC": datetime(2025, 1, 31, 12, tzinfo=UTC),
    "datetime, offset": datetime(2025, 1, 31, 12, tzinfo=timezone(timedelta(hours=-3.5))),
    "datetime, named offset": datetime(2025, 1, 31, 12, tzinfo=timezone(timedelta(hours=1), "CET")),
    "datetime, zone": datetime(2025, 7, 1, 12, tzinfo=ZURICH),
    "datetime, fold": datetime(2025, 10, 26, 2, 30, tzinfo=ZURICH, fold=1),
    "date": date(2025, 1, 31),
    "time": time(12, 30, 45, 678901),
    "time, zone": time(12, 30, tzinfo=ZURICH, fold=1),
    "timedelta": timedelta(days=-1, microseconds=1),
    "uuid": UUID("b2723fe2-c01a-40d2-875e-a3aac6a09ff5"),
    "decimal": Decimal("-1.50E+3"),
    "decimal, signalling NaN": Decimal("sNaN"),
    "fraction": Fraction(-1, 3),
    "path": PurePosixPath("data/caf\udce9"),
    "path, Windows": PureWindowsPath("C:/data/x.csv"),
    "blob reference": BlobRef(DIGEST, 70_000),
    "custom value": CustomValue("point", b"\x92\x01\x02"),
}

CODES = {
    "TUPLE": 1,
    "SET": 2,
    "FROZENSET": 3,
    "BIG_INT": 4,
    "SURROGATE_TEXT": 5,
    "BYTEARRAY": 6,
    "DATETIME": 7,
    "DATE": 8,
    "TIME": 9,
    "TIMEDELTA": 10,
    "UUID_BYTES": 11,
    "DECIMAL": 12,
    "FRACTION": 13,
    "PATH": 14,
    "BLOB_REF": 15,
    "CUSTOM": 16,
}


def plain_codec(**options: Any) -> Codec:
    """Return a codec that never imports msgpack."""
    return Codec(plain_bytes=2**62, **options)


def fast_codec(**options: Any) -> Codec:
    """Return a codec that uses msgpack's C extension from now on."""
    codec = Codec(plain_bytes=0, **options)
    codec.unpack(codec.pack("first"))
    return codec


MAKERS = [plain_codec, fast_codec]


@pytest.fixture(params=MAKERS, ids=["plain", "fast"])
def codec(request: pytest.FixtureRequest) -> Codec:
    """One codec of each way."""
    made: Codec = request.param()
    return made


def refusal(codec: Codec, value: object, root: str = "value") -> tuple[str, str]:
    """Return the place and the kind of the value that cannot be stored."""
    with pytest.raises(UnstorableValueError) as caught:
        codec.pack(value, root)
    place, kind = caught.value.args
    return place, kind


# Frozen bytes


def golden_lines() -> dict[str, dict[str, Any]]:
    """Return the lines of the golden file by their names."""
    lines = GOLDEN_FILE.read_text(encoding="utf-8").splitlines()
    return {line["name"]: line for line in map(json.loads, lines)}


def test_every_golden_value_has_its_line() -> None:
    assert list(golden_lines()) == list(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_bytes_of_a_value_never_change(codec: Codec, name: str) -> None:
    golden = bytes.fromhex(golden_lines()[name]["bytes"])

    assert codec.pack(GOLDEN[name]) == golden
    kept = Codec(keep_custom=True).unpack(golden)
    assert exact(kept) == exact(GOLDEN[name])


@pytest.mark.parametrize("name", GOLDEN)
def test_the_json_of_a_value_never_changes(name: str) -> None:
    line = golden_lines()[name]

    assert to_json(GOLDEN[name]) == line["json"]
    assert exact(from_json(line["json"])) == exact(GOLDEN[name])


def test_the_codes_of_the_extensions_never_change() -> None:
    found = {name: getattr(codec_types, name) for name in dir(codec_types) if name in CODES}

    assert found == CODES


# Exactness


def test_a_native_path_comes_back(codec: Codec) -> None:
    assert exact(codec.unpack(codec.pack(Path("a/b")))) == exact(Path("a/b"))


@pytest.mark.skipif(sys.platform == "win32", reason="the other way round there")
def test_a_path_of_the_other_system_comes_back_as_a_pure_one(codec: Codec) -> None:
    packed = codec.pack(PureWindowsPath("C:/x"))
    written_on_windows = packed.replace(b"\x0e\x01C", b"\x0e\x03C")

    assert written_on_windows != packed
    assert exact(codec.unpack(written_on_windows)) == exact(PureWindowsPath("C:/x"))


def test_a_path_whose_text_means_another_path_is_not_stored_as_that(codec: Codec) -> None:
    """Before Python 3.12, the text of this one names a drive."""
    path = PureWindowsPath("./c:x")
    try:
        stored = codec.unpack(codec.pack(path))
    except UnstorableValueError:
        stored = path

    assert stored.parts == ("c:x",)


@pytest.mark.parametrize("name", ["datetime", "date", "time", "timedelta", "uuid", "decimal"])
def test_a_type_can_be_read_before_one_is_written(
    codec: Codec, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = codec.pack(GOLDEN[name])
    monkeypatch.setattr(codec_types, "_DECODERS", {})

    assert exact(codec.unpack(packed)) == exact(GOLDEN[name])


@pytest.mark.parametrize("size", [15, 16, 255, 256, 65_535, 65_536])
def test_every_length_comes_back(codec: Codec, size: int) -> None:
    """msgpack has a head for each of these ranges."""
    value = ["x" * size, b"x" * size, bytearray(size), [0] * size, dict.fromkeys(range(size))]

    assert exact(codec.unpack(codec.pack(value))) == exact(value)
    assert fast_codec().pack(value) == plain_codec().pack(value)


def test_the_decimal_context_leaves_no_trace(codec: Codec) -> None:
    with localcontext() as context:
        context.capitals = 0
        context.prec = 3
        packed = codec.pack(Decimal("1.23456E+50"))
        value = codec.unpack(packed)

    assert packed == codec.pack(Decimal("1.23456E+50"))
    assert exact(value) == exact(Decimal("1.23456E+50"))


def test_a_value_of_the_stack_of_msgpack_comes_back(codec: Codec) -> None:
    """More containers than levels: only the depth counts."""
    value = [{"n": [number]} for number in range(1000)]

    assert codec.unpack(codec.pack(value)) == value


def test_bytes_like_objects_can_be_unpacked(codec: Codec) -> None:
    packed = codec.pack({"a": (1,)})

    assert codec.unpack(memoryview(packed)) == {"a": (1,)}  # type: ignore[arg-type]


def test_threads_share_a_codec() -> None:
    """A packer of msgpack serves one caller at a time; nested values and errors use several."""
    codec = fast_codec()

    def work(number: int) -> bool:
        value = {"n": number, "nested": ((number, {number}), [str(number)] * 50)}
        bad = [(number, object())]
        return codec.unpack(codec.pack(value)) == value and refusal(codec, bad)[0] == "value[0][1]"

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(2000)))


def test_the_codec_is_plain_until_msgpack_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec(plain_bytes=10)
    made: list[str] = []
    monkeypatch.setattr(msgpack_fast.FastCodec, "pack", lambda *_: made.append("fast"))

    codec.pack("short")
    codec.pack("longer")
    assert made == []
    codec.pack("x")
    assert made == ["fast"]


def test_a_codec_works_where_msgpack_has_no_c_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msgpack_fast, "Packer", Codec)
    codec = fast_codec()

    assert codec.unpack(codec.pack([(1,)])) == [(1,)]


# Refusals


class Colour(enum.IntEnum):
    """A subclass of int."""

    RED = 1


class Celsius(float):
    """A subclass of float."""


class Moment(datetime):
    """A subclass of datetime."""


Point = namedtuple("Point", "x y")  # noqa: PYI024


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (Colour.RED, "Colour (a subclass of int)"),
        (Celsius(1), "Celsius (a subclass of float)"),
        (Point(1, 2), "Point (a subclass of tuple)"),
        (OrderedDict(a=1), "collections.OrderedDict (a subclass of dict)"),
        (Moment(2025, 1, 1, tzinfo=UTC), "Moment (a subclass of datetime.datetime)"),
        (memoryview(b"a"), "memoryview"),
        (msgpack.ExtType(1, b"\x90"), "ExtType (a subclass of tuple)"),
        (msgpack.Timestamp(1), "Timestamp"),
        (object(), "object"),
        (1j, "complex"),
        (int, "type"),
        (PurePath, "type"),
        (datetime(2025, 1, 1, tzinfo=Nowhere()), "a datetime in a time zone of type"),
        (time(1, tzinfo=Nowhere()), "a time in a time zone of type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_is_refused_rather_than_changed(codec: Codec, value: object, kind: str) -> None:
    place, shown = refusal(codec, value)

    assert place == "value"
    assert kind in shown


@pytest.mark.parametrize("key", [None, "Mars/Base"])
def test_a_time_zone_that_cannot_be_found_again_is_refused(codec: Codec, key: str | None) -> None:
    counts = (0, 0, 0, 0, 1, 4)
    header = b"TZif" + bytes(16) + b"".join(count.to_bytes(4) for count in counts)
    file = io.BytesIO(header + (3600).to_bytes(4) + bytes(2) + b"MTC\0")
    zone = ZoneInfo.from_file(file, key=key)

    _, kind = refusal(codec, datetime(2025, 1, 1, tzinfo=zone))

    assert "time zone" in kind


class Pretender:
    """Has the name of a type that can be stored."""


Pretender.__module__, Pretender.__qualname__ = "uuid", "UUID"


def test_a_type_is_known_by_itself_and_not_by_its_name(codec: Codec) -> None:
    assert refusal(codec, Pretender()) == ("value", "a value of type uuid.UUID")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"files": [0, 1, 2, {"mtime": object()}]}, "inputs.files[3].mtime"),
        ({"a key": object()}, "inputs['a key']"),
        ({7: object()}, "inputs[7]"),
        ({2**200: object()}, "inputs[<int>]"),
        ({(1, 2): object()}, "inputs[<tuple>]"),
        ({"k" * 99 + " ": object()}, "inputs['" + "k" * 59 + "]"),
        ({"a": 1, ("b", object()): 2}, "inputs.keys()[1][1]"),
        ((1, (2, object())), "inputs[1][1]"),
        ({"tags": {object()}}, "inputs.tags[*]"),
        ({"tags": frozenset({(1, object())})}, "inputs.tags[*][1]"),
        ([[[[[[[[[[[object()]]]]]]]]]]], "inputs[0][0][0][0][0][0]…[0][0]"),
    ],
)
def test_a_refusal_names_the_place(codec: Codec, value: object, place: str) -> None:
    assert refusal(codec, value, "inputs")[0] == place


def test_a_place_needs_no_root(codec: Codec) -> None:
    assert refusal(codec, {"inputs": [object()]}, "")[0] == "inputs[0]"
    assert refusal(codec, [object()], "")[0] == "[0]"
    assert refusal(codec, object(), "")[0] == "value"


def test_a_refusal_says_what_to_do_and_survives_pickling(codec: Codec) -> None:
    with pytest.raises(UnstorableValueError) as caught:
        codec.pack({"x": 1j})

    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, TachographError)
    assert isinstance(error, TypeError)
    assert str(error).startswith("value.x cannot be stored: a value of type complex has no exact")


def test_a_container_inside_itself_is_refused_at_its_second_place(codec: Codec) -> None:
    inner: list[Any] = [1]
    loop: dict[str, Any] = {"a": [(inner, 2)]}
    inner.append(loop)

    assert refusal(codec, loop) == ("value.a[0][0][1]", "a dict that contains itself")


def test_a_container_that_doubles_itself_is_refused_at_once(codec: Codec) -> None:
    loop: list[Any] = []
    loop += [loop, loop]

    assert refusal(codec, loop) == ("value[0]", "a list that contains itself")


# Depth


class Box:
    """A custom type around any value."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return type(other) is Box and self.content == other.content

    def __hash__(self) -> int:
        return hash(Box)


NESTS: dict[str, Callable[[Any], Any]] = {
    "list": lambda inner: [inner],
    "tuple": lambda inner: (inner,),
    "dict": lambda inner: {"a": inner},
    "frozenset": lambda inner: frozenset({inner}),
    "custom": Box,
}


def boxing(codec: Codec) -> Codec:
    """Register the custom type."""
    codec.register(Box, "box", lambda box: box.content, Box)
    return codec


def nested(kind: str, levels: int) -> Any:
    """Return containers inside each other."""
    value: Any = 1 << 70
    for _ in range(levels):
        value = NESTS[kind](value)
    return value


@pytest.mark.parametrize("kind", NESTS)
def test_the_deepest_value_comes_back(codec: Codec, kind: str) -> None:
    packed = boxing(codec).pack(nested(kind, MAX_DEPTH))

    assert codec.pack(codec.unpack(packed)) == packed


@pytest.mark.parametrize("kind", NESTS)
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 2000])
def test_a_deeper_value_is_refused(codec: Codec, kind: str, levels: int) -> None:
    place, shown = refusal(boxing(codec), nested(kind, levels))

    assert "…" in place
    assert shown == f"a value nested more than {MAX_DEPTH} levels deep"


@pytest.mark.parametrize("head", [b"\x91", b"\x81\x00"], ids=["list", "dict"])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 5000])
def test_deeper_bytes_are_refused(codec: Codec, head: bytes, levels: int) -> None:
    with pytest.raises(MalformedValueError, match="nest more than"):
        codec.unpack(head * levels + b"\xc0")


def test_deeper_extensions_are_refused(codec: Codec) -> None:
    data = b"\xc0"
    for _ in range(1000):
        data = b"\x91" + data
        data = b"\xc9" + len(data).to_bytes(4) + b"\x01" + data

    with pytest.raises(MalformedValueError, match="nest more than"):
        codec.unpack(data)


def test_a_custom_type_that_encodes_to_itself_is_refused(codec: Codec) -> None:
    codec.register(Box, "box", lambda box: box, Box)

    assert refusal(codec, Box(1))[1] == f"a value nested more than {MAX_DEPTH} levels deep"


# Size


@pytest.mark.parametrize("value", ["x" * 70_000, b"x" * 70_000, [b"x" * 300] * 300, {1: "x" * 999}])
def test_a_larger_value_is_refused(
    codec: Codec, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = codec.pack(value)
    monkeypatch.setattr(msgpack_plain, "MAX_PACKED_BYTES", len(packed) - 1)
    monkeypatch.setattr(msgpack_fast, "MAX_PACKED_BYTES", len(packed) - 1)

    assert "bytes or more" in refusal(codec, value)[1]
    with pytest.raises(MalformedValueError, match="more than a value may have"):
        codec.unpack(packed)


def test_the_largest_value_comes_back(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = codec.pack([b"x" * 999])
    monkeypatch.setattr(msgpack_plain, "MAX_PACKED_BYTES", len(packed))
    monkeypatch.setattr(msgpack_fast, "MAX_PACKED_BYTES", len(packed))

    assert codec.unpack(codec.pack([b"x" * 999])) == [b"x" * 999]


# Bytes that are no value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "end too early"),
        (b"\xa5abc", "end too early"),
        (b"\xcd\x01", "end too early"),
        (b"\x92\x01", "end too early"),
        (b"\x01\x02", "go on after the value, from byte 1"),
        (b"\xc1", "0xC1"),
        (b"\xa1\xff", "not UTF-8"),
        (b"\x81\x90\x01", "a list stands as a key"),
        (b"\xd4\x63\x00", "extension 99, which this version has not"),
        (b"\xd6\xff\0\0\0\0", "extension 255, which this version has not"),
        (b"\xd4\x01\x01", "extension 1 .*not a list"),
        (b"\xd5\x02\x91\x90", "extension 2 .*unhashable"),
        (b"\xd4\x04\x01", "extension 4 .*not the shortest form"),
        (b"\xd4\x05a", "extension 5 .*no surrogate"),
        (b"\xd4\x07\x00", "extension 7 "),
        (b"\xd6\x08\x00\x00\x01\x01", "extension 8 .*year"),
        (b"\xc7\x09\x09\x01\0\0\0\0\0\0\0\0", "extension 9 .*too many bytes"),
        (b"\xd7\x09\x10\0\0\0\0\0\0\0", "extension 9 .*unknown flags 16"),
        (b"\xc7\x09\x09\x02\0\0\0\0\0\0\0\0", "an offset has 8 bytes"),
        (b"\xc7\x0b\x09\x03\0\0\0\0\0\0\0X/Y", "time zone 'X/Y': install the tzdata package"),
        (b"\xc7\x0c\x0a\0\0\0\0\x7f\xff\xff\xff\0\0\0\0", "extension 10 .*not normalised"),
        (b"\xd5\x0b\x00\x00", "extension 11 .*16"),
        (b"\xd4\x0cx", "extension 12 "),
        (b"\xd5\x0c 1", "extension 12 .*not a number as it is written"),
        (b"\xc7\x03\x0d\x92\x02\x04", "extension 13 .*not reduced"),
        (b"\xc7\x03\x0d\x92\x02\x00", "extension 13 "),
        (b"\xc7\x03\x0d\x92\x02\xc3", "extension 13 .*not two integers"),
        (b"\xd4\x0e\x09", "extension 14 "),
        (b"\xd4\x0f\x00", "extension 15 .*1 bytes"),
        (b"\xd4\x10\x01", "extension 16 does not hold a name"),
        (b"\xc7\x03\x10\x92\x01\x02", "extension 16 does not hold a name"),
    ],
    ids=lambda value: value.hex()[:24] if isinstance(value, bytes) else "",
)
def test_other_bytes_are_refused_with_a_reason(codec: Codec, data: bytes, reason: str) -> None:
    with pytest.raises(MalformedValueError, match=reason) as caught:
        codec.unpack(data)

    error = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(error, TachographError)
    assert isinstance(error, ValueError)
    assert str(error).startswith("These bytes are not a stored value: ")


def test_a_single_precision_float_is_read(codec: Codec) -> None:
    """Another writer of msgpack may have chosen it."""
    assert codec.unpack(b"\xca\x3f\xc0\0\0") == 1.5


# Custom types


def test_a_custom_type_comes_back_in_every_place(codec: Codec) -> None:
    boxing(codec)
    value = {"a": [Box(1), (Box({"b": Box(bytearray(b"x"))}),)], Box("key"): {Box("element")}}

    assert codec.unpack(codec.pack(value)) == value


def test_a_subclass_is_a_custom_type(codec: Codec) -> None:
    codec.register(Colour, "colour", lambda colour: colour.name, lambda name: Colour[name])
    codec.register(Point, "point", list, lambda parts: Point(*parts))

    assert exact(codec.unpack(codec.pack([Colour.RED, Point(1, 2)]))) == exact(
        [Colour.RED, Point(1, 2)]
    )


def test_a_registered_encoder_goes_before_the_built_in_one(codec: Codec) -> None:
    codec.register(UUID, "uuid_hex", lambda uuid: uuid.hex, UUID)
    packed = codec.pack(GOLDEN["uuid"])

    assert b"uuid_hex" in packed
    assert codec.unpack(packed) == GOLDEN["uuid"]


def test_a_type_that_has_a_new_name_is_read_under_the_old_one(codec: Codec) -> None:
    packed = boxing(codec).pack(Box(1))
    codec.register(Box, "case", lambda box: box.content, Box)

    assert b"case" in codec.pack(Box(1))
    assert codec.unpack(packed) == Box(1)


@pytest.mark.parametrize("kind", [str, int, dict, list, bytes, type(None)])
def test_a_type_of_msgpack_cannot_be_registered(codec: Codec, kind: type) -> None:
    with pytest.raises(ValueError, match="stored by msgpack itself"):
        codec.register(kind, "name", repr, repr)


def test_two_types_cannot_have_one_name(codec: Codec) -> None:
    with pytest.raises(ValueError, match="'box' is taken"):
        boxing(codec).register(Colour, "box", int, Colour)


def test_a_part_of_a_custom_value_is_refused_with_its_place(codec: Codec) -> None:
    assert refusal(boxing(codec), {"b": Box([object()])})[0] == "value.b<box>[0]"


def test_an_error_of_an_encoder_goes_through(codec: Codec) -> None:
    def encode(_: Box) -> object:
        raise LookupError("no such thing")

    codec.register(Box, "box", encode, Box)

    with pytest.raises(LookupError, match="no such thing"):
        codec.pack([Box(1)])


def test_an_error_of_a_decoder_is_a_refusal(codec: Codec) -> None:
    packed = boxing(codec).pack(Box(1))
    codec.register(Box, "box", lambda box: box.content, lambda _: Box(1 // 0))

    with pytest.raises(MalformedValueError, match=r"'box' failed \(ZeroDivisionError"):
        codec.unpack(packed)


@pytest.mark.parametrize("make", MAKERS)
def test_an_unregistered_type_is_named_when_read(make: Callable[..., Codec]) -> None:
    packed = boxing(make()).pack([Box(1)])

    with pytest.raises(UnregisteredTypeError, match="'box', which is not registered"):
        make().unpack(packed)


@pytest.mark.parametrize("make", MAKERS)
def test_an_unregistered_type_can_be_kept_as_it_is(make: Callable[..., Codec]) -> None:
    packed = boxing(make()).pack({"a": Box((1, Box("caf\udce9")))})
    keeping = make(keep_custom=True)
    kept = keeping.unpack(packed)

    assert keeping.pack(kept) == packed
    assert kept["a"].name == "box"


@pytest.mark.parametrize("make", MAKERS)
def test_any_name_of_an_unregistered_type_can_be_kept(make: Callable[..., Codec]) -> None:
    codec = make()
    codec.register(Box, "caf\udce9" * 20, lambda box: box.content, Box)
    packed = codec.pack({Box(1), Box(2)})
    keeping = make(keep_custom=True)

    assert keeping.pack(keeping.unpack(packed)) == packed


def test_kept_values_are_equal_when_their_bytes_are() -> None:
    assert {CustomValue("box", b"\x01"), CustomValue("box", b"\x01")} == {
        CustomValue("box", b"\x01")
    }
    assert CustomValue("box", b"\x01") != CustomValue("box", b"\xc3")
    assert CustomValue("box", b"\x01") != b"\x01"
    assert repr(CustomValue("box", b"\x01")) == "CustomValue('box', b'\\x01')"


# Start


HEAVY = {
    *("asyncio", "click", "concurrent", "contextlib", "dataclasses", "datetime", "decimal"),
    *("enum", "eventsourcing", "fractions", "hashlib", "inspect", "json", "logging", "msgpack"),
    *("pathlib", "psutil", "pydantic", "re", "rich", "typing", "uuid", "zoneinfo"),
}
IMPORT_THE_CODEC = """
import sys

sys.path[:0] = sys.argv[1:]
from tachograph.infra.codec import Codec

codec = Codec()
"""
USE_IT = """
body = {"index": 1, "files": ["a", "b"], "ratio": 0.5, "note": None, "data": b"x"}
assert codec.unpack(codec.pack(body)) == body
body["more"] = (1, {2}, 2**99, bytearray(b"x"))
assert codec.unpack(codec.pack(body)) == body
"""
SHOW_MODULES = """
print(*{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize("script", [IMPORT_THE_CODEC, IMPORT_THE_CODEC + USE_IT], ids=str.__len__)
def test_the_codec_imports_nothing_heavy(script: str) -> None:
    """Not for events of plain values: a command that records one must start at once."""
    root = Path(tachograph.__file__ or "").parent.parent
    command = [sys.executable, "-I", "-S", "-c", script + SHOW_MODULES, str(root)]
    run = subprocess.run(command, capture_output=True, text=True)

    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) & HEAVY == set()
