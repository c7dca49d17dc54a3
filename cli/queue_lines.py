"""How queues are, as lines for people. Knows no store and no terminal."""

from __future__ import annotations

from tachograph.cli.tables import shown, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Document = dict[str, Any]

TITLE = "Pipeline queues"
DEAD_TITLE = f"{TITLE} (dead jobs present)"
HINT = (
    "  Dead jobs: `tacho queue list --status dead` shows them, `tacho queue requeue` and `tacho "
    "queue cancel` say what they would do with them; with --apply they do it."
)
LONGEST_ERROR = 120
"""Characters of the last error that are shown."""
_LETTERS = (
    ("p", "pending"),
    ("l", "leased"),
    ("c", "completed"),
    ("f", "failed"),
    ("d", "dead"),
)
_MORE = (("s", "scheduled"), ("x", "cancelled"))
_WINDOWS = {"lastHour": "1h", "lastDay": "24h"}
_COLUMNS = (
    *("QUEUE", "LAST", "ENQUEUED", "STARTED", "DONE", "FAILED", "DIED"),
    *("WAIT P50", "P95", "WORK P50", "P95"),
)
_COUNTS = ("enqueued", "leased", "completed", "failed", "died")
_RED, _YELLOW, _DIM = "31", "33", "2"


def block(document: Document, *, styled: bool = False, width: int | None = None) -> Iterator[str]:
    """Yield the state of all queues, then what went through them."""
    queues = document["queues"]
    dead = any(queue["dead"] for queue in queues.values())
    yield _paint(DEAD_TITLE, _YELLOW, styled=styled) if dead else TITLE
    name_width = max(map(len, queues), default=0)
    for name, queue in queues.items():
        yield f"  {name:<{name_width}}  {_state(queue, styled=styled)}"
        if queue["lastError"] is not None:
            text = f"last error: {_cut(shown(queue['lastError']))}"
            yield f"  {'':<{name_width}}  {_paint(text, _DIM, styled=styled)}"
    if dead:
        yield HINT
    rows = [row for name, queue in queues.items() for row in _traffic(name, queue)]
    if rows:
        yield ""
        yield from table(_COLUMNS, rows, width=width, bold=styled)


def age(seconds: int) -> str:
    """Return an age in one unit.

    >>> [age(n) for n in (-1, 0, 59, 60, 3599, 3600, 86_399, 86_400, 200_000)]
    ['—', '—', '59s', '1m', '59m', '1.0h', '24.0h', '1.0d', '2.3d']
    """
    if seconds <= 0:
        return "—"
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if seconds < 86_400:
        return f"{seconds / 3600:.1f}h"
    return f"{seconds / 86_400:.1f}d"


def latency(seconds: float | None) -> str:
    """Return how long something took.

    >>> [latency(n) for n in (None, 0, 0.0123, 1.234, 61, 7200)]
    ['—', '0ms', '12ms', '1.2s', '1m', '2.0h']
    """
    if seconds is None:
        return "—"
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 60 else age(int(seconds))


def _state(queue: Document, *, styled: bool) -> str:
    parts = [_part(letter, queue[name], styled=styled) for letter, name in _LETTERS]
    oldest, dead = age(queue["oldestAgeSec"]), age(queue["oldestDeadAgeSec"])
    parts.append(f"oldest={oldest}")
    parts.append(_paint(f"dead={dead}", _RED, styled=styled and bool(queue["dead"])))
    parts += [f"{letter}={queue[name]}" for letter, name in _MORE]
    return " ".join(parts)


def _part(letter: str, number: int, *, styled: bool) -> str:
    colour = {"d": _RED, "f": _YELLOW}.get(letter)
    text = f"{letter}={number}"
    return text if colour is None else _paint(text, colour, styled=styled and number > 0)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…"


def _traffic(name: str, queue: Document) -> Iterator[tuple[str, ...]]:
    """Yield a row for each span of time in which something (more) happened."""
    shown_counts: Document = {}
    for window, label in _WINDOWS.items():
        counts, latencies = queue["rates"][window], queue["latencies"][window]
        if any(counts.values()) and counts != shown_counts:
            shown_counts = counts
            times = [
                latency(latencies[kind][share])
                for kind in ("enqueueToStart", "startToEnd")
                for share in ("p50Sec", "p95Sec")
            ]
            yield (name, label, *(str(counts[count]) for count in _COUNTS), *times)


def _paint(text: str, colour: str, *, styled: bool) -> str:
    return f"\033[{colour}m{text}\033[0m" if styled else text
