"""Keep `events.jsonl` of a run in step with the log: append what it lacks, repair what is torn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.event_lines import event_line, judged_after
from tachograph.json_files import parsed, to_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.artifact_ports import Folder, Stamp
    from tachograph.domain.records import Record
    from tachograph.domain.run import Run
    from tachograph.runs import RunRepository

CHUNK = 500
"""Events that are read at a time."""


class Known:
    """How far a file is, so that the next look need not find out.

    `version` is that of the last event that was looked at, `judged` the outcome of the gate's last
    line; both hold while the file's `stamp` is the same.
    """

    __slots__ = ("judged", "stamp", "version")

    def __init__(self) -> None:
        self.stamp: Stamp | None = None
        self.version = 0
        self.judged: str | None = None


class EventFiles:
    """Writes the events of runs as lines. The root must be locked."""

    def __init__(self, repository: RunRepository, folder: Folder) -> None:
        self._repository = repository
        self._folder = folder

    def write(
        self, run: Run, name: str, known: Known, *, durable: bool, thorough: bool = False
    ) -> None:
        """Append the events that a file lacks; make it anew when it is not of this log.

        Only its end is looked at, and that only when somebody else may have written to it;
        `thorough` compares all of it.
        """
        if thorough:
            self._write_anew(run, name, known)
            return
        if known.stamp is None or known.stamp != self._folder.stamp(name):
            found = self._last_line(run, name)
            if found is None:
                self._write_anew(run, name, known)
                return
            known.version, known.judged = found, self._judged_at(run, found)
        for text in self._lines(run, known):
            self._folder.append(name, text, durable=False)
        if durable:
            self._folder.append(name, b"", durable=True)
        known.stamp = self._folder.stamp(name)

    def first_line(self, run: Run) -> bytes:
        """Return the first line of a run's file; nothing when it has none yet."""
        known = Known()
        return next(self._lines(run, known), b"").partition(b"\n")[0]

    def _write_anew(self, run: Run, name: str, known: Known) -> None:
        known.version, known.judged = 0, None
        self._folder.replace(name, b"".join(self._lines(run, known)))
        known.stamp = self._folder.stamp(name)

    def _lines(self, run: Run, known: Known) -> Iterator[bytes]:
        """Yield the lines of the events that the file lacks, a chunk of them at a time."""
        lines: list[bytes] = []
        for record in events_after(self._repository, run, known.version):
            line, known.judged = self._line(record, known.judged)
            known.version = record.version
            if line is not None:
                lines.append(line)
            if len(lines) >= CHUNK:
                yield b"".join(lines)
                lines.clear()
        if lines:
            yield b"".join(lines)

    def _line(self, record: Record, judged: str | None) -> tuple[bytes | None, str | None]:
        fields = self._repository.fields(record)
        line = event_line(record.topic, fields, judged)
        text = None if line is None else to_line(line)
        return text, judged_after(record.topic, fields, judged)

    def _last_line(self, run: Run, name: str) -> int | None:
        """Return the version of the last event in a file; None when it must be made anew."""
        lines = self._folder.tail(name)
        found = parsed(lines[-1]) if lines else None
        version = found.get("version") if isinstance(found, dict) else None
        if type(version) is not int or not 0 < version <= run.version:
            return None
        (record,) = self._repository.log.read_stream(run.id, after=version - 1, up_to=version)
        line, _ = self._line(record, None)
        return version if line == lines[-1] + b"\n" else None

    def _judged_at(self, run: Run, version: int) -> str | None:
        then = self._repository.get(run.id, up_to=version)
        return None if then is None or then.verdict is None else then.verdict["outcome"]


def events_after(repository: RunRepository, run: Run, version: int) -> Iterator[Record]:
    """Yield the events of a run after a version, up to the one that the run is known at."""
    log, up_to = repository.log, run.version
    while records := log.read_stream(run.id, after=version, up_to=up_to, limit=CHUNK):
        yield from records
        version = records[-1].version
