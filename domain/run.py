"""The aggregate of a run: commands that check the rules and record events, or refuse.

Commands decide by state alone; whether an owner is alive, what time it is and who asks come in
as arguments. A command that refuses raises a `RefusalError` and records nothing.
"""

from __future__ import annotations

from tachograph.domain import attention, checks, errors, events, outcome
from tachograph.domain.forking import ForkingCommands, begun_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.counting import Counted
    from tachograph.domain.event import Cause
    from tachograph.domain.facts import Facts
    from tachograph.domain.gate import Judgement
    from tachograph.domain.policy import Policy
    from tachograph.domain.run_state import Phase

PHASE_ENDS = ("completed", "failed", "skipped")
PHASE_STAYS = ("completed", "skipped")
CHECKPOINT_KINDS = ("offset", "state", "batch")
NOTE_LEVELS = ("note", "warning", "error")


class Run(ForkingCommands):
    """A run of a job: one execution of a command over one set of inputs, in one or more attempts.

    Satisfies the eventsourcing library's aggregate protocol (`id`, `version`,
    `collect_events`), so its repository and event store can hold it.
    """

    # Beginning.

    @classmethod
    def create(
        cls,
        cause: Cause,
        run_id: str,
        *,
        command: str,
        fingerprint: str,
        inputs: Any,
        inputs_digest: str,
        title: str | None = None,
        parent: str | None = None,
        model_policy: Any = None,
    ) -> Run:
        """Record a new run. The caller has made sure that the id is valid and free."""
        checks.text("command", command)
        run = cls()
        run.id = run_id
        run._record(
            events.RunCreated,
            cause,
            command=command,
            fingerprint=fingerprint,
            inputs=inputs,
            inputs_digest=inputs_digest,
            title=title,
            parent=parent,
            model_policy=model_policy,
        )
        return run

    def start_attempt(
        self,
        cause: Cause,
        owner: Any,
        *,
        live_owner: str | None,
        reason: str | None = None,
        waiting_for: Sequence[str] = (),
        orchestrator: str | None = None,
    ) -> int:
        """Take the run over for `owner` and return the new epoch; earlier attempts are fenced.

        `live_owner` describes the present owner when it was found alive, `waiting_for` names the
        runs it depends on that have not ended well, `orchestrator` is the run that it is part of.
        Raises RunFinishedError, and RunOwnedError or DependenciesWaitingError unless a `reason`
        says why it is done all the same.
        """
        self._unfinished()
        if reason is not None:
            checks.text("reason", reason)
        elif live_owner is not None:
            raise errors.RunOwnedError(self.id, live_owner)
        elif waiting_for:
            raise errors.DependenciesWaitingError(self.id, ", ".join(waiting_for))
        self._record(
            events.AttemptStarted,
            cause,
            epoch=self.epoch + 1,
            owner=owner,
            reason=reason,
            orchestrator=orchestrator,
        )
        self._clear(cause, attention.OF_ATTEMPT)
        return self.epoch

    def check_same(self, command: str, inputs_digest: str) -> None:
        """Refuse to continue this run for another command or other inputs.

        Of an erased run nobody knows them any more, and nobody continues it.
        """
        if self.bodies == "erased":
            return
        if command != self.command:
            raise errors.CommandChangedError(self.id, self.command, command)
        if inputs_digest != self.inputs_digest:
            raise errors.InputsChangedError(f"Run {self.id}", "inputs")

    # Phases and batches.

    def start_phase(self, cause: Cause, name: str, *, safe_to_retry: bool = True) -> None:
        """Begin a phase, or take up one that failed or that an earlier attempt left running."""
        self._owned(cause)
        checks.text("phase", name)
        phase = self.phases.get(name)
        if phase is not None and phase.status in PHASE_STAYS:
            raise errors.PhaseEndedError(self.id, name, phase.status)
        if phase is not None and phase.status == "running" and phase.epoch == self.epoch:
            raise errors.PhaseOpenError(self.id, name)
        self._record(events.PhaseStarted, cause, phase=name, safe_to_retry=safe_to_retry)

    def plan_batches(
        self, cause: Cause, name: str, *, total: int, size: int, items_digest: str | None
    ) -> None:
        """Say how many batches a phase has. The same plan again records nothing.

        Raises InputsChangedError when the phase was planned over other items, BatchRangeError
        when a batch beyond the plan is finished already.
        """
        self._owned(cause)
        phase = self._open_phase(name)
        checks.whole("total batches", total, 0)
        checks.whole("batch size", size, 0)
        if phase.total is not None:
            if (phase.total, phase.size, phase.items_digest) != (total, size, items_digest):
                raise errors.InputsChangedError(f"Phase {name!r} of run {self.id}", "batches")
            return
        if phase.done.ranges and phase.done.ranges[-1][1] >= total:
            beyond = f"it is finished already, and a plan of {total} leaves it out"
            raise errors.BatchRangeError(self.id, name, phase.done.ranges[-1][1], beyond)
        self._record(
            events.BatchesPlanned,
            cause,
            phase=name,
            total=total,
            size=size,
            items_digest=items_digest,
        )

    def check_batch(self, name: str, index: int) -> None:
        """Refuse a batch that is out of range or finished, before its output is prepared."""
        phase = self._open_phase(name)
        checks.whole("batch index", index, 0)
        if phase.total is not None and index >= phase.total:
            planned = f"{phase.total} are planned, and indexes start at 0"
            raise errors.BatchRangeError(self.id, name, index, planned)
        if index in phase.done:
            raise errors.BatchCompletedError(self.id, name, index)

    def complete_batch(
        self,
        cause: Cause,
        name: str,
        index: int,
        *,
        inputs: int | None = None,
        parsed: int | None = None,
        output: Any = None,
    ) -> None:
        """Record that a batch is finished and its output accepted; batches may end in any order."""
        self._owned(cause)
        self.check_batch(name, index)
        for what, count in (("inputs", inputs), ("parsed", parsed)):
            if count is not None:
                checks.whole(what, count, 0)
        self._record(
            events.BatchCompleted,
            cause,
            phase=name,
            index=index,
            inputs=inputs,
            parsed=parsed,
            output=output,
        )

    def end_phase(
        self, cause: Cause, name: str, *, status: str = "completed", summary: str | None = None
    ) -> None:
        """End a phase. It can be completed only when every planned batch is finished."""
        self._owned(cause)
        checks.one_of("phase status", status, PHASE_ENDS)
        phase = self._open_phase(name)
        if status == "completed":
            self._all_batches_done(phase)
        self._record(events.PhaseEnded, cause, phase=name, status=status, summary=summary)

    # Checkpoints, steps, effects.

    def save_checkpoint(
        self, cause: Cause, *, phase: str | None = None, kind: str = "state", state: Any = None
    ) -> None:
        """Record where a resume may go on.

        An `offset` checkpoint's state holds `offset` and `total` (whole numbers, the offset not
        beyond the total) and optional counters.
        """
        self._owned(cause)
        checks.one_of("checkpoint kind", kind, CHECKPOINT_KINDS)
        if kind == "offset":
            checks.offset(state)
        if phase is not None:
            self._open_phase(phase)
        self._record(events.CheckpointSaved, cause, phase=phase, kind=kind, state=state)

    def complete_step(self, cause: Cause, key: str, result: Any) -> None:
        """Record the result of a function, once."""
        self._owned(cause)
        checks.text("step", key)
        if key in self.steps:
            raise errors.StepDoneError(self.id, key)
        self._record(events.StepCompleted, cause, key=key, result=result)

    def intend_effect(
        self,
        cause: Cause,
        key: str,
        *,
        idempotent: bool = False,
        description: str | None = None,
    ) -> None:
        """Record that a side effect is about to happen.

        Raises EffectDoneError when it has happened, and EffectInDoubtError when it may have,
        unless the job declares it idempotent or a person has allowed to do it again.
        """
        self._owned(cause)
        checks.text("effect", key)
        effect = self.effects.get(key)
        if effect is not None and effect["status"] == "done":
            raise errors.EffectDoneError(self.id, key)
        if effect is not None and effect["status"] == "intended" and not idempotent:
            raise errors.EffectInDoubtError(self.id, key, begun_in(effect["epoch"]))
        self._record(
            events.EffectIntended,
            cause,
            key=key,
            description=description,
            idempotent=idempotent,
        )
        self._clear_doubt(cause)

    def complete_effect(
        self, cause: Cause, key: str, result: Any = None, *, reason: str | None = None
    ) -> None:
        """Record the result of a side effect that was intended.

        A person may settle an effect in doubt from outside any attempt, with a reason.
        """
        if reason is None:
            self._owned(cause)
        else:
            self._not_fenced(cause)
            checks.text("reason", reason)
        self._unsettled_effect(key)
        self._record(events.EffectDone, cause, key=key, result=result, reason=reason)
        self._clear_doubt(cause)

    def allow_effect_retry(self, cause: Cause, key: str, reason: str) -> None:
        """Record a person's word that an effect in doubt may be done again (G10)."""
        self._not_fenced(cause)
        checks.text("reason", reason)
        self._unsettled_effect(key)
        self._record(events.EffectRetryAllowed, cause, key=key, reason=reason)
        self._clear_doubt(cause)

    # What happens on the way.

    def record_artifact(
        self, cause: Cause, name: str, *, path: str, size: int, sha256: str
    ) -> None:
        """Record a file that the run made; the same name again records its newer state."""
        self._owned(cause)
        checks.text("artifact", name)
        checks.text("path", path)
        checks.whole("size", size, 0)
        checks.text("sha256", sha256)
        self._record(events.ArtifactRecorded, cause, name=name, path=path, size=size, sha256=sha256)

    def report_progress(
        self, cause: Cause, completed: int, total: int | None = None, unit: str = "units"
    ) -> None:
        """Record how far the run is."""
        self._owned(cause)
        checks.whole("completed", completed, 0)
        if total is not None:
            checks.whole("total", total, completed)
        checks.text("unit", unit)
        self._record(events.ProgressReported, cause, completed=completed, total=total, unit=unit)

    def schedule_retry(
        self,
        cause: Cause,
        kind: str,
        attempt: int,
        *,
        delay_seconds: float = 0.0,
        error: str | None = None,
        model: str | None = None,
    ) -> None:
        """Record that something failed and will be tried again; `attempt` counts from 1."""
        self._owned(cause)
        checks.text("retry kind", kind)
        checks.whole("attempt", attempt, 1)
        checks.at_least("delay", delay_seconds, 0)
        self._record(
            events.RetryScheduled,
            cause,
            kind=kind,
            attempt=attempt,
            delay_seconds=delay_seconds,
            error=error,
            model=model,
        )

    def take_fallback(
        self, cause: Cause, source: str, target: str, *, reason: str | None = None
    ) -> None:
        """Record that the job goes on with `target` instead of `source`."""
        self._owned(cause)
        checks.text("fallback from", source)
        checks.text("fallback to", target)
        self._record(events.FallbackTaken, cause, source=source, target=target, reason=reason)

    def add_note(
        self, cause: Cause, text: str, *, level: str = "note", source: str | None = None
    ) -> None:
        """Add a remark; allowed for anybody, at any time, finished or not."""
        checks.one_of("note level", level, NOTE_LEVELS)
        checks.text("note", text)
        self._record(events.NoteAdded, cause, level=level, text=text, source=source)

    # Ending.

    def finish(
        self,
        cause: Cause,
        result: str | None = None,
        *,
        reason: str | None = None,
        reason_code: str | None = None,
        facts: Facts | None = None,
        policy: Policy | None = None,
    ) -> str:
        """End the attempt and return the outcome.

        Without a `result` the gate's verdict counts; where nothing was judged, the gate judges
        what `facts` say, and for the rest what the run's events count. An outcome that is
        terminal is refused while a phase runs (PhasesOpenError), a planned batch is missing
        (BatchesOpenError), an effect is in doubt (EffectInDoubtError), or the gate judged that
        the run failed (GateFailedError).
        """
        self._owned(cause)
        judged: Judgement | None = None
        counted: Counted | None = None
        if result is None and self.verdict is None:
            counted, judged = self._judged_now(cause, facts, policy)
        if result is None:
            verdict = judged.to_fields() if judged else self.verdict or {}
            result = str(verdict["outcome"])
            reason_code = reason_code or str(verdict["reason_code"])
            reason = reason or str(verdict["reason"])
        checks.one_of("outcome", result, outcome.OUTCOMES)
        if outcome.is_terminal(result, reason_code):
            self._nothing_open(result)
            self._nothing_in_doubt()
            self._earned(result)
        # Only now: a refusal above must not leave a verdict behind.
        if judged is not None and counted is not None:
            self._record_verdict(cause, facts, counted, judged, "default", policy)
        self._record(
            events.RunFinished, cause, outcome=result, reason_code=reason_code, reason=reason
        )
        meant = outcome.traits(result, reason_code)
        if self.finished:
            self._nobody_needed(cause)
        elif meant.alerts and not meant.fails_step:
            # No failure, and due again: nobody would see that it may be so every night.
            self.raise_attention(cause, attention.STOPPED_EMPTY, reason)
        return result

    def cancel(self, cause: Cause, reason: str) -> None:
        """End the run for good, on a person's word."""
        self._not_fenced(cause)
        checks.text("reason", reason)
        self._record(events.RunCancelled, cause, reason=reason)
        self._nobody_needed(cause)

    def expire(self, cause: Cause, reason: str) -> None:
        """End the run for good because it was left too long."""
        self._not_fenced(cause)
        checks.text("reason", reason)
        self._record(events.RunExpired, cause, reason=reason)
        self._nobody_needed(cause)

    def record_exit_validation(self, cause: Cause, report: dict[str, Any], guard: str) -> None:
        """Record what a validator found in the traces of a cron job, and what its guard became.

        It looks when the command has ended: the run may be finished by then.
        """
        self._not_superseded(cause)
        checks.text("guard", guard)
        self._record(events.ExitValidated, cause, report=report, guard=guard)

    # Rules of the commands above.

    def _open_phase(self, name: str) -> Phase:
        phase = self.phases.get(name)
        if phase is None or phase.status != "running":
            status = phase.status if phase else "not started"
            raise errors.PhaseNotOpenError(self.id, name, status)
        return phase

    def _all_batches_done(self, phase: Phase) -> None:
        missing = phase.count_missing()
        if missing:
            some = ", ".join(map(str, phase.missing(5))) + (", …" if missing > 5 else "")
            raise errors.BatchesOpenError(self.id, phase.name, missing, some)

    def _unsettled_effect(self, key: str) -> None:
        effect = self.effects.get(key)
        if effect is None:
            raise errors.EffectUnknownError(self.id, key)
        if effect["status"] == "done":
            raise errors.EffectDoneError(self.id, key)

    def _nothing_in_doubt(self) -> None:
        """G10: a finished run is never touched again, so nothing in doubt may be left in it."""
        asked = self.effects_to_ask_about
        if asked:
            begun = begun_in(self.effects[asked[0]]["epoch"])
            raise errors.EffectInDoubtError(self.id, asked[0], begun)

    def _nothing_open(self, result: str) -> None:
        running = [phase for phase in self.phases.values() if phase.status == "running"]
        for phase in running:
            self._all_batches_done(phase)
        if running:
            names = ", ".join(repr(phase.name) for phase in running)
            raise errors.PhasesOpenError(self.id, names, result)
