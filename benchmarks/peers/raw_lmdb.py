"""LMDB by hand: the least that a durable commit of the same bytes costs in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

POSITION_BYTES = 8
STREAM_KEY_BYTES = 16
HEADER_BYTES = 72
"""Bytes of a record before its body."""
MAP_SIZE = 4 << 30


class RawLMDB:
    """Two databases, as the log has them: position → record, stream and version → position.

    Its settings are LMDB's own: every commit is synchronous.
    """

    def __init__(self, folder: Path) -> None:
        self._environment = lmdb.open(str(folder), map_size=MAP_SIZE, max_dbs=2)
        self._records = self._environment.open_db(b"records")
        self._index = self._environment.open_db(b"index")
        self._position = 0

    def append(self, bodies: Sequence[bytes]) -> None:
        """Commit records of the same sizes as Tachograph's, with an index entry for each."""
        records, index = self._records, self._index
        header, stream = bytes(HEADER_BYTES), bytes(STREAM_KEY_BYTES)
        with self._environment.begin(write=True) as txn:
            for body in bodies:
                self._position += 1
                place = self._position.to_bytes(POSITION_BYTES, "big")
                txn.put(place, header + body, append=True, db=records)
                txn.put(stream + place, place, append=True, db=index)

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()
