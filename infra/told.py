"""How far each receiver has heard the log: a position per receiver, durable. Knows no signal."""

from __future__ import annotations

import os
from pathlib import Path

from tachograph.infra.layout import name_key
from tachograph.infra.locks import FileLock
from tachograph.infra.writing import write_atomically

FOLDER = "told"


class Told:
    """The positions up to which receivers of a store have heard everything."""

    def __init__(self, store: str) -> None:
        self._folder = Path(store) / FOLDER

    def lock(self) -> FileLock:
        """Return a `with` block in which nobody else tells anything."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return FileLock(os.fspath(self._folder / "lock"))

    def position(self, receiver: str) -> int | None:
        """Return how far a receiver has heard; None for one that was told nothing yet."""
        try:
            text = self._path(receiver).read_text("ascii")
        except FileNotFoundError:
            return None
        return int(text) if text.strip().isdecimal() else None

    def keep(self, receiver: str, position: int) -> None:
        """Remember how far a receiver has heard. Durable on return."""
        write_atomically(self._path(receiver), f"{position}\n")

    def _path(self, receiver: str) -> Path:
        return self._folder / name_key(receiver).hex()
