"""Say what a run's history is, what is asked, and what follows: three lines a case, no mocks.

    given(CREATED, started(1)).when(Run.start_phase, attempt(1), "parse").then(
        fact(PhaseStarted, phase="parse", safe_to_retry=True)
    )

A history is a list of facts, of commands made with `do`, or both.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest

from tachograph.domain.errors import RefusalError
from tachograph.domain.event import Cause, Event
from tachograph.domain.events import AttemptStarted, RunCreated
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
T = TypeVar("T")

RUN_ID = "job-code-report-0dc845e1"
NOW_US = 1_700_000_000_000_000
OWNER = {"kind": "process", "host": "ada", "pid": 17, "started": 99, "boot_id": "b"}
COMMON = frozenset({"originator_id", "originator_version", "time_us", "by"})


def attempt(epoch: int) -> Cause:
    """A command given by an attempt's own process."""
    return Cause(NOW_US, "tacho", "ada", 17, epoch)


PERSON = Cause(NOW_US, "mira", "ada", 4711)
"""A command given by a person, outside any attempt."""


class Fact:
    """An event without its place, time and cause: what a case is about."""

    def __init__(self, kind: type[Event], fields: dict[str, object]) -> None:
        self.kind = kind
        self.fields = fields

    def at(self, version: int, cause: Cause) -> Event:
        """The event as it is recorded at a version."""
        return self.kind(
            **self.fields,
            originator_id=RUN_ID,
            originator_version=version,
            time_us=cause.time_us,
            by=cause.by(),
        )


def fact(kind: type[Event], /, **fields: object) -> Fact:
    """A fact; a field that is not named is None, and the event refuses names it does not have."""
    unnamed = dict.fromkeys(kind.field_names().keys() - COMMON)
    return Fact(kind, {**unnamed, **fields})


class Do:
    """A command to be carried out."""

    def __init__(self, cause: Cause, call: Callable[[Run], object]) -> None:
        self.cause = cause
        self.call = call


def do(
    method: Callable[Concatenate[Run, Cause, P], object],
    cause: Cause,
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> Do:
    """A command, written as its method, its cause and its arguments."""
    return Do(cause, lambda run: method(run, cause, *args, **kwargs))


CREATED = fact(
    RunCreated,
    command="code-report",
    fingerprint="0dc845e1",
    inputs={"root": "/src"},
    inputs_digest="digest-1",
)


def started(epoch: int) -> Fact:
    """An attempt took the run over."""
    return fact(AttemptStarted, epoch=epoch, owner=OWNER)


class Case:
    """A history, and then a command."""

    def __init__(self, history: Iterable[Fact | Do]) -> None:
        self.events: list[Event] = []
        self.run = Run()
        for entry in history:
            if isinstance(entry, Do):
                entry.call(self.run)
                self.events += self.run.collect_events()
            else:
                event = entry.at(self.run.version + 1, PERSON)
                event.mutate(self.run)
                self.events.append(event)
        self._before = deepcopy(self.run.to_snapshot())
        self._command: Do | None = None

    def when(
        self,
        method: Callable[Concatenate[Run, Cause, P], object],
        cause: Cause,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Case:
        """Name the command; `then` carries it out."""
        return self.when_asked(do(method, cause, *args, **kwargs))

    def when_asked(self, command: Do) -> Case:
        """Name a command that was made before."""
        self._command = command
        return self

    def then(self, *expected: Fact | type[RefusalError], saying: str = "") -> Case:
        """Expect exactly these facts, or this refusal, which has recorded nothing."""
        assert self._command is not None, "name the command with `when` first"
        first = expected[0] if expected else None
        if isinstance(first, type):
            self._refused(first, saying)
        else:
            self._recorded([entry for entry in expected if isinstance(entry, Fact)])
        return self

    def _refused(self, error: type[RefusalError], saying: str) -> None:
        assert self._command is not None
        with pytest.raises(RefusalError) as caught:
            self._command.call(self.run)

        assert caught.type is error, str(caught.value)
        assert saying in str(caught.value)
        assert self.run.pending_events == []
        assert self.run.to_snapshot() == self._before

    def _recorded(self, expected: list[Fact]) -> None:
        assert self._command is not None
        before = self.run.version
        self._command.call(self.run)
        recorded = list(self.run.collect_events())
        self.events += recorded

        assert recorded == [
            entry.at(before + place, self._command.cause)
            for place, entry in enumerate(expected, start=1)
        ]
        assert replayed(self.events).to_snapshot() == self.run.to_snapshot()


def given(*history: Fact | Do) -> Case:
    """Begin a case with a history."""
    return Case(history)


def running(*history: Fact | Do) -> Case:
    """Begin a case with a run in its first attempt, followed by a history."""
    return Case((CREATED, started(1), *history))


def replayed(events: Iterable[Event]) -> Run:
    """Fold events into a run from scratch."""
    run: Any = None
    for event in events:
        run = event.mutate(run)
    assert isinstance(run, Run), "a run has at least one event"
    return run
