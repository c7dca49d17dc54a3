"""Every example in the documents and in docstrings does what it says."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from project_files import ROOT, modules
from snippets import Block, blocks, run_bash, run_console, run_python

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MODULES = [name for name in modules() if not name.endswith(".__main__")]
RUN = ("python", "pycon", "bash", "console")
NOT_RUN_AT_MOST = 6  # in all documents together; each is an example that nobody checks

each_document = pytest.mark.parametrize(
    "document", [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in DOCUMENTS]
)
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)\s#]+)[^)]*\)")


@pytest.fixture
def folder(tmp_path: Path, store_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, where `tacho` and `python` are those of this environment."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    scripts = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join((scripts, os.environ["PATH"])))
    monkeypatch.setenv("COLUMNS", "100")
    return folder


@pytest.fixture
def main_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """Stand a new module in for `__main__`, and put the environment back afterwards."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    before = dict(os.environ)
    yield module
    os.environ.clear()
    os.environ.update(before)


@each_document
def test_every_example_of_a_document_runs(
    document: Path, folder: Path, main_module: types.ModuleType
) -> None:
    examples = [block for block in blocks(document) if block.language in RUN]
    to_run = [block for block in examples if block.reason_not_run is None]
    for block in to_run:
        run(block, folder, main_module)

    assert [block for block in examples if not stated(block)] == []


def run(block: Block, folder: Path, main_module: types.ModuleType) -> None:
    """Run a block by its language; it raises when the document is wrong."""
    if block.language in ("python", "pycon"):
        run_python(block, main_module.__dict__)
    elif block.language == "bash":
        run_bash(block, folder)
    else:
        run_console(block, folder)


def stated(block: Block) -> bool:
    """Tell whether a block is run, or says in words why not."""
    return block.reason_not_run is None or len(block.reason_not_run.split()) > 1


def test_few_examples_are_not_run() -> None:
    every = [block for document in DOCUMENTS for block in blocks(document)]
    not_run = [str(block) for block in every if block.reason_not_run is not None]

    assert len(not_run) <= NOT_RUN_AT_MOST, not_run


@each_document
def test_every_block_names_its_language(document: Path) -> None:
    """One that names none would be neither run nor marked."""
    unnamed = [str(block) for block in blocks(document) if not block.language]

    assert unnamed == []


@each_document
def test_links_to_files_lead_somewhere(document: Path) -> None:
    prose = FENCED.sub("", document.read_text(encoding="utf-8"))
    targets = [match["target"] for match in LINK.finditer(prose)]

    assert [name for name in targets if not (document.parent / name).exists()] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_doctests_of_a_module_pass(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)

    assert failed == 0
