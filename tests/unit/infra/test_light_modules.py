"""Small modules of infra and domain import nothing heavy: short commands are called in loops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

import tachograph

HEAVY = frozenset(
    {
        "asyncio", "click", "concurrent", "contextlib", "ctypes", "dataclasses", "datetime",
        "difflib", "enum", "eventsourcing", "functools", "hashlib", "inspect", "json", "logging",
        "pathlib", "platformdirs", "psutil", "pydantic", "random", "re", "rich", "shutil",
        "socket", "subprocess", "tempfile", "tomllib", "traceback", "typing", "urllib", "uuid"
    }
)  # fmt: skip
# What lmdb and threading import themselves.
BROUGHT = frozenset({"datetime", "functools"})
LIGHT = (
    "tachograph.domain.liveness",
    "tachograph.domain.owner",
    "tachograph.domain.redaction",
    "tachograph.infra.blobs",
    "tachograph.infra.clock",
    "tachograph.infra.durable",
    "tachograph.infra.presence",
    "tachograph.infra.processes",
    "tachograph.infra.secrets",
    "tachograph.infra.settings",
    "tachograph.infra.store_folder",
)
WITH_LMDB = frozenset({"tachograph.infra.presence"})


def loaded_by(code: str) -> set[str]:
    """Run code in a bare interpreter and return the top packages it has imported.

    Without `site`: the finders of editable installs import pathlib and re before anything else.
    """
    paths = [str(Path(found).parent.parent) for found in (tachograph.__file__, lmdb.__file__)]
    bare = f"import sys; sys.path += {paths!r}; before = set(sys.modules)\n{code}\n"
    show = "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    command = [sys.executable, "-I", "-S", "-c", bare + show]
    run = subprocess.run(command, capture_output=True, text=True)

    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


@pytest.mark.parametrize("module", LIGHT)
def test_importing_it_imports_nothing_heavy(module: str) -> None:
    allowed = BROUGHT | {"lmdb"} if module in WITH_LMDB else frozenset()

    assert (loaded_by(f"import {module}") & (HEAVY | {"lmdb", "msgpack"})) - allowed == set()


def test_using_them_imports_nothing_heavy(store_path: Path) -> None:
    """What `tacho run start` does: find and make the store, read settings, beat."""
    code = f"""
import os
from tachograph.infra import clock, processes, secrets, settings, store_folder
from tachograph.infra.blobs import Blobs
from tachograph.infra.presence import Presence
store, origin = store_folder.find_store({str(store_path)!r}, os.environ, os.getcwd(), "/")
store_folder.create_store(store)
store_folder.check_format(store)
found = settings.resolve(store, os.environ)
redactor = secrets.redactor({{"API_TOKEN": "abc/def 123"}}, found.redact)
assert redactor.touches(b"abc/def 123")
blobs = Blobs(store_folder.blob_folder(store))
assert blobs.get(blobs.put(b"data")) == b"data"
presence = Presence(store_folder.presence_folder(store), lease_seconds=found.lease_seconds)
presence.beat("run-1", 1)
presence.beat("run-1", 2)
from tachograph.domain.liveness import judge
verdict = judge(
    processes.describe(os.getpid()),
    here=processes.observer(),
    process_start=processes.process_start,
    lease=presence.lease("run-1"),
    boottime_us=clock.boottime_us(),
)
assert verdict.state == "alive"
"""
    loaded = loaded_by(code)

    assert "lmdb" in loaded
    assert (loaded & HEAVY) - BROUGHT == set()
