"""Take over checkpoint files that jobs kept by themselves, each into the run it belongs to.

A file is checked before anything is recorded: its version, the fingerprint of its inputs, its
sizes. One that does not hold is named with the reason, and left alone. No file is changed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tachograph.domain import checkpoint_shapes as shapes
from tachograph.domain import ids, outcome
from tachograph.domain.errors import RefusalError, SecretLeftError, UnstorableValueError
from tachograph.domain.records import _Fields
from tachograph.domain.run import Run
from tachograph.import_desk import IMPORTED, KNOWN, UNREADABLE, Row, status
from tachograph.job_run_records import BATCH, OFFSET, checkpoint_of
from tachograph.record_files import Problem, Unusable, usable
from tachograph.retold_checkpoints import BATCH_PHASE, OFFSET_PHASE
from tachograph.telling import NOBODY, tell_batches, tell_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tachograph.import_desk import Desk
    from tachograph.job_run_records import Checkpoint
    from tachograph.record_files import FileRead

    Fields = dict[str, Any]

KIND = "checkpoint-file"
"""Kind of the origin of a run that a checkpoint file was taken into."""
REASON_CODE = "imported_checkpoint"
REINDEX = ".reindex_checkpoint.json"
_BATCH_FILES = re.compile(r"(m3|reinforcement)-batches-(.+)\.json")
_COMMANDS = {"m3": "self-correction-run", "reinforcement": "extract-reinforcement"}
_REINDEX_COMMAND = "storage-re-index"


class Expected(_Fields):
    """What a person says of the job whose checkpoints are taken over; None: not said.

    `total` is the number of batches, or of units for an offset. `inputs` have to have the
    fingerprint; with them the run can be resumed as if it had been recorded here.
    """

    __slots__ = ("batch_size", "command", "fingerprint", "inputs", "reason", "run_id", "total")

    def __init__(
        self,
        *,
        command: str | None = None,
        fingerprint: str | None = None,
        batch_size: int | None = None,
        total: int | None = None,
        inputs: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.command = command
        self.fingerprint = fingerprint
        self.batch_size = batch_size
        self.total = total
        self.inputs = None if inputs is None else dict(inputs)
        self.run_id = run_id
        self.reason = reason


class _Checked(_Fields):
    """A checkpoint that holds, and the job it belongs to."""

    __slots__ = ("command", "fingerprint", "saved", "time_us")

    def __init__(self, command: str, fingerprint: str, saved: Checkpoint, time_us: int) -> None:
        self.command = command
        self.fingerprint = fingerprint
        self.saved = saved
        self.time_us = time_us


def named(name: str) -> tuple[str, str | None] | None:
    """Return the command and the fingerprint that the name of a file says; None for another file.

    >>> named("m3-batches-9d1a7bde.json"), named(".reindex_checkpoint.json"), named("a.json")
    (('self-correction-run', '9d1a7bde'), ('storage-re-index', None), None)
    """
    if name == REINDEX:
        return _REINDEX_COMMAND, None
    found = _BATCH_FILES.fullmatch(name)
    return None if found is None else (_COMMANDS[found[1]], found[2])


def take_checkpoint(
    desk: Desk,
    file: FileRead,
    name: str,
    modified_us: int,
    expected: Expected,
    live_owner: Callable[[Run], str | None],
) -> Row:
    """Record a checkpoint file, unless the log has it. Durable on return, with `apply`.

    `modified_us` stands in for a time that the file does not name.
    """
    row = Row("checkpoint", file.path, IMPORTED)
    try:
        checked = _check(file, name, min(modified_us, desk.latest_us), expected)
        if checked.time_us > desk.latest_us:
            checked.time_us = min(modified_us, desk.latest_us)
            row.problems.append(Problem(file.path, "its time is yet to come, and is not kept"))
        found = _run_for(desk, checked, expected, file.sha256)
        run, base = found
        if run is not None and _holds(run, checked, file.sha256):
            row.state = KNOWN
        else:
            run = _record(desk, run, base, checked, file, expected, live_owner)
            row.attempts = 1
    except (Unusable, RefusalError, UnstorableValueError, SecretLeftError) as error:
        row.state = UNREADABLE
        row.problems.append(Problem(file.path, str(error)))
        return row
    row.runs.append(run.id)
    row.status = status(run)
    return row


# Checking.


def _check(file: FileRead, name: str, modified_us: int, expected: Expected) -> _Checked:
    saved = checkpoint_of(usable(file, _fault))
    said = named(name) or (None, None)
    command = expected.command or said[0]
    if command is None:
        raise Unusable("its name says no command: give --command")
    fingerprint = (
        _check_batch(saved.value, said[1], expected)
        if saved.kind == BATCH
        else _check_offset(saved.value, expected)
    )
    return _Checked(command, fingerprint, saved, saved.time_us or modified_us)


def _fault(value: Any) -> str | None:
    """Say why JSON is neither a batch checkpoint nor an offset checkpoint."""
    if isinstance(value, dict) and {"offset", "total"} <= value.keys():
        return shapes.offset_fault(value)
    return shapes.batch_fault(value)


def _check_batch(value: Fields, named_so: str | None, expected: Expected) -> str:
    fingerprint: str = value["incidentsHash"]
    if named_so is not None and named_so != fingerprint:
        raise Unusable(f"its name says {named_so!r}, and its incidentsHash is {fingerprint!r}")
    mismatch = shapes.batch_mismatch(
        value,
        fingerprint if expected.fingerprint is None else expected.fingerprint,
        value["batchSize"] if expected.batch_size is None else expected.batch_size,
        value["totalBatches"] if expected.total is None else expected.total,
    )
    if mismatch is not None:
        raise Unusable(mismatch)
    if expected.inputs is not None:
        own = ids.fingerprint(expected.inputs)
        if own != fingerprint:
            raise Unusable(f"incidentsHash is {fingerprint!r}, and that of the inputs is {own!r}")
        items = _items(expected)
        if items is not None and -(-len(items) // value["batchSize"]) != value["totalBatches"]:
            raise Unusable(
                f"totalBatches is {value['totalBatches']}, and the inputs hold {len(items)} "
                f"incidents for batches of {value['batchSize']}"
            )
    return fingerprint


def _check_offset(value: Fields, expected: Expected) -> str:
    if expected.total is not None:
        mismatch = shapes.offset_mismatch(value, expected.total)
        if mismatch is not None:
            raise Unusable(mismatch)
    return expected.fingerprint or str(int(value["total"]))


def _items(expected: Expected) -> list[Any] | None:
    found = (expected.inputs or {}).get("incidents")
    return found if isinstance(found, list) else None


# The run.


def _run_for(
    desk: Desk, checked: _Checked, expected: Expected, digest: str
) -> tuple[Run | None, str]:
    """Return the run that a checkpoint belongs to (None: a new one), and the id of a new one.

    That is one which has taken this very file, else the unfinished one of the fingerprint.
    """
    base = expected.run_id or ids.job_run_id(checked.command, checked.fingerprint)
    ids.check_run_id(base)
    number, unfinished = 1, None
    while (run := desk.repository.get(ids.execution_id(base, number))) is not None:
        number += 1
        if (run.command, run.fingerprint) != (checked.command, checked.fingerprint):
            continue
        if digest in _taken(run):
            return run, base
        if not run.finished:
            unfinished = run
    return unfinished, ids.execution_id(base, number)


def _taken(run: Run) -> set[str]:
    """Return the SHA-256 of every checkpoint file that a run has taken."""
    origin = run.origin if isinstance(run.origin, dict) else {}
    return {file["sha256"] for file in origin.get("checkpoints", ())}


def _holds(run: Run, checked: _Checked, digest: str) -> bool:
    """Say whether a run has taken a file, or holds all that is in it."""
    if digest in _taken(run):
        return True
    value = checked.saved.value
    if checked.saved.kind != BATCH:
        saved = run.checkpoint or {"kind": None}
        return bool(saved["kind"] == OFFSET and saved["state"] == shapes.offset_state(value))
    phase = run.phases.get(BATCH_PHASE)
    if phase is None or (phase.total, phase.size) != (value["totalBatches"], value["batchSize"]):
        return False
    return all(index in phase.done for index in value["completedBatchIndexes"])


def _record(
    desk: Desk,
    run: Run | None,
    run_id: str,
    checked: _Checked,
    file: FileRead,
    expected: Expected,
    live_owner: Callable[[Run], str | None],
) -> Run:
    """Tell a run its checkpoint in an attempt of its own, and save it."""
    owner = None if run is None else live_owner(run)
    run = run or _create(desk, run_id, checked, expected)
    voice = desk.voice(run)
    run.start_attempt(voice.at(checked.time_us), NOBODY, live_owner=owner)
    phase = BATCH_PHASE if checked.saved.kind == BATCH else OFFSET_PHASE
    run.start_phase(voice.at(), phase)
    value, how = checked.saved.value, None
    if checked.saved.kind == BATCH:
        items = _items(expected)
        how = tell_batches(
            voice,
            phase,
            value,
            checked.time_us,
            items_digest=None if items is None else desk.digest(items, "items"),
            last_inputs=None if items is None else len(items) - _before_last(value),
        )
        told = f"{len(value['completedBatchIndexes'])} of {value['totalBatches']} batches"
    else:
        tell_offset(voice, phase, value, checked.time_us)
        told = f"offset {int(value['offset'])} of {int(value['total'])}"
    run.finish(
        voice.at(),
        outcome.PARTIAL,
        reason=f"taken over from a checkpoint file: {told}",
        reason_code=REASON_CODE,
    )
    run.record_origin(voice.at(), _origin(run, file, expected, how))
    desk.save(run)
    return run


def _create(desk: Desk, run_id: str, checked: _Checked, expected: Expected) -> Run:
    inputs = expected.inputs or {}
    return Run.create(
        desk.voice(Run()).at(checked.time_us),
        run_id,
        command=checked.command,
        fingerprint=checked.fingerprint,
        inputs=desk.store(inputs, "inputs"),
        inputs_digest=desk.digest(dict(sorted(inputs.items())), "inputs"),
    )


def _before_last(value: Fields) -> int:
    return int(value["batchSize"]) * (int(value["totalBatches"]) - 1)


def _origin(run: Run, file: FileRead, expected: Expected, how: str | None) -> Fields:
    """Return the origin of a run with one more checkpoint file."""
    before = dict(run.origin) if isinstance(run.origin, dict) else {"kind": KIND}
    taken = {"path": file.path, "sha256": file.sha256, "batchItemsBy": how}
    taken["reason"] = expected.reason
    entry = {name: value for name, value in taken.items() if value is not None}
    return {**before, "checkpoints": [*before.get("checkpoints", ()), entry]}
