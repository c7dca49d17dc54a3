"""Tell whether an LMDB data file lacks pages that it needs. Never maps it into memory.

A file cut short kills a process that maps it (SIGBUS). The size alone does not tell: LMDB
counts pages that it allocated and freed in one commit and never wrote, so a healthy file may
be shorter than its page count says. What is beyond the end must then all be in the free list.
"""

from __future__ import annotations

import os
import struct
import sys
from struct import Struct, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

# Layout of LMDB 0.9 (data version 1) on 64 bits, in the byte order of the machine (mdb.c).
_META_OFFSET = 16
_META = Struct("=IIQQ40xQ48xQQ")  # magic, version, address, map size, free root, last page, txn
_MAGIC = 0xBEEFC0DE
_VERSION = 1
_PAGE = Struct("=QHHHH")  # page number, padding, flags, lower, upper
_NODE = Struct("=HHHH")  # low and high half of a number, flags, key size
_NO_PAGE = 2**64 - 1
_BRANCH, _LEAF = 1, 2
_BIG = 1
_MAX_DEPTH = 32


class DamagedFileError(Exception):
    """The data file lacks pages that it needs; the message says which."""


def check_length(path: str, page_size: int, last_page: int, transaction: int) -> None:
    """Refuse a data file that lacks pages of a committed transaction.

    The caller holds a read transaction with that id, so that nobody reuses its pages meanwhile.

    Raises DamagedFileError when the file was cut short.
    """
    pages = os.stat(path).st_size // page_size
    if pages > last_page or sys.maxsize < 2**32:
        return
    with open(path, "rb") as file:
        try:
            free = set(_FreeList(file, page_size).pages(transaction))
        except struct.error as error:
            raise DamagedFileError(f"it ends at page {pages} of {last_page + 1}") from error
    needed = sum(page not in free for page in range(pages, last_page + 1))
    if needed:
        raise DamagedFileError(
            f"it ends at page {pages} of {last_page + 1}, and {needed} of the rest are in use"
        )


class _FreeList:
    """The B-tree of free pages, whose records are lists of page numbers."""

    def __init__(self, file: BinaryIO, page_size: int) -> None:
        self._file = file
        self._page_size = page_size

    def pages(self, transaction: int) -> Iterator[int]:
        """Yield the numbers of all pages that are free after a transaction."""
        meta = self._read(transaction & 1, self._page_size)
        magic, version, _, _, root, _, found = _META.unpack_from(meta, _META_OFFSET)
        if (magic, version, found) != (_MAGIC, _VERSION, transaction):
            raise DamagedFileError(f"its meta page {transaction & 1} is damaged")
        if root != _NO_PAGE:
            yield from self._below(root, _MAX_DEPTH)

    def _below(self, number: int, depth: int) -> Iterator[int]:
        page = self._read(number, self._page_size)
        _, _, flags, lower, _ = _PAGE.unpack_from(page)
        if not depth or not flags & (_BRANCH | _LEAF):
            raise DamagedFileError(f"page {number} of its free list is damaged")
        for slot in range(_PAGE.size, lower, 2):
            (offset,) = unpack_from("=H", page, slot)
            low, high, node_flags, key_size = _NODE.unpack_from(page, offset)
            if flags & _BRANCH:
                yield from self._below(low | high << 16 | node_flags << 32, depth - 1)
                continue
            data = page[offset + _NODE.size + key_size :]
            if node_flags & _BIG:
                (first,) = unpack_from("=Q", data)
                data = self._read(first, _PAGE.size + (low | high << 16))[_PAGE.size :]
            (count,) = unpack_from("=Q", data)
            yield from unpack_from(f"={count}Q", data, 8)

    def _read(self, number: int, size: int) -> bytes:
        self._file.seek(number * self._page_size)
        return self._file.read(size)
