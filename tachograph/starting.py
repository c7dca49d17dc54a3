"""Start a run, or take up the unfinished one of the same inputs. Decides ids, never rules."""

from __future__ import annotations

from tachograph import depending
from tachograph.domain import errors, ids
from tachograph.domain.owner import PROCESS
from tachograph.domain.run import Run
from tachograph.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.owner import Owner
    from tachograph.domain.policy import Policy
    from tachograph.domain.recovery import Recovery
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository
    from tachograph.session import Actor, Beat


class Start:
    """What a caller wants to start."""

    __slots__ = (
        "command",
        "depends_on",
        "inputs",
        "joins",
        "model_policy",
        "parent",
        "recovery",
        "run_id",
        "takeover_reason",
        "title",
    )

    def __init__(
        self,
        command: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        run_id: str | None = None,
        title: str | None = None,
        parent: str | None = None,
        model_policy: Mapping[str, Any] | None = None,
        takeover_reason: str | None = None,
        recovery: Recovery | None = None,
        depends_on: Sequence[str] | None = None,
        joins: tuple[str, int] | None = None,
    ) -> None:
        self.command = command
        self.inputs = dict(inputs or {})
        self.run_id = run_id
        self.title = title
        self.parent = parent
        self.model_policy = model_policy
        self.takeover_reason = takeover_reason
        self.recovery = recovery
        """How the run may be continued. What a run was first declared with stays: a resume never
        drifts, and a person may have changed it."""
        self.depends_on = depends_on
        """Runs that have to end well before its first attempt."""
        self.joins = joins
        """The run and epoch of a resume that the caller was started by: it goes on in that
        attempt, instead of taking a new one."""


class Starter:
    """Creates and resumes runs."""

    def __init__(
        self,
        repository: RunRepository,
        payloads: Payloads,
        beat: Beat,
        actor: Actor,
        live_owner: Callable[[Run], str | None],
        in_the_way: Callable[[dict[str, Any], Owner], str | None],
        policy: Callable[[], Policy] | None = None,
        deadline_us: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._repository = repository
        self._payloads = payloads
        self._beat = beat
        self._actor = actor
        self._live_owner = live_owner
        self._in_the_way = in_the_way
        self._policy = policy
        self._deadline_us = deadline_us

    def start(self, want: Start, owner: Owner) -> Session:
        """Return a session on a new run, or on the unfinished run of the same command and inputs.

        A finished run is never touched: its next execution gets `~2`, `~3`, … (G6). Two
        processes that start the same run at the same instant: one gets it, the other
        RunOwnedError. A run that has to wait for others is created and waits:
        DependenciesWaitingError says for which. Raises InputsChangedError or
        CommandChangedError when a given id is taken by something else.
        """
        keys = dict(sorted(want.inputs.items()))
        digest = self._payloads.digest(keys, "inputs")
        fingerprint = ids.fingerprint(keys, sort_keys=True)
        base = (
            ids.check_run_id(want.run_id)
            if want.run_id is not None
            else ids.job_run_id(want.command, fingerprint)
        )
        while True:
            run_id, run = self._candidate(want, base, digest)
            try:
                if run is not None and _was_sent(run, want):
                    return self._join(run, owner)
                return self._attempt(want, run_id, run, fingerprint, digest, owner)
            except errors.VersionConflictError:
                continue  # somebody else created or took it just now: look again

    def _join(self, run: Run, owner: Owner) -> Session:
        """Go on in the attempt of the resume that the caller was started by.

        One process at a time: whoever joined before has ended, or is above the caller.
        """
        for joiner in run.joiners:
            other = self._in_the_way(joiner, owner)
            if other is not None:
                raise errors.RunOwnedError(run.id, other)
        if owner.kind == PROCESS:
            run.start_worker(self._actor.cause(run.epoch), owner.to_fields(), joined=True)
            self._repository.save(run)
        return self._session(run)

    def _attempt(
        self,
        want: Start,
        run_id: str,
        run: Run | None,
        fingerprint: str,
        digest: str,
        owner: Owner,
    ) -> Session:
        cause = self._actor.cause()
        if run is None:
            run = Run.create(
                cause,
                run_id,
                command=want.command,
                fingerprint=fingerprint,
                inputs=self._payloads.store(want.inputs, "inputs"),
                inputs_digest=digest,
                title=want.title,
                parent=want.parent,
                model_policy=want.model_policy,
            )
            live_owner = None
        else:
            live_owner = self._live_owner(run)
        if want.recovery is not None and run.recovery is None:
            run.declare_recovery(cause, want.recovery)
        if want.depends_on is not None and not run.epoch:
            depending.check(self._repository.get, run.id, want.depends_on)
            run.depend_on(cause, want.depends_on)
        try:
            run.start_attempt(
                cause,
                owner.to_fields(),
                live_owner=live_owner,
                reason=want.takeover_reason,
                waiting_for=self._waiting_for(run),
                orchestrator=want.parent,
            )
        except errors.DependenciesWaitingError:
            self._repository.save(run)  # it exists, and waits
            raise
        self._expect_deadline(run, cause)
        self._repository.save(run)
        self._beat(run.id, run.epoch, None)
        return self._session(run)

    def _expect_deadline(self, run: Run, cause: Cause) -> None:
        deadline_us = self._deadline_us()
        if deadline_us is not None:
            from tachograph.domain.expectations import Expectations
            from tachograph.judging import expected

            run.expect(cause, expected(run, Expectations(deadline_us=deadline_us), ()))

    def _waiting_for(self, run: Run) -> list[str]:
        if not run.depends_on:
            return []
        waiting = depending.waiting(self._repository.get, run)
        return [*waiting.runs, *waiting.never]

    def _session(self, run: Run) -> Session:
        return Session(
            self._repository,
            self._payloads,
            self._beat,
            self._actor,
            run.id,
            run.epoch,
            run,
            self._policy,
        )

    def _candidate(self, want: Start, base: str, digest: str) -> tuple[str, Run | None]:
        """Return the id to use, and the unfinished run that has it already, if any."""
        sent = self._sent_for(want, digest)
        if sent is not None:
            return sent.id, sent
        last = self._last_execution(base)
        for execution in range(last, 0, -1):
            try:
                run = self._repository.get(ids.execution_id(base, execution))
            except errors.BodyLostError:  # in a lost archive, and only finished runs get into one
                continue
            if run is None:  # executions are numbered without gaps
                continue
            if want.run_id is not None:
                run.check_same(want.command, digest)
            if run.inputs_digest == digest and run.command == want.command:
                if run.finished:
                    break
                return run.id, run
            # Other inputs with the same short fingerprint: an older execution may be ours.
        return ids.execution_id(base, last + 1), None

    def _sent_for(self, want: Start, digest: str) -> Run | None:
        """Return the run whose dispatcher started the caller to do just this.

        There may be another unfinished run of the same inputs: the source of a fork, or a fork.
        """
        if want.joins is None or want.run_id is not None:
            return None
        run = self._repository.get(want.joins[0])
        if run is None or not _was_sent(run, want):
            return None
        return run if (run.command, run.inputs_digest) == (want.command, digest) else None

    def _last_execution(self, base: str) -> int:
        """Return the number of executions of a base id, by galloping and bisecting."""
        exists = self._repository.log.stream_version
        high = 1
        while exists(ids.execution_id(base, high)):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            if exists(ids.execution_id(base, middle)):
                low = middle
            else:
                high = middle
        return low


def _was_sent(run: Run, want: Start) -> bool:
    """Say whether a dispatcher started the caller to continue this very attempt."""
    sent = run.dispatch is not None and run.attempt_open
    return sent and want.joins == (run.id, run.epoch)
