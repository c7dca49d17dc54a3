"""Understand the files of one job run: its summary, its events and its checkpoint. Pure.

What cannot be understood is named with the reason, and left out; nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.domain import checkpoint_shapes, ids, outcome
from tachograph.domain.records import _Fields
from tachograph.record_files import (
    Problem,
    Unusable,
    is_count,
    moment_us,
    parse_json,
    usable,
)
from tachograph.record_times import check_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.record_files import FileRead

    Fields = dict[str, Any]

SCHEMA_VERSION = 1
SUMMARY = "summary.json"
EVENTS = "events.jsonl"
CHECKPOINT = "checkpoint.json"
BATCH = checkpoint_shapes.BATCH
OFFSET = "offset"
STATE = "state"
EVENT_TYPES = (
    "phase_start",
    "phase_end",
    "batch_complete",
    "retry",
    "fallback",
    "semantic_gate",
)


class Line(_Fields):
    """An event of `events.jsonl`: the number of its line, its time (None: not said), its fields."""

    __slots__ = ("fields", "number", "time_us", "type")

    def __init__(self, number: int, time_us: int | None, kind: str, fields: Fields) -> None:
        self.number = number
        self.time_us = time_us
        self.type = kind
        self.fields = fields


class Checkpoint(_Fields):
    """What `checkpoint.json` holds: `kind` is BATCH, OFFSET or STATE."""

    __slots__ = ("kind", "time_us", "value")

    def __init__(self, kind: str, time_us: int | None, value: Any) -> None:
        self.kind = kind
        self.time_us = time_us
        self.value = value


class JobRunRecord(_Fields):
    """A job run as its folder tells it.

    `lines` are the events that can be read, `line_count` the lines that are whole. `files` maps
    each file's path to its SHA-256. `finished_us` is None when it was never finished, and
    `doubts` say what in it cannot be.
    """

    __slots__ = (
        "batch_times_us",
        "checkpoint",
        "checkpoint_path",
        "doubts",
        "events_path",
        "files",
        "finished_us",
        "folder",
        "line_count",
        "lines",
        "started_us",
        "summary",
    )

    def __init__(self, folder: str, summary: Fields, files: Mapping[str, str]) -> None:
        self.folder = folder
        self.summary = summary
        self.files = dict(files)
        self.started_us = moment_us(summary["startedAt"]) or 0
        self.finished_us = moment_us(summary.get("finishedAt"))
        self.doubts: list[str] = []
        self.events_path = folder
        self.lines: list[Line] = []
        self.line_count = 0
        self.checkpoint_path = folder
        self.checkpoint: Checkpoint | None = None
        self.batch_times_us: dict[int, int | None] = {}
        """When batches were finished that the checkpoint will tell, with their items."""

    @property
    def run_id(self) -> str:
        """The id that the record gives itself."""
        return str(self.summary["jobRunId"])

    @property
    def command(self) -> str:
        """The command of the run."""
        return str(self.summary["command"])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its inputs, whole."""
        return str(self.summary["inputFingerprint"])

    @property
    def is_of_all_attempts(self) -> bool:
        """Whether the summary tells of several attempts, as one does that Tachograph wrote."""
        attempt = self.summary.get("attempt")
        return is_count(attempt) and attempt > 1

    @property
    def begins_us(self) -> int:
        """The time of the first thing that the folder tells."""
        return min([self.started_us, *(line.time_us for line in self.lines if line.time_us)])


def record_of(
    folder: str, name: str, files: Mapping[str, FileRead], latest_us: int
) -> tuple[JobRunRecord | None, list[Problem]]:
    """Return what the folder of a job run tells, None when it can tell nothing; and what is wrong.

    `files` are those that are there, by name; `name` is that of the folder, `latest_us` the last
    time that can be.
    """
    if SUMMARY not in files:
        return None, [Problem(folder, f"it holds no {SUMMARY}")]
    try:
        summary = usable(files[SUMMARY], summary_fault)
        if summary["jobRunId"] != name:
            raise Unusable(f"its jobRunId is {summary['jobRunId']!r}, and its folder is {name!r}")
    except Unusable as error:
        return None, [Problem(files[SUMMARY].path, str(error))]
    digests = {file.path: file.sha256 for file in files.values()}
    record = JobRunRecord(folder, summary, digests)
    problems: list[Problem] = []
    events = files.get(EVENTS)
    if events is not None:
        if events.data is None:  # without them it would tell another story
            return None, [Problem(events.path, f"it cannot be read: {events.problem}")]
        record.events_path = events.path
        record.lines, record.line_count, problems = lines_of(events.data, events.path)
    saved = files.get(CHECKPOINT)
    if saved is not None:
        record.checkpoint_path = saved.path
        try:
            record.checkpoint = checkpoint_of(usable(saved))
        except Unusable as error:
            problems.append(Problem(saved.path, f"it is left out: {error}"))
    try:
        return record, [*problems, *check_times(record, latest_us)]
    except Unusable as error:
        return None, [Problem(files[SUMMARY].path, str(error))]


def summary_fault(value: Any) -> str | None:
    """Say why JSON is no summary of a job run; None when it is one."""
    fault = head_fault(value, "jobRunId", "command", "inputFingerprint")
    if fault is not None:
        return fault
    if moment_us(value.get("startedAt")) is None:
        return f"its startedAt is {value.get('startedAt')!r}, no time"
    phases = value.get("phases", [])
    if not isinstance(phases, list) or not all(map(_is_phase, phases)):
        return "its phases are no list of objects with a name"
    return None


def head_fault(value: Any, run_id: str, *texts: str) -> str | None:
    """Say why JSON cannot be a summary of either kind, None when nothing speaks against it.

    `run_id` names the member that holds the run's id, `texts` others that hold some text.
    """
    if not isinstance(value, dict):
        return "it holds no JSON object"
    version = value.get("schemaVersion")
    if type(version) is not int or version != SCHEMA_VERSION:
        return f"its schemaVersion is {version!r}, not {SCHEMA_VERSION}"
    for name in (run_id, *texts):
        if not isinstance(value.get(name), str) or not value[name].strip():
            return f"its {name} is {value.get(name)!r}, no text"
    try:
        ids.check_run_id(value[run_id])
    except ids.InvalidIdError as error:
        return str(error)
    return None


def _is_phase(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and bool(value["name"])


def lines_of(data: bytes, path: str) -> tuple[list[Line], int, list[Problem]]:
    """Return the events of an `events.jsonl`, how many lines are whole, and what is wrong.

    A last line without its end that cannot be read was cut off by a kill: it is not counted, and
    read again when it has grown.
    """
    lines: list[Line] = []
    problems: list[Problem] = []
    pieces = data.split(b"\n")
    count = len(pieces) - 1
    for number, piece in enumerate(pieces, 1):
        if not piece.strip():
            continue
        try:
            lines.append(_line(number, parse_json(piece)))
            count = max(count, number)
        except Unusable as error:
            problems.append(Problem(path, f"line {number} is left out: {error}"))
    return lines, count, problems


def _line(number: int, value: Any) -> Line:
    if not isinstance(value, dict):
        raise Unusable("it holds no JSON object")
    kind = value.get("type")
    if kind not in EVENT_TYPES:
        raise Unusable(f"its type {kind!r} is unknown")
    for name in _TEXTS.get(kind, ()):
        if not isinstance(value.get(name), str) or not value[name].strip():
            raise Unusable(f"its {name} is {value.get(name)!r}, no text")
    if kind == "batch_complete" and not is_count(value.get("index")):
        raise Unusable(f"its index is {value.get('index')!r}, no whole number of 0 or more")
    return Line(number, moment_us(value.get("ts")), kind, value)


_TEXTS = {
    "phase_start": ("phase",),
    "phase_end": ("phase", "status"),
    "retry": ("kind",),
    "fallback": ("from", "to"),
    "semantic_gate": ("outcome",),
}


def checkpoint_of(value: Any) -> Checkpoint:
    """Return what a `checkpoint.json` holds. Raises Unusable for numbers that cannot be."""
    if isinstance(value, dict) and "completedBatchIndexes" in value:
        fault = checkpoint_shapes.batch_fault(value) or checkpoint_shapes.batch_size_fault(value)
        found = Checkpoint(BATCH, moment_us(value.get("updatedAt")), value)
    elif isinstance(value, dict) and {"offset", "total"} <= value.keys():
        fault = checkpoint_shapes.offset_fault(value) or checkpoint_shapes.offset_size_fault(value)
        found = Checkpoint(OFFSET, _epoch_us(value.get("ts")), value)
    else:
        fault, found = None, Checkpoint(STATE, None, value)
    if fault is not None:
        raise Unusable(fault)
    return found


def _epoch_us(milliseconds: Any) -> int | None:
    """Return a time in milliseconds since 1970 in microseconds; None where it is no such time."""
    return milliseconds * 1000 if is_count(milliseconds) and milliseconds < 2**48 else None


def outcome_of(text: Any) -> tuple[str, str | None]:
    """Return one of the seven outcomes, and what is wrong when the text is none that is known.

    >>> outcome_of("partial"), outcome_of("monitoring")
    (('partial', None), ('success_with_review', None))
    """
    found = outcome.from_command_status(text if isinstance(text, str) else None)
    if outcome.is_command_status(text):
        return found, None
    return found, f"its outcome {text!r} is unknown, and taken for {found}"
