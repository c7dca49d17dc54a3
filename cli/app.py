"""The click front end: help, usage errors and completion, built from the specs of the commands."""

from __future__ import annotations

import difflib
import math
import os
from typing import TYPE_CHECKING, Any

import click

from tachograph.cli import options
from tachograph.cli.catalogue import COMMANDS, GROUPS
from tachograph.cli.completing import completer
from tachograph.cli.exit_codes import OK, USAGE
from tachograph.cli.failing import say
from tachograph.cli.light import Call, load
from tachograph.cli.main import COMPLETING, flush, invoke
from tachograph.cli.output import use_plain_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

PROGRAM = "tacho"
CONTEXT = {"help_option_names": ["--help", "-h"], "max_content_width": 100}


class FiniteNumber(click.types.FloatParamType):
    """A number; `nan` and `inf` are none, and no time, delay or share can be so."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or fail."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


KINDS: dict[str, click.ParamType[Any]] = {
    options.TEXT: click.STRING,
    options.WHOLE: click.INT,
    options.NUMBER: FiniteNumber(),
}


class Group(click.Group):
    """A group of commands whose modules are imported when they are named or listed."""

    def __init__(self, path: str, names: Mapping[str, Any]) -> None:
        super().__init__(
            path.rpartition(" ")[2] or PROGRAM,
            help=GROUPS[path],
            params=[everywhere(option) for option in options.EVERYWHERE],
            context_settings=CONTEXT,
            invoke_without_command=True,
            callback=show_help_when_alone,
        )
        self._path = path
        self._names = names

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the catalogue."""
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Build a command from its spec, or a group from its names."""
        found = self._names.get(cmd_name)
        if found is None:
            return None
        if isinstance(found, str):
            return command(cmd_name, load(found))
        return Group(f"{self._path} {cmd_name}".strip(), found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or name the near ones."""
        name = args[0]
        if name not in self._names and name[:1] != "-" and not ctx.resilient_parsing:
            near = difflib.get_close_matches(name, self._names, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


class Command(click.Command):
    """A command whose help explains its arguments as well (click 8.5 is the first to do so)."""

    def __init__(self, name: str, spec: options.Spec, callback: Callable[..., Call]) -> None:
        params: list[click.Parameter] = [argument(item) for item in spec.arguments]
        params += [option(item) for item in spec.options]
        params += [everywhere(item) for item in options.EVERYWHERE]
        super().__init__(
            name,
            context_settings=CONTEXT,
            callback=callback,
            params=params,
            help=f"{spec.text}\n\n{spec.details}".rstrip(),
            short_help=spec.text,
        )
        self._arguments = [
            (item.metavar or item.name.upper(), item.text) for item in spec.arguments
        ]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments before the options."""
        if self._arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self._arguments)
        super().format_options(ctx, formatter)


def command(name: str, module: ModuleType) -> click.Command:
    """Return the click command of a spec; invoked, it returns the Call and runs nothing."""
    spec: options.Spec = module.SPEC

    def callback(**values: Any) -> Call:
        asked = click.get_current_context().find_root().obj
        given = {
            option.name: asked.get(option.name, option.unset()) for option in options.EVERYWHERE
        }
        return Call(module, values, given)

    return Command(name, spec, callback)


def argument(item: options.Argument) -> click.Argument:
    """Return the click form of an argument."""
    return click.Argument(
        [item.name],
        type=kind_of(item),
        required=item.required,
        nargs=-1 if item.multiple else 1,
        metavar=item.metavar,
        shell_complete=completer(item.complete),
    )


def option(item: options.Option, **more: Any) -> click.Option:
    """Return the click form of an option."""
    flags = [item.flag] if item.short is None else [item.short, item.flag]
    if item.kind == options.FLAG:
        return click.Option([*flags, item.name], is_flag=True, help=item.text, **more)
    return click.Option(
        [*flags, item.name],
        type=kind_of(item),
        multiple=item.multiple,
        default=None if item.multiple else item.default,
        show_default=item.default is not None,
        envvar=item.env,
        show_envvar=item.env is not None,
        metavar=item.metavar,
        help=item.text,
        shell_complete=completer(item.complete),
        **more,
    )


def everywhere(item: options.Option) -> click.Option:
    """Return an option that is kept for the command, whatever level it was given at."""

    def keep(context: click.Context, _param: click.Parameter, value: Any) -> None:
        root = context.find_root()
        if root.obj is None:
            root.obj = {}
        if value not in (None, False):
            root.obj[item.name] = value

    return option(item, expose_value=False, callback=keep)


def kind_of(item: options.Argument | options.Option) -> click.ParamType[Any]:
    """Return the click type of a parameter."""
    return click.Choice(item.choices) if item.choices else KINDS[item.kind]


def show_help_when_alone() -> None:
    """Print the help of a group that was named without a command."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def show_version(context: click.Context, _param: click.Parameter, value: Any) -> None:
    """Print the version and end."""
    if value and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"tachograph {version('tachograph')}")
        context.exit()


def build() -> click.Group:
    """Return the whole command line."""
    root = Group("", COMMANDS)
    root.params.append(
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show_version,
            help="Show the version and exit.",
        )
    )
    return root


def parse(argv: Sequence[str]) -> Call | None:
    """Return what a command line asks for; None when click has answered it, as with `--help`.

    Raises click.ClickException for a command line that makes no sense.
    """
    root = build()
    try:
        with root.make_context(PROGRAM, list(argv)) as context:
            call: Call | None = root.invoke(context)
    except click.exceptions.Exit:
        return None
    return call


def complete(argv: Sequence[str]) -> int:
    """Answer the shell, which asks through the environment."""
    build().main(list(argv), PROGRAM, complete_var=COMPLETING)
    return OK


def run_app(argv: Sequence[str]) -> int:
    """Run a command line that the light parser gave up on, and return its exit code."""
    use_plain_streams()
    if COMPLETING in os.environ:
        return complete(argv)
    try:
        call = parse(argv)
    except click.ClickException as error:
        return _show(error, as_json="--json" in argv)
    if call is not None:
        return invoke(call.module, call.values, call.everywhere)
    flush()
    return OK


def _show(error: click.ClickException, *, as_json: bool) -> int:
    code = USAGE if isinstance(error, click.UsageError) else error.exit_code
    if as_json:
        say("UsageError", error.format_message(), code, as_json=True)
    else:
        error.show()
    return code
