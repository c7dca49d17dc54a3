"""Tell what a job run's files say as events of a run, at the times that they name.

Rules of a run hold here as everywhere: what the files say against them is told as what it can
have been, and reported. Nothing is appended to the log here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.domain import outcome
from tachograph.domain.errors import RefusalError
from tachograph.domain.recovery_state import GONE
from tachograph.job_run_records import Line, outcome_of
from tachograph.record_files import Problem, is_count, moment_us, text_or_none
from tachograph.record_times import MINUTE_US
from tachograph.retold_checkpoints import MOST_FILLED, OVER, RetoldCheckpoint, progress_of
from tachograph.telling import NOBODY, Voice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.attempts import Part
    from tachograph.job_run_records import JobRunRecord

    Fields = dict[str, Any]

CONTRADICTORY = "contradictory_record"
"""Reason code of an outcome that the files themselves contradict."""
_ENDS = ("completed", "failed", "skipped")
_LOST_END = "the record does not say how it ended"


class Retelling:
    """Tells one attempt after the other of the record in one folder."""

    def __init__(
        self, voice: Voice, record: JobRunRecord, report: Callable[[Problem], None]
    ) -> None:
        self._voice = voice
        self._run = voice.run
        self._record = record
        self._report = report
        self._is_last = self._leads_to_last = False
        self._gate: Line | None = None
        self._contradictions: list[str] = []
        self._saved = RetoldCheckpoint(voice, record, report)

    def attempt(self, started_us: int) -> None:
        """Begin another attempt: the one before, if it has not ended, was cut off."""
        self._gate = None
        self._contradictions = []
        self._run.start_attempt(self._voice.at(started_us), NOBODY, live_owner=None)

    def lines(self, part: Part) -> None:
        """Tell what an attempt logged; the checkpoint is that of the last one."""
        self._is_last, self._leads_to_last = part.last, part.leads_to_last
        for line in part.lines:
            try:
                _TELL[line.type](self, line)
            except RefusalError as error:
                self._left_out(line, str(error))

    def cut_off_or_ended(self) -> None:
        """End an attempt whose summary was written over: as its last judgement says, if any."""
        if self._gate is not None:
            found = self._outcome(self._gate.fields["outcome"])
            self._finish(found, text_or_none(self._gate.fields.get("reason")), self._voice.last_us)

    def summary(self) -> None:
        """Tell what the summary and the checkpoint say of the last attempt."""
        self._is_last = True
        self._contradictions += self._record.doubts
        summary = self._record.summary
        for phase in summary.get("phases", []):
            self._phase_of_summary(phase)
        self._saved.tell_rest()
        self._tell_progress()
        finished_us = self._record.finished_us
        if finished_us is None:
            self._tell_unfinished()
            return
        if finished_us < self._voice.last_us - MINUTE_US:
            self._contradictions.append("it was finished before the last that it tells of")
        finished_us = max(finished_us, self._voice.last_us)
        found = self._worse_of(self._outcome(summary.get("semanticOutcome")))
        code = text_or_none(summary.get("reasonCode"))  # in files that Tachograph wrote
        self._finish(found, text_or_none(summary.get("semanticReason")), finished_us, code)

    # Lines.

    def _phase_start(self, line: Line) -> None:
        self._start(line.fields["phase"], line.time_us)

    def _phase_end(self, line: Line) -> None:
        fields = line.fields
        self._end(fields["phase"], fields["status"], fields.get("summary"), line.time_us)

    def _batch_complete(self, line: Line) -> None:
        running = [phase for phase in self._run.phases.values() if phase.status == "running"]
        if not running:
            self._left_out(line, "no phase is running")
            return
        phase = max(running, key=lambda each: each.last_version)
        index = line.fields["index"]
        if self._leads_to_last and self._saved.will_tell(phase.name, index, line.time_us):
            return
        if index not in phase.done:
            parsed = line.fields.get("parsed")
            self._run.complete_batch(
                self._voice.at(line.time_us),
                phase.name,
                index,
                parsed=parsed if is_count(parsed) else None,
            )

    def _retry(self, line: Line) -> None:
        attempt = line.fields.get("attempt")
        self._run.schedule_retry(
            self._voice.at(line.time_us),
            line.fields["kind"],
            attempt if is_count(attempt) and attempt else 1,
            model=text_or_none(line.fields.get("model")),
        )

    def _fallback(self, line: Line) -> None:
        cause = self._voice.at(line.time_us)
        self._run.take_fallback(cause, line.fields["from"], line.fields["to"])

    def _semantic_gate(self, line: Line) -> None:
        self._gate = line
        if line.time_us is not None:
            self._voice.last_us = line.time_us

    # Phases.

    def _start(self, name: str, time_us: int | None) -> None:
        phase = self._run.phases.get(name)
        if phase is not None and phase.status in OVER:
            self._voice.note(f"Phase {name!r}, which was over, was begun again.", time_us)
        elif phase is None or phase.status != "running" or phase.epoch != self._run.epoch:
            self._run.start_phase(self._voice.at(time_us), name)

    def _end(self, name: str, status: Any, summary: Any, time_us: int | None) -> None:
        phase = self._run.phases.get(name)
        if phase is not None and phase.status in OVER:
            return  # begun again when it was over: noted then
        if phase is None or phase.status != "running":
            self._start(name, time_us)
        if name == self._saved.phase_of_batches():
            if self._is_last:
                self._saved.tell_batches(name)
            elif status in OVER:  # too late for the checkpoint
                self._saved.tell_deferred(name)
        said = text_or_none(summary)
        if status not in _ENDS:
            self._contradictions.append(f"phase {name!r} is said to have ended as {status!r}")
            status, said = "failed", said or _LOST_END
        phase = self._run.phases[name]
        missing = phase.count_missing()
        if status == "completed" and missing:
            if missing > MOST_FILLED or (self._is_last and self._saved.lacks_batches()):
                left = f"{missing} of {phase.total}"
                status, said = "failed", f"said to be completed, and {left} batches are missing"
            else:
                self._saved.fill(phase, time_us)
        self._run.end_phase(self._voice.at(time_us), name, status=status, summary=said)

    def _phase_of_summary(self, said: Fields) -> None:
        """Tell of a phase what its events did not."""
        name, status = said["name"], said.get("status")
        ended_us = moment_us(said.get("finishedAt"))
        known = self._run.phases.get(name)
        if status == "pending" or (known is not None and known.status in OVER):
            return
        if known is None or known.epoch != self._run.epoch:
            self._start(name, moment_us(said.get("startedAt")) or ended_us)
            known = self._run.phases[name]
        if known.status == "running" and status != "running":
            self._end(name, status, said.get("summary"), ended_us)

    # The end.

    @property
    def attribution(self) -> str | None:
        """How the items of a batch checkpoint were given to batches; None where none was told."""
        return self._saved.attribution

    def _tell_progress(self) -> None:
        said = progress_of(self._record)
        if said is not None:
            self._run.report_progress(self._voice.at(), *said)

    def _tell_unfinished(self) -> None:
        running = [name for name, each in self._run.phases.items() if each.status == "running"]
        where = f" in phase {running[-1]!r}" if running else ""
        self._voice.note(
            f"The record was never finished{where}: its process was cut off, or at work when the "
            "record was imported. How it ended is not known; the outcome that it names "
            f"({self._record.summary.get('semanticOutcome')!r}) stood there from the start.",
            level="warning",
        )
        # Else it would count as being at work, and nobody here has seen it work.
        evidence = {"reason": "its record was never finished, and was read from files"}
        self._run.detect_stall(self._voice.at(), GONE, evidence)
        if self._contradictions:
            self._doubt("; ".join(self._contradictions))

    def _worse_of(self, said: str) -> str:
        """Return the worse of what the summary says and what the last judgement logged says."""
        if self._gate is None:
            return said
        logged = self._outcome(self._gate.fields["outcome"])
        if logged == said:
            return said
        self._contradictions.append(f"the summary says {said}, its events say {logged}")
        return max(said, logged, key=outcome.severity)

    def _finish(
        self, found: str, reason: str | None, time_us: int, code: str | None = None
    ) -> None:
        """Record the end; what contradicts it makes it no more than it can have been."""
        if outcome.is_terminal(found, code):
            for phase in list(self._run.phases.values()):
                if phase.status == "running":
                    self._contradictions.append(f"phase {phase.name!r} has no end")
                    self._end(phase.name, "failed", _LOST_END, time_us)
                missing = phase.count_missing()
                if missing:
                    left = f"{missing} of {phase.total} batches"
                    self._contradictions.append(f"phase {phase.name!r} lacks {left}")
                    found = outcome.PARTIAL
        if self._contradictions:
            said = f"{'; '.join(self._contradictions)}; taken for {self._doubted(found)}"
            found, code = self._doubted(found), CONTRADICTORY
            reason = f"{reason} ({said})" if reason else said
            self._doubt(said)
        self._run.finish(self._voice.at(time_us), found, reason=reason, reason_code=code)

    def _doubt(self, said: str) -> None:
        self._report(Problem(self._record.folder, f"it contradicts itself: {said}"))

    def _doubted(self, found: str) -> str:
        """Return the best that an outcome can be that its own record contradicts."""
        return outcome.SUCCESS_WITH_REVIEW if outcome.is_terminal(found) else found

    def _outcome(self, text: Any) -> str:
        found, unknown = outcome_of(text)
        if unknown is not None:
            self._report(Problem(self._record.folder, unknown))
        return found

    def _left_out(self, line: Line, why: str) -> None:
        text = f"line {line.number} is left out: {why}"
        self._report(Problem(self._record.events_path, text))


_TELL: dict[str, Callable[[Retelling, Line], None]] = {
    "phase_start": Retelling._phase_start,
    "phase_end": Retelling._phase_end,
    "batch_complete": Retelling._batch_complete,
    "retry": Retelling._retry,
    "fallback": Retelling._fallback,
    "semantic_gate": Retelling._semantic_gate,
}
