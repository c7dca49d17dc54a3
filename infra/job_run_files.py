"""Find and read the files that job runs have left. Writes nothing, follows no link into a tree."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from tachograph.domain.records import _Fields
from tachograph.infra.guarded_reading import LINK, read_guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENTS = ("job-runs", "job-runs-standalone")
"""Folders whose folders are job runs: of an orchestrator, or of a command by itself."""
NAMES = ("summary.json", "events.jsonl", "checkpoint.json")
"""Files of a job run."""
ORCHESTRATOR_SUFFIX = ".summary.json"

MOST_READ = 256 << 20
"""Bytes of the largest file that is read: all of it is held in memory."""

JOB = "job"
ORCHESTRATOR = "orchestrator"
UNREADABLE = "unreadable"


class FileRead(_Fields):
    """A file as it was read, with its SHA-256.

    `data` is None, and `problem` says why, where it could not be read.
    """

    __slots__ = ("data", "path", "problem", "sha256")

    def __init__(self, path: str, data: bytes | None, problem: str | None = None) -> None:
        self.path = path
        self.data = data
        self.problem = problem
        self.sha256 = hashlib.sha256(data or b"").hexdigest()


class Found(_Fields):
    """A place in a tree: the folder of a job run, or the summary of an orchestrator run.

    `kind` is JOB, ORCHESTRATOR, or UNREADABLE for a folder that cannot be listed, or a link that
    is not followed (`problem` says why).
    """

    __slots__ = ("kind", "path", "problem")

    def __init__(self, kind: str, path: str, problem: str | None = None) -> None:
        self.kind = kind
        self.path = path
        self.problem = problem


def find(root: str) -> Iterator[Found]:
    """Yield every job run and orchestrator summary below a folder, in the order of the paths.

    Links are not followed, but for the root; one that leads out of the root is yielded as
    UNREADABLE, as nothing else tells what is behind it.
    """
    left_out: list[Found] = []
    root = os.path.abspath(root)  # as it was named, not where a link leads

    def unreadable(error: OSError) -> None:
        left_out.append(Found(UNREADABLE, str(error.filename), error.strerror or str(error)))

    for folder, folders, files in os.walk(root, onerror=unreadable):
        folders.sort()
        if os.path.basename(os.path.dirname(folder)) in SEGMENTS:
            folders.clear()
            yield Found(JOB, folder)
            continue
        is_segment = os.path.basename(folder) in SEGMENTS
        for name in sorted([*folders, *files] if is_segment else folders):
            path = os.path.join(folder, name)
            if os.path.islink(path) and not _is_below(os.path.realpath(path), root):
                left_out.append(Found(UNREADABLE, path, LINK))
        for name in sorted(files):
            if name.endswith(ORCHESTRATOR_SUFFIX) and not is_segment:
                yield Found(ORCHESTRATOR, os.path.join(folder, name))
    yield from left_out


def _is_below(path: str, root: str) -> bool:
    """Say whether something is found below the root without the link that leads to it."""
    return path.startswith(os.path.join(os.path.realpath(root), "")) and os.path.exists(path)


def read_folder(folder: str) -> dict[str, FileRead]:
    """Return the files of a job run that are there, by name."""
    found = {name: read(os.path.join(folder, name)) for name in NAMES}
    return {name: file for name, file in found.items() if file is not None}


def read(path: str, *, follow_links: bool = False) -> FileRead | None:
    """Return what is in a file, or why it cannot be read; None when there is none.

    Links are followed only to what a person has named.
    """
    try:
        return FileRead(path, read_guarded(path, MOST_READ, follow_links=follow_links))
    except FileNotFoundError:
        return None
    except OSError as error:
        return FileRead(path, None, error.strerror or str(error))


def modified_us(path: str) -> int:
    """Return when a file was changed last, microseconds since 1970; 0 when nobody can say."""
    try:
        return os.stat(path).st_mtime_ns // 1000
    except OSError:
        return 0


def names_in(folder: str) -> list[str]:
    """Return the paths of the regular files of a folder, in order. Raises OSError."""
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_file(follow_symlinks=False))
