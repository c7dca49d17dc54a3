"""What the rules of a run refuse, one class per outcome a caller can act on.

Nothing is recorded when one of these is raised.
"""

from __future__ import annotations

from tachograph.domain.errors import (
    RefusalError,
    StoreError,
)


class ReplayDivergedError(StoreError):
    """What is stored about a run is not what its events say."""

    template = (
        "Run {0} does not replay to what is stored: from version {1} on, {3} in its {2} is "
        "{4!r}, and the events say {5!r}. The events count: `tacho view rebuild` makes all views "
        "and snapshots anew; `tacho store verify` says whether the log is whole."
    )


class RunNotFoundError(RefusalError):
    """There is no run of this id."""

    template = "There is no run {0!r}.{1} `tacho run list` shows what there is."


class AmbiguousRunError(RefusalError):
    """Several runs start with this prefix."""

    template = "{0!r} fits several runs: {1}. Write more of the id."


class RunFinishedError(RefusalError):
    """The run is finished, and final is final."""

    template = (
        "Run {0} is finished ({1}); nothing moves it any more. Start the same command with the "
        "same inputs again to get a new run."
    )


class RunOwnedError(RefusalError):
    """A live process owns the run."""

    template = (
        "Run {0} is at work: {1}. Wait for it, or stop it with `tacho run cancel {0} --reason …`. "
        "To take it over all the same, give `tacho run start` or `tacho run resume` --takeover "
        "and --reason."
    )


class FencedError(RefusalError):
    """A newer attempt owns the run: this one may not write any more."""

    template = (
        "Attempt {1} of run {0} was superseded by attempt {2}; its writes are refused. "
        "Stop this process, or start the run again to take a new attempt."
    )


class NoAttemptError(FencedError):
    """Only an attempt may do this, and the caller belongs to none."""

    template = (
        "Only an attempt of run {0} may do this, and the caller belongs to none. "
        "Start one with `tacho run start`, or name yours with TACHO_EPOCH."
    )


class AttemptEndedError(FencedError):
    """The attempt has said how it ended; it may not write any more."""

    template = (
        "Attempt {1} of run {0} has ended ({2}) and may not write any more. "
        "Start the run again to take a new attempt."
    )


class InputsChangedError(RefusalError):
    """The id is taken by a run over other inputs."""

    template = (
        "{0} was recorded for other {1}. Use another id for the new ones, or give the same "
        "{1} to continue."
    )


class CommandChangedError(RefusalError):
    """The id is taken by a run of another command."""

    template = "Run {0} is a run of {1!r}, not of {2!r}. Use another id."


class PhaseNotOpenError(RefusalError):
    """The phase is not running."""

    template = "Phase {1!r} of run {0} is {2}. Start it first, and end it after its last batch."


class PhaseOpenError(RefusalError):
    """The phase is running already."""

    template = "Phase {1!r} of run {0} is running already. End it before you start it again."


class PhaseEndedError(RefusalError):
    """The phase has ended already."""

    template = "Phase {1!r} of run {0} has ended already ({2}). Start a phase of another name."


class BatchRangeError(RefusalError, ValueError):
    """The batch index is outside the plan."""

    template = "Batch {2} of phase {1!r} of run {0} is out of range: {3}."


class BatchCompletedError(RefusalError):
    """The batch is finished already."""

    template = "Batch {2} of phase {1!r} of run {0} is finished already. Go on with another one."


class BatchesOpenError(RefusalError):
    """Planned batches are not finished."""

    template = (
        "Phase {1!r} of run {0} has {2} unfinished batches ({3}). Finish them, or end the "
        "phase or run as failed or partial."
    )


class PhasesOpenError(RefusalError):
    """A run cannot end well while a phase is running."""

    template = "Run {0} has running phases: {1}. End them before the run finishes as {2}."


class EffectInDoubtError(RefusalError):
    """The side effect may have happened; the job does not say that repeating it is harmless."""

    template = (
        "Effect {1!r} of run {0} was begun in {2} and has no result: it may have "
        "happened. Look, then say so: `tacho run effect {1.shell} --run {0} --done --reason …`, "
        "or `--retry --reason …` to let it be done again."
    )


class GateFailedError(RefusalError):
    """The gate judged that the run failed; naming a good outcome does not change that."""

    template = (
        "Run {0} cannot finish as {3}: the gate judged {1} ({2}). Finish it without an outcome, "
        "or judge again with what the gate did not know, such as a declared reason."
    )


class AttemptRunningError(RefusalError):
    """The run is at work: its verdict is not made yet."""

    template = "Run {0} is in the middle of an attempt; wait until it has ended."


class VerdictSameError(RefusalError):
    """The other policy judges as the newest verdict does."""

    template = "The verdict of run {0} stays {1} (rule {2}); there is nothing to revise."


class EffectUnknownError(RefusalError):
    """An effect needs its intent before its result."""

    template = "Effect {1!r} of run {0} was never begun. Record the intent first."


class EffectDoneError(RefusalError):
    """The effect has its result already."""

    template = "Effect {1!r} of run {0} is done already. Its recorded result stands."


class StepDoneError(RefusalError):
    """The step has its result already."""

    template = "Step {1!r} of run {0} is done already. Its recorded result stands."


class GuardWithheldError(RefusalError):
    """A maintenance step that did not do its work may not count as done."""

    template = "Run {0}: maintenance step {1!r} ended as {2}, which leaves it due again."


class StepUnplannedError(RefusalError, ValueError):
    """A maintenance step is not in the plan of its run."""

    template = "Run {0} has no maintenance step {1!r} in its plan. Plan it first."


class ApprovalError(RefusalError):
    """The approval is unknown, decided, or for something else."""

    template = "Approval {1!r} of run {0} {2}."


class ApprovalPendingError(RefusalError):
    """A person has to agree before the run goes on."""

    template = (
        "Run {0} waits for approval of {1!r}. Decide with "
        "`tacho run approve {0} {1.shell} --reason …` or "
        "`tacho run reject {0} {1.shell} --reason …`, then resume it."
    )


class DependenciesWaitingError(RefusalError):
    """Runs that this one waits for have not ended well yet."""

    template = (
        "Run {0} waits for {1}. It can start when they have ended well: `tacho watchdog run "
        "--auto-resume` starts it then, or start it again yourself."
    )


class DependencyCycleError(RefusalError, ValueError):
    """A run would wait for itself."""

    template = "Run {0} cannot wait for {1}: that would be a cycle ({2}). Leave one of them out."


class NotResumableError(RefusalError):
    """The run cannot be resumed as things stand."""

    template = "Run {0} cannot be resumed: {1}. `tacho run plan {0}` shows all there is to know."


class PersonNeededError(NotResumableError):
    """A person has to decide before the run can be resumed."""

    template = "Run {0} needs a person before it can be resumed: {1}."


class TryLaterError(NotResumableError):
    """The run can be resumed later, without anybody doing anything."""

    template = "Run {0} cannot be resumed yet: {1}. Try again later."


class PlanChangedError(RefusalError):
    """What a resume would do is not what was agreed to."""

    template = (
        "The plan of run {0} is now {2}, not {1}: something has changed since. "
        "Look at `tacho run plan {0}` again."
    )


class RunExistsError(RefusalError):
    """The id of a new run is taken."""

    template = "There is a run {0} already. Choose another id, or leave it out to get a free one."


class ForkRefusedError(RefusalError):
    """A run cannot share what it has done."""

    template = "Run {0} cannot be forked: {1}."


class ForkPointError(RefusalError, ValueError):
    """A run has no such point to fork from."""

    template = (
        "Run {0} has no point {1!r} to fork from: {2}. Write a version, `latest`, or the name of "
        "a phase; `tacho run events {0}` shows the versions."
    )


class EffectsRepeatedError(RefusalError):
    """A fork would do once more what may do harm when it is done twice (G10)."""

    template = (
        "A fork of run {0} from version {1} would do effects once more that were begun already: "
        "{2}. Fork from a later point, or say that they may be repeated: --repeat-effects with "
        "--reason."
    )
