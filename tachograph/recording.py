"""What a Python job works with: a recording, its phases, steps and effects.

It holds no rule: every call goes through a `Session`, as every shell command does. The same
objects serve threads and asyncio (`async with`, `async for`); there is no second implementation.
"""

from __future__ import annotations

import asyncio
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from tachograph import approving
from tachograph.contexts import Context, _current
from tachograph.continuing import record_artifact
from tachograph.domain import errors
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import Facts
from tachograph.domain.outcome import STOPPED_BY_PERSON, WAITS_FOR_APPROVAL
from tachograph.keeping import Heartbeat, WarningNotes
from tachograph.measuring import describe, microseconds
from tachograph.phases import PhaseRecording
from tachograph.steps import step_key

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from contextvars import Token
    from datetime import datetime, timedelta

    from tachograph.domain.run import Run
    from tachograph.keeping import Keeper
    from tachograph.session import Session

T = TypeVar("T")


class Recording(Context):
    """One attempt at a run, from Python. Made by `tachograph.record`.

    Leaving the block without an exception finishes the run with the gate's verdict (see
    `judge`); an exception ends the attempt as `failed`, Ctrl-C and `sys.exit` as `partial`.
    Both can be resumed: start the same command with the same inputs again.
    """

    def __init__(
        self,
        start: Callable[[], Session],
        heartbeat_seconds: Callable[[], float],
        log_warnings: bool = True,
        follow: Callable[[Recording], Keeper | None] = lambda _recording: None,
    ) -> None:
        self._start = start
        self._follow = follow
        self._follower: Keeper | None = None
        self._session: Session | None = None
        self._heartbeat_seconds = heartbeat_seconds
        self._log_warnings = log_warnings
        self._keepers: list[Heartbeat | WarningNotes] = []
        self._token: Token[Recording | None] | None = None
        self._stopped: str | None = None

    # What the run is.

    @property
    def session(self) -> Session:
        """The session underneath. Raises RuntimeError outside the `with` block."""
        if self._session is None:
            raise RuntimeError("use `with tachograph.record(...) as run:` to start the run first")
        return self._session

    @property
    def id(self) -> str:
        """The run's id."""
        return self.session.run_id

    @property
    def epoch(self) -> int:
        """The number of this attempt, from 1."""
        return self.session.epoch

    @property
    def resumed(self) -> bool:
        """Whether an earlier attempt recorded something of this run."""
        return self.epoch > 1

    @property
    def state(self) -> Run:
        """The run's state as this attempt last saw it. Read it, do not change it."""
        return self.session.run

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs as they were recorded when the run was created."""
        loaded: dict[str, Any] = self.session.payloads.load(self.state.inputs)
        return loaded

    @property
    def checkpoint(self) -> Any:
        """The state of the last saved checkpoint, None when there is none."""
        saved = self.state.checkpoint
        return None if saved is None else self.session.payloads.load(saved["state"])

    # What the job does.

    def phase(self, name: str, *, safe_to_retry: bool = True) -> PhaseRecording:
        """Return a phase for a `with` block.

        A phase that an earlier attempt ended stays ended: its `completed` is true and the block
        records nothing new. One that was cut off is taken up again.
        """
        return PhaseRecording(self, name, safe_to_retry=safe_to_retry)

    def save_checkpoint(self, state: Any, *, phase: str | None = None) -> None:
        """Record a free-form state to go on from. Durable on return."""
        self.session.save_checkpoint(state, phase=phase)

    def save_offset(
        self, offset: int, total: int, *, phase: str | None = None, **counters: int
    ) -> None:
        """Record that `offset` of `total` units are done, with counters of your own."""
        state = {"offset": offset, "total": total, **counters}
        self.session.save_checkpoint(state, kind="offset", phase=phase)

    def step(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function once per run: a resume returns the recorded result instead.

        The step is known by the function's name and its arguments, so it cannot be a lambda.
        Raises UnstorableValueError, after the call, when the result cannot be stored.
        """
        key = step_key(function, args, kwargs)
        return self.once(key, lambda: function(*args, **kwargs))

    def effect(
        self,
        key: str,
        function: Callable[..., T],
        *args: Any,
        idempotent: bool = False,
        description: str | None = None,
        **kwargs: Any,
    ) -> T:
        """Do a side effect at most once, and return its result.

        The intent is durable before the call and the result after it. When the result is
        recorded already it is returned without a call. When an earlier attempt recorded the
        intent only, the effect is in doubt: `idempotent` repeats it, otherwise
        EffectInDoubtError tells a person what to decide (G10).
        """
        done = self.state.effects.get(key)
        if done is not None and done["status"] == "done":
            restored: T = self.session.recorded_result(done["version"])
            return restored
        self.session.intend_effect(key, idempotent=idempotent, description=description)
        result = function(*args, **kwargs)
        self.session.complete_effect(key, result)
        return result

    def approval(self, name: str, subject: Any) -> None:
        """Go on only when a person has agreed to exactly this subject.

        Otherwise asks for it and raises ApprovalPendingError, which ends the attempt as waiting;
        `tacho run approve` decides, and the run is then resumed. A subject that has changed
        needs a new approval. Raises ApprovalError when this very subject was refused.
        """
        granted, _digest = approving.ask(self.session, name, subject)
        if not granted:
            raise errors.ApprovalPendingError(self.id, name)

    def artifact(self, name: str, path: str | os.PathLike[str]) -> None:
        """Record a file that the run made, with its size and SHA-256."""
        record_artifact(self.session, name, str(path))

    def progress(self, completed: int, total: int | None = None, unit: str = "units") -> None:
        """Record how far the run is. One durable event: report steps, not single items."""
        self.session.execute(lambda run, why: run.report_progress(why, completed, total, unit))

    def retry(
        self,
        kind: str,
        attempt: int,
        *,
        delay_seconds: float = 0.0,
        error: BaseException | str | None = None,
        model: str | None = None,
    ) -> None:
        """Record that something failed and is about to be tried again; waiting is yours."""
        text = None if error is None else error if isinstance(error, str) else describe(error)
        self.session.execute(
            lambda run, why: run.schedule_retry(
                why, kind, attempt, delay_seconds=delay_seconds, error=text, model=model
            )
        )

    def fallback(self, source: str, target: str, reason: str | None = None) -> None:
        """Record that the job goes on with `target` instead of `source`."""
        self.session.execute(lambda run, why: run.take_fallback(why, source, target, reason=reason))

    def note(self, text: str, *, level: str = "note", source: str | None = None) -> None:
        """Add a remark to the run's history."""
        self.session.execute(lambda run, why: run.add_note(why, text, level=level, source=source))

    # What it is measured by.

    def expect(
        self,
        *,
        inputs: int | None = None,
        extracted: int | None = None,
        minimum_fraction: float | None = None,
        files: Iterable[str | os.PathLike[str]] = (),
        deadline: datetime | timedelta | float | None = None,
        reason: str | None = None,
    ) -> None:
        """Record what the run is measured by, before it is done. Call it again to say more.

        `inputs` items there are to work on, `extracted` items were found before any filter or
        classifier had its say, `minimum_fraction` of the work has to come out (0 to 1), `files`
        have to be written anew, and work has to stop at the `deadline`: an aware datetime, or
        seconds (or a timedelta) from now. Raises InvalidValueError for what makes no sense.
        """
        deadline_us = None
        if deadline is not None:
            deadline_us = microseconds("deadline", deadline, self.session.now_us())
        said = Expectations(
            inputs=inputs,
            extracted=extracted,
            minimum_fraction=minimum_fraction,
            deadline_us=deadline_us,
        )
        self.session.expect(said, files=[str(path) for path in files], reason=reason)

    @property
    def deadline_left(self) -> float | None:
        """Seconds to the declared deadline, negative once it passed; None when there is none."""
        deadline_us = (self.state.expectations or {}).get("deadline_us")
        if deadline_us is None:
            return None
        left_us: int = deadline_us - self.session.now_us()
        return left_us / 1_000_000

    def answered(
        self,
        text: Any = None,
        *,
        asked: int,
        answered: int | None = None,
        parsed: int | None = None,
        accepted: int | None = None,
        filtered: int | None = None,
        declared: str | None = None,
        fault: str | None = None,
        error: BaseException | str | None = None,
        source: str | None = None,
        phase: str | None = None,
        batch: int | None = None,
    ) -> None:
        """Record that a model, parser, filter or tool (`source`) was asked, and what came back.

        Of `asked` items it `answered` all, unless it is said, and none when the `fault` is that
        of a `provider`. `parsed` could be read, `accepted` passed validation, `filtered` were
        taken out. `declared` is its explicit word that there is nothing to do about them.
        `fault` is `provider`, `parser`, `truncated`, `filter` or `tool`, and `error` what was
        raised. `text` is what it returned: keep it, so that `tacho run explain` can show it.
        """
        if answered is None:
            answered = 0 if fault == "provider" else asked
        self.session.receive_answer(
            text=text,
            asked=asked,
            answered=answered,
            parsed=parsed,
            accepted=accepted,
            filtered=filtered,
            declared=declared,
            fault=fault,
            error=describe(error) if isinstance(error, BaseException) else error,
            source=source,
            phase=phase,
            batch=batch,
        )

    # What came of it.

    def outputs(self, phase: str) -> list[Any]:
        """Return the outputs of a phase's finished batches in batch order.

        A batch whose output is a list or tuple counts as its items.
        """
        items: list[Any] = []
        for _index, output in sorted(self.session.batch_outputs(phase), key=itemgetter(0)):
            if isinstance(output, list | tuple):
                items.extend(output)
            elif output is not None:
                items.append(output)
        return items

    def judge(
        self,
        *,
        inputs: int | None = None,
        outputs: int | None = None,
        declared: str | None = None,
        stopped: str | None = None,
        faults: int | None = None,
        **others: Any,
    ) -> str:
        """Let the semantic gate judge what the run did, and return the outcome (G12).

        `inputs` items there were, `outputs` usable results came out; `declared` says why there
        was nothing to do, `stopped` why it stopped early, `faults` counts model, parser and
        provider failures that nothing made good. `others` are further facts of
        `domain.facts.MEANINGS`, such as `extracted` or `asked`. What is left unsaid is counted
        from what the run recorded. The last judgement decides how the run finishes.
        """
        facts = Facts(inputs, outputs, declared, stopped or self._stopped, faults, **others)
        return self.session.judge(facts)

    def stop(self, reason: str) -> str:
        """Say that the run stops early (`deadline`, `budget`), and return its outcome so far.

        From now on every judgement of this attempt knows it. Raises InvalidValueError for a
        reason that says nothing.
        """
        outcome = self.judge(stopped=reason)
        self._stopped = reason
        return outcome

    def finish(self, outcome: str | None = None, *, reason: str | None = None) -> str:
        """End the attempt now, before the block ends."""
        return self.session.finish(outcome, reason=reason)

    # The block.

    def once(self, key: str, call: Callable[[], T]) -> T:
        """Return the recorded result of a step, or call and record it."""
        version = self.state.steps.get(key)
        if version is not None:
            restored: T = self.session.recorded_result(version)
            return restored
        result = call()
        self.session.complete_step(key, result)
        return result

    async def once_async(self, key: str, call: Callable[[], Any]) -> Any:
        """Do what `once` does for a coroutine function."""
        version = self.state.steps.get(key)
        if version is not None:
            return await asyncio.to_thread(self.session.recorded_result, version)
        result = await call()
        await asyncio.to_thread(self.session.complete_step, key, result)
        return result

    def _enter(self) -> None:
        self._session = self._start()
        self._keepers = [Heartbeat(self._session.beat, self._heartbeat_seconds())]
        if self._log_warnings:
            self._keepers.append(WarningNotes(self.note))
        self._follower = self._follow(self)
        for keeper in self._keepers:
            keeper.start()
        if self._follower is not None:
            self._follower.start()

    def _bind(self) -> None:
        self._token = _current.set(self)

    def _unbind(self) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def _leave(self, error: BaseException | None) -> None:
        for keeper in reversed(self._keepers):
            keeper.stop()
        try:
            self._end(error)
        finally:
            if self._follower is not None:
                self._follower.stop()

    def _end(self, error: BaseException | None) -> None:
        if isinstance(error, errors.FencedError) or not self.state.attempt_open:
            return  # another attempt owns the run now, or the job has finished it itself
        if error is None:
            self.session.finish()
        elif isinstance(error, KeyboardInterrupt):
            self._end_cut_off("partial", error, STOPPED_BY_PERSON)
        elif isinstance(error, errors.ApprovalPendingError):
            self._end_cut_off("partial", error, WAITS_FOR_APPROVAL)
        elif isinstance(error, SystemExit | GeneratorExit):
            self._end_cut_off("partial", error, "interrupted")
        elif isinstance(error, asyncio.CancelledError):
            self._end_cut_off("partial", error, "cancelled")
        else:
            self._end_cut_off("failed", error, "exception")

    def _end_cut_off(self, outcome: str, error: BaseException, code: str) -> None:
        """Record how the attempt ended, without hiding the exception that ended it."""
        try:
            self.session.finish(outcome, reason=describe(error), reason_code=code)
        except errors.TachographError as refusal:
            error.add_note(f"Tachograph could not record the end of run {self.id}: {refusal}")
