"""What a worker tells, as lines on stderr: for people, or JSON. Decides nothing."""

from __future__ import annotations

import sys
from threading import Lock
from typing import TYPE_CHECKING

from tachograph.cli.output import to_json
from tachograph.cli.tables import shown
from tachograph.infra.clock import iso, now_us
from tachograph.queues.told import SERIOUS, Told

if TYPE_CHECKING:
    from tachograph.cli.output import Output
    from tachograph.queues.working import Worker


class Lines:
    """Writes one line for each thing that happened. Threads share it."""

    def __init__(self, out: Output, *, as_json: bool = False) -> None:
        self._out = out
        self._as_json = as_json
        self._lock = Lock()

    def tell(self, told: Told) -> None:
        """Write a line; `--quiet` leaves out what is no trouble."""
        if self._out.quiet and told.event not in SERIOUS:
            return
        time = iso(now_us())
        if self._as_json:
            line = to_json({"time": time, **rounded(told)})
        else:
            line = f"{time} {text_of(told)}"
        with self._lock:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def refresh(self, worker: Worker) -> None:
        """Show nothing: lines come as things happen."""

    def close(self) -> None:
        """Do nothing: every line is written already."""


def rounded(told: Told) -> dict[str, object]:
    """Return what is told, times with milliseconds."""
    fields = told.to_fields()
    if told.seconds is not None:
        fields["seconds"] = round(told.seconds, 3)
    return fields


def text_of(told: Told) -> str:
    r"""Return what is told as words.

    >>> text_of(Told("dead", job="7", queue="memory", error="no\nway"))
    'dead memory job=7 error="no way"'
    """
    words = [told.event]
    if told.queue is not None:
        words.append(told.queue if told.type is None else f"{told.queue}/{told.type}")
    for name, value in (("job", told.job), ("attempt", told.attempt), ("outcome", told.outcome)):
        if value is not None:
            words.append(f"{name}={value}")
    if told.seconds is not None:
        words.append(f"seconds={told.seconds:.3f}")
    if told.code is not None:
        words.append(f"code={told.code}")
    if told.error is not None:
        words.append(f'error="{shown(" ".join(told.error.split()))}"')
    return " ".join(words)
