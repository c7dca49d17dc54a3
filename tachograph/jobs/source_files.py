"""Find the Python files below a folder, leaving out what git ignores. Opens only `.gitignore`."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
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
    top = Path(root)
    if not top.is_dir():
        raise NotADirectoryError(f"{root} is not a folder")
    excluded = GitIgnoreSpec.from_lines(exclude)
    return sorted(
        path
        for path in _walk(top, top, _ignores_above(top.resolve()))
        if not excluded.match_file(path)
    )


class _Ignore:
    """The patterns of one `.gitignore`, relative to its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        text = (folder / ".gitignore").read_text("utf-8", "replace")
        self._spec = GitIgnoreSpec.from_lines(text.splitlines())

    def verdict(self, path: Path, *, folder: bool) -> bool | None:
        """Say whether the path is ignored; None when no pattern speaks of it."""
        relative = path.relative_to(self.folder).as_posix() + ("/" if folder else "")
        return self._spec.check_file(relative).include


def _ignores_above(top: Path) -> list[_Ignore]:
    """Return the ignore files from the work tree's top to the folder above `top`."""
    above: list[_Ignore] = []
    for folder in [top, *top.parents]:
        if folder != top and (folder / ".gitignore").is_file():
            above.insert(0, _Ignore(folder))
        if (folder / ".git").exists():
            return above
    return []  # not in a work tree: ignore files above do not count


def _walk(top: Path, folder: Path, ignores: list[_Ignore]) -> Iterator[str]:
    if (folder / ".gitignore").is_file():
        ignores = [*ignores, _Ignore(folder.resolve())]
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _ignored(path, ignores, folder=is_folder):
            continue
        if is_folder:
            yield from _walk(top, path, ignores)
        elif entry.name.endswith(".py") and entry.is_file():
            yield PurePosixPath(path.relative_to(top)).as_posix()


def _ignored(path: Path, ignores: list[_Ignore], *, folder: bool) -> bool:
    """The deepest ignore file that speaks of a path decides, as in git."""
    real = path.parent.resolve() / path.name
    for ignore in reversed(ignores):
        verdict = ignore.verdict(real, folder=folder)
        if verdict is not None:
            return verdict
    return False
