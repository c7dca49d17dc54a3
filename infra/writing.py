"""Write files so that a reader, or a crash, sees the old content or the new, never half."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from tachograph.infra.durable import sync_file, sync_folder

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's content; durable on return.

    Written beside it, flushed to disk, renamed over it, and the folder flushed. The temporary
    file is removed when anything fails.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            sync_file(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    sync_folder(str(path.parent))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
