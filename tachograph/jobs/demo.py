"""The demonstration: run a real job, kill it half-way, look at it, resume it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tachograph.bootstrap import open_store
from tachograph.domain.errors import StoreExistsError, TachographError
from tachograph.jobs.code_report import Report, code_report

if TYPE_CHECKING:
    from collections.abc import Callable

EXCLUDE = (
    "test/",
    "tests/",
    "site-packages/",
    "dist-packages/",
    "idlelib/",
    "lib2to3/",
    "encodings/",
    "pydoc_data/",
    "turtledemo/",
    "config-*/",
    "_pyrepl/",
    "tkinter/",
    "distutils/",
    "ensurepip/",
    "/_*.py",
    "/[p-z]*.py",
)
"""What of the standard library is left out, so that the demonstration takes seconds."""

_CHILD = "import sys; from tachograph.jobs.demo import run_job; run_job(*sys.argv[1:])"
_PATIENCE_SECONDS = 60
"""How long to wait for the child to reach half of its batches before saying so."""


class DemoError(TachographError):
    """The demonstration could not be given."""


class Killed(NamedTuple):
    """The process that was killed, and how far its run was."""

    run_id: str
    pid: int
    done: int
    total: int


def library_root() -> Path:
    """Return the folder of the installed standard library."""
    return Path(sysconfig.get_paths()["stdlib"])


def run_job(folder: str, on_batch: Callable[[int, int], None] | None = None) -> Report:
    """Run the job of the demonstration with its store and report below `folder`."""
    place = Path(folder)
    return code_report(
        library_root(),
        place / "report",
        batch_size=10,
        exclude=EXCLUDE,
        store=str(place / "store"),
        on_batch=on_batch,
    )


def make_folder(given: str | None) -> Path:
    """Return an empty folder for the demonstration. Raises StoreExistsError for one in use."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="tachograph-demo-"))
    folder = Path(given)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StoreExistsError(given)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kill_half_way(folder: Path, on_batch: Callable[[int, int], None]) -> Killed:
    """Start the job in a child process and SIGKILL it after half of its batches.

    Raises DemoError when the child ends before that.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(folder)],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        run_id, done, total = _watch(folder, child, on_batch)
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
    return Killed(run_id, child.pid, done, total)


def _watch(
    folder: Path, child: subprocess.Popen[bytes], on_batch: Callable[[int, int], None]
) -> tuple[str, int, int]:
    """Follow the child through the log, as anybody can, until half of its batches are done."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    shown = (-1, -1)
    while time.monotonic() < deadline:
        if child.poll() is not None:
            _out, err = child.communicate()
            raise DemoError(f"the job ended before it was killed: {err.decode().strip()[-500:]}")
        progress = _progress(folder)
        if progress is not None:
            _run_id, done, total = progress
            if (done, total) != shown:
                on_batch(done, total)
                shown = (done, total)
            if total and done * 2 >= total:
                return progress
        time.sleep(0.05)
    raise DemoError(f"the job did not reach half of its batches in {_PATIENCE_SECONDS} s")


def _progress(folder: Path) -> tuple[str, int, int] | None:
    """Return run id, finished and planned batches as the log tells them, None before there are."""
    if not (folder / "store" / "format").exists():
        return None
    services = open_store(str(folder / "store"))
    try:
        created = services.log.read(limit=1, topics=("run.created",))
        run = services.repository.get(str(created[0].stream)) if created else None
        phase = run.phases.get("analyse") if run is not None else None
        if run is None or phase is None or phase.total is None:
            return None
        return run.id, len(phase.done), phase.total
    finally:
        services.close()
