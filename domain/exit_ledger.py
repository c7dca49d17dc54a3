"""The ledger of a cron job (HM_EXIT): one line for each step that ended. Reads and writes no file.

It is the compatibility layer: what the original harness and ours leave behind for readers that
know no summary.
"""

from __future__ import annotations

from time import gmtime, strftime

from tachograph.domain.records import _Fields
from tachograph.domain.text_lines import text_lines, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STEP_OK = "ok"
STEP_FAILED = "failed"
STEP_SKIPPED = "skipped"
STEP_STARTED = "started"
STATUSES = (STEP_OK, STEP_FAILED, STEP_SKIPPED, "skipped_guard", STEP_STARTED)
"""Any other status makes a line one that does not parse."""

BOOTSTRAP = "harness-bootstrap"
BOOTSTRAP_REASON = "harness_bootstrap_started"
EXECUTION_REASON = "harness_execution_started"
"""Of a row below which a new execution of the run begins: no row above it counts any more."""
STEPS_REASON = "harness_steps_started"
"""Of a row that the first step leaves when it begins: the script has reached its steps."""
VALIDATION = "validate-cron-exit"
OF_THE_HARNESS = (BOOTSTRAP, VALIDATION)
"""Names of rows that the harness writes about itself; they are no steps."""

SKIP_SUFFIX = "-skipped"
SKIP_REASONS = ("skipped_cooldown", "skipped_concurrency")

_TIME = "0000-00-00T00:00:00Z"
_FIELDS = ("status", "reason", "duration_ms")


class LedgerRow(_Fields):
    """One line. `time` is its text, `status`, `reason` and `duration_ms` are None when absent."""

    __slots__ = ("duration_ms", "exit_code", "reason", "status", "step", "time")

    def __init__(
        self,
        time: str,
        step: str,
        exit_code: int,
        *,
        status: str | None = None,
        reason: str | None = None,
        duration_ms: int | None = None,
    ) -> None:
        self.time = time
        self.step = step
        self.exit_code = exit_code
        self.status = status
        self.reason = reason
        self.duration_ms = duration_ms

    @property
    def failed(self) -> bool:
        """Whether the step failed, by its exit code or by what it says."""
        return self.exit_code != 0 or self.status == STEP_FAILED

    @property
    def skipped(self) -> bool:
        """Whether the step says that it did not do its work, and on purpose."""
        said = self.status is not None and self.status.startswith(STEP_SKIPPED)
        return not self.failed and (said or self.reason in SKIP_REASONS)

    def __str__(self) -> str:
        """Return the line, without its end."""
        values = (self.status, self.reason, self.duration_ms)
        more = [
            f"{name}={value}"
            for name, value in zip(_FIELDS, values, strict=True)
            if value is not None
        ]
        return " ".join([self.time, self.step, f"exit={self.exit_code}", *more])


def parse_row(line: str) -> LedgerRow | None:
    """Return the row of a line; None for one that is no row, from its first character to its last.

    >>> str(parse_row("2024-05-08T02:15:30Z step=prune exit=0 status=ok duration_ms=12"))
    '2024-05-08T02:15:30Z prune exit=0 status=ok duration_ms=12'
    >>> parse_row("2024-05-08T02:15:30Z prune exit=0 status=fine")
    """
    words = words_of(line)
    if len(words) < 3 or not is_time(words[0]):
        return None
    exit_code = _whole(words[2].removeprefix("exit="))
    step = words[1].removeprefix("step=")
    fields = _fields(words[3:])
    if exit_code is None or not words[2].startswith("exit=") or not step or fields is None:
        return None
    duration = fields.get("duration_ms")
    return LedgerRow(
        words[0],
        step,
        exit_code,
        status=fields.get("status"),
        reason=fields.get("reason"),
        duration_ms=None if duration is None else int(duration),
    )


def _fields(words: Sequence[str]) -> dict[str, str] | None:
    """Return what follows the exit code; None when it is not as it has to be, in its order."""
    found: dict[str, str] = {}
    left = list(_FIELDS)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in left or not equals or not value:
            return None
        del left[: left.index(name) + 1]
        found[name] = value
    duration = found.get("duration_ms", "0")
    good = found.get("status", STEP_OK) in STATUSES and duration.isascii() and duration.isdecimal()
    return found if good else None


def is_time(text: str) -> bool:
    """Say whether a text is a time as rows have it."""
    if len(text) != len(_TIME) or text[4::3] != _TIME[4::3]:
        return False
    digits = text[:4] + text[5:19].replace("-", "").replace("T", "").replace(":", "")
    return len(digits) == 14 and digits.isascii() and digits.isdecimal()


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 12 else None


class Ledger:
    """All lines of a ledger: the rows that are steps, and what does not parse.

    The same file serves every execution of a run, and every attempt at one. Rows count from the
    last row on that begins an execution: an attempt that resumes one may use the rows of those
    before it, a new execution none.
    """

    def __init__(self, text: str) -> None:
        self.rows: list[LedgerRow] = []
        """Rows of steps, in their order; those of the harness itself are left out."""
        self.unparsable: list[tuple[int, str]] = []
        """Number, from 1, and text of each line that is no row."""
        self.reached_steps = False
        """Whether a row says that the script has reached its steps."""
        for number, line in enumerate(text_lines(text), start=1):
            row = parse_row(line)
            if row is None and line.strip():
                self.unparsable.append((number, line.strip()))
            elif row is not None:
                self._take(row)

    def _take(self, row: LedgerRow) -> None:
        if row.step not in OF_THE_HARNESS:
            if row.status != STEP_STARTED:
                self.rows.append(row)
                self.reached_steps = True
        elif row.reason == EXECUTION_REASON:
            self.rows.clear()
            self.reached_steps = False
        elif row.reason == STEPS_REASON:
            self.reached_steps = True

    @property
    def last(self) -> dict[str, LedgerRow]:
        """The last row of each step: it counts."""
        return {row.step: row for row in self.rows}


def of_the_harness(time_us: int, reason: str) -> LedgerRow:
    """Return a row by which the harness says how far it is; it is no step."""
    return LedgerRow(row_time(time_us), BOOTSTRAP, 0, status=STEP_STARTED, reason=reason)


def row_time(time_us: int) -> str:
    """Return a time as rows have it: UTC, to the second.

    >>> row_time(1_715_134_530_999_999)
    '2024-05-08T02:15:30Z'
    """
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(time_us // 1_000_000))


def status_of(exit_code: int, reported: str | None) -> tuple[str, str | None]:
    """Return status and reason of a row, by the exit code and the last status that was printed.

    A command that prints `status=failed_…` has failed, whatever its exit code. What one printed
    that failed by its exit code stays its reason, and is no better for it.

    >>> status_of(0, "success_analyzed"), status_of(0, "failed_parse"), status_of(3, None)
    (('ok', 'success_analyzed'), ('failed', 'failed_parse'), ('failed', 'nonzero_exit'))
    """
    if exit_code:
        return STEP_FAILED, reported or "nonzero_exit"
    if reported is None:
        return STEP_OK, None
    if reported.startswith(STEP_FAILED):
        return STEP_FAILED, reported
    return (STEP_SKIPPED if reported.startswith(STEP_SKIPPED) else STEP_OK), reported


class ReportedStatus:
    r"""Finds the last `status=` token in output that comes in pieces. Keeps no more than a word.

    A token is a word of its own: neither `exit_status=failed` nor `status=failed_count=0` is one.

    >>> found = ReportedStatus()
    >>> found.add(b"done status=failed"); found.add(b"_parse\n"); found.last
    'failed_parse'
    """

    PATTERN = rb"success_[A-Za-z0-9_-]+|skipped_[A-Za-z0-9_-]+|failed(?:_[A-Za-z0-9_-]+)?"
    SOFT = rb"no_candidates|no_changes|degraded"
    """What counts as failed where HYBRID_MEM_STRICT_SEMANTICS=1 asks for it."""
    _LONGEST = 1024
    """Bytes of a word that may be cut in two; a longer one holds no token."""
    _OF_WORDS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_=.-"

    def __init__(self, pattern: bytes = PATTERN) -> None:
        import re

        self._pattern = re.compile(
            rb"(?<![A-Za-z0-9_=.-])status=(" + pattern + rb")(?![A-Za-z0-9_=-])"
        )
        self._last: str | None = None
        self._rest = b""
        self._too_long = False

    @property
    def last(self) -> str | None:
        """The last token so far; None when there was none."""
        self._look(self._rest)
        return self._last

    def add(self, data: bytes) -> None:
        """Take more of the output."""
        if self._too_long:
            data = data.lstrip(self._OF_WORDS)
            self._too_long = not data
        text = self._rest + data
        whole = len(text.rstrip(self._OF_WORDS))  # the last word may go on
        self._look(text[:whole])
        self._rest = text[whole:]
        if len(self._rest) > self._LONGEST:
            self._rest, self._too_long = b"", True

    def _look(self, text: bytes) -> None:
        for found in self._pattern.finditer(text):
            self._last = found[1].decode("ascii")
