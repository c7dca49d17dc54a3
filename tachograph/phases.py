"""Phases and batches of a recording. They hold no rule: the session's run decides."""

from __future__ import annotations

import asyncio
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tachograph.contexts import Context
from tachograph.domain import errors
from tachograph.domain.nothing import Spoken
from tachograph.measuring import count_items

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from tachograph.recording import Recording

T = TypeVar("T")


class PhaseRecording(Context):
    """A phase of a recording, in its `with` block."""

    def __init__(self, recording: Recording, name: str, *, safe_to_retry: bool) -> None:
        self.recording = recording
        self.name = name
        self._safe_to_retry = safe_to_retry
        self.completed = False
        """Whether an earlier attempt, or this one, has ended the phase well."""
        self._taken_up = False

    def batches(self, items: Sequence[T], *, size: int = 1) -> Batches[T]:
        """Cut items into batches of `size` and return those that are not finished.

        The plan is recorded: a resume over other items is refused with InputsChangedError.
        Keep the items of an earlier attempt with `run.step`.
        """
        return Batches(self, items, size)

    def map(
        self,
        function: Callable[[Sequence[T]], Any],
        items: Sequence[T],
        *,
        size: int = 1,
        executor: Executor | None = None,
    ) -> list[Any]:
        """Work through all unfinished batches with a function and return the phase's outputs.

        A function that has nothing to do about its items returns `Nothing(reason)`.

        With an `executor` they run side by side and may finish in any order; each is recorded
        when it finishes. The first exception stops the phase once running batches ended.
        """
        batches = self.batches(items, size=size)
        if executor is None:
            for batch in batches:
                batch.complete(function(batch.items))
        else:
            _run_side_by_side(executor, function, batches)
        return self.recording.outputs(self.name)

    def answered(self, text: Any = None, *, asked: int, **said: Any) -> None:
        """Record what a model, parser, filter or tool was asked here: see `Recording.answered`."""
        self.recording.answered(text, asked=asked, phase=self.name, **said)

    def stop(self, reason: str) -> None:
        """Stop early (`deadline`, `budget`): the phase stays open, and the run ends as partial.

        Leave the block after it. The next attempt goes on with the batches that are left. See
        `Recording.stop`.
        """
        self.recording.stop(reason)
        self._taken_up = False

    def skip(self, reason: str) -> None:
        """End the phase as skipped."""
        self.recording.session.end_phase(self.name, status="skipped", summary=reason)
        self._taken_up = False

    def end(self, summary: str | None = None) -> None:
        """End the phase now, with a summary."""
        self.recording.session.end_phase(self.name, summary=summary)
        self.completed = True
        self._taken_up = False

    def _enter(self) -> None:
        known = self.recording.state.phases.get(self.name)
        if known is not None and known.status in ("completed", "skipped"):
            self.completed = known.status == "completed"
            return
        self.recording.session.start_phase(self.name, safe_to_retry=self._safe_to_retry)
        self._taken_up = True

    def _leave(self, error: BaseException | None) -> None:
        # After an exception the phase stays open, so that a resume takes it up again.
        if error is None and self._taken_up:
            self.end()


class Batches(Generic[T]):
    """The unfinished batches of a phase: iterate with `for` or `async for`."""

    def __init__(self, phase: PhaseRecording, items: Sequence[T], size: int) -> None:
        if size < 1:
            raise errors.InvalidValueError("batch size", size, "it must be 1 or more")
        self._phase = phase
        self._items = items
        self._size = size
        self.total = -(-len(items) // size)
        """Number of batches, finished ones included."""

    def __iter__(self) -> Iterator[Batch[T]]:
        session = self._phase.recording.session
        name = self._phase.name
        if not self._phase.completed:
            digest = session.payloads.digest(list(self._items), "items")
            session.plan_batches(name, self.total, self._size, digest)
        for index in session.run.phases[name].done.missing(self.total):
            first = index * self._size
            yield Batch(self._phase, index, self._items[first : first + self._size])

    async def __aiter__(self) -> AsyncIterator[Batch[T]]:
        batches = iter(self)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield batch


class Batch(Generic[T]):
    """One batch: complete it when its output is accepted."""

    __slots__ = ("_phase", "index", "items")

    def __init__(self, phase: PhaseRecording, index: int, items: Sequence[T]) -> None:
        self._phase = phase
        self.index = index
        self.items = items

    def complete(self, output: Any = None, *, parsed: int | None = None) -> None:
        """Record the batch as finished, durable on return; from any thread, in any order.

        `parsed` counts the usable items of the output: its length where it has one, else 1; a
        blank text or a placeholder is none. `Nothing(reason)` as the output, or in it, says that
        there is nothing to do about these items, or about one.
        """
        spoken = Spoken(output)
        self._phase.recording.session.complete_batch(
            self._phase.name,
            self.index,
            inputs=len(self.items),
            parsed=count_items(spoken.output) if parsed is None else parsed,
            output=spoken.output,
            declared=spoken.reason,
            quiet=spoken.quiet,
        )

    def answered(self, text: Any = None, *, asked: int | None = None, **said: Any) -> None:
        """Record what came back when a model or parser was asked about this batch.

        All its items were `asked` about, unless it is said. The rest is as in
        `Recording.answered`. A `fault` counts as made good once the batch is completed.
        """
        asked = len(self.items) if asked is None else asked
        self._phase.answered(text, asked=asked, batch=self.index, **said)


def _run_side_by_side(
    executor: Executor, function: Callable[[Sequence[T]], Any], batches: Batches[T]
) -> None:
    """Keep the executor fed with two batches per worker, and record what finishes."""
    room = 2 * getattr(executor, "_max_workers", 4)
    waiting = iter(batches)
    running: dict[Future[Any], Batch[T]] = {}
    try:
        while True:
            while len(running) < room and (batch := next(waiting, None)) is not None:
                running[executor.submit(function, batch.items)] = batch
            if not running:
                return
            error = _record_finished(running, wait(running, return_when=FIRST_COMPLETED).done)
            if error is not None:
                raise error
    except BaseException:
        for future in running:
            future.cancel()
        _record_finished(running, wait(running).done)
        raise


def _record_finished(
    running: dict[Future[Any], Batch[T]], done: set[Future[Any]]
) -> BaseException | None:
    """Record every batch that succeeded; return the first error of those that did not."""
    failed: BaseException | None = None
    for future in done:
        batch = running.pop(future)
        if future.cancelled():
            continue
        failed = failed or future.exception()
        if future.exception() is None:
            batch.complete(future.result())
    return failed
