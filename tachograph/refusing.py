"""Which error says why a run cannot be resumed: one class for each thing that a caller can do."""

from __future__ import annotations

from tachograph.domain import attention, errors
from tachograph.domain import plan as plans
from tachograph.domain.forking import begun_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.plan import Obstacle
    from tachograph.domain.run import Run


def refusal(run: Run, obstacle: Obstacle) -> errors.RefusalError:
    """Return the error that says why a run cannot be resumed."""
    code = obstacle.code
    if code == plans.FINISHED:
        return errors.RunFinishedError(run.id, run.ended or run.outcome)
    if code == plans.OWNED:
        return errors.RunOwnedError(run.id, obstacle.text.removeprefix("it is at work: "))
    if code == attention.EFFECTS_IN_DOUBT:
        key = next(key for key in run.effects_in_doubt if not run.effects[key]["idempotent"])
        return errors.EffectInDoubtError(run.id, key, begun_in(run.effects[key]["epoch"]))
    if code == plans.WAITING:
        return errors.DependenciesWaitingError(run.id, obstacle.text.removeprefix("it waits for "))
    if code.startswith(attention.APPROVAL):
        return errors.ApprovalPendingError(run.id, code.removeprefix(attention.APPROVAL))
    if code == plans.TOO_EARLY:
        return errors.TryLaterError(run.id, obstacle.text)
    if obstacle.despite:
        return errors.PersonNeededError(run.id, _despite(run, obstacle))
    return errors.NotResumableError(run.id, obstacle.text)


def _despite(run: Run, obstacle: Obstacle) -> str:
    from shlex import quote

    return (
        f"{obstacle.text}. To resume it all the same: "
        f"`tacho run resume {quote(run.id)} --despite {obstacle.code} --reason …`"
    )
