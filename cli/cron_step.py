"""`tacho cron step`: run one step of a cron job's script, and leave its row in the ledger."""

from __future__ import annotations

from tachograph.cli.options import Argument, Option, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Run one step of a cron job's script.",
    Argument("name", "Name of the step."),
    Argument("argv", "The command, after --.", multiple=True, metavar="-- COMMAND..."),
    Option("--exit-path", "The ledger.", env="HM_EXIT", metavar="FILE", complete="path"),
    Option("--log-path", "The log.", env="HM_LOG", metavar="FILE", complete="path"),
    details="""The script runs below `tacho cron exec`, or in the original's harness: HM_EXIT names
the ledger. The step gets a row there, with exit code, status, reason and duration. Its exit code is
returned; 124 when it was stopped after STEP_TIMEOUT_SECONDS.

The last `status=` that it prints with success_…, skipped_… or failed… is its reason; one that says
failed makes the step fail whatever its exit code, in the ledger. HYBRID_MEM_STRICT_SEMANTICS=1 lets
status=no_candidates, no_changes and degraded fail it with exit code 2.

\b
  tacho cron step prune -- ./prune.sh""",
)


def run(params: Params, out: Output) -> int:
    """Run the command to its end and return the exit code."""
    from tachograph.cli.cron_stepping import step

    return step(params, out)
