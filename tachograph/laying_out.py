"""Keep the artifact files of runs in step with the log. Reads the log, decides no outcome.

The files of a run are what the log says of it, byte for byte, whoever writes them and however
often. What a rule of retention lets go is recorded in the run before it goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import retention
from tachograph.domain.artifact_places import (
    CHECKPOINT,
    EVENTS,
    ORCHESTRATOR_ENDINGS,
    REPORT,
    SUMMARY,
    VALIDATION,
    cron_files_of,
    place_of,
)
from tachograph.domain.checkpoint_shapes import checkpoint_json, checkpoint_phase
from tachograph.domain.errors import ArtifactsTakenError, RunNotFoundError
from tachograph.domain.job_run_shapes import record_json
from tachograph.event_files import EventFiles, Known, events_after
from tachograph.json_files import to_text
from tachograph.maintenance_runs import digest_of, line_json, orchestrator_json, validation_of
from tachograph.reporting_runs import report_text
from tachograph.tree_marks import Marks
from tachograph.tree_owners import Owners

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tachograph.artifact_ports import Folder
    from tachograph.domain.artifact_places import Place
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]
    Execute = Callable[[str, Callable[[Run, Cause], None]], None]

SPARING = 20
"""A checkpoint is written again no sooner than this many times as long as writing it took."""
MOST_KNOWN = 1_000
"""Runs of which a writer remembers how far their files are."""
REMOVED = "run.files-removed"
RECENT = 50
"""Events of a run among which a removal that was recorded, and cut off by a kill, is looked for."""


class _Known:
    """How far the files of a run are, so that the next look need not find out."""

    __slots__ = ("checkpoint_at", "events")

    def __init__(self) -> None:
        self.events = Known()
        self.checkpoint_at = 0.0


class Layout:
    """Writes the files of a store's runs below one root.

    `execute` gives a run a command, outside any attempt; `timer` counts seconds.
    """

    def __init__(
        self,
        repository: RunRepository,
        payloads: Payloads,
        folder: Folder,
        execute: Execute,
        timer: Callable[[], float],
    ) -> None:
        self.folder = folder
        self.repository = repository
        self.marks = Marks(repository.log, folder)
        self._payloads = payloads
        self._execute = execute
        self._timer = timer
        self._events = EventFiles(repository, folder)
        self._owners = Owners(repository, payloads, folder)
        self._known: dict[str, _Known] = {}

    def refresh(
        self, run_id: str, *, whole: bool = True, wait: bool = True, thorough: bool = False
    ) -> bool:
        """Bring the files of a run up to the log; False when another writer is at it.

        Without `whole` a checkpoint that takes long to write may stay as old as that allows.
        `thorough` compares all of events.jsonl, not its end alone.
        Raises RunNotFoundError, ArtifactsTakenError, ArtifactFolderError, InvalidIdError, and
        BlobMissingError when all files but the checkpoint are written.
        """
        with self.folder.locked(wait=wait) as held:
            if not held:
                return False
            run = self.repository.get(run_id)
            if run is None:
                raise RunNotFoundError(run_id, "")
            if run.bodies == retention.ERASED:
                return True  # nothing may be told of it; what was written goes by its rule
            place = place_of(run)
            if place.is_orchestrator:
                self._write_orchestrator(run, place)
            else:
                self._write_job(run, place, whole=whole, thorough=thorough)
                self._write_cron(run)
            self._retire(run, place)
        return True

    def retire(self, run: Run, names: Sequence[tuple[str, str]], rule: retention.Rule) -> int:
        """Record that files (kind, name) of a run go by a rule, remove them, return their bytes.

        The record comes first: a kill in between leaves a file that the next removal finds
        recorded, and removes.
        """
        there = [(kind, name, stamp) for kind, name in names if (stamp := self.folder.stamp(name))]
        paths = [self.folder.path(name) for _, name, _ in there]
        size = sum(stamp.size for _, _, stamp in there)
        if there and not self._is_recorded(run, paths, rule, max(s.changed_ns for *_, s in there)):
            kinds = ", ".join(sorted({kind for kind, *_ in there}))
            self._execute(
                run.id,
                lambda run, why: run.record_files_removed(why, kinds, paths, size, rule.id),
            )
        for _, name, _ in there:
            self.folder.remove(name)
        self.marks.close({name.partition("/")[0] for _, name, _ in there if "/" in name})
        return size

    # One run.

    def _write_job(self, run: Run, place: Place, *, whole: bool, thorough: bool) -> None:
        self._refuse_others(self._owners.fault_of_job(run, place.folder), place.files[SUMMARY])
        digest = digest_of(self.repository, run)
        known = self._remembered(run.id)
        # First: it says whose folder this is, should the next step never be done.
        self.folder.replace(place.files[REPORT], _report(run, digest))
        if retention.rule_for(run, EVENTS) is None:
            self._events.write(
                run, place.files[EVENTS], known.events, durable=whole, thorough=thorough
            )
        kinds = [SUMMARY, EVENTS, REPORT]
        is_kept = retention.rule_for(run, CHECKPOINT) is None
        has_checkpoint = is_kept and (checkpoint_phase(run) or run.checkpoint is not None)
        if has_checkpoint:
            kinds.insert(2, CHECKPOINT)
        paths = {kind: self.folder.path(place.files[kind]) for kind in kinds}
        self.folder.replace(place.files[SUMMARY], to_text(record_json(run, paths, digest=digest)))
        if has_checkpoint and (whole or self._timer() >= known.checkpoint_at):
            began = self._timer()
            self.folder.replace(place.files[CHECKPOINT], to_text(self._checkpoint(run)))
            ended = self._timer()
            known.checkpoint_at = ended + SPARING * (ended - began)

    def _write_orchestrator(self, run: Run, place: Place) -> None:
        stem = place.files[SUMMARY].removesuffix(ORCHESTRATOR_ENDINGS[SUMMARY])
        self._refuse_others(self._owners.fault_of_orchestrator(run, stem), place.files[SUMMARY])
        digest = digest_of(self.repository, run)
        report = validation_of(self.repository, self._payloads, run)
        summary = orchestrator_json(run, digest, report)
        self.folder.replace(place.files[REPORT], _report(run, digest))
        if report is not None:
            self.folder.replace(place.files[VALIDATION], to_text(report))
        if summary is not None:
            self.folder.replace(place.files[SUMMARY], to_text(summary))

    def _write_cron(self, run: Run) -> None:
        """Write what belongs to a cron line beside its run, where its harness has left nothing."""
        names = cron_files_of(run)
        missing = [kind for kind, name in names.items() if self.folder.stamp(name) is None]
        if not missing:
            return
        stem = names[SUMMARY].removesuffix(ORCHESTRATOR_ENDINGS[SUMMARY])
        self._refuse_others(self._owners.fault_of_line(run, stem), names[SUMMARY])
        report = validation_of(self.repository, self._payloads, run)
        said = {
            SUMMARY: line_json(run, digest_of(self.repository, run), report),
            VALIDATION: report,
        }
        for kind in missing:
            if said[kind] is not None:
                self.folder.replace(names[kind], to_text(said[kind]))

    def _refuse_others(self, fault: str | None, name: str) -> None:
        """Refuse to write over what is of another run: of another store, or of the original."""
        if fault is not None:
            raise ArtifactsTakenError(self.folder.path(name), fault)

    def _retire(self, run: Run, place: Place) -> None:
        going: dict[str, list[tuple[str, str]]] = {}
        for kind, name in place.files.items():
            rule = retention.rule_for(run, kind)
            if rule is not None:
                going.setdefault(rule.id, []).append((kind, name))
        for rule_id, names in going.items():
            self.retire(run, names, retention.BY_ID[rule_id])

    def _is_recorded(
        self, run: Run, paths: Sequence[str], rule: retention.Rule, changed_ns: int
    ) -> bool:
        """Say whether the removal of just these files was recorded, and not done."""
        records = self.repository.log.read_stream(run.id, limit=RECENT, reverse=True)
        for record in records:
            if record.topic == REMOVED and record.time_us * 1_000 >= changed_ns:
                fields = self.repository.fields(record)
                if fields.get("rule") == rule.id and set(paths) <= set(fields["paths"]):
                    return True
        return False

    def _checkpoint(self, run: Run) -> Any:
        phase = checkpoint_phase(run)
        state = None if run.checkpoint is None else self._payloads.load(run.checkpoint["state"])
        return checkpoint_json(
            run,
            () if phase is None else self._outputs(run, phase),
            updated_us=run.worked_us or run.updated_us,
            state=state,
        )

    def _outputs(self, run: Run, phase: str) -> Iterator[tuple[int, Any]]:
        """Yield (index, output) of a phase's finished batches."""
        for record in events_after(self.repository, run, run.phases[phase].version):
            if record.topic == "run.batch-completed":
                fields = self.repository.fields(record)
                if fields.get("phase") == phase:
                    yield fields["index"], self._payloads.load(fields["output"])

    def _remembered(self, run_id: str) -> _Known:
        if run_id not in self._known and len(self._known) >= MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault(run_id, _Known())


def _report(run: Run, digest: str) -> bytes:
    return report_text(run, digest).encode("utf-8", "replace")
