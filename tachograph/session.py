"""One attempt that writes to one run: the only way by which anything records.

The Python API and the shell commands both go through it, so they obey the same rules and leave
the same history.
"""

from __future__ import annotations

from _thread import RLock  # threading costs a short command 3 ms

from tachograph.domain import errors
from tachograph.domain.event import Cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

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
    ) -> None:
        self.run_id = run_id
        self.epoch = epoch
        self.payloads = payloads
        self._repository = repository
        self._beat = beat
        self._actor = actor
        self._lock = RLock()
        self._run = run

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
    ) -> None:
        """Record a finished batch; a large output goes to the blobs first."""

        def check(run: Run, why: Cause) -> None:
            run.check_attempt(why)
            run.check_batch(name, index)

        self.execute(check)
        stored = self.payloads.store(output, "output")
        self.execute(
            lambda run, why: run.complete_batch(
                why, name, index, inputs=inputs, parsed=parsed, output=stored
            )
        )

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

    def finish(
        self,
        outcome: str | None = None,
        *,
        reason: str | None = None,
        reason_code: str | None = None,
    ) -> str:
        """End the attempt and return the outcome."""
        return self.execute(
            lambda run, why: run.finish(why, outcome, reason=reason, reason_code=reason_code)
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
