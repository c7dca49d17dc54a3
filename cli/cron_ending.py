"""What `tacho cron exec` leaves at the end of a run: rows, summary, verdict, guard; all once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.cli.cron_telling import short, tell
from tachograph.cli.cron_traces import CronTraces
from tachograph.domain.cron_log import STEPS
from tachograph.domain.cron_log import VALIDATION as VALIDATION_LINE
from tachograph.domain.errors import FencedError, RefusalError, TachographError
from tachograph.domain.exit_ledger import VALIDATION, LedgerRow, ReportedStatus, row_time
from tachograph.domain.exit_report import LABELS
from tachograph.domain.outcome import is_outcome, traits
from tachograph.executing import Verdict
from tachograph.harnessing import (
    STEPS_DEFERRED,
    code_of_signals,
    end_run,
    exit_code_of,
    refused_rows,
    reported_by,
    step_row,
    steps_wait,
    summary_of_run,
)
from tachograph.infra import clock
from tachograph.validating_exits import (
    WITHHELD,
    WRITE_FAILED,
    WRITTEN,
    guard_refusal,
    ledger_ending,
    placeholder,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.ended import Ended
    from tachograph.domain.exit_report import ExitReport
    from tachograph.domain.redaction import Redactor
    from tachograph.infra.cron_files import CronPaths
    from tachograph.session import Session


class Ending:
    """One run of a cron job and its traces, from the first output to the last line.

    `signals` names those that were meant for the run and did not reach its command.
    """

    def __init__(
        self,
        out: Output,
        job: str,
        required: Sequence[str],
        paths: CronPaths | None,
        run_id: str,
        *,
        allow_skip: bool,
        redactor: Redactor | None = None,
    ) -> None:
        self.out = out
        self.job = job
        self.paths = paths
        self.traces = CronTraces(out, job, paths, redactor)
        self.run_id = run_id
        self.required = list(required) or [job]
        self.is_wrapper = bool(required) and job not in required
        """Whether the command is a script whose steps have names of their own."""
        self.signals: list[str] = []
        self._allow_skip = allow_skip
        self._reported = ReportedStatus()
        self._started_us = clock.now_us()
        self._clock_us = clock.boottime_us()

    # While the command runs.

    @property
    def seconds(self) -> float:
        """How long the job has taken so far."""
        return (clock.boottime_us() - self._clock_us) / 1_000_000

    def variables(self) -> dict[str, str]:
        """Return what the command finds in its environment."""
        if self.paths is None:
            found = {
                "HM_RUN_ID": self.run_id,
                "HM_ORCHESTRATOR_RUN_ID": self.run_id,
                "HM_JOB": self.job,
            }
        else:
            found = self.paths.variables()
        return {
            **found,
            "HM_REQUIRED_STEPS": " ".join(self.required),
            "TACHO_CRON_RUN": self.run_id,
        }

    def began(self, session: Session) -> None:
        """Take note of the attempt: a first one has no part in what an earlier execution left."""
        if self.traces.are_of_others and session.epoch == 1:
            self.traces.begin_execution()

    def add_output(self, data: bytes) -> None:
        """Take output of the command, for the log."""
        self._reported.add(data)
        self.traces.add_output(data)

    def note(self, text: str) -> None:
        """Add a line to the log."""
        self.traces.note(text)

    # The ends that there are.

    def ended(
        self, session: Session, ended: Ended, within: tuple[str, str, str] | None = None
    ) -> int:
        """End the run of a command that ended, and return the exit code.

        `within` is what the runs came to that the command has started.
        """
        code = exit_code_of(ended)
        self.signals.extend(ended.asked)
        wrote = self.traces.summary_was_written
        summary = self.traces.written_summary() if wrote else None
        if not (self.is_wrapper and code and not self.traces.have_rows()):
            self.traces.row(self._own_row(ended, code, waits=steps_wait(code, summary)))
        verdict = self._end_run(session, ended, summary, within)
        return self._close(session, verdict, code, own_summary=not wrote)

    def _own_row(self, ended: Ended, code: int, *, waits: bool) -> LedgerRow:
        """Return the row of the command as a whole."""
        now_us = clock.now_us()
        if waits:  # neither good nor failed: it says no status
            took_ms = round(ended.seconds * 1000)
            return LedgerRow(
                row_time(now_us), self.job, code, reason=STEPS_DEFERRED, duration_ms=took_ms
            )
        reported = reported_by(ended, None if self.is_wrapper else self._reported.last)
        return step_row(now_us, self.job, code, reported, ended.seconds)

    def _end_run(
        self,
        session: Session,
        ended: Ended,
        summary: Any,
        within: tuple[str, str, str] | None,
    ) -> Verdict | None:
        try:
            report = self._validate(with_summary=summary is not None)
            return end_run(session, ended, report, summary, within)
        except (TachographError, OSError) as error:
            fenced = isinstance(error, FencedError)
            what = "belongs to another attempt by now" if fenced else str(error)
            self.out.warn(f"tacho: the end of run {self.run_id} was not recorded: {what}")
            self.traces.broken = True
            return None

    def aborted(self, session: Session, code: int) -> int:
        """Close the traces of a command that never ran."""
        run = session.run
        verdict = Verdict(run.outcome or "", run.reason, run.reason_code, {})
        return self._close(session, verdict, code, own_summary=True)

    def refused(self, session: Session, verdict: Verdict) -> int:
        """Close the traces of a run whose job is at work already."""
        rows = refused_rows(clock.now_us(), self.required, allow_skip=self._allow_skip)
        for row in rows:
            self.traces.row(row)
        self.note(STEPS)
        self.note(f"{self.job}: {verdict.reason} status={verdict.reason_code}")
        return self._close(session, verdict, max(row.exit_code for row in rows), own_summary=True)

    def without_run(self, code: int, error: BaseException) -> int:
        """Close the traces where not even the run could be recorded.

        What another attempt has left is its own, and stays as it is: the verdict of one that
        ended, and the files of one that is at work.
        """
        self.note(f"{type(error).__name__}: {error}")
        kept = self.traces.have_a_verdict or isinstance(error, RefusalError)
        if self.traces.are_of_others and kept:
            self.traces.close()
            return code
        return self._close(None, None, code, own_summary=False)

    def take_over(self, code: int) -> None:
        """Close the traces in place of a keeper that was killed, unless it had done so."""
        if self.paths is not None and not self.traces.judged:
            self._close(None, None, code, own_summary=False)

    # The one way to close.

    def _close(
        self, session: Session | None, verdict: Verdict | None, code: int, *, own_summary: bool
    ) -> int:
        """Judge the traces, leave the verdict in them and in the log of events; once."""
        if own_summary:
            self._write_summary(verdict, code, None)
        if code:
            self.note(f"HM_STEP_EXIT={code}")
        self.note(VALIDATION_LINE)
        report, shown = self._judge()
        guard = self._guard(report, verdict, code or self._signalled())
        self._record(session, shown, guard)
        if own_summary and report is not None:
            self._write_summary(verdict, code, short(shown, guard))
        judged = 1 if report is None else report.exit_code
        spoiled = self.traces.broken or _failed(verdict)
        final = code or self._signalled() or judged or int(spoiled)
        self._last_lines(report, final)
        tell(self, verdict, report, guard, final)
        return final

    def _signalled(self) -> int:
        """Return the exit code that tells of the last signal; 0 when there was none."""
        return code_of_signals(self.signals)

    def _judge(self) -> tuple[ExitReport | None, dict[str, Any]]:
        """Validate, and write the report: validation.json is never empty."""
        try:
            with_summary = self.traces.summary_was_written
            report: ExitReport | None = self._validate(with_summary=with_summary)
            shown = report.to_json() if report is not None else {}
        except Exception as error:  # noqa: BLE001  # whatever it is, a verdict must be left
            report, shown = None, placeholder(f"the validator failed: {error}")
            self.out.warn(f"tacho: {shown['error']}")
        self.traces.write_validation(shown)
        from tachograph.cli.output import to_json

        self.note(to_json(shown, indent=2))
        return report, shown

    def _validate(self, *, with_summary: bool) -> ExitReport:
        return self.traces.validate(
            self.required, allow_skip=self._allow_skip, with_summary=with_summary
        )

    def _guard(self, report: ExitReport | None, verdict: Verdict | None, code: int) -> str:
        """Write the guard file when it was earned, and return what became of it."""
        if report is None or verdict is None or self.traces.broken:
            refusal: str | None = "traces_incomplete"
        else:
            refusal = guard_refusal(
                report,
                ended_with=code,
                result=verdict.outcome,
                reason_code=verdict.reason_code,
                second_look=lambda: self.traces.have_good_rows(self.required),
                interrupted=bool(self._signalled()),
                allow_skip=self._allow_skip,
            )
        result = WRITTEN if refusal is None else WITHHELD.format(refusal)
        now_us = clock.now_us()
        path = "-" if self.paths is None else self.paths.guard
        if refusal is None and not self.traces.write_guard(path, now_us // 1000):
            result = WRITE_FAILED
        self.note(
            f"{row_time(now_us)} GUARD_WRITE job={self.job} eligible={int(refusal is None)} "
            f"result={result} reason={refusal or 'eligible'} file={path}"
        )
        return result

    def _record(self, session: Session | None, shown: dict[str, Any], guard: str) -> None:
        if session is None:
            return
        try:
            session.execute(lambda run, why: run.record_exit_validation(why, shown, guard))
        except (TachographError, OSError) as error:
            self.traces.broken = True
            self.out.warn(f"tacho: the validation of run {self.run_id} was not recorded: {error}")

    def _write_summary(
        self, verdict: Verdict | None, code: int, validation: dict[str, Any] | None
    ) -> None:
        if self.paths is None:
            return
        self.traces.write_summary(
            summary_of_run(
                self.run_id,
                self.job,
                self.traces.ledger(),
                self.required,
                verdict,
                exit_code=code,
                started_us=self._started_us,
                finished_us=clock.now_us(),
                duration_us=clock.boottime_us() - self._clock_us,
                validation=validation,
            )
        )

    def _last_lines(self, report: ExitReport | None, final: int) -> None:
        status, reason = ("failed", "maintenance_unknown")
        if report is not None:
            status, reason = ledger_ending(report)
        now = row_time(clock.now_us())
        code = 1 if report is None else report.exit_code
        self.traces.row(LedgerRow(now, VALIDATION, code, status=status, reason=reason))
        label = LABELS[report.status] if report is not None else "FAILED"
        self.note(f"{label}: {self.job}")
        self.note(f"{now} {self.job} exit={final}")
        self.traces.close()


def _failed(verdict: Verdict | None) -> bool:
    """Say whether the run failed by its verdict, such as by a run within it that failed."""
    if verdict is None or not is_outcome(verdict.outcome):
        return False
    return traits(verdict.outcome, verdict.reason_code).fails_step
