"""The health of what queues rest on: the store, its views, its runs, the providers of answers."""

from __future__ import annotations

from tachograph.domain.health import WEIGHTS, Penalty, Rule
from tachograph.health.diagnosing import Domain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Facts = dict[str, Any]

MIB = 2**20
LITTLE_ROOM = 64 * MIB
"""Free bytes on the disk below which the next commits may fail."""
SOME_ROOM = 1024 * MIB
WORTH_COMPACTING = 64 * MIB
"""Smaller logs are not worth the work, however much of them is free."""
FREE_RATIO = 0.5
MAP_RATIO = 0.9

STORAGE = (
    Rule(
        "storage.disk-full",
        "diskFreeBytes",
        LITTLE_ROOM,
        0.6,
        "{value} bytes are free on the disk, less than {threshold}: writes will fail soon",
        below=True,
    ),
    Rule(
        "storage.disk-low",
        "diskFreeBytes",
        SOME_ROOM,
        0.2,
        "{value} bytes are free on the disk, less than {threshold}",
        below=True,
    ),
    Rule(
        "storage.map-full",
        "mapRatio",
        MAP_RATIO,
        0.6,
        "{value} of the largest possible log is used, more than {threshold}",
    ),
    Rule(
        "storage.free-pages",
        "compactableRatio",
        FREE_RATIO,
        0.3,
        "{value} of the log are free pages, more than {threshold}: `tacho store compact`",
    ),
    Rule(
        "storage.stale-readers",
        "staleReaders",
        0,
        0.2,
        "{value} slots of killed readers keep old pages from being used again",
    ),
)
VIEWS = (
    Rule("views.stopped", "stoppedViews", 0, 0.5, "{value} views cannot go on"),
    Rule("views.differ", "differences", 0, 0.5, "{value} rows are not what the log says"),
)
RUNS = (
    Rule("runs.need-a-person", "needingPerson", 0, 0.3, "{value} runs need a person"),
    Rule("runs.interrupted", "interrupted", 0, 0.2, "{value} runs have lost their process"),
    Rule("runs.overdue", "overdue", 0, 0.2, "{value} runs should have been looked at before now"),
)

RING = 100
"""Answers that are looked at: the newest."""
FAULTS = ("provider", "parser", "truncated", "filter")
"""Faults of a provider or of what reads it; that of a tool says nothing about it."""


def storage_domain(collect: Callable[[], Facts]) -> Domain:
    """Return the domain of the store's files."""
    return Domain("storage", WEIGHTS["storage"], collect, rules=STORAGE)


def view_domain(collect: Callable[[], Facts]) -> Domain:
    """Return the domain of the views."""
    return Domain("views", WEIGHTS["views"], collect, rules=VIEWS)


def run_domain(collect: Callable[[], Facts]) -> Domain:
    """Return the domain of the runs."""
    return Domain("runs", WEIGHTS["runs"], collect, rules=RUNS)


def provider_domain(collect: Callable[[], Facts]) -> Domain:
    """Return the domain of the providers; its score is the share of answers without a fault."""
    return Domain("providers", WEIGHTS["providers"], collect, judge=_available)


def storage_facts(
    sizes: Facts, *, free_bytes: int, pages: Facts, stale_readers: int, most_bytes: int
) -> Facts:
    """Return the facts about files: `sizes` by part of the store, `pages` of the log."""
    used, every = pages["used"], max(1, pages["all"])
    log_bytes = every * pages["size"]
    free_ratio = round(max(0.0, 1 - used / every), 4)
    return {
        "logBytes": sizes.get("log", 0),
        "viewBytes": sizes.get("views", 0),
        "blobBytes": sizes.get("blobs", 0),
        "archiveBytes": sizes.get("archive", 0),
        "storeBytes": sum(sizes.values()),
        "diskFreeBytes": free_bytes,
        "pages": every,
        "freePagesRatio": free_ratio,
        "compactableRatio": free_ratio if log_bytes >= WORTH_COMPACTING else 0.0,
        "mapRatio": round(log_bytes / most_bytes, 6),
        "staleReaders": stale_readers,
    }


def provider_facts(answers: Iterable[Facts], now_us: int, within_us: int) -> Facts:
    """Return what became of the newest answers of the last so many microseconds.

    >>> said = [{"time_us": 9, "fault": None}, {"time_us": 8, "fault": "parser", "error": None}]
    >>> provider_facts(said, 10, 10)["availabilityRate"]
    0.5
    """
    recent = [each for each in answers if now_us - each["time_us"] < within_us][:RING]
    faulty = [each for each in recent if each["fault"] in FAULTS]
    timeouts = [each for each in faulty if _is_timeout(each.get("error"))]
    total = len(recent)
    good = total - len(faulty)
    return {
        "recentTotal": total,
        "recentSuccesses": good,
        "recentFailures": len(faulty) - len(timeouts),
        "recentTimeouts": len(timeouts),
        "availabilityRate": round(good / total, 4) if total else 1.0,
    }


def _is_timeout(error: object) -> bool:
    words = str(error).lower()
    return "timeout" in words or "timed out" in words


def _available(facts: Facts) -> Sequence[Penalty]:
    rate = facts["availabilityRate"]
    if rate >= 1:
        return []
    bad = facts["recentTotal"] - facts["recentSuccesses"]
    text = f"{bad} of the last {facts['recentTotal']} answers were faulty"
    return [Penalty("providers.availability", rate, 1.0, 1 - rate, text)]
