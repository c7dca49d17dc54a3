"""An error says what happened, to what, and what to do next; and it survives a trip."""

from __future__ import annotations

import ast
import copy
import importlib
import pickle
import pkgutil
import shlex
import string
from typing import TYPE_CHECKING

import pytest
from project_files import modules

import tachograph.domain
from tachograph.domain import errors
from tachograph.domain.ids import InvalidIdError

if TYPE_CHECKING:
    from collections.abc import Iterator

RARER = [
    importlib.import_module(f"tachograph.domain.{each.name}")
    for each in pkgutil.iter_modules(tachograph.domain.__path__)
    if each.name.endswith("_errors")
]
CLASSES = [
    *(
        found
        for module in (errors, *RARER)
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, errors.TachographError)
        and found.__module__ == module.__name__
    ),
    InvalidIdError,
]
ERRORS = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)


def arity(kind: type[errors.TachographError]) -> int:
    """How many arguments the template of an error takes."""
    names = [name for _, name, _, _ in string.Formatter().parse(kind.template) if name is not None]
    return max((int(name[0]) for name in names), default=-1) + 1


def example(kind: type[errors.TachographError]) -> errors.TachographError:
    return kind(*(f"<{place}>" for place in range(arity(kind))))


class TestMessages:
    @ERRORS
    def test_a_message_shows_every_argument(self, kind: type[errors.TachographError]) -> None:
        error = example(kind)

        assert [text for text in error.args if text not in str(error)] == []

    @ERRORS
    def test_a_message_is_whole_sentences(self, kind: type[errors.TachographError]) -> None:
        message = str(example(kind))

        assert kind.template.endswith((".", "}"))
        assert "  " not in message

    def test_without_arguments_the_docstring_is_the_message(self) -> None:
        assert [kind for kind in CLASSES if str(kind()) != kind.__doc__] == []

    @pytest.mark.parametrize(
        "kind",
        [
            kind
            for kind in CLASSES
            if issubclass(kind, errors.RefusalError) and kind is not errors.RefusalError
        ],
        ids=lambda kind: kind.__name__,
    )
    def test_a_refusal_names_the_run_or_the_value_first(
        self, kind: type[errors.TachographError]
    ) -> None:
        """`args[0]` is what a caller or a log can file the refusal under."""
        assert arity(kind) >= 1
        assert "<0>" in str(example(kind))

    def test_a_command_takes_its_arguments_as_they_are_shown(self) -> None:
        """People copy it: no space, quote or dollar may change what it means."""
        key = "mail 'the $team'"
        shown = str(errors.EffectInDoubtError("job", key, 1)).split("`")[1]
        asked = str(errors.ApprovalPendingError("job", key)).split("`")

        assert shlex.split(shown)[:6] == ["tacho", "run", "effect", key, "--run", "job"]
        assert [shlex.split(each)[4] for each in (asked[1], asked[3])] == [key, key]

    def test_who_is_at_work_is_told_in_a_sentence_or_by_name(self) -> None:
        for who in ("process 7 on ada", "process 7 is running"):
            said = str(errors.RunOwnedError("job", who))

            assert said.startswith(f"Run job is at work: {who}. Wait for it")
            assert "`tacho run cancel job --reason …`" in said
            assert "--takeover and --reason" in said

    def test_braces_in_an_argument_are_no_template(self) -> None:
        assert "{0} {x}" in str(errors.RunNotFoundError("{0} {x}", ""))


class TestTrips:
    @ERRORS
    def test_an_error_survives_pickling(self, kind: type[errors.TachographError]) -> None:
        error = example(kind)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            copied = pickle.loads(pickle.dumps(error, protocol))

            assert type(copied) is kind
            assert (str(copied), copied.args) == (str(error), error.args)

    def test_an_error_survives_copying(self) -> None:
        made = [example(kind) for kind in CLASSES]

        assert list(map(str, copy.deepcopy(made))) == list(map(str, made))


class TestFamilies:
    def test_every_class_is_named_as_an_error_and_says_what_it_means(self) -> None:
        assert [kind for kind in CLASSES if not kind.__name__.endswith("Error")] == []
        assert [kind for kind in CLASSES if not kind.__doc__] == []

    def test_a_value_that_makes_no_sense_is_a_value_error(self) -> None:
        assert issubclass(errors.InvalidValueError, ValueError)
        assert issubclass(errors.BatchRangeError, ValueError)
        assert issubclass(InvalidIdError, ValueError)
        assert issubclass(errors.UnstorableValueError, TypeError)


class TestUses:
    """A message with too few arguments would fail while it is shown."""

    def test_errors_are_made_with_the_arguments_of_their_template(self) -> None:
        assert [
            f"{path}:{line}: {kind.__name__} shows {arity(kind)} arguments, not {count}"
            for path in modules().values()
            for line, kind, count in self._made(ast.parse(path.read_text(encoding="utf-8")))
            if count < arity(kind)  # more are for the caller
        ] == []

    def _made(self, tree: ast.AST) -> Iterator[tuple[int, type[errors.TachographError], int]]:
        """Yield line, class and number of arguments of every error that a module makes."""
        by_name = {kind.__name__: kind for kind in CLASSES}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or any(
                isinstance(argument, ast.Starred) for argument in node.args
            ):
                continue
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in by_name:
                yield node.lineno, by_name[name], len(node.args)
