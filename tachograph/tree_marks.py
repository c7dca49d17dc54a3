"""Marks that say how far a tree of artifact files is, and whether it still is what was written.

One lies in the root, and one in the folder of each day: who deletes a day deletes its mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.json_files import parsed, to_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tachograph.artifact_ports import Folder
    from tachograph.ports import EventLog

MARK = ".tachograph-"
"""What the names of marks begin with; the beginning of the log's first digest follows."""


class Mark:
    """How far a tree is: all events up to `position` are in it, but for those of the `due` runs.

    `due` says of each what was wrong; `days` are the folders in which something was written.
    """

    __slots__ = ("days", "due", "position")

    def __init__(self) -> None:
        self.position = 0
        self.due: dict[str, str] = {}
        self.days: set[str] = set()


class Marks:
    """The marks of one store in one tree. To be written while the root is locked."""

    def __init__(self, log: EventLog, folder: Folder) -> None:
        self._log = log
        self._folder = folder

    @property
    def name(self) -> str:
        """The name of every mark: another store has another."""
        first = self._log.read(limit=1)
        return f"{MARK}{first[0].digest.hex()[:16] if first else 'empty'}.json"

    def load(self) -> Mark:
        """Return how far the tree is; not at all when its mark is of another history."""
        found, mark = parsed(self._folder.read(self.name)), Mark()
        position = found.get("position") if isinstance(found, dict) else None
        if type(position) is not int or position < 1:
            return mark
        records = self._log.read(after=position - 1, up_to=position, limit=1)
        if not records or records[0].digest.hex() != found.get("digest"):
            return mark
        mark.position = position
        due, days = found.get("due"), found.get("days")
        if isinstance(due, dict):
            mark.due = {run_id: str(text) for run_id, text in due.items()}
        mark.days = {day for day in days if _is_day(day)} if isinstance(days, list) else set()
        return mark

    def lost(self, mark: Mark) -> set[str]:
        """Return the days of the tree that are gone, or were made anew by somebody else."""
        name = self.name
        return {day for day in mark.days if self._folder.stamp(f"{day}/{name}") is None}

    def save(self, mark: Mark) -> None:
        """Sign the days in which there is something, and then the tree."""
        name = self.name
        for day in sorted(mark.days):
            if set(self._folder.names(day)) <= {name}:
                mark.days.discard(day)
                self._folder.remove(f"{day}/{name}")
            elif self._folder.stamp(f"{day}/{name}") is None:
                self._folder.replace(f"{day}/{name}", b"{}\n")
        (record,) = self._log.read(after=mark.position - 1, up_to=mark.position, limit=1)
        said = {
            "position": mark.position,
            "digest": record.digest.hex(),
            "due": mark.due,
            "days": sorted(mark.days),
        }
        self._folder.replace(name, to_text(said))

    def close(self, days: Iterable[str]) -> None:
        """Let days go of which nothing is left, so that nobody takes them for lost."""
        name = self.name
        left = {day for day in days if self._folder.names(day) == [name]}
        if left:
            mark = self.load()
            for day in left:
                self._folder.remove(f"{day}/{name}")
            if mark.days & left:
                mark.days -= left
                self.save(mark)


def _is_day(text: object) -> bool:
    return isinstance(text, str) and len(text) == 8 and text.isdecimal()
