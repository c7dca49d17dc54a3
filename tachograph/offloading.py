"""Move the bodies of finished runs out of the log into archives. Loses none at any instant.

The order is: archive on disk and read back, event recorded, and only then digests in the place
of the bodies. Whatever kills it, each body is in the log or in an archive that the log names.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from tachograph.domain.errors import BodiesStayError, BodyLostError
from tachograph.domain.records import _Fields
from tachograph.offload_plans import (
    ALREADY,
    ARCHIVED,
    PAGE,
    Offload,
    inline,
    is_archived,
    plan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    from tachograph.domain.run import Run
    from tachograph.ports import EventLog, Progress
    from tachograph.runs import RunRepository

    Execute = Callable[[str, Callable[[Run, Any], None]], None]
    """Gives a command to a run; returns when what it recorded is durable."""
    Bodies = Iterable[tuple[int, bytes]]

    class Written(Protocol):
        """A run's section of an archive."""

        @property
        def sha256(self) -> str:
            """SHA-256 of its bytes, in hex."""
            ...

        @property
        def length(self) -> int:
            """Its bytes in the file."""
            ...

    class BodyLog(EventLog, Protocol):
        """A log whose bodies can leave it."""

        def move_bodies(self, positions: Sequence[int], archive: int) -> int:
            """Put digests in the place of bodies that an archive holds; return how many."""
            ...

        def archives(self) -> dict[int, int]:
            """Return the numbers of the archives that hold bodies, and how many."""
            ...

    class Archives(Protocol):
        """Where archives are written."""

        def lock(self) -> AbstractContextManager[object]:
            """Keep everybody else from writing or removing archives."""
            ...

        def write(self, number: int, runs: Sequence[tuple[str, Bodies]]) -> dict[str, Written]:
            """Write an archive, durable and read back; return the section of each run."""
            ...

        def section(self, name: str, run_id: str) -> dict[int, bytes] | None:
            """Return the digests of the bodies that an archive holds of a run, by position.

            None when it does not hold the run, or cannot be read.
            """
            ...

        def name(self, number: int) -> str:
            """Return the file name of an archive."""
            ...

        def number(self, name: str) -> int | None:
            """Return the number of the archive of that name."""
            ...

        def clean(self, needed: set[int]) -> None:
            """Remove what killed writers left, and archives that are not needed."""
            ...


__all__ = ["ALREADY", "Offload", "plan"]

MOST_BYTES = 64 * 2**20
"""Bodies in one archive, unless a single run has more."""
MOST_RUNS = 1000
"""Runs in one archive."""


class Offloaded(_Fields):
    """What was moved: the archives made, their bytes, and how many bodies of how many runs."""

    __slots__ = ("archives", "events", "runs", "written")

    def __init__(self) -> None:
        self.archives: list[str] = []
        self.written = 0
        self.runs = 0
        self.events = 0


def apply(
    repository: RunRepository,
    log: BodyLog,
    archives: Archives,
    plans: Sequence[Offload],
    execute: Execute,
    *,
    reason: str | None = None,
    progress: Progress | None = None,
) -> Offloaded:
    """Move the bodies of the runs whose plan says so; return what was done.

    Takes up what a killed process left, and removes archives that nothing refers to.
    """
    done = Offloaded()
    going = [each for each in plans if each.why is None]
    total = sum(each.events for each in going)
    with archives.lock():
        archives.clean(needed(repository, log, archives))
        # Whoever held the lock before may have moved some of them.
        left = [each for each in going if not is_archived(repository, each.run_id)]
        fresh = [
            each
            for each in left
            if not (each.begun and _take_up(repository, log, archives, each, done))
        ]
        for portion in _portions(fresh):
            _move(repository, log, archives, portion, _announcing(execute, reason), done)
            if progress is not None:
                progress(done.events, total)
    return done


def needed(repository: RunRepository, log: BodyLog, archives: Archives) -> set[int]:
    """Return the archives that hold bodies, and those that an event says will hold some."""
    found = set(log.archives())
    after = 0
    while records := log.read(after=after, limit=PAGE, topics=(ARCHIVED,)):
        for record in records:
            try:
                named = repository.fields(record).get("archive")
            except BodyLostError:  # it left the log itself, so what it announced has happened
                continue
            number = None if named is None else archives.number(named)
            found |= set() if number is None else {number}
        after = records[-1].position
    return found


def _take_up(
    repository: RunRepository, log: BodyLog, archives: Archives, each: Offload, done: Offloaded
) -> bool:
    """Finish what was begun with a run and killed; return whether that was all there is to do."""
    left = 0
    announced = _announced(repository, each.run_id)
    held = None if announced is None else archives.section(announced["archive"], each.run_id)
    waiting: list[int] = []
    for record in inline(repository, each.run_id, each.up_to):
        digest = held.get(record.position) if held else None
        if digest == blake2b(record.body, digest_size=32).digest():
            waiting.append(record.position)
        elif record.topic != ARCHIVED:
            left += 1
    if announced and waiting:
        number = archives.number(announced["archive"])
        done.events += _replace(log, waiting, number or 0)
        done.runs += 1
        return not left
    return False


def _announced(repository: RunRepository, run_id: str) -> dict[str, Any] | None:
    """Return the fields of the last event that says that a run was archived."""
    up_to = None
    while records := repository.log.read_stream(run_id, up_to=up_to, limit=PAGE, reverse=True):
        for record in records:
            if record.topic == ARCHIVED:
                try:
                    return repository.fields(record)
                except BodyLostError:
                    return None
        up_to = records[-1].version - 1
    return None


def _portions(plans: Sequence[Offload]) -> Iterator[list[Offload]]:
    """Yield runs that go into one archive together."""
    portion: list[Offload] = []
    size = 0
    for each in plans:
        if portion and (size + each.bytes > MOST_BYTES or len(portion) == MOST_RUNS):
            yield portion
            portion, size = [], 0
        portion.append(each)
        size += each.bytes
    if portion:
        yield portion


def _move(
    repository: RunRepository,
    log: BodyLog,
    archives: Archives,
    plans: Sequence[Offload],
    announce: Callable[[Offload, str, Written, int], bool],
    done: Offloaded,
) -> None:
    # The head is in no earlier name: each archive is announced by events after it.
    number = log.head().position
    name = archives.name(number)
    positions: dict[str, list[int]] = {each.run_id: [] for each in plans}
    written = archives.write(
        number,
        [(each.run_id, _bodies(repository, each, positions[each.run_id])) for each in plans],
    )
    done.archives.append(name)
    going: list[int] = []
    for each in plans:
        section = written[each.run_id]
        if announce(each, name, section, len(positions[each.run_id])):
            going += positions[each.run_id]
            done.written += section.length
            done.runs += 1
    done.events += _replace(log, going, number)


def _bodies(
    repository: RunRepository, each: Offload, positions: list[int]
) -> Iterator[tuple[int, bytes]]:
    """Yield the bodies of a run that are in the log, and note where they are."""
    for record in inline(repository, each.run_id, each.up_to):
        positions.append(record.position)
        yield record.position, record.body


def _announcing(
    execute: Execute, reason: str | None
) -> Callable[[Offload, str, Written, int], bool]:
    """Return what records in a run where its bodies are, unless it was erased meanwhile."""

    def announce(each: Offload, name: str, section: Written, records: int) -> bool:
        try:
            execute(
                each.run_id,
                lambda run, why: run.record_bodies_archived(
                    why,
                    name,
                    sha256=section.sha256,
                    up_to=each.up_to,
                    records=records,
                    reason=reason,
                ),
            )
        except BodiesStayError as error:
            each.why = str(error)
            return False
        return True

    return announce


def _replace(log: BodyLog, positions: Sequence[int], number: int) -> int:
    """Replace bodies by digests, some hundreds in a commit: nobody waits long for one."""
    return sum(
        log.move_bodies(positions[place : place + PAGE], number)
        for place in range(0, len(positions), PAGE)
    )
