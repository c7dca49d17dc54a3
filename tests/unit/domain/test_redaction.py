"""A known secret never stays in a value, in any of the forms in which it travels (G13)."""

from __future__ import annotations

import base64
import json
import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.redaction import MARKER, Redactor

SECRET = 'pa/ss"w\\örd+1 &x'
PLAIN = "tok_ABC-123.xyz~9"
KEY = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASC
BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
-----END PRIVATE KEY-----
"""

# Secrets whose letters no marker and no surrounding text has, so that what is left of one shows.
secrets = st.text(st.sampled_from('012345+/"\\ äß😀'), min_size=6, max_size=20)
around = st.text(st.sampled_from("abcxyz,:{}\n"), max_size=12)
leaves = st.none() | st.booleans() | st.integers() | around


def nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.text("klm", max_size=3)
    return st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.tuples(inner, inner)
            | st.dictionaries(keys, inner, max_size=3)
        ),
        max_leaves=8,
    )


@given(secrets, around, around)
def test_a_secret_does_not_stay_in_a_text(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])

    assert redactor.redact(before + secret + after) == before + MARKER + after


@given(
    secrets,
    around,
    around,
    st.sampled_from(
        [
            lambda text: json.dumps(text)[1:-1],
            lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
            lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
            quote,
            lambda text: quote(text, safe=""),
            quote_plus,
            lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text)),
            lambda text: base64.b64encode(text.encode()).decode(),
            lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
            lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
        ]
    ),
)
def test_an_encoded_secret_does_not_stay(secret: str, before: str, after: str, encode: Any) -> None:
    encoded = encode(secret)

    redacted = Redactor([secret]).redact(before + encoded + after)

    assert encoded not in redacted
    assert MARKER in redacted


@given(secrets, st.binary(max_size=9), st.binary(max_size=9))
def test_a_secret_inside_a_longer_base64_text_does_not_stay(
    secret: str, before: bytes, after: bytes
) -> None:
    """As in the header of basic authentication: base64 of user:password."""
    text = base64.b64encode(before + secret.encode() + after).decode()

    redacted = Redactor([secret]).redact(text)

    assert MARKER in redacted
    # What is left decodes to nothing of the secret but parts of its first and last byte.
    assert sum(map(len, redacted.split(MARKER))) * 6 // 8 <= len(before) + len(after) + 4


@given(nested(leaves | secrets.map(lambda text: text + "!")), secrets)
def test_no_secret_stays_anywhere_in_a_nested_value(value: Any, secret: str) -> None:
    redactor = Redactor([secret])
    holding = {"k": value, secret: [secret.encode(), (f"x{secret}y",), {secret}, {1: secret}]}

    redacted = redactor.redact(holding)

    assert secret not in json.dumps(redacted, default=repr, ensure_ascii=False)
    assert secret not in repr(list(flat(redacted)))
    assert not redactor.touches("\0".join(map(str, flat(redacted))).encode("utf-8"))


def flat(value: Any) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(key)
            yield from flat(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from flat(item)
    else:
        yield value.decode() if isinstance(value, bytes) else value


@given(nested(leaves))
def test_a_value_without_secrets_is_left_as_it_is(value: Any) -> None:
    redacted = Redactor([SECRET, PLAIN]).redact(value)

    assert redacted == value
    assert type(redacted) is type(value)


@given(secrets, st.binary(max_size=30), st.binary(max_size=30))
def test_packed_bytes_with_a_secret_are_noticed(secret: str, before: bytes, after: bytes) -> None:
    redactor = Redactor([secret])

    assert redactor.touches(before + secret.encode() + after)
    assert redactor.touches(before + base64.b64encode(secret.encode()) + after)


def test_packed_bytes_without_a_secret_are_not_noticed() -> None:
    redactor = Redactor([SECRET, PLAIN])

    assert not redactor.touches(b"tok_ABC-123 and nothing else")
    assert not Redactor([]).touches(b"anything")


@pytest.mark.parametrize(
    ("value", "redacted"),
    [
        (PLAIN, MARKER),
        (f"{PLAIN}{PLAIN}", MARKER * 2),
        (f"a {PLAIN} b", f"a {MARKER} b"),
        (PLAIN.encode(), MARKER.encode()),
        (bytearray(PLAIN.encode()), bytearray(MARKER.encode())),
        ([PLAIN, 1], [MARKER, 1]),
        ((PLAIN, None), (MARKER, None)),
        ({PLAIN, "b"}, {MARKER, "b"}),
        (frozenset({PLAIN}), frozenset({MARKER})),
        ({"a": {"b": [PLAIN]}}, {"a": {"b": [MARKER]}}),
        ({PLAIN: 1, "b": 2}, {MARKER: 1, "b": 2}),
        ({(PLAIN, 1): 1}, {(MARKER, 1): 1}),
        (PurePosixPath("/tmp", PLAIN, "x"), PurePosixPath("/tmp", MARKER, "x")),
        (PurePosixPath("/tmp/x"), PurePosixPath("/tmp/x")),
        (123456, 123456),
        (None, None),
        (1.5, 1.5),
    ],
)
def test_each_kind_of_value_keeps_its_kind(value: Any, redacted: Any) -> None:
    result = Redactor([PLAIN]).redact(value)

    assert result == redacted
    assert type(result) is type(value)


def test_the_argument_is_not_changed() -> None:
    value = {"a": [PLAIN]}

    Redactor([PLAIN]).redact(value)

    assert value == {"a": [PLAIN]}


def test_keys_that_become_equal_keep_their_items() -> None:
    value = {
        "first-secret": 1,
        "second-secret": 2,
        MARKER: 3,
        b"first-secret": 4,
        b"second-secret": 5,
        ("first-secret",): 6,
        ("second-secret",): 7,
    }

    redacted = Redactor(["first-secret", "second-secret"]).redact(value)

    assert redacted == {
        f"{MARKER} 2": 1,
        f"{MARKER} 3": 2,
        MARKER: 3,
        MARKER.encode(): 4,
        MARKER.encode() + b" 2": 5,
        (MARKER,): 6,
        ((MARKER,), 2): 7,
    }


def test_of_overlapping_secrets_nothing_stays() -> None:
    redactor = Redactor(["abcdefgh", "ghijkl", "abcdef"])

    assert redactor.redact("<abcdefghijkl>") == f"<{MARKER}>"


@pytest.mark.parametrize("value", ["", "short", "redact", "[redacted]"])
def test_short_values_and_the_marker_are_not_looked_for(value: str) -> None:
    redactor = Redactor([value])

    assert not redactor
    assert redactor.redact(f"a {value} b") == f"a {value} b"


def test_the_lines_of_a_private_key_do_not_stay() -> None:
    redactor = Redactor([KEY])
    first, second = KEY.splitlines()[1:3]

    assert redactor.redact(f"error near {first}") == f"error near {MARKER}"
    assert redactor.redact(second.encode()) == MARKER.encode()
    assert redactor.redact(json.dumps(KEY)) == f'"{MARKER}"'
    assert redactor.redact("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


@pytest.mark.parametrize("secret", ["b\udce4d-bytes", "l\ud800ne-one"])
def test_a_secret_that_is_not_valid_utf8_does_not_stay(secret: str) -> None:
    redactor = Redactor([secret])

    assert redactor.redact(secret) == MARKER
    assert redactor.redact(secret.encode("utf-8", "surrogatepass")) == MARKER.encode()
    if secret[1] == "\udce4":
        assert redactor.redact(b"b\xe4d-bytes") == MARKER.encode()
