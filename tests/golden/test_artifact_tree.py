"""The artifact files of a few runs are the golden ones: fields, order, texts, to the byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.make_artifact_tree import FOLDER, tree

if TYPE_CHECKING:
    from pathlib import Path


def test_the_tree_of_a_few_runs_is_the_golden_one(tmp_path: Path) -> None:
    golden = {
        path.relative_to(FOLDER).as_posix(): path.read_bytes().decode()
        for path in FOLDER.rglob("*.*")
        if path.is_file()
    }

    assert tree(tmp_path) == golden
