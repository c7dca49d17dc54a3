"""Start a run, or take up the unfinished one of the same inputs. Decides ids, never rules."""

from __future__ import annotations

from tachograph.domain import errors, ids
from tachograph.domain.run import Run
from tachograph.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tachograph.domain.owner import Owner
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository
    from tachograph.session import Actor, Beat


class Start:
    """What a caller wants to start."""

    __slots__ = (
        "command",
        "inputs",
        "model_policy",
        "parent",
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
    ) -> None:
        self.command = command
        self.inputs = dict(inputs or {})
        self.run_id = run_id
        self.title = title
        self.parent = parent
        self.model_policy = model_policy
        self.takeover_reason = takeover_reason


class Starter:
    """Creates and resumes runs."""

    def __init__(
        self,
        repository: RunRepository,
        payloads: Payloads,
        beat: Beat,
        actor: Actor,
        live_owner: Callable[[Run], str | None],
    ) -> None:
        self._repository = repository
        self._payloads = payloads
        self._beat = beat
        self._actor = actor
        self._live_owner = live_owner

    def start(self, want: Start, owner: Owner) -> Session:
        """Return a session on a new run, or on the unfinished run of the same command and inputs.

        A finished run is never touched: its next execution gets `~2`, `~3`, … (G6). Two
        processes that start the same run at the same instant: one gets it, the other
        RunOwnedError. Raises InputsChangedError or CommandChangedError when a given id is
        taken by something else.
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
                return self._attempt(want, run_id, run, fingerprint, digest, owner)
            except errors.VersionConflictError:
                continue  # somebody else created or took it just now: look again

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
        epoch = run.start_attempt(
            cause, owner.to_fields(), live_owner=live_owner, reason=want.takeover_reason
        )
        self._repository.save(run)
        self._beat(run.id, epoch, None)
        return Session(
            self._repository, self._payloads, self._beat, self._actor, run.id, epoch, run
        )

    def _candidate(self, want: Start, base: str, digest: str) -> tuple[str, Run | None]:
        """Return the id to use, and the unfinished run that has it already, if any."""
        last = self._last_execution(base)
        for execution in range(last, 0, -1):
            run = self._repository.get(ids.execution_id(base, execution))
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
