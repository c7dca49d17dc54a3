"""What one command, or one saved card, wants changed in a task. Plain values: records nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tachograph import cards

if TYPE_CHECKING:
    from collections.abc import Mapping

ENDS = {"done": cards.DONE, "completed": cards.DONE, "failed": cards.TASK_FAILED}


@dataclass(frozen=True)
class Past:
    """When an imported task was begun and worked on last, in microseconds, at most now.

    `said` are the times of its card as they are written there. `worked_us` is None where the card
    does not say. `entry` tells of the import in its history.
    """

    now_us: int
    created_us: int | None
    worked_us: int | None
    said: dict[str, str]
    entry: dict[str, Any]


@dataclass
class Wish:
    """Changes of a task. None means: as it is.

    `status` is the word to be shown. `result` says what it means where the command does: done,
    blocked or failed. `artifacts`, `meta`, `more` and `watchdog` hold single changes; a value
    of None takes one away. `entries` are taken into the history as they are; without any, and
    with an `event`, the command itself becomes an entry.
    """

    event: str | None = None
    message: str = ""
    status: str | None = None
    result: str | None = None
    checkpoint: bool = False
    phase: str | None = None
    title: str | None = None
    mode: str | None = None
    owner_skill: str | None = None
    notes: str | None = None
    adapter: str | None = None
    resume_command: str | None = None
    stale_after_minutes: float | None = None
    max_retries: int | None = None
    safe_to_retry: bool | None = None
    allow_auto_resume: bool | None = None
    retries: int = 0
    attempt_at: str | None = None
    error: str | None = None
    artifacts: dict[str, Any] = field(default_factory=dict)
    artifact_phases: dict[str, str] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    watchdog: dict[str, Any] = field(default_factory=dict)
    entries: list[Any] = field(default_factory=list)
    past: Past | None = None
    """What an imported card says of its past; None for what happens now."""

    @property
    def meaning(self) -> str | None:
        """What the wished status means; None where none is wished."""
        if self.result is not None:
            return self.result
        if self.status is None:
            return cards.RUNNING if self.checkpoint else None
        return ENDS.get(self.status, self.status)

    @property
    def works(self) -> bool:
        """Whether it is work on the task, which only the current attempt may do."""
        return bool(self.checkpoint or self.meaning is not None or self.phase or self.artifacts)

    @property
    def waits(self) -> bool:
        """Whether the task is to wait until somebody starts it."""
        return self.meaning == cards.PENDING and not self.checkpoint

    @property
    def declares(self) -> bool:
        """Whether it changes how the task may be resumed."""
        said = (
            self.adapter,
            self.resume_command,
            self.stale_after_minutes,
            self.max_retries,
            self.safe_to_retry,
            self.allow_auto_resume,
        )
        return any(each is not None for each in said)

    def shown_status(self, now: str) -> str:
        """Return the status word after it; `now` is the word before."""
        return self.status or self.meaning or now


def merged(known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with single changes made, also in values that hold values.

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    found = dict(known)
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = merged(found[name], value)
        else:
            found[name] = value
    return found
