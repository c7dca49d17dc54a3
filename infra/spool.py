"""The files that an adapter writes to while it is at work. They outlive a killed dispatcher."""

from __future__ import annotations

import contextlib
import os

from tachograph.infra.adapter_child import STDERR_BYTES, STDOUT_BYTES, read_head
from tachograph.infra.layout import name_key
from tachograph.infra.store_folder import spool_folder


class Spooled:
    """The files of one attempt: `stdout`, `stderr`, and its `checkpoint` as JSON, as paths."""

    __slots__ = ("checkpoint", "stderr", "stdout")

    def __init__(self, base: str) -> None:
        self.stdout = f"{base}.stdout"
        self.stderr = f"{base}.stderr"
        self.checkpoint = f"{base}.checkpoint.json"

    def read(self) -> tuple[bytes, bytes]:
        """Return stdout and stderr, each up to its bound; nothing where there is no file."""
        return _head(self.stdout, STDOUT_BYTES), _head(self.stderr, STDERR_BYTES)

    def remove(self) -> None:
        """Remove what is there."""
        for path in (self.stdout, self.stderr, self.checkpoint):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


def spooled(store: str, run_id: str, epoch: int) -> Spooled:
    """Return the files of an attempt, in the store's folder for them, which is made if missing."""
    folder = spool_folder(store)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return Spooled(os.path.join(folder, f"{name_key(run_id).hex()}-{epoch}"))


def _head(path: str, limit: int) -> bytes:
    try:
        return read_head(path, limit)
    except FileNotFoundError:
        return b""
