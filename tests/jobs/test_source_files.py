"""Which files the code report measures, compared with git itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tachograph.jobs.source_files import find_python_files


def make(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_every_python_file_is_found_in_order(tmp_path: Path) -> None:
    make(tmp_path, {"b.py": "", "a/z.py": "", "a/b/c.py": "", "a/data.txt": "", "py": ""})

    assert find_python_files(str(tmp_path)) == ["a/b/c.py", "a/z.py", "b.py"]


def test_excluded_patterns_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": "", "tests/b.py": "", "x/tests/c.py": "", "x/d_pb2.py": ""})

    assert find_python_files(str(tmp_path), ["tests/", "*_pb2.py"]) == ["a.py"]


def test_an_ignore_file_cannot_bring_back_what_was_excluded(tmp_path: Path) -> None:
    make(tmp_path, {".git/x": "", ".gitignore": "!a.py\n", "a.py": "", "b.py": ""})

    assert find_python_files(str(tmp_path), ["a.py"]) == ["b.py"]


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, {"a/b.py": ""})
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)

    assert find_python_files(str(tmp_path)) == ["a/b.py"]


def test_a_wrong_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="nowhere"):
        find_python_files(str(tmp_path / "nowhere"))


def test_a_root_that_git_ignores_is_measured_all_the_same(tmp_path: Path) -> None:
    make(tmp_path, {".git/x": "", ".gitignore": "out/\n*.tmp.py\n", "out/a.py": ""})

    assert find_python_files(str(tmp_path / "out")) == ["a.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("below", ["", "src", "src/deep"])
def test_what_git_ignores_is_left_out(tmp_path: Path, below: str) -> None:
    """The same files as `git ls-files` tells, from any folder of the work tree."""
    make(
        tmp_path,
        {
            ".gitignore": "build/\n*.gen.py\n/only_top.py\n!keep.gen.py\nsrc/*/deep_only.py\n",
            "only_top.py": "",
            "a.py": "",
            "a.gen.py": "",
            "keep.gen.py": "",
            "build/b.py": "",
            "src/.gitignore": "local_*.py\n!a.gen.py\n",
            "src/only_top.py": "",
            "src/local_1.py": "",
            "src/a.gen.py": "",
            "src/build/c.py": "",
            "src/deep/deep_only.py": "",
            "src/deep/local_2.py": "",
            "src/deep/kept.py": "",
        },
    )
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    root = tmp_path / below
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "--", "*.py"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )

    assert find_python_files(str(root)) == sorted(listed.stdout.split())
