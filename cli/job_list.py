"""`tacho job list`: the jobs that come with Tachograph."""

from __future__ import annotations

from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec("List the jobs that can be run by name.")


def run(_params: Params, out: Output) -> None:
    """Print each job with its line of help."""
    from importlib import import_module

    from tachograph.cli.catalogue import COMMANDS

    modules = COMMANDS["job"]["run"]
    jobs = {
        name: import_module(f"tachograph.cli.{module}").SPEC.text
        for name, module in modules.items()
    }
    if out.json:
        out.document([{"job": name, "description": text} for name, text in jobs.items()])
    else:
        out.table(["job", "what it does"], [[name, text] for name, text in jobs.items()])
