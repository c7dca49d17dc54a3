"""Times and spans as people read them. Reads the clock only where it is asked how long ago."""

from __future__ import annotations

SECOND_US = 1_000_000


def span(span_us: int) -> str:
    """Return a length of time in its two largest units.

    >>> [span(seconds * 1_000_000) for seconds in (0, 61, 11_100, 200_000)]
    ['0s', '1m01s', '3h05m', '2d07h']
    """
    seconds = max(0, span_us) // SECOND_US
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02}m"
    return f"{seconds // 86_400}d{seconds % 86_400 // 3600:02}h"


def when(time_us: int | None, style: str, now_us: int | None = None) -> str:
    """Return a time in one of three styles: `relative`, `iso` or `raw` (microseconds).

    >>> when(1_000_000, "relative", 12_101_000_000), when(1_000_000, "raw"), when(None, "iso")
    ('3h21m ago', '1000000', '-')
    """
    if time_us is None:
        return "-"
    if style == "raw":
        return str(time_us)
    from tachograph.infra.clock import iso
    from tachograph.infra.clock import now_us as clock

    if style == "iso":
        return iso(time_us, digits=3)
    ago = (clock() if now_us is None else now_us) - time_us
    return f"in {span(-ago)}" if ago <= -SECOND_US else f"{span(ago)} ago"
