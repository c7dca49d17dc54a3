"""A stream without its secrets is the same wherever it is cut."""

from __future__ import annotations

import pytest

from tachograph.domain.redaction import Redactor
from tachograph.infra.redacted_stream import RedactedStream

SECRETS = ["hunter2!", "abcdefgh", "fghijklm", "first line of a secret\nsecond line of a secret"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    "data",
    [
        b"one hunter2! two hunter2",
        b"abcdefghijklm and abcdefgh-fghijklm",
        b"first line of a secret\nsecond line of a secret\nfirst line of a",
        b"hunhunter2!ter2!",
    ],
)
def test_a_secret_that_is_cut_is_taken_out(data: bytes, size: int) -> None:
    redactor = Redactor(SECRETS)
    stream = RedactedStream(redactor)
    pieces = [stream.add(data[at : at + size]) for at in range(0, len(data), size)]

    assert b"".join([*pieces, stream.flush()]) == redactor.redact(data)


def test_what_is_no_beginning_of_a_secret_is_handed_on_at_once() -> None:
    stream = RedactedStream(Redactor(SECRETS))

    assert stream.add(b"plain text") == b"plain text"
    assert stream.add(b"plain hunt") == b"plain "
    assert stream.add(b"ing") == b"hunting"


def test_without_secrets_nothing_is_held_back() -> None:
    assert RedactedStream(None).add(b"hunt") == b"hunt"
