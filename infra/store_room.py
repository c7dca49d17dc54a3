"""How much of a log's file is in use, and which readers were killed. Changes nothing."""

from __future__ import annotations

import struct
import sys

from tachograph.infra.lmdb_mapping import MAX_MAP_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.infra.lmdb_environment import Environment

_TABLE = struct.Struct("=IHHQQQQQ" if sys.maxsize > 2**32 else "=IHHIIIII")
"""`MDB_db` of lmdb 0.9: pad, flags, depth, branch, leaf and overflow pages, entries, root."""
_META_PAGES = 2


def pages(environment: Environment) -> dict[str, int]:
    """Return the pages of the log's file: `size` in bytes, `all` there are, and those `used`.

    What is not used was freed by changes and is used again before the file grows.
    """
    raw = environment.enter()
    try:
        last_page = raw.info()["last_pgno"]
        main = raw.stat()
        with raw.begin() as txn:
            values = [value for _, value in txn.cursor() if len(value) == _TABLE.size]
    finally:
        environment.leave()
    tables = [_TABLE.unpack(value) for value in values]
    used = _META_PAGES + main["branch_pages"] + main["leaf_pages"] + main["overflow_pages"]
    # A plain value that happens to be as long says nothing about pages.
    used += sum(sum(table[3:6]) for table in tables if sum(table[3:6]) <= last_page)
    every = last_page + 1
    return {"size": main["psize"], "all": every, "used": min(used, every)}


def most_bytes() -> int:
    """Return how large the map of a log may become."""
    return MAX_MAP_SIZE


def stale_readers(environment: Environment) -> int:
    """Return how many open read transactions belong to processes that have ended."""
    from tachograph.infra.processes import process_start

    return sum(process_start(pid) is None for pid, _ in environment.readers())
