"""The folder of a store: where it is, what is in it, which format it has. Never opens LMDB."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
import sys

from tachograph.domain.errors import (
    StoreCorruptError,
    StoreExistsError,
    StoreFormatError,
    StoreFullError,
    StoreNotFoundError,
    StorePathError,
    StoreReadOnlyError,
)
from tachograph.infra.durable import sync_file, sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

FORMAT = 1
"""Version of the folder's layout; a higher one is refused."""

BY_FLAG = "--store"
BY_ENVIRONMENT = "environment variable TACHO_STORE"
BY_FOLDER = "nearest .tachograph folder"
BY_WORKSPACE = "OpenClaw workspace"
BY_PLATFORM = "default for this platform"

_WORKSPACE_MARK = "AGENTS.md"
_LOCAL = ".tachograph"
_PARTS = ("log", "views", "presence", "blobs")
_OWN = frozenset((*_PARTS, "config", "format", "cron"))
_TEMPORARY = "format.tmp-"


def log_folder(store: str) -> str:
    """Return where the events are: the truth."""
    return os.path.join(store, "log")


def view_folder(store: str) -> str:
    """Return where views are: computed from the events, they may be deleted at any time (G8)."""
    return os.path.join(store, "views")


def presence_folder(store: str) -> str:
    """Return where leases and heartbeats are, which are worth nothing after a reboot."""
    return os.path.join(store, "presence")


def spool_folder(store: str) -> str:
    """Return where adapters write while they are at work; nothing there is needed afterwards."""
    return os.path.join(store, "spool")


def cron_folder(store: str) -> str:
    """Return where cron jobs leave their logs and ledgers, where no other place is named."""
    return os.path.join(store, "cron")


def blob_folder(store: str) -> str:
    """Return where payloads are that are too large for an event."""
    return os.path.join(store, "blobs")


def archive_folder(store: str) -> str:
    """Return where the bodies are that were moved out of the log: truth, as the log is."""
    return os.path.join(store, "archive")


def erasing_file(store: str) -> str:
    """Return the file that names what is being erased, until all of it is destroyed."""
    return os.path.join(store, "erasing")


def config_file(store: str) -> str:
    """Return the store's configuration file, which need not exist."""
    return os.path.join(store, "config")


def format_file(store: str) -> str:
    """Return the file that makes a folder a store, and says which format it has."""
    return os.path.join(store, "format")


def is_store(store: str) -> bool:
    """Say whether there is a store at a path, of whatever format."""
    return os.path.lexists(format_file(store))


def is_writable(store: str) -> bool:
    """Say whether this process may write to a store."""
    return os.access(store, os.W_OK | os.X_OK)


def has_lost_its_log(store: str) -> bool:
    """Say whether the log is gone from a store that was used: a new one would hide the loss.

    A store whose making was interrupted has no log either, but nothing else in it.
    """
    if os.path.exists(os.path.join(log_folder(store), "data.mdb")):
        return False
    used = (view_folder(store), presence_folder(store), blob_folder(store), archive_folder(store))
    return any(os.path.isdir(folder) and os.listdir(folder) for folder in used)


def create_store(store: str) -> None:
    """Make a store, with the folders above it, unless it is there.

    After this returns it is on disk, for this user only. Two processes may do this at once, and
    a creation that was killed is taken up again. Raises StorePathError (there is a file),
    StoreExistsError (there are other files in the folder), StoreReadOnlyError, StoreFullError.
    """
    if is_store(store):
        return
    try:
        _make(store)
        _refuse_foreign(store)
        for name in _PARTS:
            _make_private(os.path.join(store, name))
        _write_format(store)
    except OSError as error:
        _refuse(store, error)


def check_format(store: str) -> None:
    """Refuse what this version cannot read; nothing is written.

    Raises StoreNotFoundError, StorePathError (it is a file), StoreFormatError (a newer
    Tachograph wrote it) or StoreCorruptError.
    """
    try:
        with open(format_file(store), "rb") as file:
            version = _parse_format(store, file.read(64))
    except FileNotFoundError as error:
        raise StoreNotFoundError(store) from error
    except OSError as error:
        _refuse(store, error)
    if version > FORMAT:
        raise StoreFormatError(store, version, FORMAT)


def find_store(
    explicit: str | None, environment: Mapping[str, str], cwd: str, home: str
) -> tuple[str, str]:
    """Return the path of the store to use, whether or not it exists, and what named it.

    The first of these counts: `explicit` (--store), TACHO_STORE, the nearest `.tachograph`
    folder at or above `cwd`, `data/tachograph` in the OpenClaw workspace, the platform's folder
    for state. An address such as `postgresql://…` is returned as it is. Raises StorePathError
    for a path that a person wrote and that cannot be meant: an empty one, a file, one whose
    parent does not exist, or a workspace that does not.
    """
    if explicit is not None:
        return _named(explicit, BY_FLAG, cwd, home)
    if environment.get("TACHO_STORE"):
        return _named(environment["TACHO_STORE"], BY_ENVIRONMENT, cwd, home)
    nearest = _nearest(cwd)
    if nearest is not None:
        return nearest, BY_FOLDER
    workspace = _workspace(environment, cwd, home)
    if workspace is not None:
        return os.path.join(workspace, "data", "tachograph"), BY_WORKSPACE
    return _platform_folder(environment, home), BY_PLATFORM


def _named(written: str, origin: str, cwd: str, home: str) -> tuple[str, str]:
    if "://" in written:
        return written, origin
    if not written:
        raise StorePathError("''", f"{origin} is empty")
    path = _absolute(written, cwd, home)
    if os.path.isdir(path):
        return path, origin
    if os.path.lexists(path):
        raise StorePathError(path, f"it is no folder ({origin})")
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise StorePathError(path, f"there is no folder {parent} ({origin})")
    return path, origin


def _absolute(path: str, cwd: str, home: str) -> str:
    if path == "~" or path.startswith(("~/", f"~{os.sep}")):
        path = home + path[1:]
    path = os.path.join(cwd, path)
    # Only the file system knows where `link/..` leads.
    return os.path.realpath(path) if os.pardir in path else os.path.normpath(path)


def _nearest(cwd: str) -> str | None:
    folder = cwd
    while True:
        candidate = os.path.join(folder, _LOCAL)
        if os.path.isdir(candidate):
            return candidate
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _workspace(environment: Mapping[str, str], cwd: str, home: str) -> str | None:
    if environment.get("OPENCLAW_WORKSPACE"):
        workspace = _absolute(environment["OPENCLAW_WORKSPACE"], cwd, home)
        if not os.path.isdir(workspace):
            raise StorePathError(workspace, "OPENCLAW_WORKSPACE names it, and it is no folder")
        return workspace
    if environment.get("OPENCLAW_HOME"):
        workspace = os.path.join(_absolute(environment["OPENCLAW_HOME"], cwd, home), "workspace")
        if os.path.isdir(workspace):
            return workspace
    return _workspace_above(cwd)


def _workspace_above(cwd: str) -> str | None:
    """Return the nearest workspace at or above a folder, if it has a store.

    AGENTS.md alone says little: many repositories have one.
    """
    folder = cwd
    while True:
        if os.path.isfile(os.path.join(folder, _WORKSPACE_MARK)) and is_store(
            os.path.join(folder, "data", "tachograph")
        ):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _platform_folder(environment: Mapping[str, str], home: str) -> str:
    if sys.platform in ("darwin", "win32"):
        import platformdirs

        return platformdirs.user_state_dir("tachograph", appauthor=False)
    # What platformdirs says on Linux, without the 40 ms of its import. The specification has
    # relative paths ignored.
    state = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "tachograph")


def _make(path: str) -> None:
    """Make a folder and those above it, each durable before the next."""
    missing = []
    while not os.path.isdir(path):
        if os.path.lexists(path):
            raise StorePathError(path, "it is no folder")
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        _make_private(folder)
        sync_folder(os.path.dirname(folder))


def _make_private(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:  # another process was first
        if not os.path.isdir(path):
            raise


def _refuse_foreign(path: str) -> None:
    """Refuse a folder with other files: a store grows, and `--store ~` is a typing error."""
    if any(name not in _OWN and not name.startswith(_TEMPORARY) for name in os.listdir(path)):
        raise StoreExistsError(path)


def _write_format(store: str) -> None:
    """Write the format file last and atomically: it makes the folder a store."""
    temporary = os.path.join(store, f"{_TEMPORARY}{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(b"%d\n" % FORMAT)
            file.flush()
            sync_file(file.fileno())
        os.replace(temporary, format_file(store))
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    sync_folder(store)


def _parse_format(path: str, data: bytes) -> int:
    text = data.strip()
    if not text.isdigit() or int(text) < 1:
        raise StoreCorruptError(path, f"its format file holds {data!r}, not a number")
    return int(text)


def _refuse(path: str, error: OSError) -> NoReturn:
    import errno

    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        raise StoreReadOnlyError(path, error.strerror) from error
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise StoreFullError(path, error.strerror) from error
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        raise StorePathError(path, f"{error.filename} is no folder") from error
    raise StorePathError(path, str(error.strerror)) from error
