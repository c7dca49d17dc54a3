"""The traces of one run of a cron job, as `tacho cron exec` writes them: without secrets (G13).

An error of a disk is told once for each file, and kept for the exit code; it stops no job.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tachograph.domain.exit_ledger import EXECUTION_REASON, Ledger, of_the_harness
from tachograph.infra import clock, cron_files, cron_reading
from tachograph.validating_exits import validate_exit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.exit_ledger import LedgerRow
    from tachograph.domain.exit_report import ExitReport
    from tachograph.domain.redaction import Redactor
    from tachograph.infra.cron_files import CronPaths

Trace = tuple[int, int]


class CronTraces:
    """The files of a run; with paths of None there are none, and nothing is written."""

    def __init__(
        self, out: Output, job: str, paths: CronPaths | None, redactor: Redactor | None
    ) -> None:
        self.paths = paths
        self.broken = paths is None
        """Whether something is missing in them."""
        self._out = out
        self._job = job
        self._redactor = redactor
        self._told: set[tuple[object, object]] = set()
        self._ledger_counts = True
        self._log = None if paths is None else cron_files.LogFile(paths.log, self._warn, redactor)
        self._summary_before = _trace(None if paths is None else paths.summary)
        self._validation_before = _trace(None if paths is None else paths.validation)

    def _warn(self, error: OSError) -> None:
        self.broken = True
        if (error.filename, error.errno) not in self._told:
            self._told.add((error.filename, error.errno))
            what = error.filename or "a cron trace"
            self._out.warn(f"tacho: {what}: {error.strerror}; the job goes on.")

    def tried(self, write: Callable[[], None]) -> bool:
        """Write a trace; an error is told, and costs the exit code 0."""
        try:
            write()
        except OSError as error:
            self._warn(error)
            return False
        return True

    # What there was before this attempt.

    @property
    def have_a_verdict(self) -> bool:
        """Whether an earlier attempt has left its verdict."""
        return self._validation_before is not None

    @property
    def are_of_others(self) -> bool:
        """Whether the files were there before."""
        return self.paths is not None and self.paths.are_old

    @property
    def judged(self) -> bool:
        """Whether this attempt has left its verdict."""
        now = _trace(None if self.paths is None else self.paths.validation)
        return now is not None and now != self._validation_before

    @property
    def summary_was_written(self) -> bool:
        """Whether there is a summary of this attempt."""
        now = _trace(None if self.paths is None else self.paths.summary)
        return now is not None and now != self._summary_before

    # The ledger.

    def begin_execution(self) -> None:
        """Say that no row that is there is of this execution."""
        if not self.row(of_the_harness(clock.now_us(), EXECUTION_REASON)):
            self._ledger_counts = False  # better none than that of another execution

    def row(self, row: LedgerRow) -> bool:
        """Leave a row; False when there is a ledger, and it cannot be written."""
        if self.paths is None:
            return True
        if self._redactor is not None and row.reason is not None:
            row.reason = self._redactor.redact(row.reason)
        path = self.paths.exit
        return self.tried(lambda: cron_files.append_line(path, str(row)))

    def ledger(self) -> str:
        """Return the text of the ledger, nothing when there is none."""
        if self.paths is None or not self._ledger_counts:
            return ""
        return cron_reading.CronFiles().text(self.paths.exit, may_be_missing=True) or ""

    def have_rows(self) -> bool:
        """Whether any step has left a row."""
        return bool(Ledger(self.ledger()).rows)

    def have_good_rows(self, required: Sequence[str]) -> bool:
        """Whether the ledger has a good row for each step, by a look of its own."""
        paths = self.paths
        return (
            paths is not None
            and self._ledger_counts
            and cron_reading.has_good_rows(paths.exit, required)
        )

    # The log.

    def add_output(self, data: bytes) -> None:
        """Take output of the command, for the log."""
        if self._log is not None:
            self._log.add(data)

    def note(self, text: str) -> None:
        """Add a line to the log."""
        if self._log is not None:
            self._log.line(text)

    def close(self) -> None:
        """Bring the log to the disk."""
        if self._log is not None:
            self._log.close()

    # Summary, verdict and guard.

    def written_summary(self) -> Any:
        """Return the summary that the command wrote; None when it is no JSON, which is told."""
        if self.paths is None:
            return None
        summary = cron_reading.CronFiles().json(self.paths.summary)
        if summary is None:
            self.broken = True
            self._out.warn(f"tacho: {self.paths.summary}: the command has left no JSON there.")
        return summary

    def write_summary(self, summary: Any) -> bool:
        """Write the summary of a command that wrote none."""
        return self.paths is None or self._json(self.paths.summary, summary)

    def write_validation(self, shown: Any) -> None:
        """Write the verdict."""
        if self.paths is not None:
            self._json(self.paths.validation, shown)

    def _json(self, path: str, value: Any) -> bool:
        kept = value if self._redactor is None else self._redactor.redact(value)
        return self.tried(lambda: cron_files.write_json(path, kept, private=True))

    def write_guard(self, path: str, time_ms: int) -> bool:
        """Write the guard; False when it cannot be."""
        return self.tried(lambda: cron_files.write_guard(path, time_ms))

    def validate(
        self, required: Sequence[str], *, allow_skip: bool, with_summary: bool
    ) -> ExitReport:
        """Judge what this execution has left."""
        paths = self.paths
        exit_path = "" if paths is None or not self._ledger_counts else paths.exit
        return validate_exit(
            cron_reading.CronFiles(),
            exit_path,
            required,
            stem=cron_reading.stem_of("" if paths is None else paths.exit) or self._job,
            log_path=None if paths is None else paths.log,
            summary_path=None if paths is None or not with_summary else paths.summary,
            allow_skip=allow_skip,
            ours=True,
        )


def _trace(path: str | None) -> Trace | None:
    """Return what tells one version of a file from the next; None when there is none."""
    if path is None:
        return None
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
