"""What JSON can hold, for the commands that print it."""

from __future__ import annotations

from tachograph.domain.jsonable import jsonable

__all__ = ["jsonable"]
