"""`tacho store export`: the log as lines of JSON that restore it."""

from __future__ import annotations

import sys

from tachograph.cli.exit_codes import CORRUPT, OK
from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Write the log as lines of JSON that `tacho store import` restores.",
    Option("--run", "Only this run; such a file cannot be imported.", metavar="ID", complete="run"),
    Option("--out", "The new file, else standard output.", metavar="FILE", complete="path"),
    details="One line an event, with its digest, and one a payload before the first event that "
    "refers to it. One file restores everything.",
)


def run(params: Params, out: Output) -> int:
    """Write the export; exit code 4 when payloads or bodies are lost in the store."""
    from tachograph import storekeeping
    from tachograph.cli.bars import Bar
    from tachograph.cli.finding import find_run

    services = open_store(out, read_only=True)
    run_id = None if params.run is None else find_run(services, params.run, out)
    with Bar(out, "export") as bar:
        if params.out is None:
            done = storekeeping.export(
                services, lambda text: out.raw(text.encode()), run_id=run_id, progress=bar
            )
            sys.stdout.flush()
        else:
            with storekeeping.new_file(params.out) as file:
                done = storekeeping.export(services, file.write, run_id=run_id, progress=bar)
    out.note(f"{done.events} events, {done.blobs} payloads, up to position {done.head.position}")
    if done.missing:
        out.warn(f"{done.missing} payloads are missing in the store: run `tacho store verify`.")
    if done.lost:
        out.warn(
            f"{done.lost} bodies of events are lost with their archives: run `tacho store verify`."
        )
    return CORRUPT if done.missing or done.lost else OK
