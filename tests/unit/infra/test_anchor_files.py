"""The last line of a file of anchors is found, and a file that is none holds nobody up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tachograph.infra import anchor_files

if TYPE_CHECKING:
    from pathlib import Path


def test_the_last_line_of_a_file_is_found(tmp_path: Path) -> None:
    path = str(tmp_path / "anchors")
    assert anchor_files.last_line(path) is None
    anchor_files.append(path, "one")
    anchor_files.append(path, "two")

    assert anchor_files.last_line(path) == "two"


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "anchors")

    with pytest.raises(OSError, match="it is no regular file"):
        anchor_files.last_line(str(tmp_path / "anchors"))
