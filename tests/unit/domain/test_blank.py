"""Whitespace and placeholders are no output; a word that can be an answer is one."""

from __future__ import annotations

import pytest

from tachograph.domain.blank import LONGEST, PLACEHOLDERS, is_blank, is_placeholder, says_nothing
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.nothing import Nothing, Spoken
from tachograph.measuring import count_items

BLANK = [
    "",
    " \n\t",
    "\u200b\ufeff",
    " \u2060 ",
    "(No text output)",
    "NULL",
    " none\n",
    b"",
    b" (empty) ",
]
SAYS_SOMETHING = ["0", "n/a", "no", "-", "none of these", "x", b"x", b"\xff\xfe", "[]", "false"]


@pytest.mark.parametrize("text", BLANK)
def test_a_blank_text_is_no_output(text: str | bytes) -> None:
    assert is_placeholder(text)
    assert is_blank(text)
    assert says_nothing(text)
    assert count_items(text) == 0


@pytest.mark.parametrize("text", SAYS_SOMETHING)
def test_a_text_that_can_be_an_answer_is_output(text: str | bytes) -> None:
    assert not is_placeholder(text)
    assert not is_blank(text)
    assert count_items(text) == 1


@pytest.mark.parametrize("text", sorted(PLACEHOLDERS))
def test_every_placeholder_is_known_in_any_case(text: str) -> None:
    assert is_placeholder(f" {text.upper()} ")


def test_a_long_text_is_no_placeholder() -> None:
    assert max(map(len, PLACEHOLDERS)) <= LONGEST
    assert not is_placeholder("none" * 100)
    assert not is_placeholder(b" " * 1000)  # looked at by its length alone
    assert is_placeholder(" " * 1000)


@pytest.mark.parametrize("value", [None, [], {}, (), set(), frozenset()])
def test_nothing_and_an_empty_container_are_blank(value: object) -> None:
    assert is_blank(value)
    assert count_items(value) == 0


@pytest.mark.parametrize("value", [0, False, 0.0, [None], {"a": None}, object()])
def test_a_number_and_a_filled_container_are_not(value: object) -> None:
    assert not is_blank(value)
    assert not says_nothing(value)


@pytest.mark.parametrize(
    ("output", "items"),
    [
        (["a", " ", "(no output)", None, 0], 2),
        (("a", ""), 1),
        ({"a", " "}, 1),
        ({"text": " ", "more": "(empty)"}, 0),
        ({"text": "x", "more": ""}, 2),
        ({"a": None}, 1),
        (7, 1),
    ],
)
def test_usable_items_are_counted(output: object, items: int) -> None:
    assert count_items(output) == items


@pytest.mark.parametrize(
    ("output", "nothing"),
    [
        (["", " "], True),
        (["", None], False),
        ([], False),
        ({}, False),
        ({"text": ""}, True),
        (["x"], False),
        (None, False),
    ],
)
def test_an_output_that_is_there_may_say_nothing(output: object, nothing: bool) -> None:
    assert says_nothing(output) is nothing


def test_nothing_is_an_answer_with_a_reason() -> None:
    """Silence is not "not found"."""
    nothing = Nothing("no rule applies")

    assert nothing.reason == "no rule applies"
    assert (nothing == Nothing("no rule applies"), nothing == Nothing("x")) == (True, False)
    assert nothing != "no rule applies"
    assert hash(nothing) == hash(Nothing("no rule applies"))
    assert repr(nothing) == "Nothing('no rule applies')"
    assert not nothing


@pytest.mark.parametrize("reason", ["", "  ", None, 3])
def test_nothing_without_a_reason_is_refused(reason: object) -> None:
    with pytest.raises(InvalidValueError, match="reason for nothing to do is"):
        Nothing(reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "spoken"),
    [
        (Nothing("a"), (None, None, "a")),
        ([Nothing("a"), "fix", Nothing("b"), Nothing("a")], (["fix"], 3, "a; b")),
        ((Nothing("a"),), ([], 1, "a")),
        (["fix"], (["fix"], None, None)),
        ("text", ("text", None, None)),
        (None, (None, None, None)),
    ],
)
def test_what_declares_nothing_is_told_from_the_output(
    output: object, spoken: tuple[object, int | None, str | None]
) -> None:
    found = Spoken(output)

    assert (found.output, found.quiet, found.reason) == spoken
