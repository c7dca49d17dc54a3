"""Write files so that a reader, or a crash, sees the old content or the new, never half."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from tachograph.infra.durable import sync_file, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY = ".tmp-"
"""What stands, in the name of a temporary file, behind a dot and the name it is to have."""


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file, readable as the umask has it; durable on return."""
    replace_file(str(path), text.encode("utf-8"), mode=0o666 & ~_umask())


def replace_file(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file; durable on return.

    Written beside it, flushed to disk, renamed over it, and the folder flushed. The temporary
    file is removed when anything fails; one that a kill has left says by its name what it is.
    A link is replaced, not what it leads to.
    """
    folder, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}{TEMPORARY}", dir=folder or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            sync_file(file.fileno())
        if mode != 0o600:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder or ".")


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
