"""Tell what a job run's checkpoint file says, in the phase it belongs to: its file names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain.errors import RefusalError
from tachograph.job_run_records import BATCH, OFFSET
from tachograph.record_files import Problem, is_count, text_or_none
from tachograph.telling import Voice, tell_batches, tell_offset, tell_state

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.run_state import Phase
    from tachograph.job_run_records import JobRunRecord

BATCH_PHASE = "analyze"
OFFSET_PHASE = "embed"
"""Phases of the original's jobs that saved batch and offset checkpoints."""
OVER = ("completed", "skipped")
"""How a phase has ended that is not taken up again."""
MOST_FILLED = 10_000
"""Batches that are finished on the word of a phase's end alone: each of them is an event."""


class RetoldCheckpoint:
    """The checkpoint of a record, until it is told."""

    def __init__(
        self, voice: Voice, record: JobRunRecord, report: Callable[[Problem], None]
    ) -> None:
        self._voice = voice
        self._run = voice.run
        self._record = record
        self._report = report
        self._waits = record.checkpoint is not None
        self.attribution: str | None = None
        """How the items of a batch checkpoint were given to batches; None where none was told."""

    def phase_of_batches(self) -> str | None:
        """Return the phase that a batch checkpoint belongs to; None when none is to be told."""
        saved = self._record.checkpoint
        if not self._waits or saved is None or saved.kind != BATCH:
            return None
        phases = self._record.summary.get("phases", [])
        names = [phase["name"] for phase in phases]
        if BATCH_PHASE in names or not names:
            return BATCH_PHASE
        open_ones = [phase["name"] for phase in phases if phase.get("status") not in OVER]
        return str([*names, *open_ones][-1])

    def will_tell(self, phase: str, index: int, time_us: int | None) -> bool:
        """Say whether the checkpoint tells a batch with its items; then its time is kept."""
        saved = self._record.checkpoint
        if saved is None or phase != self.phase_of_batches():
            return False
        told = index in saved.value["completedBatchIndexes"] and self._is_of_these_inputs()
        if told:
            self._record.batch_times_us[index] = time_us
        return told

    def tell_batches(self, phase: str) -> None:
        """Tell the finished batches to their phase, which is running."""
        saved, self._waits = self._record.checkpoint, False
        if saved is None:
            return
        if not self._is_of_these_inputs():
            said, own = saved.value["incidentsHash"], self._record.fingerprint
            self._left_out(f"its incidentsHash is {said!r}, and the run's is {own!r}")
            return  # and no line was left to it
        times_us = self._record.batch_times_us
        try:
            self.attribution = tell_batches(
                self._voice, phase, saved.value, saved.time_us, times_us=times_us
            )
        except RefusalError as error:
            self._left_out(f"{error}{self.tell_deferred(phase)}")

    def tell_deferred(self, phase: str) -> str:
        """Tell the batches whose lines were left to the checkpoint, without what came out of them.

        Returns what is to be said of that.
        """
        times_us = dict(self._record.batch_times_us)
        self._record.batch_times_us.clear()
        kept = 0
        for index, time_us in sorted(times_us.items()):
            if index in self._run.phases[phase].done:
                continue
            try:
                self._run.complete_batch(self._voice.at(time_us), phase, index)
            except RefusalError as error:
                self._left_out(f"batch {index} of phase {phase!r}: {error}")
            else:
                kept += 1
        return f" {kept} batches that its events name are kept, without items." if kept else ""

    def tell_rest(self) -> None:
        """Tell of a checkpoint what no end of a phase has told."""
        name = self.phase_of_batches()
        if name is not None:
            phase = self._run.phases.get(name)
            if phase is None:
                self._run.start_phase(self._voice.at(), name)
            if phase is None or phase.status == "running":
                self.tell_batches(name)
            elif phase.status == "failed" and self._record.batch_times_us:
                self._take_up_again(phase)
            else:
                self._left_out(f"phase {name!r} has ended without it")
        elif self._waits:
            self._tell_state()

    def _take_up_again(self, phase: Phase) -> None:
        """Tell the batches of a phase that had failed: their lines were left to the checkpoint."""
        summary = phase.summary
        self._run.start_phase(self._voice.at(), phase.name)
        self.tell_batches(phase.name)
        self._run.end_phase(self._voice.at(), phase.name, status="failed", summary=summary)

    def lacks_batches(self) -> bool:
        """Say whether the record itself shows that batches are missing at its end.

        A checkpoint goes with a success: that there is none shows nothing.
        """
        if self.attribution is not None:
            return True
        said = progress_of(self._record)
        return said is not None and said[2] == "batches" and said[0] < said[1]

    def fill(self, phase: Phase, time_us: int | None) -> None:
        """Finish the batches of an earlier plan: what came out of them went with the checkpoint."""
        missing = phase.missing(MOST_FILLED)
        for index in missing:
            self._run.complete_batch(self._voice.at(time_us), phase.name, index)
        self._voice.note(
            f"Phase {phase.name!r} was completed; what came out of {len(missing)} of its "
            f"{phase.total} batches went with its checkpoint."
        )

    def _is_of_these_inputs(self) -> bool:
        saved = self._record.checkpoint
        return saved is not None and saved.value["incidentsHash"] == self._record.fingerprint

    def _tell_state(self) -> None:
        saved, self._waits = self._record.checkpoint, False
        if saved is None:
            return
        embed = self._run.phases.get(OFFSET_PHASE)
        is_open = embed is not None and embed.status == "running"
        try:
            if saved.kind == OFFSET:
                phase = OFFSET_PHASE if is_open else None
                tell_offset(self._voice, phase, saved.value, saved.time_us)
            else:
                tell_state(self._voice, None, saved.value, saved.time_us)
        except RefusalError as error:
            self._left_out(str(error))

    def _left_out(self, why: str) -> None:
        self._report(Problem(self._record.checkpoint_path, f"it is left out: {why}"))


def progress_of(record: JobRunRecord) -> tuple[int, int, str] | None:
    """Return how far a record says that its run is: done, total, unit; None for no such thing."""
    said = record.summary.get("progress")
    if not isinstance(said, dict):
        return None
    done, total = said.get("completedUnits"), said.get("totalUnits")
    if not is_count(done) or not is_count(total) or done > total:
        return None
    return done, total, text_or_none(said.get("unitLabel")) or "units"
