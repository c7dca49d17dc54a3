"""The examples of documents that are golden explanations are those that are frozen."""

from __future__ import annotations

import re

from audit.make_audit import FOLDER
from project_files import ROOT

MARKED = re.compile(r"<!-- golden: ([\w-]+) -->\n\n```text\n(.*?)\n```\n", re.DOTALL)


def test_every_golden_example_of_a_document_is_the_frozen_one() -> None:
    found = [
        (name, text)
        for document in sorted((ROOT / "docs").glob("*.md"))
        for name, text in MARKED.findall(document.read_text("utf-8"))
    ]

    assert len(found) >= 3
    for name, text in found:
        assert text == (FOLDER / f"{name}.txt").read_text("utf-8").rstrip("\n"), name
