"""Every command that prints JSON has a published shape, which `conftest` holds it to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, tacho
from project_files import ROOT
from pydantic import ValidationError

from tachograph.cli.catalogue import COMMANDS
from tachograph.cli.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRINTS_LINES_OF_ITS_OWN = {"store-export"}  # each is that of `run-events`, or of the export format
FOR_ALL = {"error"}


def names(table: dict[str, Any], before: str = "") -> Iterator[str]:
    """Yield the words of every command, joined by dashes."""
    for name, found in table.items():
        if isinstance(found, dict):
            yield from names(found, f"{before}{name}-")
        else:
            yield before + name


def test_every_command_has_a_shape() -> None:
    assert set(names(COMMANDS)) == (set(SHAPES) | PRINTS_LINES_OF_ITS_OWN) - FOR_ALL


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_says_what_it_is_of(name: str) -> None:
    schema = SHAPES[name].json_schema()
    models = [schema, *schema.get("$defs", {}).values()]

    assert any(model.get("description") for model in models)


@pytest.mark.parametrize("name", SHAPES)
def test_the_published_schema_is_that_of_the_shape(name: str) -> None:
    published = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text("utf-8"))

    assert published == SHAPES[name].json_schema()


def test_an_unknown_member_is_no_part_of_a_shape() -> None:
    """Otherwise the fixture that compares all printed JSON would let anything pass."""
    with pytest.raises(ValidationError):
        SHAPES["run-start"].validate_python(
            {"jobRunId": "job", "epoch": 1, "resumed": False, "more": 1}
        )


def test_an_error_has_its_shape(
    store_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, "run", "note", "x", "--run", "nothing", "--json")

    assert SHAPES["error"].validate_json(done.stderr).exit_code == done.returncode == 3


def test_an_executed_command_has_its_shape(store_environment: Path, tmp_path: Path) -> None:
    done = tacho("run", "exec", "--json", "--quiet", "--", "true", cwd=tmp_path)

    assert SHAPES["run-exec"].validate_json(done.stderr).outcome == "success_with_review"


@pytest.mark.parametrize(
    "line",
    [
        "phase start p --batches 2",
        "phase end other --status skipped",
        "batch q 0",
        "batch q --pending",
        "checkpoint --offset 1 --total 2",
        "checkpoint --show",
        "heartbeat",
        "effect mail --intend",
        "progress 1",
        "retry transient 1",
        "fallback a b",
        "note hello",
        "judge --inputs 1 --outputs 1",
        "finish --outcome partial",
        "fail --reason x",
        "cancel job --reason x",
        "start another --unowned",
    ],
)
def test_what_a_command_prints_has_its_shape(
    line: str, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    here(capsys, "run", "phase", "start", "other")
    here(capsys, "run", "phase", "start", "q", "--batches", "2")
    done = here(capsys, "run", *line.split(), "--json")

    assert json.loads(done.stdout) is not False, done.stderr
    assert "ValidationError" not in done.stderr
