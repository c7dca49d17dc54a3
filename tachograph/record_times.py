"""Find the times and numbers of a record that cannot be. Pure; guesses none that is right.

A time that cannot be is taken out of the record, so that no run leads a list of runs by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.record_files import Problem, Unusable, is_count, moment_us

if TYPE_CHECKING:
    from tachograph.job_run_records import JobRunRecord

    Fields = dict[str, Any]

MINUTE_US = 60_000_000
"""How far lines may stand out of order without a word: clocks are set back, writers overlap."""
AHEAD_US = 24 * 60 * MINUTE_US
"""How far a time may lie ahead of now: clocks differ, and zones are left out."""


def check_start(said: Any, latest_us: int) -> None:
    """Refuse a record that begins later than now: its place among the others cannot be told."""
    started_us = moment_us(said)
    if started_us is not None and started_us > latest_us:
        raise Unusable(f"its startedAt is {said!r}, and that is yet to come")


def check_times(record: JobRunRecord, latest_us: int) -> list[Problem]:
    """Take out of a record the times that cannot be, note them as its doubts, and name others.

    Lines that stand at a time before the line above, or yet to come, get the time of that line.
    Raises Unusable for a record that begins later than now.
    """
    check_start(record.summary["startedAt"], latest_us)
    found, fault = end_of(record.summary, record.started_us, latest_us)
    record.finished_us = found
    problems = []
    if fault is not None and found is None:
        problems.append(Problem(record.folder, f"its {fault}"))
    elif fault is not None:
        record.doubts.append(f"its {fault}")
    for phase in record.summary.get("phases", []):
        record.doubts += _check_phase(phase, latest_us)
    progress = progress_fault(record.summary.get("progress"))
    if progress is not None:
        record.doubts.append(progress)
    return [*problems, *_check_lines(record, latest_us), *_check_checkpoint(record, latest_us)]


def end_of(said: Fields, started_us: int | None, latest_us: int) -> tuple[int | None, str | None]:
    """Return when something ended, and what is wrong with that: it is its beginning then.

    >>> end_of({"finishedAt": "1970-01-01T00:00:01Z"}, 2_000_000, 9_000_000)
    (2000000, "finishedAt is '1970-01-01T00:00:01Z', before it began")
    """
    end, end_us = said.get("finishedAt"), moment_us(said.get("finishedAt"))
    if end_us is None:
        return None, None if end is None else f"finishedAt is {end!r}, no time"
    if end_us > latest_us:
        return started_us, f"finishedAt is {end!r}, and that is yet to come"
    if started_us is not None and end_us < started_us:
        return started_us, f"finishedAt is {end!r}, before it began"
    return end_us, None


def _check_phase(phase: Fields, latest_us: int) -> list[str]:
    """Take out of a phase the times that cannot be; say which."""
    name, doubts = phase["name"], []
    started_us = moment_us(phase.get("startedAt"))
    if started_us is not None and started_us > latest_us:
        doubts.append(f"phase {name!r} is said to begin at {phase['startedAt']!r}")
        phase["startedAt"] = started_us = None
    end_us, fault = end_of(phase, started_us, latest_us)
    if fault is not None and moment_us(phase["finishedAt"]) is not None:
        doubts.append(f"of phase {name!r}, {fault}")
        phase["finishedAt"] = phase.get("startedAt") if end_us is not None else None
    return doubts


def _check_lines(record: JobRunRecord, latest_us: int) -> list[Problem]:
    problems = []
    before_us: int | None = None
    for line in record.lines:
        if line.time_us is None:
            continue
        fault = None
        if line.time_us > latest_us:
            fault = "is yet to come"
        elif before_us is not None and line.time_us < before_us - MINUTE_US:
            fault = "is before that of the line above"
        if fault is not None:
            line.time_us = record.started_us if before_us is None else before_us
            said = f"line {line.number}: its ts {line.fields.get('ts')!r} {fault}, and is not kept"
            problems.append(Problem(record.events_path, said))
        before_us = line.time_us
    return problems


def _check_checkpoint(record: JobRunRecord, latest_us: int) -> list[Problem]:
    saved = record.checkpoint
    if saved is None or saved.time_us is None or saved.time_us <= latest_us:
        return []
    saved.time_us = None
    return [Problem(record.checkpoint_path, "its time is yet to come, and is not kept")]


def progress_fault(said: Any) -> str | None:
    """Say which number of a progress cannot be; None where all can, or none is said.

    >>> progress_fault({"completedUnits": 5, "totalUnits": 3})
    'its progress is 5 of 3'
    """
    if not isinstance(said, dict):
        return None
    done, total = said.get("completedUnits"), said.get("totalUnits")
    can_be = all(number is None or is_count(number) for number in (done, total))
    if is_count(done) and is_count(total):
        can_be = done <= total
    return None if can_be else f"its progress is {done!r} of {total!r}"
