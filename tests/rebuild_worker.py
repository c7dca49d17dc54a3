"""A process that rebuilds or catches up views, and kills itself at a named point. Holds no test.

Arguments: store folder, what to do, and optionally a point and how often it must be reached.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from tachograph import portions, projecting
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_generation import Generation
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.infra.view_rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

POINTS: dict[str, tuple[Any, str]] = {
    "making the generation": (LMDBViews, "_make"),
    "writing a row": (Rows, "put_summary"),
    "committing": (Generation, "update"),
    "flushing": (Generation, "flush"),
    "publishing": (LMDBViews, "_publish"),
    "swapping": (os, "replace"),
    "sweeping": (LMDBViews, "_sweep"),
    "removing": (os, "unlink"),
}


def kill_at(point: str, nth: int) -> None:
    """Die when a point is reached for the nth time, before it does anything."""
    owner, name = POINTS[point]
    real: Callable[..., Any] = getattr(owner, name)
    reached = 0

    def dying(*args: Any, **options: Any) -> Any:
        nonlocal reached
        reached += 1
        if reached == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    setattr(owner, name, dying)


def main() -> None:
    folder, what, *point = sys.argv[1:]
    portions.CHUNK, portions.CHUNKS = 20, 2
    codec = Codec(keep_custom=True)
    log = LMDBLog(open_environment(f"{folder}/log"))
    views = LMDBViews(f"{folder}/views", codec)
    if point:
        kill_at(point[0], int(point[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    if what == "rebuild":
        projecting.rebuild(log, codec, views)
    else:
        projecting.catch_up(log, codec, views)
    print("done", flush=True)


if __name__ == "__main__":
    main()
