"""`tacho run plan`: what a resume would do, without doing any of it."""

from __future__ import annotations

from tachograph.cli.finding import find_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, flag
from tachograph.cli.recoveries import timeout_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "See what a resume would do, without doing it.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    Option("--timeout", "How long the adapter may take.", metavar="SPAN"),
    flag("--unattended", "As the watchdog would do it."),
    details="""Shows which phases and batches are reused and which are run again, which effects
are in doubt and what is done about them, which artifacts are missing or damaged, which code and
input files have changed, what would be executed, and what stands in the way. `tacho run resume`
then does exactly that; with --plan and the digest shown here, that or nothing.""",
)


def run(params: Params, out: Output) -> None:
    """Print the plan."""
    services = open_store(out, read_only=True)
    run_id = find_run(services, params.run, out)
    plan = services.planner.plan(
        run_id, unattended=params.unattended, timeout_seconds=timeout_of(params)
    )
    digest = services.dispatcher.digest(plan)
    if out.json:
        from tachograph.shapes import plan_shape

        out.document({**plan_shape(plan), "digest": digest})
        return
    from tachograph.cli.plan_lines import show

    show(plan, digest, out)
