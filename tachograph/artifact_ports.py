"""What the artifact files of runs need of a disk. `infra.artifact_files` implements it.

This port is an inner seam of Tachograph and may change in any release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Protocol

    class Folder(Protocol):
        """Files below a root, named with `/` between folders."""

        @property
        def root(self) -> str:
            """Absolute path of the folder that all files are below."""
            ...

        def path(self, name: str) -> str:
            """Return the absolute path of a name."""
            ...

        def locked(self, *, wait: bool = True) -> AbstractContextManager[bool]:
            """Hold the root against other writers while in the block; False when it is held."""
            ...

        def read(self, name: str) -> bytes | None:
            """Return what is in a file; None when there is none."""
            ...

        def stamp(self, name: str) -> Stamp | None:
            """Return what tells a file from itself after a change; None when there is none."""
            ...

        def replace(self, name: str, data: bytes) -> bool:
            """Write a whole file; durable on return. False when it holds just that already."""
            ...

        def tail(self, name: str) -> list[bytes]:
            """Return the last whole lines of a file; a last line that was torn is cut off."""
            ...

        def append(self, name: str, data: bytes, *, durable: bool) -> None:
            """Append to a file."""
            ...

        def names(self, folder: str) -> list[str]:
            """Return the names of what is in a folder; none where there is no folder."""
            ...

        def remove(self, name: str) -> bool:
            """Remove a file; False when there is none."""
            ...

    class Stamp(Protocol):
        """What changes when a file is written or replaced."""

        size: int
        changed_ns: int
