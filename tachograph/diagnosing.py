"""What a doctor makes of the facts about a store: fine, doubtful or wrong, and what to do then.

It looks at nothing itself and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OK = "ok"
WARN = "warn"
FAIL = "fail"

SECOND_US = 1_000_000
CLOCK_TOLERANCE_US = 60 * SECOND_US
"""Clocks of machines that take turns with a store differ by seconds at most."""
LITTLE_ROOM = 64 * 2**20
"""Free bytes below which the next commits may fail."""
SOME_ROOM = 2**30
OLD_READER = 1000
"""Commits since a read transaction began, after which it makes the file grow noticeably."""
OLDEST_PYTHON = (3, 11)


class Check(_Fields):
    """One thing that was looked at: its state, what was found, and what to do when it is amiss."""

    __slots__ = ("advice", "found", "name", "state")

    def __init__(self, name: str, state: str, found: str, advice: str | None = None) -> None:
        self.name = name
        self.state = state
        self.found = found
        self.advice = advice


def python(version: tuple[int, ...], packages: Mapping[str, str]) -> Check:
    """Judge the interpreter, and name the versions of what Tachograph is built on."""
    found = f"Python {'.'.join(map(str, version))}"
    listed = ", ".join(f"{name} {number}" for name, number in packages.items())
    if version[:2] < OLDEST_PYTHON:
        return Check("python", FAIL, found, "Use Python 3.11 or newer.")
    return Check("python", OK, f"{found}, {listed}")


def file_system(folder: str, kind: str, *, network: bool, allowed: bool) -> Check:
    """Judge what the store's folder is on; LMDB must not be used over a network."""
    found = f"{kind or 'unknown'} at {folder}"
    if not network:
        return Check("file system", OK, found)
    state = WARN if allowed else FAIL
    return Check("file system", state, found, "Move the store to a local disk.")


def room(free_bytes: int, store_bytes: int) -> Check:
    """Judge how much the disk still takes."""
    found = f"{free_bytes // 2**20} MiB free, the store has {store_bytes // 2**20} MiB"
    if free_bytes < LITTLE_ROOM:
        return Check("free space", FAIL, found, "Free space on the disk: writes will fail soon.")
    if free_bytes < max(SOME_ROOM, store_bytes):
        return Check("free space", WARN, found, "Free space on the disk before it is full.")
    return Check("free space", OK, found)


def pages(problems: Sequence[str]) -> Check:
    """Judge the pages of the log's data file."""
    if problems:
        advice = "Restore the store from a backup; `tacho store verify` lists all damage."
        return Check("log pages", FAIL, f"{len(problems)} problems: {problems[0]}", advice)
    return Check("log pages", OK, "no damage")


def readers(cleared: int, transactions_behind: Sequence[tuple[int, int]]) -> Check:
    """Judge the read transactions: slots of killed readers, and (pid, commits behind) of others."""
    old = [(pid, behind) for pid, behind in transactions_behind if behind > OLD_READER]
    found = f"{len(transactions_behind)} open, {cleared} of killed processes cleared"
    if old:
        names = ", ".join(f"process {pid} is {behind} commits behind" for pid, behind in old)
        advice = "Old pages cannot be reused while it reads: end the process if it hangs."
        return Check("readers", WARN, f"{found}; {names}", advice)
    return Check("readers", OK, found)


def clock(now_us: int, last_us: int | None) -> Check:
    """Judge the clock by the last event, which cannot be from the future."""
    if last_us is None or last_us <= now_us + CLOCK_TOLERANCE_US:
        return Check("clock", OK, "not behind the last event")
    found = f"{(last_us - now_us) // SECOND_US} seconds behind the last event"
    advice = "Set the clock. Order is not affected, times shown are."
    return Check("clock", WARN, found, advice)


def views(lag: Mapping[str, int], stopped: str | None) -> Check:
    """Judge the views: how far each was behind, and why one cannot go on."""
    if stopped is not None:
        advice = "Update Tachograph, or run `tacho store verify` to see what is damaged."
        return Check("views", FAIL, stopped, advice)
    behind = ", ".join(f"{name} was {lack} events behind" for name, lack in lag.items() if lack)
    return Check("views", OK, behind or "up to date")


def leftovers(paths: Sequence[str]) -> Check:
    """Judge what killed processes left."""
    if not paths:
        return Check("leftovers", OK, "none")
    found = f"{len(paths)}, such as {paths[0]}"
    return Check("leftovers", WARN, found, "`tacho store compact` removes them.")


def archives(count: int, wrong: Sequence[str], unneeded: Sequence[str]) -> Check:
    """Judge the archives that hold bodies of the log, and those that hold none."""
    if wrong:
        advice = "Put the file back from a backup; `tacho store verify` lists what it held."
        return Check("archives", FAIL, "; ".join(wrong), advice)
    if unneeded:
        found = f"{count}, and {len(unneeded)} that no event needs, such as {unneeded[0]}"
        advice = "The next `tacho store archive --apply` removes what a killed one left."
        return Check("archives", WARN, found, advice)
    return Check("archives", OK, str(count) if count else "none")


def erasing(run_ids: Sequence[str], surplus: Sequence[str]) -> Check:
    """Judge whether something was to be destroyed and is there, still or again (`surplus`)."""
    if surplus and not run_ids:
        advice = "Destroy it again: `tacho store erase RUN --reason … --apply` for each run."
        return Check("erasing", FAIL, "; ".join(surplus), advice)
    if not run_ids:
        return Check("erasing", OK, "nothing under way")
    found = f"begun and not finished: {', '.join(run_ids)}"
    advice = f"Finish it: `tacho store erase {run_ids[0]} --reason … --apply`."
    return Check("erasing", FAIL, found, advice)


def interrupted(run_ids: Sequence[str]) -> Check:
    """Judge runs that have lost their process."""
    if not run_ids:
        return Check("interrupted runs", OK, "none")
    shown = ", ".join(run_ids[:3]) + (", …" if len(run_ids) > 3 else "")
    advice = "`tacho run status RUN` says how each can be continued."
    return Check("interrupted runs", WARN, f"{len(run_ids)}: {shown}", advice)
