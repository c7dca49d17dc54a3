"""Parse a well-formed command line by its spec, without click. Prints nothing, explains nothing.

Whatever is unusual (help, an unknown word, a missing or wrong value) is left to click: `parse`
then returns None. What it accepts, click accepts with the same values; a property test says so.
"""

from __future__ import annotations

from tachograph.cli.catalogue import COMMANDS
from tachograph.cli.options import EVERYWHERE, FLAG, NUMBER, WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from tachograph.cli.options import Argument, Option, Spec

_DIGITS = frozenset("0123456789")
_UNUSUAL = object()


class Call:
    """A command line that was understood: the command, its values, and those of EVERYWHERE."""

    __slots__ = ("everywhere", "module", "values")

    def __init__(
        self, module: ModuleType, values: dict[str, Any], everywhere: dict[str, Any]
    ) -> None:
        self.module = module
        self.values = values
        self.everywhere = everywhere


def load(name: str) -> ModuleType:
    """Import the module of a command."""
    name = f"tachograph.cli.{name}"
    __import__(name)
    import sys

    return sys.modules[name]


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Call | None:
    """Return what a command line asks for, or None when click should look at it."""
    known = {option.flag: option for option in EVERYWHERE}
    given: dict[str, Any] = {}
    words: list[str] = []
    names: Mapping[str, Any] = COMMANDS
    module = None
    rest = iter(argv)
    for word in rest:
        if word == "--" and module is not None:
            words.extend(rest)
        elif word[:1] == "-" and word != "-":
            if not _take(word, rest, known, given):
                return None
        elif module is not None:
            words.append(word)
        elif isinstance(found := names.get(word), str):
            module = load(found)
            known.update({option.flag: option for option in module.SPEC.options})
        elif found is None:
            return None
        else:
            names = found
    if module is None:
        return None
    values = _values(module.SPEC, given, words, environment)
    if values is None:
        return None
    everywhere = {option.name: given.get(option.flag, option.unset()) for option in EVERYWHERE}
    return Call(module, values, everywhere)


def _take(word: str, rest: Any, known: Mapping[str, Option], given: dict[str, Any]) -> bool:
    """Take an option and its value from the rest; False when it is unusual."""
    name, equals, text = word.partition("=")
    option = known.get(name)
    if option is None:
        return False
    if option.kind == FLAG:
        given[name] = True
        return not equals
    if not equals:
        text = next(rest, "-")
        if text[:1] == "-":  # perhaps a value, perhaps a mistake: click decides
            return False
    value = _value(option, text)
    if option.multiple:
        given[name] = (*given.get(name, ()), value)
    else:
        given[name] = value
    return value is not _UNUSUAL


def _values(
    spec: Spec, given: Mapping[str, Any], words: list[str], environment: Mapping[str, str]
) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    for option in spec.options:
        value = given.get(option.flag)
        if value is None:
            text = environment.get(option.env) if option.env else None
            value = _value(option, text) if text else option.unset()
        values[option.name] = value
    rest = list(words)
    for argument in spec.arguments:
        if argument.multiple:
            values[argument.name] = tuple([_value(argument, word) for word in rest])
            rest, taken = [], rest
            if _UNUSUAL in values[argument.name] or (argument.required and not taken):
                return None
        elif rest:
            values[argument.name] = _value(argument, rest.pop(0))
        elif argument.required:
            return None
        else:
            values[argument.name] = None
    return None if rest or _UNUSUAL in values.values() else values


def _value(param: Argument | Option, text: str) -> Any:
    """Return a value of the parameter's kind, or _UNUSUAL."""
    if param.choices:
        return text if text in param.choices else _UNUSUAL
    if param.kind == WHOLE:
        return int(text) if text and _DIGITS.issuperset(text) and len(text) < 19 else _UNUSUAL
    if param.kind == NUMBER:
        whole, point, fraction = text.partition(".")
        short = len(text) < 19  # of hundreds of digits infinity would be made
        plain = whole and _DIGITS.issuperset(whole + fraction) and bool(point) == bool(fraction)
        return float(text) if plain and short else _UNUSUAL
    return text
