"""Whoever follows the log sees every event once, in order, whoever records it and when."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from stores import opened

from tachograph.domain.records import NewRecord
from tachograph.infra.memory_log import MemoryLog
from tachograph.tailing import CHUNK, Selection, follow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def log() -> MemoryLog:
    """A log of two streams that take turns, longer than what is read at a time."""
    log = MemoryLog()
    for version in range(1, CHUNK + 4):
        log.append([NewRecord("a", version, f"t{version % 2}", 0, b"")])
        log.append([NewRecord("b", version, "t0", 0, b"")])
    return log


def places(selection: Selection, records: Iterator[object]) -> list[int]:
    return [selection.place(record) for record in records]  # type: ignore[arg-type]


def test_a_stream_is_read_whole_both_ways(log: MemoryLog) -> None:
    selection = Selection(log, "a")
    expected = list(range(1, CHUNK + 4))

    assert places(selection, selection.after(0)) == expected
    assert places(selection, selection.newest()) == expected[::-1]
    assert places(selection, selection.after(CHUNK)) == expected[CHUNK:]
    assert places(selection, selection.after(0, 3)) == [1, 2, 3]
    assert places(selection, selection.newest(3)) == [3, 2, 1]
    assert selection.end() == CHUNK + 3


def test_the_log_is_read_whole_both_ways(log: MemoryLog) -> None:
    selection = Selection(log, None)
    end = 2 * (CHUNK + 3)

    assert places(selection, selection.after(0)) == list(range(1, end + 1))
    assert places(selection, selection.newest()) == list(range(end, 0, -1))
    assert selection.end() == end


@pytest.mark.parametrize("run_id", ["a", None])
def test_only_the_types_that_are_wanted_are_read(log: MemoryLog, run_id: str | None) -> None:
    selection = Selection(log, run_id, ["t1"])
    found = list(selection.after(0))

    assert {record.topic for record in found} == {"t1"}
    assert [record.version for record in found] == list(range(1, CHUNK + 4, 2))
    assert list(selection.newest()) == found[::-1]


def test_nothing_is_read_of_a_stream_that_is_not_there(log: MemoryLog) -> None:
    selection = Selection(log, "nobody")

    assert (list(selection.after(0)), selection.end()) == ([], 0)


@pytest.mark.parametrize(("run_id", "expected"), [("a", [2, 3, 4]), (None, [2, 3, 4, 5, 6])])
def test_a_follower_sees_each_event_once_and_the_last_ones_before_it_ends(
    run_id: str | None, expected: list[int]
) -> None:
    log = MemoryLog()
    log.append([NewRecord("a", 1, "t", 0, b"")])
    looks = 0

    def pause() -> None:
        """Record between two looks: nothing, one event, events of another stream, nothing."""
        nonlocal looks
        looks += 1
        if looks == 2:
            log.append([NewRecord("a", 2, "t", 0, b"")])
        elif looks == 3:
            log.append([NewRecord("b", version, "t", 0, b"") for version in (1, 2)])

    def ended() -> bool:
        """Say so at last, right after two more events were recorded."""
        if looks == 5:
            log.append([NewRecord("a", version, "t", 0, b"") for version in (3, 4)])
        return looks == 5

    selection = Selection(log, run_id)
    followed = follow(log, selection, 1, pause=pause, ended=ended)
    seen = places(selection, followed)

    assert seen[: len(expected)] == expected
    assert len(seen) == len(set(seen))


def test_the_counter_that_a_follower_watches_never_runs_ahead_of_what_it_can_read(
    store_path: Path,
) -> None:
    """Else it would look before an event can be read, and then sleep until the next one."""
    commits = 150
    with opened(store_path) as services:
        log = services.log
        log.append([NewRecord("first", 1, "t", 0, b"")])
        before = log.last_transaction() - log.head().position
        child = os.fork()
        if not child:
            for version in range(1, commits + 1):
                log.append([NewRecord("child", version, "t", 0, b"")])
            os._exit(0)
        ahead = []
        while True:
            over = os.waitpid(child, os.WNOHANG) != (0, 0)
            counted = log.last_transaction() - before
            readable = log.head().position
            if readable < counted:
                ahead.append((counted, readable))
            if over:
                break

        assert ahead == []
        assert log.head().position == commits + 1
