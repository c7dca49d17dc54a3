"""Whether the files that a run recorded are still what they were. Changes none of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain.records import _Fields
from tachograph.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.domain.run import Run

OK = "ok"
MISSING = "missing"
CHANGED = "changed"
UNREADABLE = "unreadable"


class Artifact(_Fields):
    """A recorded file: `size` in bytes and SHA-256 as recorded, and `state`, what it is now."""

    __slots__ = ("name", "path", "sha256", "size", "state")

    def __init__(self, name: str, path: str, size: int, sha256: str, state: str) -> None:
        self.name = name
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.state = state


def artifacts(run: Run) -> Iterator[Artifact]:
    """Yield every file that a run recorded, read and compared just now."""
    for name, fields in run.artifacts.items():
        path, size, sha256 = fields["path"], fields["size"], fields["sha256"]
        yield Artifact(name, path, size, sha256, _state(Path(path), size, sha256))


def _state(path: Path, size: int, sha256: str) -> str:
    try:
        if path.stat().st_size != size:
            return CHANGED
        return OK if measure(path) == (size, sha256) else CHANGED
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:
        return UNREADABLE
