"""The map of the use cases names every module, once."""

from __future__ import annotations

import re

from project_files import ROOT

MAP = (ROOT / "docs" / "rooms.md").read_text("utf-8")


def test_every_use_case_has_one_room() -> None:
    rows = [line for line in MAP.splitlines() if line.startswith("| ")][2:]
    named = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]
    named = [name for name in named if name not in ("record", "__init__", "__main__")]
    there = {path.stem for path in (ROOT / "tachograph").glob("[a-z]*.py")}

    assert sorted(named) == sorted(set(named)), "a module stands in two rooms"
    assert set(named) == there
