"""The files of a cron job: where they are, how they are written. Reads and judges none of them."""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from tachograph.infra.durable import sync_file
from tachograph.infra.redacted_stream import RedactedStream
from tachograph.infra.store_folder import cron_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tachograph.domain.redaction import Redactor

LOG = ".log"
EXIT = ".exit.txt"
SUMMARY = ".summary.json"
VALIDATION = ".validation.json"
REPORT = ".report.md"
KNOWN = (LOG, EXIT, SUMMARY, VALIDATION, REPORT)
"""Endings of the files of a run; any other file with the run's name is one that no rule knows."""

ROOT = ("logs", "cron-hybrid-mem")
GUARDS = ("cron", "guard")
FALLBACK = "openclaw-cron-hybrid-mem-"
"""Begins the name of the folder for temporary files, where anybody may make folders."""
_OF_USERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@+-")
_OTHERS_WRITE = 0o022


class CronPaths:
    """The files of one run of a cron job: log and ledger in the root, the rest in its day."""

    def __init__(self, root: str, job: str, run_id: str, guards: str) -> None:
        self.root = root
        self.job = job
        self.run_id = run_id
        stem = f"{job}-{run_id}"
        self.day = os.path.join(root, run_id[:8])
        self.log = os.path.join(root, stem + LOG)
        self.exit = os.path.join(root, stem + EXIT)
        self.summary = os.path.join(self.day, stem + SUMMARY)
        self.validation = os.path.join(self.day, stem + VALIDATION)
        self.guard = os.path.join(guards, f"{job}.ms")
        self.are_old = False
        """Whether the ledger was there before this attempt."""

    def variables(self) -> dict[str, str]:
        """Return what the command finds in its environment."""
        return {
            "HM_RUN_ID": self.run_id,
            "HM_ORCHESTRATOR_RUN_ID": self.run_id,
            "HM_JOB": self.job,
            "HM_LOG": self.log,
            "HM_EXIT": self.exit,
            "HM_SUMMARY": self.summary,
            "HM_VALIDATION_JSON": self.validation,
        }


def roots(
    named: str | None,
    environment: Mapping[str, str],
    home: str,
    store: str | None,
    temporary: str,
) -> list[tuple[str, str]]:
    """Return where the files may be, with the folder of the guards of each; the first that works.

    `named` comes first and is then the only wish. Otherwise it is OpenClaw's own folder, when
    OPENCLAW_HOME is set or the folder is there, else one in the store. The last is a fallback in
    the folder for temporary files, and the guards stay where they are looked for.
    """
    last = os.path.join(temporary, FALLBACK + _user(environment))
    if named is not None:
        wish = os.path.abspath(os.path.join(home, named[2:]) if named[:2] == "~/" else named)
        guards = os.path.join(wish, "guard")
        return [(wish, guards), (last, guards)]
    claw = environment.get("OPENCLAW_HOME") or os.path.join(home, ".openclaw")
    logs = os.path.join(os.path.abspath(claw), *ROOT)
    if environment.get("OPENCLAW_HOME") or os.path.isdir(logs):
        guards = os.path.join(os.path.abspath(claw), *GUARDS)
        return [(logs, guards), (last, guards)]
    if store is None or "://" in store:
        return [(last, os.path.join(last, "guard"))]
    own = cron_folder(store)
    return [(own, os.path.join(own, "guard")), (last, os.path.join(own, "guard"))]


def _user(environment: Mapping[str, str]) -> str:
    """Return what tells the folders of users apart: a name that is one part of a path, no more."""
    name = environment.get("USER", "")
    if name and _OF_USERS.issuperset(name) and not name.startswith(".") and len(name) <= 64:
        return name
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def begin(
    choices: Sequence[tuple[str, str]],
    job: str,
    run_id: str | None,
    fresh: Callable[[], str],
    row: str,
    head: Callable[[str], str],
) -> tuple[CronPaths | None, list[OSError]]:
    """Make the ledger with its first row, and the log, in the first root that can be written.

    A `run_id` goes on in the files it has, if it has any; without one a `fresh` one is taken that
    no other run has. Returns the paths, None when no root can be written, and what was wrong with
    those that were tried.
    """
    problems: list[OSError] = []
    for root, guards in choices:
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)
            _refuse_others(root, strict=os.path.basename(root).startswith(FALLBACK))
            paths = _paths(root, guards, job, run_id, fresh, row)
            append_line(paths.log, head(paths.run_id))
        except OSError as error:
            problems.append(error)
        else:
            return paths, problems
    return None, problems


def _paths(
    root: str, guards: str, job: str, run_id: str | None, fresh: Callable[[], str], row: str
) -> CronPaths:
    while True:
        paths = CronPaths(root, job, run_id or fresh(), guards)
        os.makedirs(paths.day, mode=0o700, exist_ok=True)
        _refuse_others(paths.day, strict=os.path.basename(root).startswith(FALLBACK))
        paths.are_old = run_id is not None and os.path.lexists(paths.exit)
        try:
            append_line(paths.exit, row, new=run_id is None)
        except FileExistsError:  # another run of this very second has it
            continue
        return paths


def _refuse_others(folder: str, *, strict: bool) -> None:
    """Refuse a folder that somebody else made: one in /tmp may wait there for our secrets.

    One that the user or an administrator has named may be a link, and may belong to root. With
    `strict` it must be a folder of ours that nobody else may write to.
    """
    if not hasattr(os, "getuid"):
        return
    found = os.lstat(folder) if strict else os.stat(folder)
    if strict and not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "It is a link or no folder", folder)
    if found.st_uid not in ((os.getuid(),) if strict else (os.getuid(), 0)):
        raise PermissionError(errno.EPERM, "The folder belongs to somebody else", folder)
    if strict and found.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, "Others may write to the folder", folder)


def append_line(path: str, line: str, *, new: bool = False) -> None:
    """Append a line in one write, and bring it to the disk. Raises OSError with the path.

    Where the last line is torn, this one begins on a line of its own. A `new` file must not be
    there: FileExistsError.
    """
    handle = _open(path, os.O_EXCL if new else 0)
    try:
        text = f"{line}\n".encode("utf-8", "surrogateescape")
        _write(handle, text if _ends_a_line(handle) else b"\n" + text)
        sync_file(handle)
    except OSError as error:
        raise _named(error, path) from error
    finally:
        os.close(handle)


def _open(path: str, more: int = 0) -> int:
    """Open a file to append to it, and to look at its end."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | more, 0o600)


def _ends_a_line(handle: int) -> bool:
    """Say whether what is appended begins a line."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or not found.st_size:
        return True
    return os.pread(handle, 1, found.st_size - 1) == b"\n"


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _named(error: OSError, path: str) -> OSError:
    """Return an error that says of which file it speaks."""
    return error if error.filename == path else OSError(error.errno, error.strerror, path)


class LogFile:
    """The log of a run, appended to while a command runs; the first error stops it, not the job.

    What the `redactor` knows does not get into it.
    """

    def __init__(
        self, path: str, on_error: Callable[[OSError], None], redactor: Redactor | None = None
    ) -> None:
        self.error: OSError | None = None
        self._path = path
        self._on_error = on_error
        self._handle = -1
        self._redactor = redactor
        self._stream = RedactedStream(redactor)
        self._begins_line = True

    def add(self, data: bytes) -> None:
        """Append output as it comes; after an error nothing more."""
        self._put(self._stream.add(data))

    def line(self, text: str) -> None:
        """Append a line, on a line of its own."""
        self._put(self._stream.flush())
        data = f"{text}\n".encode("utf-8", "surrogateescape")
        if self._redactor is not None:
            data = self._redactor.redact(data)
        self._put(data, begins_line=True)

    def _put(self, data: bytes, *, begins_line: bool = False) -> None:
        if self.error is not None or not data:
            return
        try:
            if self._handle < 0:
                self._handle = _open(self._path)
                self._begins_line = _ends_a_line(self._handle)
            if begins_line and not self._begins_line:
                data = b"\n" + data
            _write(self._handle, data)
            self._begins_line = data.endswith(b"\n")
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.error = _named(error, self._path)
        self._on_error(self.error)

    def close(self) -> None:
        """Bring it to the disk, and close it."""
        self._put(self._stream.flush())
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        try:
            if self.error is None:
                sync_file(handle)
        except OSError as error:
            self._fail(error)
        finally:
            os.close(handle)


def write_json(path: str, value: Any, *, private: bool = False) -> None:
    """Write a JSON file so that a reader sees the old one or the new; durable on return.

    A `private` one is readable for its owner only. Raises OSError with the path.
    """
    _replace(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n", private=private)


def write_guard(path: str, time_ms: int) -> None:
    """Write a guard file: when its job last did its work, in milliseconds since 1970."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    _replace(path, str(time_ms), private=False)


def _replace(path: str, text: str, *, private: bool) -> None:
    from tachograph.infra.writing import replace_file

    data = text.encode("utf-8", "replace")  # an argument that is no text may be quoted in it
    try:
        if private:
            replace_file(path, data)
        else:
            replace_file(path, data, mode=0o666 & ~_umask())
    except OSError as error:
        raise _named(error, path) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
