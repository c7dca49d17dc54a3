"""The pages of docs/errors: one for each error that a person can meet.

What is written by hand stands in `tools/errors.toml`; message, exit code and family come from the
classes, so that a page cannot say what the program does not.
"""

from __future__ import annotations

import importlib
import pkgutil
import tomllib
from pathlib import Path
from string import Formatter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("docs/errors")
SOURCE = ROOT / "tools" / "errors.toml"


def error_classes() -> dict[str, type[Exception]]:
    """Return every error that Tachograph raises on purpose, by its name, base classes first."""
    import tachograph.cli.options
    import tachograph.domain
    import tachograph.dropin.errors
    import tachograph.portions
    from tachograph.domain import errors

    names = [each.name for each in pkgutil.iter_modules(tachograph.domain.__path__)]
    rarer = [name for name in names if name.endswith("_errors")]
    modules = (
        errors,
        *(importlib.import_module(f"tachograph.domain.{name}") for name in rarer),
        tachograph.cli.options,
        tachograph.dropin.errors,
        tachograph.portions,
    )
    found = {}
    for module in modules:
        for name, each in vars(module).items():
            is_ours = isinstance(each, type) and issubclass(each, errors.TachographError)
            if is_ours and each.__module__ == module.__name__ and name[0] != "_":
                found[name] = each
    return found


def written() -> dict[str, dict[str, Any]]:
    """Return what is written by hand about each error."""
    return tomllib.loads(SOURCE.read_text("utf-8"))


def pages(mark: str) -> dict[Path, str]:
    """Return every page by its path below the checkout."""
    texts = written()
    classes = error_classes()
    made = {FOLDER / f"{name}.md": _page(name, classes[name], texts[name], mark) for name in texts}
    made[FOLDER / "README.md"] = _index(classes, texts, mark)
    return made


def _page(name: str, cls: type[Exception], text: dict[str, Any], mark: str) -> str:
    from tachograph.cli.exit_codes import MEANINGS, of_error

    code = of_error(cls.__new__(cls))
    base = cls.__mro__[1].__name__
    family = f"[{base}]({base}.md)" if (base in error_classes()) else f"`{base}`"
    lines = [f"# {name}", "", mark, "", _one_line(cls.__doc__ or ""), ""]
    message = _message(cls)
    if message:
        lines += ["```text", message, "```", ""]
    lines += [
        f"Exit code {code} ({MEANINGS[code]}). In Python it is a kind of {family}.",
        "",
        "## When it happens",
        "",
        _paragraph(text["when"]),
        "",
        "## What to do",
        "",
        *(f"{number}. {_paragraph(step)}" for number, step in enumerate(text["then"], 1)),
    ]
    if "example" in text:
        lines += ["", "## Example", "", "```console", text["example"].strip("\n"), "```"]
    return "\n".join(lines) + "\n"


def _index(classes: dict[str, type[Exception]], texts: dict[str, Any], mark: str) -> str:
    from tachograph.cli.exit_codes import of_error

    rows = [
        f"| [{name}]({name}.md) | {of_error(cls.__new__(cls))} | {_one_line(cls.__doc__ or '')} |"
        for name, cls in classes.items()
        if name in texts
    ]
    return "\n".join(
        [
            "# Errors",
            "",
            mark,
            "",
            (
                "Every error says what happened, to what, and what to do next. With `--json` it is "
                "one object on stderr: `error` is its name here."
            ),
            "",
            "| error | exit code | what it is |",
            "| --- | --- | --- |",
            *sorted(rows),
            "",
        ]
    )


def _message(cls: type[Exception]) -> str:
    """Return the message with a name for each value; empty for a class that takes any text."""
    template: str = getattr(cls, "template", "")
    if template == "{0}":
        return ""
    parts = []
    for literal, field, _form, _conversion in Formatter().parse(template):
        parts.append(literal)
        if field is not None:
            parts.append("…")
    return _one_line("".join(parts))


def _paragraph(text: str) -> str:
    return _one_line(text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
