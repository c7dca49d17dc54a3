"""How a run may be continued when its process is gone: what the job declares, as plain data.

No I/O: whether a path exists or a program can be run is not known here.
"""

from __future__ import annotations

from tachograph.domain import checks
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ASK = "ask"
RETRY = "retry"
SKIP = "skip"
IN_DOUBT = (ASK, RETRY, SKIP)
"""What a resume does about effects in doubt: ask a person, do them again, or count them as done."""

_LONGEST = 1e12
"""Seconds. Whoever declares more means for ever, which no number of microseconds holds."""

CODE = "code"
INPUT = "input"


class Recovery(_Fields):
    """What a job declares about being resumed.

    `adapter` (`module:function`, the name of an entry point, or the path of an executable) or
    else `command` (a list of words) continues the run, in `working_folder`. `auto_resume` lets
    the watchdog do so, `safe_to_retry` says that repeating what was cut off does no harm. Without
    progress for `stale_after_seconds` a run whose owner lives is reported, and with
    `kill_stalled` its owner is stopped and the run resumed. At most `max_retries` unattended
    resumes in a row may bring no progress; the pause between them begins with `backoff_seconds`
    and doubles. After `resume_window_seconds` without work the run expires. `in_doubt` is one of
    IN_DOUBT. `traces` are files (path, size, sha256, and `what`: code or input) whose change
    since then a plan reports. `artifact_check` is a command (a list of words) that looks at an
    artifact, whose path is added, and ends with 0 when it is good. `python` is the Python that
    runs an adapter which is a `.py` file; without it, that of Tachograph. What is None is not
    limited, or not known.
    """

    __slots__ = (
        "adapter",
        "artifact_check",
        "auto_resume",
        "backoff_seconds",
        "command",
        "in_doubt",
        "kill_stalled",
        "max_retries",
        "python",
        "resume_window_seconds",
        "safe_to_retry",
        "stale_after_seconds",
        "timeout_seconds",
        "traces",
        "working_folder",
    )

    def __init__(
        self,
        *,
        adapter: str | None = None,
        command: Sequence[str] | None = None,
        working_folder: str | None = None,
        auto_resume: bool = False,
        safe_to_retry: bool = True,
        stale_after_seconds: float | None = None,
        max_retries: int = 2,
        backoff_seconds: float = 60,
        resume_window_seconds: float | None = None,
        kill_stalled: bool = False,
        in_doubt: str = ASK,
        timeout_seconds: float | None = None,
        traces: Sequence[Mapping[str, Any]] = (),
        artifact_check: Sequence[str] | None = None,
        python: str | None = None,
    ) -> None:
        self.adapter = adapter
        self.command = _listed(command)
        self.working_folder = working_folder
        self.auto_resume = auto_resume
        self.safe_to_retry = safe_to_retry
        self.stale_after_seconds = stale_after_seconds
        self.max_retries = max_retries
        self.backoff_seconds = backoff_seconds
        self.resume_window_seconds = resume_window_seconds
        self.kill_stalled = kill_stalled
        self.in_doubt = in_doubt
        self.timeout_seconds = timeout_seconds
        self.traces = [dict(each) if isinstance(each, dict) else each for each in traces]
        self.artifact_check = _listed(artifact_check)
        self.python = python

    def check(self) -> None:
        """Raise InvalidValueError for what makes no sense."""
        for what in ("adapter", "working_folder", "python"):
            if getattr(self, what) is not None:
                _check_text(what.replace("_", " "), getattr(self, what))
        for what in ("command", "artifact_check"):
            if getattr(self, what) is not None:
                _check_words(what.replace("_", " "), getattr(self, what))
        for what in ("stale_after_seconds", "resume_window_seconds", "timeout_seconds"):
            if getattr(self, what) is not None:
                checks.at_least(what.replace("_", " "), getattr(self, what), 0)
        if self.timeout_seconds == 0:
            raise InvalidValueError("timeout seconds", 0, "give a time above 0, or None for none")
        checks.at_least("backoff seconds", self.backoff_seconds, 0)
        checks.whole("max retries", self.max_retries, 0)
        checks.one_of("in doubt", self.in_doubt, IN_DOUBT)
        if self.kill_stalled and self.stale_after_seconds is None:
            raise InvalidValueError("kill stalled", True, "say with stale_after_seconds when")  # noqa: FBT003
        for trace in self.traces:
            _check_trace(trace)

    @property
    def can_be_dispatched(self) -> bool:
        """Whether something is named that continues the run."""
        return self.adapter is not None or self.command is not None

    def pause_us(self, futile: int) -> int:
        """Return the pause after so many resumes in a row without progress: at most an hour.

        >>> [Recovery(backoff_seconds=60).pause_us(n) // 60_000_000 for n in (0, 1, 2, 3, 99)]
        [0, 1, 2, 4, 60]
        """
        if not futile:
            return 0
        doubled = self.backoff_seconds * (1 << min(futile - 1, 20))
        return round(min(_LONGEST, doubled, max(3600.0, self.backoff_seconds)) * 1_000_000)

    def changed(self, **named: Any) -> Recovery:
        """Return a copy with some values changed.

        >>> Recovery(max_retries=2).changed(max_retries=5).max_retries
        5
        """
        return Recovery(**{**{name: getattr(self, name) for name in self.__slots__}, **named})

    def to_fields(self) -> dict[str, Any]:
        """Return plain values to store in an event; what has its default value is left out.

        >>> Recovery(adapter="jobs:resume", max_retries=2).to_fields()
        {'adapter': 'jobs:resume'}
        """
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value != getattr(_NONE, name)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any] | None) -> Recovery:
        """Return what an event stored; names that only a newer Tachograph knows are left out."""
        return cls(**{name: value for name, value in (fields or {}).items() if name in _KNOWN})


def _listed(words: Sequence[str] | None) -> list[str] | None:
    """Return a list of its own; a text stays one, for `check` to refuse, not a list of letters."""
    return words if words is None or isinstance(words, str) else list(words)  # type: ignore[return-value]


def _check_text(what: str, value: object) -> None:
    checks.text(what, value)
    if "\0" in str(value):
        raise InvalidValueError(what, value, "a NUL reaches no program and is in no path")


def _check_words(what: str, words: object) -> None:
    if not isinstance(words, list) or not words or not all(isinstance(each, str) for each in words):
        raise InvalidValueError(what, words, "it must be a list of words")
    if any("\0" in word for word in words):
        raise InvalidValueError(what, words, "a NUL reaches no program and is in no path")


def _check_trace(trace: object) -> None:
    if not isinstance(trace, dict):
        raise InvalidValueError("trace", trace, "it must hold path, size, sha256 and what")
    _check_text("path of a trace", trace.get("path"))
    checks.whole("size of a trace", trace.get("size"), 0)
    checks.text("sha256 of a trace", trace.get("sha256"))
    checks.one_of("what of a trace", trace.get("what"), (CODE, INPUT))


_KNOWN = frozenset(Recovery.__slots__)
_NONE = Recovery()
