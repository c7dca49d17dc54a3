"""Whether the pages of an LMDB data file fit together. Reads the file, never maps or opens it."""

from __future__ import annotations

import sys
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Layout of a meta page of LMDB 0.9 on 64 bits (mdb.c), in the byte order of the machine.
_NUMBER = Struct("=I")
_MAGIC_AT, _MAGIC = 16, 0xBEEFC0DE
_PAGE_SIZE_AT = 40
_TRANSACTION, _TRANSACTION_AT = Struct("=Q"), 144
_SMALLEST_PAGE = 512


def page_problems(data: Path) -> tuple[list[str], bool]:
    """Return what is wrong, and whether the file cannot even be opened to look again."""
    try:
        from lmdb.verify import VerifyError, verify
    except ImportError:  # py-lmdb before 3.0
        return [], False
    try:
        found = list(verify(str(data)))  # type: ignore[no-untyped-call]
    except VerifyError as error:
        return [str(error)], True
    return found + _lost_commits(data), False


def _lost_commits(data: Path) -> list[str]:
    """Say so when one of the two meta pages is not of the last commit but one.

    LMDB writes them in turn and starts from the later one: whatever damages it, or makes the
    earlier one look later, takes the last commit back, and all other pages still fit.
    """
    with data.open("rb") as file:
        head = file.read(_SMALLEST_PAGE)
        if sys.maxsize < 2**32 or _NUMBER.unpack_from(head, _MAGIC_AT) != (_MAGIC,):
            return []  # another layout
        file.seek(_NUMBER.unpack_from(head, _PAGE_SIZE_AT)[0])
        pages = head, file.read(_SMALLEST_PAGE)
    first, second = (_TRANSACTION.unpack_from(page, _TRANSACTION_AT)[0] for page in pages)
    if abs(first - second) == 1:
        return []
    return [f"its two meta pages are of commits {first} and {second}: one of them is damaged"]
