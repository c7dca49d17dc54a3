"""`tacho maintenance worker`: diagnose and repair every half hour, or once. Does no job itself."""

from __future__ import annotations

from tachograph.cli.exit_codes import OK
from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec, UsageError, flag
from tachograph.domain.repair_policy import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Diagnose, do the repairs that this asks for, and diagnose again; every so often.",
    Option(
        "--interval", "From the start of a cycle to the next; [repair] says 30m.", metavar="SPAN"
    ),
    flag("--once", "Do one cycle and end."),
    Option("--mode", "Do repairs, or only recommend them; [repair] says execute.", choices=MODES),
    CONFIG,
    details="""The first cycle is at once. Each is a run of the command maintenance-care, and only
one is done at a time in a store. Repairs go through the gate like those of people: cooldown,
hourly budget, and the halt of what did not help three times; what is denied is reported. Where
`frozen` is true or `enabled` false in [repair] of tachograph.toml, nothing is repeated: it says so
and ends with 0; --once does its cycle all the same, and `frozen` denies each repair in it.

\b
  tacho maintenance worker --interval 30m
  tacho maintenance worker --once --mode observe --json

With --json each cycle is one line. SIGINT or SIGTERM ends it after the cycle that is under way.""",
)


def run(params: Params, out: Output) -> int:
    """Do one cycle, or one after another."""
    from tachograph.queue_plans import plan_of

    if params.once and params.interval is not None:
        raise UsageError("--once and --interval exclude each other.")
    interval_us = None if params.interval is None else _interval_us(params.interval)
    services = open_store(out, create=True)
    from tachograph.cli.caring import Worker, why_idle

    policy = plan_of(services, params.config).repair

    worker = Worker(services, params, out)
    if params.once:
        return worker.once()
    idle = why_idle(policy)
    if idle is not None:
        out.note(f"Nothing is repeated: {idle} --once does one cycle.")
        return OK
    return worker.forever(interval_us)


def _interval_us(text: str) -> int:
    from tachograph.domain.repair_policy import check_interval
    from tachograph.infra.clock import parse_span

    interval_us = parse_span(text)
    check_interval(interval_us)
    return interval_us
