"""Sizes as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: int) -> str:
    """Return a number of bytes with three digits.

    >>> size(0), size(1023), size(1536), size(123 * 1024**2), size(5 * 1024**5)
    ('0 B', '1023 B', '1.50 KiB', '123 MiB', '5120 TiB')
    """
    if count < 1024:
        return f"{count} B"
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount /= 1024
        unit += 1
    digits = 2 if amount < 10 else 1 if amount < 100 else 0
    return f"{amount:.{digits}f} {_UNITS[unit]}"
