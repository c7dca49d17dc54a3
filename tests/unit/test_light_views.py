"""Lists must start fast: what reads the views imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

import tachograph

MODULES = [
    "tachograph.portions",
    "tachograph.projecting",
    "tachograph.reading",
    "tachograph.shapes",
    "tachograph.projections.views",
    "tachograph.infra.lmdb_views",
]
HEAVY = {
    *("eventsourcing", "click", "rich", "pydantic", "psutil", "msgpack"),
    *("dataclasses", "enum", "typing", "pathlib", "json", "re", "inspect", "contextlib"),
    *("hashlib", "uuid", "concurrent", "asyncio", "logging", "difflib", "shutil", "tempfile"),
}
"""Not datetime: lmdb imports it itself."""

USE = """
from tachograph import projecting, reading, shapes
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_views import LMDBViews
log = LMDBLog(open_environment("log"))
cards = projecting.ask(log, Codec(), LMDBViews("views", Codec()),
                       lambda view: reading.list_runs(view, lambda *owner: None))
assert [shapes.card_shape(card) for card in cards] == []
"""


def imported_by(code: str, folder: str = ".") -> set[str]:
    """Return the heavy modules that a fresh process has imported after some code.

    Without `site`: the finders of editable installs import pathlib and re before anything else.
    """
    paths = [str(Path(found).parent.parent) for found in (tachograph.__file__, lmdb.__file__)]
    script = f"""import sys; sys.path += {paths!r}; before = set(sys.modules)
{code}
print(*{{name.partition('.')[0] for name in set(sys.modules) - before}})"""
    command = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return HEAVY.intersection(done.stdout.split())


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_a_list_needs_is_light(module: str) -> None:
    assert imported_by(f"import {module}") == set()


def test_a_list_of_a_new_store_is_light(tmp_path: Path) -> None:
    assert imported_by(USE, str(tmp_path)) == set()
