"""`tacho completion`: print the script that lets a shell complete `tacho`."""

from __future__ import annotations

from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SHELLS = ("bash", "zsh", "fish")

SPEC = Spec(
    "Print the completion script of a shell.",
    Argument("shell", "bash, zsh or fish.", choices=SHELLS),
    details="""Put one of these into the start-up file of your shell:

\b
  eval "$(tacho completion bash)"
  eval "$(tacho completion zsh)"
  tacho completion fish | source""",
)


def run(params: Params, out: Output) -> None:
    """Print the script."""
    from click.shell_completion import get_completion_class

    from tachograph.cli.app import PROGRAM, build
    from tachograph.cli.main import COMPLETING

    shell = get_completion_class(params.shell)
    if shell is None:
        raise LookupError(params.shell)
    script = shell(build(), {}, PROGRAM, COMPLETING).source()
    if out.json:
        out.document({"shell": params.shell, "script": script})
    else:
        out.line(script)
