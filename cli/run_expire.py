"""`tacho run expire`: end a run for good because it was left too long."""

from __future__ import annotations

from tachograph.cli.artifact_following import at_end
from tachograph.cli.exact import exact_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError
from tachograph.cli.task_cards import follow
from tachograph.domain.errors import RunOwnedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run

SPEC = Spec(
    "End a run for good because it was left unfinished too long.",
    Argument("run", "The run, by its whole id.", complete="run"),
    Option("--reason", "Why.", metavar="TEXT"),
    details="Nothing moves or resumes an expired run any more. Refused while its owner is alive: "
    "`tacho run cancel` stops that.",
)


def run(params: Params, out: Output) -> None:
    """Record the expiry."""
    if params.reason is None:
        raise UsageError("Why is it expired? Say so with --reason.")
    services = open_store(out)

    def expire(run: Run, why: Cause) -> None:
        owner = services.live_owner(run)
        if owner is not None:
            raise RunOwnedError(run.id, owner)
        run.expire(why, params.reason)

    run_id = exact_run(services, params.run, out)
    services.session(run_id, 0).execute(expire)
    follow(services, [run_id], out)
    at_end(services, [run_id], out)
    if out.json:
        out.document({"jobRunId": run_id, "ended": "expired", "reason": params.reason})
    else:
        out.note(f"Expired {run_id}.")
