"""The commands by which a run is watched, resumed, approved, and a person is asked for it."""

from __future__ import annotations

from tachograph.domain import attention, checks, errors, events
from tachograph.domain.recovery_state import GONE, WORK
from tachograph.domain.run_traces import TraceCommands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from tachograph.domain.event import Cause, Event
    from tachograph.domain.recovery import Recovery


class RecoveryCommands(TraceCommands):
    """What may be asked of a run besides its own work."""

    # What the job says about its recovery.

    def declare_recovery(
        self, cause: Cause, recovery: Recovery, *, reason: str | None = None
    ) -> None:
        """Record how the run may be continued. The same as before records nothing.

        What stood in the way is looked at anew; with a reason, which a person gives, the
        resumes that brought no progress are forgotten too.
        """
        self._not_fenced(cause)
        recovery.check()
        if reason is not None:
            checks.text("reason", reason)
        fields = recovery.to_fields()
        if self.recovery != fields:
            self._record(events.RecoveryDeclared, cause, recovery=fields, reason=reason)
            self._clear(cause, attention.RETRIED | {attention.WINDOW})
            self._clear_doubt(cause)

    def start_worker(
        self, cause: Cause, worker: Mapping[str, Any], *, joined: bool = False
    ) -> None:
        """Record the process that does the work for this attempt's owner.

        `joined` says that the worker has started it: it records for the worker from now on.
        """
        self._owned(cause)
        if dict(worker) != self.worker and not (joined and dict(worker) in self.joiners):
            self._record(events.WorkerStarted, cause, worker=dict(worker), joined=joined)

    def depend_on(self, cause: Cause, runs: Sequence[str]) -> None:
        """Record the runs that have to end well before this one starts.

        The caller has made sure that they exist and that no run waits for itself.
        """
        self._not_fenced(cause)
        for run in runs:
            checks.text("run to wait for", run)
        wanted = list(dict.fromkeys(runs))
        if self.depends_on != wanted:
            self._record(events.DependenciesDeclared, cause, runs=wanted)
            self._clear(cause, attention.OF_DEPENDENCIES)

    def change_card(
        self,
        cause: Cause,
        changes: Mapping[str, Any],
        entries: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Record changes of the run's card, and entries for its history.

        Allowed on a finished run too, since it changes nothing that counts; a superseded
        attempt is fenced all the same.
        """
        self._not_superseded(cause)
        changed = {
            name: value for name, value in changes.items() if not _same(self.card.get(name), value)
        }
        if changed or entries:
            self._record(
                events.CardEdited,
                cause,
                changes=changed,
                entries=[dict(entry) for entry in entries],
            )

    def block(self, cause: Cause, reason: str) -> None:
        """Record that the run waits for something outside it."""
        self._not_fenced(cause)
        checks.text("reason", reason)
        self._record(events.RunBlocked, cause, reason=reason)

    # Approvals.

    def request_approval(
        self, cause: Cause, name: str, *, subject: Any, subject_digest: str
    ) -> bool:
        """Ask a person to agree to exactly this subject; True when one has agreed already.

        An earlier decision about another subject is void. Asking the same again records
        nothing. Raises ApprovalError when a person has refused this very subject.
        """
        self._owned(cause)
        checks.text("approval", name)
        known = self.approvals.get(name)
        if known is not None and known["subject_digest"] == subject_digest:
            if known["status"] == "rejected":
                raise errors.ApprovalError(self.id, name, "was rejected: ask for something else")
            return bool(known["status"] == "granted")
        self._record(
            events.ApprovalRequested,
            cause,
            approval=name,
            subject=subject,
            subject_digest=subject_digest,
        )
        if not self.approvals_rejected:
            self._clear(cause, {attention.REJECTED})
        self.raise_attention(cause, attention.APPROVAL + name)
        return False

    def approve(
        self, cause: Cause, name: str, reason: str, *, subject_digest: str | None = None
    ) -> None:
        """Record that a person agrees; given a digest, to exactly that subject."""
        self._decide(events.ApprovalGranted, cause, name, reason, subject_digest)

    def reject(
        self, cause: Cause, name: str, reason: str, *, subject_digest: str | None = None
    ) -> None:
        """Record that a person refuses; given a digest, exactly that subject."""
        self._decide(events.ApprovalRejected, cause, name, reason, subject_digest)

    # Watching and resuming.

    def detect_stall(self, cause: Cause, kind: str, evidence: Mapping[str, Any]) -> bool:
        """Record that the attempt is `gone` or `silent`; False when that is noted already.

        It is the same situation while no attempt started and the run got no further; but an
        attempt that was taken for gone, and showed work after that, can be gone once more.
        """
        self._not_fenced(cause)
        if (
            self.stall is not None
            and (
                self.stall["epoch"],
                self.stall["progress_version"],
                self.stall["kind"],
            )
            == (self.epoch, self.progress_version, kind)
            and (kind != GONE or self.noted == GONE)
        ):
            return False
        self._record(events.StallDetected, cause, evidence={"kind": kind, **evidence})
        return True

    def dispatch_resume(self, cause: Cause, adapter: str, plan: Mapping[str, Any]) -> None:
        """Record that an adapter is about to continue the run from where it stands."""
        self._owned(cause)
        checks.text("adapter", adapter)
        self._record(
            events.ResumeDispatched,
            cause,
            adapter=adapter,
            from_version=self.progress_version,
            plan=dict(plan),
        )

    def return_resume(self, cause: Cause, result: Mapping[str, Any]) -> bool:
        """Record what a resume returned, and return whether the run got further by it.

        That counts, whatever the adapter said of itself. It may be recorded after the run has
        ended, and for a dispatcher that was killed. Without a resume under way nothing is
        recorded.
        """
        self._not_superseded(cause)
        if self.dispatch is None:
            return False
        before: int = self.dispatch["progress_version"]
        progressed = self.progress_version > before
        self._record(events.ResumeReturned, cause, result=dict(result), progressed=progressed)
        if progressed:
            self._clear(cause, attention.RETRIED)
        return progressed

    def raise_attention(self, cause: Cause, reason: str, detail: str | None = None) -> bool:
        """Record that a person is needed; False when this reason is open already."""
        self._not_fenced(cause)
        checks.text("reason", reason)
        if reason in self.attention:
            return False
        self._record(events.AttentionRaised, cause, reason=reason, detail=detail)
        return True

    def clear_attention(self, cause: Cause, reason: str) -> bool:
        """Record that a person is no longer needed for this; False when none was."""
        self._not_superseded(cause)
        if reason not in self.attention:
            return False
        self._record(events.AttentionCleared, cause, reason=reason)
        return True

    def archive(self, cause: Cause, location: str, sha256: str) -> None:
        """Record where a copy of the run with its files was put; allowed at any time."""
        checks.text("location", location)
        checks.text("sha256", sha256)
        self._record(events.RunArchived, cause, location=location, sha256=sha256)

    # Bodies that leave the log.

    def record_bodies_archived(
        self,
        cause: Cause,
        archive: str,
        *,
        sha256: str,
        up_to: int,
        records: int,
        reason: str | None = None,
    ) -> None:
        """Record that an archive holds the bodies of the run's events up to a version.

        Only of a finished run, whose events nobody needs to go on. Raises BodiesStayError.
        """
        self._not_superseded(cause)
        self._bodies_may_go()
        checks.text("archive", archive)
        checks.text("sha256", sha256)
        checks.whole("version", up_to, 1)
        checks.whole("records", records, 1)
        self._record(
            events.BodiesArchived,
            cause,
            archive=archive,
            sha256=sha256,
            up_to=up_to,
            records=records,
            reason=reason,
        )

    def erase_bodies(
        self, cause: Cause, reason: str, *, records: int, blobs: Sequence[str] = ()
    ) -> None:
        """Record that all bodies before this event are destroyed, on a person's word.

        Only of a finished run. Raises BodiesStayError.
        """
        self._not_superseded(cause)
        checks.text("reason", reason)
        self._bodies_may_go()
        self._record(
            events.BodiesErased,
            cause,
            reason=reason,
            up_to=self.version,
            records=records,
            blobs=list(blobs),
            outcome=self.outcome,
            ended=self.ended,
        )

    # Rules of these commands.

    def _bodies_may_go(self) -> None:
        if not self.finished:
            advice = f"end it first with `tacho run cancel {self.id} --reason …`"
            raise errors.BodiesStayError(self.id, f"it is unfinished; {advice}")
        if self.bodies == "erased":
            raise errors.BodiesStayError(self.id, f"they were erased {self.reason}")

    def _decide(
        self,
        event: type[events.ApprovalGranted | events.ApprovalRejected],
        cause: Cause,
        name: str,
        reason: str,
        subject_digest: str | None,
    ) -> None:
        self._not_fenced(cause)
        checks.text("reason", reason)
        known = self.approvals.get(name)
        if known is None:
            asked = ", ".join(map(repr, self.approvals)) or "none"
            raise errors.ApprovalError(self.id, name, f"was never asked for (asked for: {asked})")
        if known["status"] != "requested":
            raise errors.ApprovalError(self.id, name, f"was {known['status']} already")
        if subject_digest is not None and subject_digest != known["subject_digest"]:
            asked = known["subject_digest"]
            raise errors.ApprovalError(self.id, name, f"is asked for another subject now ({asked})")
        self._record(
            event, cause, approval=name, subject_digest=known["subject_digest"], reason=reason
        )
        self._clear(cause, {attention.APPROVAL + name})

    def _record(self, event_type: type[Event], cause: Cause, **fields: Any) -> None:
        super()._record(event_type, cause, **fields)
        if self.attention:
            got_further = self.progress_version == self.version
            if event_type.TOPIC in WORK:
                self._clear(cause, {attention.WINDOW})
            if got_further:
                self._clear(cause, attention.RETRIED)

    def _clear(self, cause: Cause, reasons: Collection[str]) -> None:
        """Clear those of the reasons for attention that are open."""
        for reason in [each for each in self.attention if each in reasons]:
            self._record(events.AttentionCleared, cause, reason=reason)

    def _clear_doubt(self, cause: Cause) -> None:
        """Clear what is asked about effects in doubt, once there is nothing to ask."""
        if attention.EFFECTS_IN_DOUBT not in self.attention:
            return
        from tachograph.domain.recovery import ASK, Recovery

        if Recovery.from_fields(self.recovery).in_doubt != ASK or not self.effects_to_ask_about:
            self._clear(cause, {attention.EFFECTS_IN_DOUBT})

    def _nobody_needed(self, cause: Cause) -> None:
        """Clear every reason for attention: an ended run needs nobody any more."""
        self._clear(cause, list(self.attention))


def _same(old: Any, new: Any) -> bool:
    """Say whether two values are the same: 1 and True are equal, and mean something else.

    >>> _same("a", "a"), _same(1, True)
    (True, False)
    """
    return type(old) is type(new) and bool(old == new)
