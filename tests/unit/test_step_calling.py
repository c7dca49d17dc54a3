"""A Python function as a maintenance step: what it returns becomes the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tachograph.domain.errors import StoreFullError
from tachograph.step_calling import call, code_of

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
class Jobs:
    @staticmethod
    def nested():
        return 4

def nothing(): pass
def number(): return 3
def fine(): return "empty"
async def later(): return "failed_semantic_empty"
def fails(): raise ValueError("no such table")
constant = 5
"""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "steps_for_a_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop("steps_for_a_test", None)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("steps_for_a_test:nothing", 0, ""),
        ("steps_for_a_test:number", 3, ""),
        ("steps_for_a_test:later", 7, ""),
        ("steps_for_a_test:Jobs.nested", 4, ""),
        ("steps_for_a_test:fails", 1, "ValueError: no such table"),
        ("steps_for_a_test:gone", 127, "cannot be loaded"),
        ("steps_for_a_test:constant", 127, "is no function"),
        ("no_such_module_at_all:f", 127, "No module named"),
        ("nowhere", 127, "an entry point of the group tachograph.maintenance"),
    ],
)
@pytest.mark.usefixtures("jobs")
def test_a_function_is_called(
    name: str, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call([name]) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["a:b", "c:d"]])
def test_it_takes_one_argument(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(argv) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (None, 0),
        (True, 0),
        (0, 0),
        (255, 255),
        (256, 1),  # a shell would make 0 of it
        (-1, 1),
        (False, 1),
        ("success", 0),
        ("empty", 0),
        ("partial", 75),
        ("failed_semantic_empty", 7),
        ("done", 1),
        (1.5, 1),
        ([], 1),
    ],
)
def test_what_says_nothing_of_how_it_went_is_a_failure(result: Any, code: int) -> None:
    assert code_of(result) == code


@pytest.mark.parametrize(("name", "told"), [("later", ["failed_semantic_empty"]), ("number", [])])
@pytest.mark.usefixtures("jobs")
def test_only_an_outcome_by_its_name_is_reported(name: str, told: list[str]) -> None:
    reported: list[str] = []
    call([f"steps_for_a_test:{name}"], reported.append)

    assert reported == told


@pytest.mark.parametrize(("name", "code"), [("fine", 1), ("later", 7)])
@pytest.mark.usefixtures("jobs")
def test_an_outcome_that_cannot_be_recorded_is_no_success(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_outcome: str) -> None:
        raise StoreFullError("/store", "the disk is full")

    assert call([f"steps_for_a_test:{name}"], fails) == code
    assert "was not recorded" in capsys.readouterr().err
