"""Where the words of a run can be in a store, besides its log: one list, to look and to clean.

Reads names, and removes what it was asked to. The log, the views, the leases, the payloads and
the archives of bodies are environments and files of their own, which this does not look into.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.infra.durable import sync_folder
from tachograph.infra.layout import name_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    Known = Callable[[str], bool]
    """Says whether the log has a run of that id."""

RUN_ARCHIVE = ".tar.zst"
"""Ends the names of archives that `tacho run archive` writes."""
_ELSEWHERE = frozenset({"log", "views", "presence", "blobs", "archive", "told"})
"""Folders of the store that are erased in other ways, or hold no words."""
_OF_JOB_RUNS = frozenset({"job-runs", "job-runs-standalone"})
"""Folders whose folders are named by run ids, wherever below the store they are."""
_HALF_WRITTEN = (".archive-", f"{RUN_ARCHIVE}.part")
"""Begins or ends the names of archives that killed processes left."""


def files_of(store: str, run_ids: Collection[str], known: Known) -> dict[str, str]:
    """Return the files and folders that are of some runs by their names, each with its run.

    These are what adapters printed, the logs, ledgers and summaries of cron jobs and the folders
    of job runs, in whatever folder of the store they are, and half-written copies of them.
    """
    spooled = {name_key(run_id).hex(): run_id for run_id in run_ids}
    found: dict[str, str] = {}
    for folder, names, files in _walk(store):
        if os.path.basename(folder) in _OF_JOB_RUNS:
            for name in [each for each in names if each in run_ids]:
                found[os.path.join(folder, name)] = name
                names.remove(name)
        for name in files:
            owner = spooled.get(name.partition("-")[0])
            if owner is None:
                owner = next((each for each in run_ids if _is_of(name, each, known)), None)
            if owner is not None:
                found[os.path.join(folder, name)] = owner
    return dict(sorted(found.items()))


def run_archives(store: str) -> list[str]:
    """Return the archives of runs in a store, wherever they are in it."""
    return sorted(
        os.path.join(folder, name)
        for folder, _, files in _walk(store)
        for name in files
        if name.endswith(RUN_ARCHIVE) and not name.startswith(_HALF_WRITTEN[0])
    )


def half_written(store: str) -> list[str]:
    """Return what killed processes left of archives of runs: nobody knows whose words are in it."""
    return sorted(
        os.path.join(folder, name)
        for folder, _, files in _walk(store)
        for name in files
        if name.startswith(_HALF_WRITTEN[0]) or name.endswith(_HALF_WRITTEN[1])
    )


def remove(path: str) -> None:
    """Remove a file or a folder for good; a link, and not what it leads to."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)
    sync_folder(os.path.dirname(path))


def real(path: str) -> str:
    """Return where a path leads, through whatever links."""
    return os.path.realpath(path)


def is_inside(store: str, path: str) -> bool:
    """Say whether a path leads into a store, through whatever links."""
    return Path(real(path)).is_relative_to(real(store))


def _walk(store: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through the folders of a store; one that is a link is followed there, and no deeper."""
    try:
        names = sorted(os.listdir(store))
    except FileNotFoundError:
        return
    for name in names:
        top = os.path.realpath(os.path.join(store, name))
        if name not in _ELSEWHERE and os.path.isdir(top):
            yield from os.walk(top)


def _is_of(name: str, run_id: str, known: Known) -> bool:
    """Say whether a file is named after a run: `{job}-{run id}.{what it is}`.

    A run with a longer id that fits too, and that the log has, is whose file it is.
    """
    if name.endswith(RUN_ARCHIVE):
        return False
    stem = name.removeprefix(".")
    begin = stem.find(run_id)
    while begin >= 0:
        end = begin + len(run_id)
        if stem[begin - 1 : begin] in ("", "-") and stem[end : end + 1] == ".":
            begins = [0, *(at + 1 for at in range(begin) if stem[at] == "-"), begin]
            ends = [end, *(at for at in range(end + 1, len(stem)) if stem[at] == ".")]
            longer = {stem[first:last] for first in begins for last in ends} - {run_id}
            return not any(map(known, longer))
        begin = stem.find(run_id, begin + 1)
    return False
