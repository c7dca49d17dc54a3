"""The work of `tacho cron step`: run the step, leave its row, and its phase in the run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tachograph.bootstrap import joined
from tachograph.cli.cron_names import check_name
from tachograph.cli.cron_redaction import redactor_in_force, store_of
from tachograph.cli.cron_wrapping import TAIL_BYTES
from tachograph.cli.opening import open_store
from tachograph.cli.options import UsageError
from tachograph.cli.wrapping import CANNOT_RUN, NOT_THERE
from tachograph.domain.cron_log import STEPS
from tachograph.domain.errors import TachographError
from tachograph.domain.exit_ledger import STEPS_REASON, Ledger, ReportedStatus, of_the_harness
from tachograph.executing import described
from tachograph.harnessing import exit_code_of, reported_by, step_row
from tachograph.infra import clock, cron_files, cron_reading
from tachograph.infra.child import run_child
from tachograph.infra.locks import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.ended import Ended
    from tachograph.domain.exit_ledger import LedgerRow
    from tachograph.domain.redaction import Redactor
    from tachograph.session import Session

STRICT = "HYBRID_MEM_STRICT_SEMANTICS"
MOST_DIGITS = 12
"""Of a time limit in seconds: a longer one is none."""
SOFT_FAILURE = 2
"""Exit code of a step whose soft status counts as failed."""


def step(params: Params, out: Output) -> int:
    """Run a step and return its exit code; what cannot be written is told, and makes it 1."""
    name = check_name("The step", params.name)
    below_exec = "TACHO_CRON_RUN" in os.environ
    if params.exit_path is None and not below_exec:
        raise UsageError(
            "Which ledger? HM_EXIT names none. Run the script by `tacho cron exec`, or name the "
            "ledger with --exit-path."
        )
    log_path = None if below_exec else params.log_path
    trace = _Trace(out, params.exit_path, log_path, redactor_in_force(store_of(out)))
    trace.begin(name)
    phase = _Phase(out, name)
    reported, soft = ReportedStatus(), ReportedStatus(ReportedStatus.SOFT)

    def take(data: bytes) -> None:
        for each in (reported.add, soft.add, trace.add_output):
            each(data)

    try:
        ended = run_child(
            params.argv,
            os.environ,
            tail_bytes=TAIL_BYTES,
            timeout_seconds=_time_limit(out),
            on_output=take,
        )
    except OSError as error:
        return _not_run(name, error, params, out, trace, phase)
    code, reason = exit_code_of(ended), reported_by(ended, reported.last)
    if code == 0 and soft.last is not None and os.environ.get(STRICT) == "1":
        code, reason = SOFT_FAILURE, f"failed_semantic_{soft.last}"
    row = step_row(clock.now_us(), name, code, reason, ended.seconds)
    trace.end(row)
    phase.end(row, _words(ended))
    _tell(row, out)
    return code or int(trace.broken)


def _tell(row: LedgerRow, out: Output) -> None:
    if out.json:
        from tachograph.cli.output import to_json

        fields = {
            "step": row.step,
            "exitCode": row.exit_code,
            "status": row.status,
            "reason": row.reason,
            "durationMs": row.duration_ms,
        }
        out.warn(to_json(fields))


def _words(ended: Ended) -> str:
    return "stopped at its time limit" if ended.timed_out else described(ended)


def _not_run(
    name: str, error: OSError, params: Params, out: Output, trace: _Trace, phase: _Phase
) -> int:
    what = f"{params.argv[0]} cannot be run: {error.strerror}"
    out.warn(f"tacho: step {name}: {what}")
    code = NOT_THERE if isinstance(error, FileNotFoundError) else CANNOT_RUN
    row = step_row(clock.now_us(), name, code, "failed_not_run", 0.0)
    trace.end(row)
    phase.end(row, what)
    _tell(row, out)
    return code


def _time_limit(out: Output) -> float | None:
    """Return the seconds of STEP_TIMEOUT_SECONDS; None for 0, and without it."""
    text = os.environ.get("STEP_TIMEOUT_SECONDS", "").strip()
    if text and not (text.isascii() and text.isdecimal()):
        out.warn(f"tacho: STEP_TIMEOUT_SECONDS is {text!r}, no number of seconds: no time limit.")
        return None
    digits = text.lstrip("0")
    if len(digits) > MOST_DIGITS:
        out.warn(f"tacho: STEP_TIMEOUT_SECONDS is {digits[:MOST_DIGITS]}…: no time limit.")
        return None
    return float(digits) if digits else None


class _Trace:
    """The ledger and log of the job, as one step writes to them."""

    def __init__(
        self,
        out: Output,
        exit_path: str | None,
        log_path: str | None,
        redactor: Redactor | None,
    ) -> None:
        self.broken = exit_path is None
        self._out = out
        self._exit = exit_path
        self._redactor = redactor
        self._log = None if log_path is None else cron_files.LogFile(log_path, self._warn, redactor)

    def begin(self, name: str) -> None:
        """Say in the log that the step begins; below `cron exec` that reads what we print."""
        marks = [STEPS] if self._log is None and self._is_first() else []
        for line in [*marks, f"--- step {name} ---"]:
            if self._log is None:
                self._out.warn(line)
            else:
                self._log.line(line)

    def _is_first(self) -> bool:
        """Say whether no step has begun, and that now one has: several may begin at once."""
        if self._exit is None:
            return True
        if "TACHO_CRON_RUN" not in os.environ:  # a ledger of the original's: it gets rows only
            return not self._reached_steps()
        try:
            with FileLock(self._exit):
                if self._reached_steps():
                    return False
                row = of_the_harness(clock.now_us(), STEPS_REASON)
                cron_files.append_line(self._exit, str(row))
        except OSError:
            pass  # the row of the step will tell
        return True

    def _reached_steps(self) -> bool:
        text = cron_reading.CronFiles().text(self._exit or "", may_be_missing=True)
        return Ledger(text or "").reached_steps

    def add_output(self, data: bytes) -> None:
        """Take output of the step."""
        if self._log is not None:
            self._log.add(data)

    def end(self, row: LedgerRow) -> None:
        """Leave the row of the step."""
        if self._log is not None:
            self._log.close()
        if self._exit is None:
            self._out.warn(f"tacho: step {row.step} has no ledger to leave its row in.")
            return
        if self._redactor is not None and row.reason is not None:
            row.reason = self._redactor.redact(row.reason)
        try:
            cron_files.append_line(self._exit, str(row))
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        self.broken = True
        self._out.warn(f"tacho: {error.filename or self._exit}: {error.strerror}")


class _Phase:
    """The phase of the run that stands for the step; without a run, nothing."""

    def __init__(self, out: Output, name: str) -> None:
        self._out = out
        self._name = name
        self._session = self._opened()
        if self._session is not None and not self._tried(self._session.start_phase, name):
            self._session = None

    def _opened(self) -> Session | None:
        at = joined()
        if at is None:
            return None
        try:
            return open_store(self._out).session(*at)
        except (TachographError, OSError) as error:
            self._out.warn(f"tacho: step {self._name} is not in the store: {error}")
            return None

    def end(self, row: LedgerRow, words: str) -> None:
        """End the phase as the step ended; one that need not end well fails no run."""
        if self._session is None:
            return
        required = os.environ.get("HM_REQUIRED_STEPS", "").split()
        status = "completed"
        if row.failed:
            status = "failed" if row.step in required or not required else "skipped"
        elif row.skipped:
            status = "skipped"
        said = words if row.reason is None else f"{words}, {row.reason}"
        session = self._session
        self._tried(lambda name: session.end_phase(name, status=status, summary=said), self._name)

    def _tried(self, record: Callable[[str], None], name: str) -> bool:
        try:
            record(name)
        except (TachographError, OSError) as error:
            self._out.warn(f"tacho: step {name} is not in the run: {error}")
            return False
        return True
