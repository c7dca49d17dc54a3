"""Each error that a person can meet has a page that says when it happens and what to do."""

from __future__ import annotations

import sys

import pytest
from project_files import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import error_pages

CLASSES = error_pages.error_classes()
TEXTS = error_pages.written()


def test_every_error_has_a_page_and_every_page_an_error() -> None:
    assert set(TEXTS) == set(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_page_says_when_and_what_to_do(name: str) -> None:
    text = TEXTS[name]

    assert set(text) <= {"when", "then", "example"}
    assert len(text["when"].split()) >= 8, "say when it happens, so that a person recognises it"
    assert text["then"], "say what to do"
    assert all(step.strip()[-1] in ".?" for step in text["then"])


def test_an_example_shows_the_error_it_is_about() -> None:
    shown = [name for name, text in TEXTS.items() if "example" in text]

    assert len(shown) >= 20
    for name in shown:
        assert TEXTS[name]["example"].lstrip().startswith("$ ")
