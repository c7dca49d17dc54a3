"""Find the attempts in one list of events: nothing in it says where the next one begins. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.outcome import from_command_status, is_terminal
from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.job_run_records import Line


class Part(_Fields):
    """One attempt in a folder: when it began, and what it logged.

    `goes_on` says that its beginning was told already, `last` that the summary is about it,
    `leads_to_last` that the last attempt goes on with what this one has done.
    """

    __slots__ = ("goes_on", "last", "leads_to_last", "lines", "started_us")

    def __init__(
        self, started_us: int, lines: Sequence[Line], *, goes_on: bool, last: bool
    ) -> None:
        self.started_us = started_us
        self.lines = list(lines)
        self.goes_on = goes_on
        self.last = last
        self.leads_to_last = True


def parts_of(
    lines: Sequence[Line],
    started_us: int,
    seen: set[str],
    *,
    goes_on: bool = False,
    of_all: bool = False,
) -> list[Part]:
    """Return the attempts whose events one file holds, the last one begun at `started_us`.

    The summary tells the beginning of the last attempt alone. Before that, an attempt begins
    where a phase begins that was begun already (`seen`: before these lines), or the first one
    after a judgement that no phase was left open at. `of_all` says that `started_us` is the time
    of the first attempt, as in a summary that Tachograph wrote: then this holds for all of them.
    """
    earlier: list[list[Line]] = [[]]
    begun, running, judged = set(seen), set(seen), False
    place = len(lines)
    for number, line in enumerate(lines):
        if not of_all and line.time_us is not None and line.time_us >= started_us:
            place = number
            break
        if line.type == "phase_start":
            name = line.fields["phase"]
            if name in begun or (judged and not running):
                earlier.append([])
                begun, running, judged = set(), set(), False
            begun.add(name)
            running.add(name)
        elif line.type == "phase_end":
            running.discard(line.fields["phase"])
        judged = judged or line.type == "semantic_gate"
        earlier[-1].append(line)
    parts = [
        Part(_first_us(piece, started_us), piece, goes_on=goes_on and number == 0, last=False)
        for number, piece in enumerate(earlier)
        if piece
    ]
    for number, part in enumerate(parts):
        if _has_ended(part.lines) and not (of_all and part is parts[-1]):
            for before in parts[: number + 1]:
                before.leads_to_last = False
    if of_all and parts:
        parts[0].started_us = min(started_us, parts[0].started_us)
        parts[-1].last = True
        return parts
    return [*parts, Part(started_us, lines[place:], goes_on=goes_on and of_all, last=True)]


def _has_ended(lines: Sequence[Line]) -> bool:
    """Say whether an attempt was judged with an outcome after which nothing goes on."""
    judged = [line.fields["outcome"] for line in lines if line.type == "semantic_gate"]
    return bool(judged) and is_terminal(from_command_status(judged[-1]))


def _first_us(lines: Sequence[Line], default_us: int) -> int:
    return next((line.time_us for line in lines if line.time_us is not None), default_us)
