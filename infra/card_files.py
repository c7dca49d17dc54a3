"""The card files of a workspace: read, written whole, kept aside. Knows no task and no rule."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from tachograph.infra.guarded_reading import read_guarded
from tachograph.infra.locks import FileLock
from tachograph.infra.writing import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = ".lock"
SUFFIX = ".json"
MOST_READ = 64 << 20
"""Bytes of the largest file that is taken for a card."""


class UnreadableCardError(Exception):
    """A card file holds no card; the text says why."""


class CardFiles:
    """The folder `data/task-runs`. Readers see the old card or the new one, never half of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lock(self) -> FileLock:
        """Return the lock that every writer holds: no older card comes over a newer one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(str(self.folder / LOCK))

    def names(self) -> list[str]:
        """Return the task ids that have a file, in order."""
        if not self.folder.is_dir():
            return []
        names = (path.name for path in self.folder.iterdir())
        return sorted(name.removesuffix(SUFFIX) for name in names if _is_card(name))

    def path(self, task_id: str) -> Path:
        """Return where the card of a task is."""
        return self.folder / f"{task_id}{SUFFIX}"

    def text(self, task_id: str) -> str | None:
        """Return what is in the file of a task, None when there is none.

        Raises UnreadableCardError for what is no text, or cannot be read.
        """
        try:
            path = str(self.path(task_id))
            return read_guarded(path, MOST_READ, follow_links=True).decode("utf-8-sig")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableCardError(str(error.strerror)) from error
        except UnicodeDecodeError as error:
            raise UnreadableCardError(f"it is not UTF-8 ({error.reason})") from error

    def card(self, task_id: str) -> dict[str, Any] | None:
        """Return the card in the file of a task, None when there is no file.

        Raises UnreadableCardError.
        """
        text = self.text(task_id)
        return None if text is None else parse(text)

    def write(self, task_id: str, text: str) -> None:
        """Replace the file of a task; durable on return. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(task_id), text)

    def keep_aside(self, task_id: str, stamp: str) -> Path:
        """Keep a copy of what is in the file of a task, under a name that is no card's."""
        kept = self.folder / f"{task_id}{SUFFIX}.edited-{stamp}"
        number = 1
        while kept.exists():
            number += 1
            kept = self.folder / f"{task_id}{SUFFIX}.edited-{stamp}-{number}"
        kept.write_bytes(read_guarded(str(self.path(task_id)), MOST_READ, follow_links=True))
        return kept

    def remove(self, task_id: str) -> None:
        """Remove the file of a task, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            self.path(task_id).unlink()


def parse(text: str) -> dict[str, Any]:
    """Return the card in a text. Raises UnreadableCardError, saying what is wrong with it."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UnreadableCardError(f"it is no JSON ({error})") from error
    except RecursionError as error:
        raise UnreadableCardError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise UnreadableCardError("it holds no JSON object")
    return found


def readable(files: CardFiles) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Yield each task id with its card, or with what is wrong with its file."""
    for task_id in files.names():
        try:
            card = files.card(task_id)
        except UnreadableCardError as error:
            yield task_id, str(error)
        else:
            if card is not None:
                yield task_id, card


def _is_card(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")
