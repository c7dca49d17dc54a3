"""`tacho maintenance diagnose`: how healthy everything is, and by which rule it is not."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Look at queues, storage, views, runs and providers, and score their health.",
    Option("--domain", "Only this domain.", metavar="NAME"),
    Option(
        "--fail-below",
        "End with 1 when the status is worse than this one.",
        choices=("healthy", "degraded"),
    ),
    flag("--check-views", "Compare the views with the log, row by row: reads all of it."),
    CONFIG,
    details="""Each score begins at 1 and loses the points of each rule that is broken: from 0.8
healthy, from 0.5 degraded, else unhealthy. The composite status is that of the worst domain,
whatever the composite score. Always looks anew. Ends with 0 whatever it finds, unless
--fail-below says otherwise. See docs/health.md for every rule.""",
)


def run(params: Params, out: Output) -> int:
    """Print the diagnosis, and judge it where that is asked for."""
    from tachograph.cli import health_lines
    from tachograph.domain.health import BANDS
    from tachograph.health.diagnosing import diagnose, look_at
    from tachograph.healthkeeping import HealthKeeping
    from tachograph.queue_plans import plan_of

    services = open_store(out)
    keeping = HealthKeeping(
        services, plan_of(services, params.config), check_views=params.check_views
    )
    if params.domain is None:
        health = diagnose(keeping.domains(), services.actor.now_us())
        status = health.status
        if out.json:
            out.document(health_lines.health_document(health))
        else:
            health_lines.print_health(health, out)
    else:
        domains = {domain.name: domain for domain in keeping.domains()}
        if params.domain not in domains:
            raise UsageError(f"There is no domain {params.domain!r}: {', '.join(domains)}.")
        found = look_at(domains[params.domain])
        status = found.status
        if out.json:
            out.document(health_lines.domain_document(found))
        else:
            health_lines.print_domain(found, out)
    if params.fail_below is None:
        return OK
    return FAILURE if BANDS.index(status) > BANDS.index(params.fail_below) else OK
