"""One spec, two front ends: what the light parser accepts, click accepts with the same values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.cli import app, light
from tachograph.cli.catalogue import COMMANDS
from tachograph.cli.options import EVERYWHERE, FLAG, NUMBER, WHOLE, Argument, Option

if TYPE_CHECKING:
    from collections.abc import Iterator


def paths(names: Any = COMMANDS, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command."""
    for name, found in names.items():
        if isinstance(found, str):
            yield (*before, name)
        else:
            yield from paths(found, (*before, name))


def module_name(path: tuple[str, ...]) -> str:
    names: Any = COMMANDS
    for word in path:
        names = names[word]
    return str(names)


TEXTS = st.one_of(
    st.sampled_from(["", "-", "a=b", "x:=3", "@file", "ä b", "\udcff", "7", "0", "1.5", "run"]),
    st.text(max_size=4),
)
NUMBERS = st.sampled_from(["0", "7", "007", "1_000", " 3", "-1", "+1", "\u0663", "1.5", "1e3", ""])
WRONG = st.sampled_from(["--", "--help", "--nothing", "-x", "--json=yes", "--store", "--epoch="])


def values(param: Argument | Option) -> st.SearchStrategy[str]:
    """Draw a text for a parameter: mostly one of its kind."""
    if param.choices:
        return st.sampled_from([*param.choices, "other"])
    return NUMBERS if param.kind in (WHOLE, NUMBER) else TEXTS


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    path = draw(st.sampled_from(list(paths())))
    spec = light.load(module_name(path)).SPEC
    pieces: list[list[str]] = []
    for argument in spec.arguments:
        count = draw(st.integers(0, 3)) if argument.multiple else draw(st.sampled_from([1, 1, 0]))
        pieces += [[draw(values(argument))] for _ in range(count)]
    for option in draw(st.lists(st.sampled_from([*spec.options, *EVERYWHERE]), max_size=4)):
        pieces.append(draw(written(option)))
    pieces += [[word] for word in draw(st.lists(WRONG, max_size=1))]
    line = [word for piece in draw(st.permutations(pieces)) for word in piece]
    early = draw(st.lists(st.sampled_from(EVERYWHERE), max_size=1))
    before = [word for option in early for word in draw(written(option))]
    return [*before, *path, *line]


@st.composite
def written(draw: st.DrawFn, option: Option) -> list[str]:
    if option.kind == FLAG:
        return [option.flag]
    value = draw(values(option))
    return draw(st.sampled_from([[option.flag, value], [f"{option.flag}={value}"]]))


ENVIRONMENTS = st.fixed_dictionaries(
    {},
    optional={
        "TACHO_RUN_ID": st.sampled_from(["job-a", "", "-x"]),
        "TACHO_EPOCH": st.sampled_from(["3", "", "three", "-1", " 3"]),
    },
)


@given(argv=command_lines(), environment=ENVIRONMENTS)
def test_what_the_light_parser_accepts_click_accepts_with_the_same_values(
    argv: list[str], environment: dict[str, str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TACHO_RUN_ID", "TACHO_EPOCH"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        quick = light.parse(argv, os.environ)
        if quick is None:
            return
        full = app.parse(argv)

    assert full is not None
    assert (full.module, full.values, full.everywhere) == (
        quick.module,
        quick.values,
        quick.everywhere,
    )


def test_a_well_formed_line_is_accepted() -> None:
    """The property above says nothing about a parser that accepts nothing."""
    argv = ["--json", "run", "batch", "parse", "7", "--inputs", "50", "--run=job-a", "--quiet"]
    call = light.parse(argv, {"TACHO_EPOCH": "2"})

    assert call is not None
    assert call.module.__name__ == "tachograph.cli.run_batch"
    assert call.values["phase"] == "parse"
    assert call.values["index"] == 7
    assert call.values["inputs"] == 50
    assert (call.values["run"], call.values["epoch"]) == ("job-a", 2)
    assert call.everywhere == {"store": None, "json": True, "quiet": True, "time": None}


def test_everything_after_two_dashes_is_an_argument() -> None:
    call = light.parse(["run", "effect", "mail", "--", "sendmail", "--json", "--", "-t"], {})

    assert call is not None
    assert call.values["argv"] == ("sendmail", "--json", "--", "-t")
    assert call.everywhere["json"] is False


@pytest.mark.parametrize(
    "line",
    [
        "",
        "run",
        "run phase",
        "run nothing",
        "run start",
        "run start a b",
        "run start a --help",
        "run start a --id",
        "run start a --owner-pid x",
        "run start a --export=yes",
        "run batch p -1",
        "-- run start a",
        "run phase end p --status odd",
        "--version",
    ],
)
def test_the_unusual_is_left_to_click(line: str) -> None:
    assert light.parse(line.split(), {}) is None


@pytest.mark.parametrize("path", list(paths()), ids=" ".join)
def test_every_command_explains_itself(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.parse([*path, "--help"]) is None
    text = capsys.readouterr().out
    spec = light.load(module_name(path)).SPEC

    assert f"Usage: tacho {' '.join(path)}" in text
    assert [item.text for item in spec.arguments if item.text not in " ".join(text.split())] == []
    assert [option.flag for option in spec.options if option.flag not in text] == []
    assert [option.text for option in spec.options if not option.text.endswith(".")] == []


@pytest.mark.parametrize("path", list(paths()), ids=" ".join)
def test_names_of_parameters_are_attributes_that_the_command_can_read(
    path: tuple[str, ...],
) -> None:
    spec = light.load(module_name(path)).SPEC
    names = [param.name for param in (*spec.arguments, *spec.options)]

    assert all(name.isidentifier() for name in names)
    assert len(set(names)) == len(names)


def test_an_error_of_click_is_raised() -> None:
    with pytest.raises(click.UsageError):
        app.parse(["run", "start", "a", "b"])
