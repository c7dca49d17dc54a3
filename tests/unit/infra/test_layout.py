"""The byte layout of the log: these bytes are on disks and must not change."""

from __future__ import annotations

from uuid import UUID

import pytest

from tachograph.domain.errors import RecordOutOfRangeError
from tachograph.domain.records import GENESIS_DIGEST, NewRecord
from tachograph.infra import layout


def test_a_header_is_these_72_bytes() -> None:
    header = layout.pack_header(1, 2, 0, 0x01020304, b"S" * 16, 5, -1, b"p" * 32)

    expected = "0102000001020304" + "53" * 16 + "0000000000000005" + "ff" * 8 + "70" * 32
    assert header.hex() == expected
    assert layout.BODY == len(header) == 72
    assert layout.unpack_header(header + b"body") == (
        1, 2, 0, 0x01020304, b"S" * 16, 5, -1, b"p" * 32,
    )  # fmt: skip


def test_the_type_number_is_where_scans_look_for_it() -> None:
    header = layout.pack_header(1, 0, 0, 77, bytes(16), 1, 0, bytes(32))

    assert layout.U32.unpack_from(header, layout.TYPE) == (77,)


def test_keys_sort_as_their_numbers() -> None:
    numbers = [0, 1, 255, 256, 2**32, layout.MAX_VERSION]

    assert sorted(map(layout.pack_position, numbers)) == list(map(layout.pack_position, numbers))
    keys = [layout.pack_version_key(b"k" * 16, number) for number in numbers]
    assert sorted(keys) == keys


def test_a_uuid_is_its_own_key() -> None:
    stream = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")

    assert layout.stream_key(stream) == (stream.bytes, 0)


@pytest.mark.parametrize(
    ("stream", "key"),
    [
        ("", "cae66941d9efbd404e4d88758ea67670"),
        ("job-code-report-0dc845e1", "a95b68c1ef7b87202c5cb21f5ebfa7ab"),
        ("lone \udc80", "064e63a7007f11e1e1e812eb7de8d888"),
    ],
)
def test_a_text_is_hashed_to_its_key(stream: str, key: str) -> None:
    found, flags = layout.stream_key(stream)

    assert (found.hex(), flags) == (key, layout.TEXT)


def test_text_survives_encoding_even_if_it_is_no_unicode() -> None:
    assert layout.decode_text(layout.encode_text("ü \udc80")) == "ü \udc80"


def test_the_digest_of_a_record_is_this_number() -> None:
    """A change here breaks every anchor that anybody has kept."""
    digest = layout.digest_record(
        GENESIS_DIGEST,
        1,
        b"S" * 16,
        1,
        1_700_000_000_000_000,
        layout.with_length(b"run.created"),
        layout.digest_body(b"body"),
    )

    assert digest.hex() == ("4b51bafcb86a7d91ed663c9f2d52d55950d5b6e0a4ec3614070970410d08db42")


def test_an_erased_body_leaves_its_digest() -> None:
    header = layout.pack_header(1, layout.ABSENT, 0, 1, bytes(16), 1, 0, bytes(32))

    assert layout.stored_body_digest(header + b"d" * 32) == b"d" * 32
    assert layout.stored_body_digest(header[:1] + b"\0" + header[2:] + b"body") == (
        layout.digest_body(b"body")
    )


def test_a_packed_record_has_all_that_does_not_depend_on_its_position() -> None:
    packed = layout.Packed(NewRecord("run-1", 1, "tö", 0, b"body"))

    assert packed.key == layout.name_key("run-1")
    assert packed.flags == layout.TEXT
    assert packed.topic == b"\x00\x03t\xc3\xb6"
    assert packed.body_digest == layout.digest_body(b"body")


@pytest.mark.parametrize("version", [-1, layout.MAX_VERSION + 1, None, "1", 1.0, True])
def test_a_version_is_a_whole_number_in_range(version: int) -> None:
    with pytest.raises(RecordOutOfRangeError) as caught:
        layout.check_version("run-1", version)

    assert f"version {version!r}" in str(caught.value)
