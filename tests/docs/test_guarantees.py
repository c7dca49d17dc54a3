"""The pages that promise something, and the pages that are generated, keep up with the code."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from project_files import ROOT

PROMISES = re.findall(
    r"^\| (G\d+) \| (.+?) \| (.+) \|$",
    (ROOT / "docs" / "guarantees.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_every_promise_is_listed() -> None:
    assert [number for number, _text, _tests in PROMISES] == [f"G{n}" for n in range(1, 14)]


@pytest.mark.parametrize(("number", "tests"), [(number, held) for number, _, held in PROMISES])
def test_the_tests_that_hold_a_promise_exist_and_name_it(number: str, tests: str) -> None:
    paths = re.findall(r"`(tests/[^`]+\.py)`", tests)
    texts = [(ROOT / path).read_text("utf-8") for path in paths]

    assert paths
    assert any(re.search(rf"\b{number}\b", text) for text in texts), f"no test names {number}"


def test_the_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_docs.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
