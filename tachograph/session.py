"""One attempt that writes to one run: the only way by which anything records.

The Python API and the shell commands both go through it, so they obey the same rules and leave
the same history.
"""

from __future__ import annotations

from _thread import RLock  # threading costs a short command 3 ms

from tachograph.domain import errors
from tachograph.domain.blank import is_placeholder
from tachograph.domain.event import Cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from tachograph.domain.expectations import Expectations
    from tachograph.domain.facts import Facts
    from tachograph.domain.policy import Policy
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    T = TypeVar("T")
    Beat = Callable[[str, int, dict[str, Any] | None], None]

MAX_CONFLICTS = 50
"""Tries of a command that others overtake before it gives up; each try re-reads the run."""


class Actor:
    """Who this process is, for the `by` of events."""

    __slots__ = ("host", "name", "now_us", "pid")

    def __init__(self, name: str, host: str, pid: int, now_us: Callable[[], int]) -> None:
        self.name = name
        self.host = host
        self.pid = pid
        self.now_us = now_us

    def cause(self, epoch: int = 0) -> Cause:
        """Return a cause of this moment."""
        return Cause(self.now_us(), self.name, self.host, self.pid, epoch)


class Session:
    """Commands of one attempt (`epoch`) on a run. Safe to share between threads.

    Every method returns once its events are durable (G1), or raises and has recorded nothing
    (G2). FencedError says that a newer attempt took over (G5).
    """

    def __init__(
        self,
        repository: RunRepository,
        payloads: Payloads,
        beat: Beat,
        actor: Actor,
        run_id: str,
        epoch: int,
        run: Run | None = None,
        policy: Callable[[], Policy] | None = None,
    ) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self.payloads = payloads
        self._repository = repository
        self._beat = beat
        self._actor = actor
        self._lock = RLock()
        self._run = run
        self._policy = policy

    @property
    def run(self) -> Run:
        """The run as this session last saw it. Raises RunNotFoundError."""
        with self._lock:
            if self._run is None:
                self._run = self._repository.get(self.run_id)
            if self._run is None:
                raise errors.RunNotFoundError(self.run_id, "")
            return self._run

    def reload(self) -> Run:
        """Return the run as it is now in the log."""
        with self._lock:
            self._run = None
            return self.run

    def execute(self, command: Callable[[Run, Cause], T]) -> T:
        """Decide by the present state, record durably, return what the command returned.

        When another writer was first, or the command is refused by a state that is no longer
        the latest, the run is read again and the command decides again.
        """
        with self._lock:
            for remaining in range(MAX_CONFLICTS, -1, -1):
                run = self.run
                known_version = run.version
                try:
                    result = command(run, self._actor.cause(self.epoch))
                    self._repository.save(run)
                except (errors.VersionConflictError, errors.RefusalError):
                    self._run = None
                    if not remaining or not self._overtaken(known_version):
                        raise
                except BaseException:
                    # The state in memory may be ahead of the log, or stale: read it again.
                    self._run = None
                    raise
                else:
                    return result
            raise AssertionError("unreachable: the last try returns or raises")

    def _overtaken(self, known_version: int) -> bool:
        """Say whether others recorded something since the state was read."""
        return self._repository.log.stream_version(self.run_id) > known_version

    def beat(self, note: dict[str, Any] | None = None) -> None:
        """Renew this attempt's lease; not an event, and lost at a reboot."""
        self._beat(self.run_id, self.epoch, note)

    def start_phase(self, name: str, *, safe_to_retry: bool = True) -> None:
        """Begin a phase, or take it up again in a later attempt."""
        self.execute(lambda run, why: run.start_phase(why, name, safe_to_retry=safe_to_retry))

    def end_phase(
        self, name: str, *, status: str = "completed", summary: str | None = None
    ) -> None:
        """End a phase."""
        self.execute(lambda run, why: run.end_phase(why, name, status=status, summary=summary))

    def plan_batches(self, name: str, total: int, size: int, items_digest: str | None) -> None:
        """Say how many batches a phase has."""
        self.execute(
            lambda run, why: run.plan_batches(
                why, name, total=total, size=size, items_digest=items_digest
            )
        )

    def complete_batch(
        self,
        name: str,
        index: int,
        *,
        inputs: int | None = None,
        parsed: int | None = None,
        output: Any = None,
        declared: str | None = None,
        quiet: int | None = None,
    ) -> None:
        """Record a finished batch; a large output goes to the blobs first.

        `declared` says why there was nothing to do about `quiet` of its `inputs`, about all of
        them without that; both are recorded, or neither.
        """

        def check(run: Run, why: Cause) -> None:
            run.check_attempt(why)
            run.check_batch(name, index)

        self.execute(check)
        stored = self.payloads.store(output, "output")

        def complete(run: Run, why: Cause) -> None:
            if declared is not None:
                asked = (inputs or 0) if quiet is None else quiet
                run.receive_answer(
                    why, asked=asked, answered=asked, phase=name, batch=index, declared=declared
                )
            run.complete_batch(why, name, index, inputs=inputs, parsed=parsed, output=stored)

        self.execute(complete)

    def save_checkpoint(self, state: Any, *, kind: str = "state", phase: str | None = None) -> None:
        """Record where a resume may go on."""
        stored = state if kind == "offset" else self.payloads.store(state, "state")
        self.execute(
            lambda run, why: run.save_checkpoint(why, phase=phase, kind=kind, state=stored)
        )

    def complete_step(self, key: str, result: Any) -> None:
        """Record a function's result."""
        stored = self.payloads.store(result, "result")
        self.execute(lambda run, why: run.complete_step(why, key, stored))

    def intend_effect(
        self,
        key: str,
        *,
        idempotent: bool = False,
        description: str | None = None,
    ) -> None:
        """Record that a side effect is about to happen."""
        self.execute(
            lambda run, why: run.intend_effect(
                why,
                key,
                idempotent=idempotent,
                description=description,
            )
        )

    def allow_effect_retry(self, key: str, reason: str) -> None:
        """Record a person's word that an effect in doubt may be done again."""
        self.execute(lambda run, why: run.allow_effect_retry(why, key, reason))

    def complete_effect(self, key: str, result: Any = None, *, reason: str | None = None) -> None:
        """Record the result of a side effect."""
        stored = self.payloads.store(result, "result")
        self.execute(lambda run, why: run.complete_effect(why, key, stored, reason=reason))

    def receive_answer(self, *, text: Any = None, **said: Any) -> None:
        """Record what a model, parser, filter or tool gave back; a long text goes to the blobs.

        Of a text that is blank, or a placeholder, nothing was parsed unless it is said.
        """
        self.execute(lambda run, why: run.check_attempt(why))
        if said.get("parsed") is None and is_placeholder(text):
            said["parsed"] = 0
        stored = self.payloads.store(text, "text")
        self.execute(lambda run, why: run.receive_answer(why, text=stored, **said))

    def now_us(self) -> int:
        """Return the time by the clock that dates this session's events."""
        return self._actor.now_us()

    # Judging; what it needs is imported when it is needed.

    def policy(self, given: Policy | None = None) -> Policy:
        """Return the policy that judges this run: the one in force, or one for one judgement."""
        from tachograph.judging import kept_policy

        return kept_policy(given, self._policy, self.payloads)

    def judge_by(self, policy: Policy) -> None:
        """Have every verdict of this session made by one policy, as it is now."""
        self._policy = lambda: policy

    def judge(self, facts: Facts, gate: str = "default", *, by: Policy | None = None) -> str:
        """Let the gate judge the run by the policy in force, or another; return the outcome."""
        from tachograph.judging import with_files

        policy, seen = self.policy(by), with_files(facts, self.run)
        return self.execute(lambda run, why: run.judge(why, seen, gate, policy=policy))

    def expect(
        self,
        expectations: Expectations,
        *,
        files: Sequence[str] = (),
        reason: str | None = None,
    ) -> None:
        """Record what the run is measured by; what is not said now stays as it was said.

        `files` are to be made, and are recorded as they are now.
        """
        from tachograph.judging import expected

        self.execute(
            lambda run, why: run.expect(why, expected(run, expectations, files), reason=reason)
        )

    def finish(
        self,
        outcome: str | None = None,
        *,
        reason: str | None = None,
        reason_code: str | None = None,
    ) -> str:
        """End the attempt and return the outcome."""
        policy = seen = None
        if outcome is None and self.run.verdict is None:
            from tachograph.domain.facts import Facts
            from tachograph.judging import with_files

            policy, seen = self.policy(), with_files(Facts(), self.run)
        return self.execute(
            lambda run, why: run.finish(
                why, outcome, reason=reason, reason_code=reason_code, facts=seen, policy=policy
            )
        )

    # Reading back what the run recorded.

    def batch_outputs(self, phase: str) -> Iterator[tuple[int, Any]]:
        """Yield (index, output) of a phase's finished batches in the order they finished.

        Outputs are read from the log when asked for, never kept in the run's state.
        """
        state = self.run.phases.get(phase)
        if state is None:
            return
        after = state.version
        while records := self._repository.log.read_stream(self.run_id, after=after, limit=500):
            for record in records:
                if record.topic == "run.batch-completed":
                    fields = self._repository.fields(record)
                    if fields["phase"] == phase:
                        yield fields["index"], self.payloads.load(fields["output"])
            after = records[-1].version

    def recorded_result(self, version: int) -> Any:
        """Return the result held by the event at a version of this run's stream."""
        (record,) = self._repository.log.read_stream(self.run_id, after=version - 1, up_to=version)
        return self.payloads.load(self._repository.fields(record)["result"])

    def saved_checkpoint(self, kind: str, phase: str | None) -> tuple[Any, int] | None:
        """Return the state of the last checkpoint of a kind and phase, and when it was saved.

        Read from the log, the newest events first: another kind may have been saved since.
        """
        up_to: int | None = None
        read = self._repository.log.read_stream
        while records := read(self.run_id, up_to=up_to, limit=500, reverse=True):
            for record in records:
                if record.topic == "run.checkpoint-saved":
                    fields = self._repository.fields(record)
                    if (fields.get("kind"), fields.get("phase")) == (kind, phase):
                        return self.payloads.load(fields["state"]), record.time_us
            up_to = records[-1].version - 1
            if not up_to:
                break
        return None
