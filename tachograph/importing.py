"""Take job runs into the log that another tool has left in folders, once.

The folders of one job-run id are its attempts, day after day. An attempt goes on in the run of the
same inputs that has not ended; after an end the next one is another execution (`~2`). What was
imported is known by its SHA-256, so that a second time records nothing; what has grown since is
told on from where it was. Each run is one append, all or nothing (G2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.attempts import Part, parts_of
from tachograph.domain import ids
from tachograph.domain.bodies import ERASED
from tachograph.domain.errors import (
    RefusalError,
    SecretLeftError,
    UnstorableValueError,
    VersionConflictError,
)
from tachograph.domain.ids import InvalidIdError
from tachograph.domain.run import Run
from tachograph.import_desk import (
    CONTINUED,
    IMPORTED,
    KIND,
    KNOWN,
    LEFT_ALONE,
    UNREADABLE,
    Desk,
    Row,
    status,
)
from tachograph.record_files import Problem
from tachograph.retelling import Retelling
from tachograph.telling import Voice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tachograph.job_run_records import JobRunRecord

    Fields = dict[str, Any]


class Execution:
    """A run of a family: as the log has it, or new."""

    def __init__(self, run: Run, voice: Voice, *, touched: bool = False) -> None:
        self.run = run
        self.voice = voice
        self.touched = touched
        self.changed = False
        self.spoilt = False
        """Whether the rules of a run refused what it was told."""
        origin = run.origin if isinstance(run.origin, dict) else {}
        self.is_imported = origin.get("kind") == KIND or not run.version
        self.sources: list[Fields] = list(origin.get("sources", ())) if self.is_imported else []

    def source_of(self, record: JobRunRecord) -> Fields | None:
        """Return what this run was told from a folder, or from an unchanged copy of it."""
        digests = set(record.files.values())
        for source in self.sources:
            known = {file["sha256"] for file in source["files"]}
            if source["folder"] == record.folder or (source["complete"] and digests <= known):
                return source
        return None

    def note_source(self, source: Fields) -> None:
        """Remember what the run was told from a folder."""
        self.sources = [each for each in self.sources if each["folder"] != source["folder"]]
        self.sources.append(source)


class Family:
    """All executions of one job-run id, and the folders that are told to them in order."""

    def __init__(self, desk: Desk, base: str) -> None:
        self._desk = desk
        self._base = base
        self._executions: list[Execution] = []
        while (run := desk.repository.get(self._next_id())) is not None:
            touched = desk.is_touched(run)
            self._executions.append(Execution(run, desk.voice(run), touched=touched))

    def take(self, record: JobRunRecord, problems: Sequence[Problem]) -> Row:
        """Tell what a folder says; nothing is saved before `save`."""
        row = Row("job", record.folder, IMPORTED, problems)
        found = self._told_from(record)
        if found is None:
            erased = self._erased(record)
            if erased is not None:
                said = f"run {erased.run.id} was erased, and nothing of that time is brought back"
                row.problems.append(Problem(record.folder, said))
                return self._as(row, LEFT_ALONE, erased)
            native = self._recorded_here(record)
            if native is not None:
                return self._as(row, KNOWN, native)
            self._tell(record, row, None, None)
            return row
        execution, source = found
        if source["complete"] and set(record.files.values()) <= _digests(source):
            return self._as(row, KNOWN, execution)
        if execution.touched:
            said = f"it has grown, and run {execution.run.id} went on here since it was imported"
            row.problems.append(Problem(record.folder, said))
            return self._as(row, LEFT_ALONE, execution)
        row.state = CONTINUED
        self._tell(record, row, execution, source)
        return row

    def save(self, rows: Iterable[Row]) -> list[str]:
        """Append every run that was told something, the oldest first.

        Returns the runs that another writer was first with: of these nothing was appended.
        """
        overtaken = []
        for execution in self._executions:
            if execution.spoilt:
                refuse(rows, execution.run.id, "nothing of its run was recorded")
            elif execution.changed:
                self._record_origin(execution)
                try:
                    self._desk.save(execution.run)
                except VersionConflictError:
                    overtaken.append(execution.run.id)
                except (UnstorableValueError, SecretLeftError) as error:
                    refuse(rows, execution.run.id, str(error))
        return overtaken

    # Which run.

    def _next_id(self) -> str:
        return ids.execution_id(self._base, len(self._executions) + 1)

    def _told_from(self, record: JobRunRecord) -> tuple[Execution, Fields] | None:
        """Return the run that was told the most from a folder, and what it was told."""
        found: tuple[Execution, Fields] | None = None
        for execution in self._executions:
            source = execution.source_of(record)
            if source is not None and (found is None or source["lines"] >= found[1]["lines"]):
                found = execution, source
        return found

    def _recorded_here(self, record: JobRunRecord) -> Execution | None:
        """Return the run that this folder is an image of: recorded here, not imported."""
        for execution in self._executions:
            run = execution.run
            same = (run.id, run.fingerprint) == (record.run_id, record.fingerprint)
            if (
                same
                and not execution.is_imported
                and run.created_us // 1000 <= record.started_us // 1000 <= run.updated_us // 1000
            ):
                return execution
        return None

    def _erased(self, record: JobRunRecord) -> Execution | None:
        """Return a run without content that may have been told from this folder."""
        for execution in self._executions:
            run = execution.run
            if (
                run.bodies == ERASED
                and run.created_us // 1000 <= record.started_us // 1000 <= run.updated_us // 1000
            ):
                return execution
        return None

    def _for_attempt(self, record: JobRunRecord, started_us: int) -> Execution:
        """Return the run that an attempt goes on in, a new one where none has to be continued."""
        for execution in reversed(self._executions):
            run = execution.run
            if (
                execution.is_imported
                and not execution.touched
                and not run.finished
                and (run.command, run.fingerprint) == (record.command, record.fingerprint)
                and run.updated_us <= started_us
            ):
                return execution
        run = self._create(record, started_us)
        execution = Execution(run, self._desk.voice(run))
        execution.is_imported = True
        self._executions.append(execution)
        return execution

    def _create(self, record: JobRunRecord, started_us: int) -> Run:
        cause = Voice(Run(), self._desk.by, self._desk.store).at(started_us)
        policy = record.summary.get("modelPolicy")
        return Run.create(
            cause,
            self._next_id(),
            command=record.command,
            fingerprint=record.fingerprint,
            inputs={},
            inputs_digest=self._desk.digest({}, "inputs"),
            parent=_parent(record),
            model_policy=policy if isinstance(policy, dict) else None,
        )

    # Telling.

    def _tell(
        self, record: JobRunRecord, row: Row, known: Execution | None, source: Fields | None
    ) -> None:
        """Tell every attempt of a folder that was not told yet, each to its run."""
        told = source["lines"] if source else 0
        lines = [line for line in record.lines if line.number > told]
        same = source is not None and source["startedAt"] == record.summary["startedAt"]
        if same and not record.is_of_all_attempts:
            parts = [Part(record.started_us, lines, goes_on=True, last=True)]
        else:
            seen = _begun(known.run) if known is not None else set()
            parts = parts_of(
                lines,
                record.started_us,
                seen,
                goes_on=known is not None,
                of_all=record.is_of_all_attempts,
            )
        for part in parts:
            execution = known if part.goes_on else None
            if execution is not None and not execution.run.attempt_open:
                if part.last:
                    said = f"it has changed since run {execution.run.id} ended"
                    row.problems.append(Problem(record.folder, said))
                    self._as(row, LEFT_ALONE, execution)
                    return
                execution = None
            self._tell_part(record, row, part, execution)

    def _tell_part(
        self, record: JobRunRecord, row: Row, part: Part, execution: Execution | None
    ) -> None:
        begins = execution is None
        if execution is None:
            execution = self._for_attempt(record, part.started_us)
        retelling = Retelling(execution.voice, record, row.problems.append)
        try:
            if begins:
                retelling.attempt(part.started_us)
                row.attempts += 1
            retelling.lines(part)
            if part.last:
                retelling.summary()
            else:
                retelling.cut_off_or_ended()
        except RefusalError as error:
            execution.spoilt = True
            row.state = UNREADABLE
            row.problems.append(Problem(record.folder, str(error)))
        execution.changed = True
        execution.note_source(_source(record, part, retelling.attribution))
        self._as(row, row.state, execution)

    def _record_origin(self, execution: Execution) -> None:
        origin = {"kind": KIND, "sources": execution.sources}
        execution.run.record_origin(execution.voice.at(), origin)

    @staticmethod
    def _as(row: Row, state: str, execution: Execution) -> Row:
        row.state = state
        if execution.run.id not in row.runs:
            row.runs.append(execution.run.id)
        row.status = status(execution.run)
        return row


def _begun(run: Run) -> set[str]:
    """Return the phases that the present attempt has begun."""
    return {name for name, phase in run.phases.items() if phase.epoch == run.epoch}


def _digests(source: Fields) -> set[str]:
    return {file["sha256"] for file in source["files"]}


def _source(record: JobRunRecord, part: Part, attribution: str | None) -> Fields:
    """Return what a run remembers of a folder that it was told from."""
    summary = record.summary if part.last else {}
    told = record.line_count if part.last else part.lines[-1].number
    source = {
        "folder": record.folder,
        "complete": part.last,
        "lines": told,
        "files": [{"path": path, "sha256": digest} for path, digest in record.files.items()],
        "startedAt": summary.get("startedAt"),
    }
    more = {
        name: summary.get(name) for name in ("orchestratorRunId", "diagnostics", "resumeCommand")
    }
    more["batchItemsBy"] = attribution
    return {**source, **{name: value for name, value in more.items() if value is not None}}


def _parent(record: JobRunRecord) -> str | None:
    """Return the orchestrator run that a record names, where that can be an id."""
    said = record.summary.get("orchestratorRunId")
    try:
        return ids.check_run_id(said) if isinstance(said, str) else None
    except InvalidIdError:
        return None


def refuse(rows: Iterable[Row], run_id: str, why: str) -> None:
    """Say of every folder that was told to a run that it could not be saved."""
    for row in rows:
        if run_id in row.runs and row.state != KNOWN:
            row.state = UNREADABLE
            row.problems.append(Problem(row.path, why))
