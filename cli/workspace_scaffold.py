"""`tacho workspace scaffold`: write an ad hoc task that can be resumed, and its adapter."""

from __future__ import annotations

from tachograph.cli.options import Argument, Option, Spec
from tachograph.cli.workspace_install import WORKSPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Write an ad hoc task that can be resumed, and its adapter.",
    Argument("slug", "Name of the task.", metavar="SLUG"),
    Option("--template", "Language of the files.", choices=("python", "bash"), default="python"),
    Option("--title", "A line for people.", metavar="TEXT"),
    WORKSPACE,
    details="""Writes tmp/task-runtime/SLUG with an adapter (task_resume.py or .sh), whose sample
phases run as they are, and a job that starts them with checkpoints; and begins the task, with
auto-resume on. Nothing is overwritten.

\b
  tacho workspace scaffold count-lines
  python3 tmp/task-runtime/count-lines/job.py""",
)


def run(params: Params, out: Output) -> None:
    """Write the files, and say how to go on."""
    import shlex

    from tachograph.cli.workspaces import open_workspace
    from tachograph.dropin.scaffolding import scaffold

    tasks = open_workspace(params, out)
    made = scaffold(tasks, params.slug, template=params.template, title=params.title)
    if out.json:
        out.document(
            {
                "taskId": made.task_id,
                "adapter": str(made.adapter),
                "job": str(made.job),
                "card": str(made.card),
            }
        )
        return
    out.line(str(made.adapter))
    out.line(str(made.job))
    program = "python3" if made.job.suffix == ".py" else "bash"
    resume = ["python3", tasks.workspace.resume_runner, "--task-id", made.task_id]
    out.note(f"Write your phases in {made.adapter.name}; they run as they are, too:")
    out.note(f"  {shlex.join([program, str(made.job)])}")
    out.note("Kill it in the middle, and the watchdog goes on with it, or you:")
    out.note(f"  {shlex.join(resume)}")
