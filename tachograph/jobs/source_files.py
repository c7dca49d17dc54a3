"""Find the Python files below a folder, leaving out what git ignores. Opens only `.gitignore`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def find_python_files(root: str, exclude: Sequence[str] = ()) -> list[str]:
    """Return every `.py` file below `root`, relative to it, with `/`, sorted.

    Left out: what git ignores (the `.gitignore` files from the top of the work tree down,
    whether or not git is installed), what the `exclude` patterns match (git's pattern syntax),
    folders named `.git`, and links to folders. Raises NotADirectoryError for a wrong path.
    """
    top = Path(root).resolve()
    if not top.is_dir():
        raise NotADirectoryError(f"{root} is not a folder")
    excluded = _Ignore(top, exclude)
    found = _walk(top, _ignores_above(top), excluded)
    return sorted(path.relative_to(top).as_posix() for path in found)


class _Ignore:
    """Patterns that speak of the paths below a folder."""

    def __init__(self, folder: Path, patterns: Sequence[str]) -> None:
        self.folder = folder
        self._cut = len(str(folder).rstrip(os.sep)) + 1
        self._spec = GitIgnoreSpec.from_lines(patterns)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Say whether the path is ignored; None when no pattern speaks of it."""
        relative = path[self._cut :].replace(os.sep, "/")
        return self._spec.check_file(relative + "/" if is_folder else relative).include


def _ignore_file(folder: Path) -> list[_Ignore]:
    """Return the patterns of a folder's `.gitignore`, where there is one."""
    try:
        text = (folder / ".gitignore").read_text("utf-8", "replace")
    except OSError:
        return []
    return [_Ignore(folder, text.splitlines())]


def _ignores_above(top: Path) -> list[_Ignore]:
    """Return the ignore files from the work tree's top to the folder above `top`.

    None count outside a work tree, nor where git ignores `top` itself: the user named it, so
    its files are meant.
    """
    folders = [top, *top.parents]
    work_tree = next((folder for folder in folders if (folder / ".git").exists()), None)
    if work_tree is None:
        return []
    ignores: list[_Ignore] = []
    for folder in reversed(folders[: folders.index(work_tree) + 1]):
        if folder != work_tree and _ignored(str(folder), ignores, is_folder=True):
            return []
        if folder != top:
            ignores += _ignore_file(folder)
    return ignores


def _walk(folder: Path, ignores: list[_Ignore], excluded: _Ignore) -> Iterator[Path]:
    ignores = [*ignores, *_ignore_file(folder)]
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not is_folder and not (entry.name.endswith(".py") and entry.is_file()):
            continue
        if entry.name == ".git" or excluded.verdict(entry.path, is_folder=is_folder):
            continue
        if _ignored(entry.path, ignores, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(Path(entry.path), ignores, excluded)
        else:
            yield Path(entry.path)


def _ignored(path: str, ignores: list[_Ignore], *, is_folder: bool) -> bool:
    """Let the deepest patterns that speak of a path decide, as git does."""
    for ignore in reversed(ignores):
        verdict = ignore.verdict(path, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False
