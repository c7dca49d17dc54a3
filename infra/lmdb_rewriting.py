"""Write an LMDB environment anew, value by value: nothing that was deleted comes along.

LMDB's own compact copy takes pages as they are, and the unused part of a page may still hold
what was on it. Knows nothing of what is stored.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

import lmdb

from tachograph.infra import lmdb_files
from tachograph.infra.durable import sync_folder, sync_path
from tachograph.infra.lmdb_errors import translate

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATA = "data.mdb"
_NEW = "anew"
_CHUNK = 5_000
"""Values in one transaction."""
_DATABASE_BYTES = 48
"""Length of the entry of a database (MDB_db in mdb.c)."""
_ROOM = 64 * 2**20
"""Room in the map beside what is copied: each transaction needs some."""


def rewrite_into(folder: str, target: str) -> None:
    """Write all that is in an environment into an empty folder. Durable on return.

    Nobody may write to the environment meanwhile. Raises the errors of the store.
    """
    source, _ = lmdb_files.open_files(folder, readonly=True, sync=True)
    try:
        size = source.info()["map_size"] + _ROOM
        lmdb_files.create(target, size)
        copy, _ = lmdb_files.open_files(target, readonly=False, sync=True)
        try:
            _copy(source, copy)
        finally:
            copy.close()
        sync_path(os.path.join(target, _DATA))
    except lmdb.Error as error:
        raise translate(error, folder) from error
    finally:
        source.close()


def rewrite(folder: str) -> None:
    """Replace the data file of an environment by one written anew. Durable on return.

    The caller keeps everybody else from opening it. Killed at any instant, the file is the old
    one or the new one.
    """
    target = os.path.join(folder, _NEW)
    remove_leftovers(folder)
    try:
        rewrite_into(folder, target)
        os.replace(os.path.join(target, _DATA), os.path.join(folder, _DATA))
        sync_folder(folder)
    finally:
        remove_leftovers(folder)


def remove_leftovers(folder: str) -> None:
    """Remove what a killed process left."""
    import shutil

    shutil.rmtree(os.path.join(folder, _NEW), ignore_errors=True)


def _copy(source: lmdb.Environment, copy: lmdb.Environment) -> None:
    with source.begin() as reading:
        names = _databases(source, reading)
        beside = ((key, value) for key, value in reading.cursor() if bytes(key) not in names)
        _put_all(copy, None, beside)
        for name, database in names.items():
            _put_all(copy, copy.open_db(name), iter(reading.cursor(db=database)))


def _put_all(
    copy: lmdb.Environment, database: lmdb._Database | None, pairs: Iterator[tuple[bytes, bytes]]
) -> None:
    while chunk := list(islice(pairs, _CHUNK)):
        with copy.begin(write=True) as writing:
            for key, value in chunk:
                writing.put(key, value, db=database, append=database is not None)


def _databases(source: lmdb.Environment, reading: lmdb.Transaction) -> dict[bytes, lmdb._Database]:
    """Return the databases by name; they are entries of the one without a name."""
    found: dict[bytes, lmdb._Database] = {}
    for key, value in reading.cursor():
        if len(value) == _DATABASE_BYTES and b"\0" not in key:
            try:
                found[bytes(key)] = source.open_db(bytes(key), txn=reading, create=False)
            except lmdb.Error:  # a value of that length
                continue
    return found
