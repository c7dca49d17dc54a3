"""Find every reason code that the package itself can record, in its source. Holds no test."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import tachograph
from tachograph.domain import outcome, policy
from tachograph.domain.default_policy import NEWEST, default_policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(tachograph.__file__).parent
FOLDERS = ("domain", "infra", "projections", "cli", "jobs", "dropin", "queues", "health", ".")
CODE = re.compile(r"[a-z]+(_[a-z]+)*")
PLACES = {
    "RollUp": 1,
    "Worked": 1,
    "Decision": 2,
    "StepRule": 2,
    "Verdict": 2,
    "_end_cut_off": 2,
    "end_attempt": 3,
}
"""By what is called: which of its arguments is a reason code."""


def reason_codes() -> dict[str, set[str]]:
    """Return every reason code that is named in the source, with the files that name it."""
    found: dict[str, set[str]] = {}
    for path in sources():
        for code in _codes(path):
            found.setdefault(code, set()).add(path.name)
    for version in range(1, NEWEST + 1):
        for rule in default_policy(version).rules:
            found.setdefault(rule.reason_code, set()).add(Path(policy.__file__).name)
    return found


def sources() -> list[Path]:
    """Return the files of the package."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).glob("*.py")]
    return sorted(path for path in found if not path.name.startswith("__"))


def _codes(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = _module(path)
    of_errors = {  # codes of jobs, where a class of errors says one: no run ends with it
        part for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body
    }
    for node in ast.walk(tree):
        if node in of_errors and isinstance(node, ast.Assign):
            continue
        for part in _places(node, module):
            for value in _values(part, module):
                if CODE.fullmatch(value) and value not in outcome.OUTCOMES:
                    yield value


def _places(node: ast.AST, module: ModuleType) -> Iterator[ast.expr]:
    """Yield the expressions that stand where a reason code stands."""
    if isinstance(node, ast.Call):
        yield from (each.value for each in node.keywords if each.arg == "reason_code")
        called = node.func.attr if isinstance(node.func, ast.Attribute) else None
        called = node.func.id if isinstance(node.func, ast.Name) else called
        if called == "report":
            yield from (each.value for each in node.keywords if each.arg == "failure_class")
        place = PLACES.get(called or "")
        if place is not None and len(node.args) > place and not _is_named(node.args[0], "RUN"):
            yield node.args[place]
    if isinstance(node, ast.Tuple) and node.elts and _is_outcome(node.elts[0], module):
        yield from node.elts[1:]  # the words among them are no codes
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Attribute | ast.IfExp):
        yield from _constants(node.value)
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        either = (part for part in node.value.elts if isinstance(part, ast.BoolOp))
        yield from (part for part in either if _is_named(part.values[0], "code"))
    if isinstance(node, ast.Assign):
        yield from _assigned(node)


def _assigned(node: ast.Assign) -> Iterator[ast.expr]:
    """Yield what is assigned to `code`."""
    (target,), value = node.targets[:1], node.value
    if _is_named(target, "code"):
        yield value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, part in zip(target.elts, value.elts, strict=False):
            if _is_named(name, "code"):
                yield part


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_outcome(node: ast.expr, module: ModuleType) -> bool:
    """Say whether an expression is `outcome.PARTIAL`, `PARTIAL` or the like."""
    if isinstance(node, ast.Name) and node.id.isupper():
        known = str(getattr(outcome, node.id, None))
        return outcome.is_outcome(known) and getattr(module, node.id, None) == known
    return isinstance(node, ast.Attribute) and _is_named(node.value, "outcome")


def _constants(node: ast.expr) -> Iterator[ast.expr]:
    """Yield each `outcome.RATE_LIMITED` or the like: a name that is no outcome."""
    named = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
    for part in named:
        known = str(getattr(outcome, part.attr, ""))
        if _is_named(part.value, "outcome") and not outcome.is_outcome(known):
            yield part


def _values(node: ast.expr, module: ModuleType) -> Iterator[str]:
    """Yield the texts that an expression can be, as far as the source says."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _values(node.body, module)
        yield from _values(node.orelse, module)
    elif isinstance(node, ast.BoolOp):
        for each in node.values:
            yield from _values(each, module)
    elif isinstance(node, ast.Name) and node.id.isupper():
        yield from _text(getattr(module, node.id, None))
    elif isinstance(node, ast.Attribute) and node.attr.isupper():
        yield from _text(getattr(outcome, node.attr, None))
    elif isinstance(node, ast.Attribute) and node.attr == "code":
        yield from _text(_of_class(node.value, module))


def _of_class(node: ast.expr, module: ModuleType) -> object:
    """Return the reason code of a class of errors."""
    made = getattr(module, node.id, None) if isinstance(node, ast.Name) else None
    return getattr(made, "code", None) if isinstance(made, type) else None


def _text(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value


def _module(path: Path) -> ModuleType:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module(".".join(("tachograph", *parts)))
