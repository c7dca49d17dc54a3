"""`tacho run status`: all that is known of a run, as of now, and how it can go on."""

from __future__ import annotations

from tachograph.cli import run_card
from tachograph.cli.finding import find_run, warn
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Show all that is known of a run, as of now, and how it can go on.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
)


def run(params: Params, out: Output) -> None:
    """Print the card of the run."""
    from tachograph.looking import summary_of

    services = open_store(out, read_only=True)
    run_id = find_run(services, params.run, out)
    found = summary_of(services, run_id, report=warn(out))
    newest = services.log.read_stream(run_id, limit=run_card.EVENTS, reverse=True)[::-1]
    if out.json:
        from tachograph.advising import status_shape

        out.document(status_shape(found))
    else:
        run_card.show(services, found, newest, out)
