"""What an adapter printed is read as it was meant, and what cannot be read is told."""

from __future__ import annotations

import pytest

from tachograph.replies import Reply, read_reply


@pytest.mark.parametrize("data", [b"", b" \n", b"{}"])
def test_nothing_said_is_a_reply_that_says_nothing(data: bytes) -> None:
    assert read_reply(data) == Reply()
    assert read_reply(data).to_fields() == {}


def test_a_whole_reply() -> None:
    fields = {
        "ok": False,
        "status": "failed",
        "phase": "render",
        "artifacts": {"report": "out/r.pdf"},
        "message": "no paper",
        "error": "E17",
        "needs_attention": "fill the tray",
        "rows": [1, {"a": None}],
    }
    data = Reply.model_validate(fields).model_dump_json(exclude_none=True).encode()

    assert read_reply(data).to_fields() == {**fields, "rows": [1, {"a": None}]}
    assert read_reply(data).needs_attention == "fill the tray"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"done!", "stdout is no JSON: Expecting value"),
        (b'{"ok": true} trailing', "stdout is no JSON: Extra data"),
        (b'{"ok": NaN}', "stdout is no JSON: NaN is no JSON number"),
        (b"[" * 100_000, "stdout is no JSON: "),
        (b"[1, 2]", "stdout is JSON, but a list and no object"),
        (b'"done"', "stdout is JSON, but a str and no object"),
    ],
)
def test_what_is_no_json_object_is_kept_and_told(data: bytes, problem: str) -> None:
    reply = read_reply(data)

    assert reply.raw_stdout == data.decode()
    assert (reply.problem or "").startswith(problem)
    assert reply.ok is None


def test_bytes_that_are_no_text_are_kept_as_near_as_can_be() -> None:
    assert read_reply(b"\xffdone").raw_stdout == "\N{REPLACEMENT CHARACTER}done"


def test_a_byte_order_mark_is_no_content() -> None:
    assert read_reply(b'\xef\xbb\xbf{"ok": true}').ok is True


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b'{"ok": "yes", "message": "x"}', "ok: Input should be a valid boolean"),
        (b'{"artifacts": {"a": 1}, "message": "x"}', "artifacts.a: Input should be"),
        (b'{"status": 1, "phase": [], "message": "x"}', "phase: Input should be"),
    ],
)
def test_a_field_of_the_wrong_type_is_named_and_the_others_stand(data: bytes, named: str) -> None:
    reply = read_reply(data)

    assert named in (reply.problem or "")
    assert reply.message == "x"
    assert reply.raw_stdout == data.decode()
    assert (reply.ok, reply.artifacts, reply.status) == (None, None, None)
