"""The note that runs are being erased, and the lock of who erases. Never loses one unnoticed."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain.errors import StoreBusyError
from tachograph.infra import store_folder
from tachograph.infra.durable import sync_folder
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.locks import FileLock
from tachograph.infra.writing import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LOCK = "erasing.lock"


def pending(store: str) -> list[str]:
    """Return the runs whose erasing was begun and not finished."""
    try:
        found = json.loads(Path(store_folder.erasing_file(store)).read_bytes())
    except FileNotFoundError:
        return []
    return [str(run_id) for run_id in found["runs"]]


def mark(store: str, run_ids: Sequence[str]) -> None:
    """Note, durably, which runs are being erased; remove the note when there are none."""
    path = Path(store_folder.erasing_file(store))
    try:
        if run_ids:
            write_atomically(path, json.dumps({"runs": list(dict.fromkeys(run_ids))}) + "\n")
        else:
            path.unlink(missing_ok=True)
            sync_folder(store)
    except OSError as error:
        raise translate(error, store) from error


@contextmanager
def sole(store: str) -> Iterator[None]:
    """Keep everybody else from erasing. Raises StoreBusyError while somebody does."""
    try:
        lock = FileLock(os.path.join(store_folder.log_folder(store), _LOCK), wait=False).__enter__()
    except BlockingIOError as error:
        raise StoreBusyError(store, "another process erases a run of it") from error
    except OSError as error:
        raise translate(error, store) from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)
