"""What a command takes, as plain data that both front ends read. Parses nothing."""

from __future__ import annotations

from tachograph.domain.errors import TachographError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXT = "text"
WHOLE = "whole"
NUMBER = "number"
FLAG = "flag"


class UsageError(TachographError):
    """The command line makes no sense."""


class Argument:
    """A value known by its place. `multiple` takes all that are left, and must come last."""

    __slots__ = ("choices", "complete", "kind", "metavar", "multiple", "name", "required", "text")

    def __init__(
        self,
        name: str,
        text: str = "",
        *,
        kind: str = TEXT,
        required: bool = True,
        multiple: bool = False,
        choices: tuple[str, ...] = (),
        metavar: str | None = None,
        complete: str | None = None,
    ) -> None:
        self.name = name
        self.text = text
        self.kind = kind
        self.required = required
        self.multiple = multiple
        self.choices = choices
        self.metavar = metavar
        self.complete = complete


class Option:
    """A value known by its flag, such as `--reason TEXT`.

    `kind` is the type of the value, FLAG for one that takes none. `env` names the environment
    variable that stands in for it; `complete` what the shell completes it with. `short` is a
    second spelling of one letter.
    """

    __slots__ = (
        "choices",
        "complete",
        "default",
        "env",
        "flag",
        "kind",
        "metavar",
        "multiple",
        "name",
        "short",
        "text",
    )

    def __init__(
        self,
        flag: str,
        text: str,
        *,
        kind: str = TEXT,
        multiple: bool = False,
        choices: tuple[str, ...] = (),
        default: str | float | None = None,
        env: str | None = None,
        metavar: str | None = None,
        complete: str | None = None,
        name: str | None = None,
        short: str | None = None,
    ) -> None:
        self.flag = flag
        self.short = short
        self.name = name or flag[2:].replace("-", "_")
        self.text = text
        self.kind = kind
        self.multiple = multiple
        self.choices = choices
        self.default = default
        self.env = env
        self.metavar = metavar
        self.complete = complete

    def unset(self) -> object:
        """Return the value of an option that was not given."""
        if self.kind == FLAG:
            return False
        return () if self.multiple else self.default


def flag(name: str, text: str) -> Option:
    """Return an option that takes no value."""
    return Option(name, text, kind=FLAG)


class Spec:
    """One command: a line of help, what it takes, and more help for `--help`."""

    __slots__ = ("arguments", "details", "options", "text")

    def __init__(self, text: str, *params: Argument | Option, details: str = "") -> None:
        self.text = text
        self.arguments = [param for param in params if isinstance(param, Argument)]
        self.options = [param for param in params if isinstance(param, Option)]
        self.details = details


class Params:
    """The values of a command's arguments and options, as attributes.

    A `multiple` one is a tuple, a flag a bool; what was not given is its default, else None.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the value of a parameter."""


TIME_STYLES = ("relative", "iso", "raw")

EVERYWHERE = (
    Option("--store", "Folder of the store.", metavar="PATH", complete="path"),
    flag("--json", "Print JSON on stdout, and errors as JSON on stderr."),
    flag("--quiet", "Print nothing but data and errors."),
    Option("--time", "How to print times.", choices=TIME_STYLES),
)
"""Options that every command takes, before or after its noun; the last one counts."""
