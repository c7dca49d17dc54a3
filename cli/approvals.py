"""What `run approve` and `run reject` have in common."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, UsageError
from tachograph.cli.task_cards import follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.session import Session

RUN = Argument("run", "The run, by its whole id.", complete="run")
APPROVAL = Argument("approval", "Which approval; not needed when one is asked for.", required=False)
SUBJECT = Option("--subject-digest", "Only if exactly this is asked for.", metavar="DIGEST")
REASON = Option("--reason", "Why.", metavar="TEXT")


def decide(status: str, params: Params, out: Output) -> None:
    """Record a decision of a person. `status` is `granted` or `rejected`."""
    if params.reason is None:
        raise UsageError("Why? Say so with --reason.")
    services = open_store(out)
    session = services.session(params.run, 0)
    name = params.approval or _only(session)
    session.execute(
        lambda run, why: (run.approve if status == "granted" else run.reject)(
            why, name, params.reason, subject_digest=params.subject_digest
        )
    )
    follow(services, [params.run], out)
    left = session.run.approvals_pending
    if out.json:
        out.document(
            {
                "jobRunId": params.run,
                "approval": name,
                "status": status,
                "subjectDigest": session.run.approvals[name]["subject_digest"],
                "pending": left,
            }
        )
        return
    out.note(f"{status.capitalize()}: {name!r} of {params.run}.")
    if left:
        out.note(f"It still waits for {', '.join(map(repr, left))}.")


def _only(session: Session) -> str:
    """Return the one approval that is asked for. Raises UsageError when there are others."""
    pending = session.run.approvals_pending
    if len(pending) == 1:
        return pending[0]
    asked = f"asked for: {', '.join(map(repr, pending))}" if pending else "none is asked for"
    raise UsageError(f"Which approval of {session.run_id}? Name one ({asked}).")
