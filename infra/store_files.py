"""The files of a store: measured, checked, copied, swapped. Never changes an event.

What is made appears whole, by renaming what was synced: a killed process leaves the old state
or the new one.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp, mkstemp
from typing import TYPE_CHECKING, TextIO

from tachograph.domain.errors import (
    StoreBusyError,
    StoreError,
    StoreExistsError,
    StoreNotFoundError,
    StorePathError,
)
from tachograph.infra import lmdb_files, store_folder
from tachograph.infra.body_archives import TEMPORARY, name_of
from tachograph.infra.durable import sync_file, sync_folder, sync_path
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.lmdb_rewriting import rewrite_into
from tachograph.infra.store_pages import page_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.domain.blobref import BlobRef

_DATA = "data.mdb"
_COMPACT = "compact-"
_COPY_BYTES = 1024 * 1024


class StoreFiles:
    """The files below one store folder. Opens no store, unless a method says so."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._root = Path(folder)
        self._log = Path(store_folder.log_folder(folder))
        self._views = Path(store_folder.view_folder(folder))
        self._presence = Path(store_folder.presence_folder(folder))
        self._blobs = Path(store_folder.blob_folder(folder))
        self._archive = Path(store_folder.archive_folder(folder))
        self._data = self._log / _DATA

    # Measures.

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each part of the store."""
        parts = {
            "log": self._log,
            "views": self._views,
            "presence": self._presence,
            "blobs": self._blobs,
            "archive": self._archive,
        }
        return {name: _size(path) for name, path in parts.items()}

    def has_log(self) -> bool:
        """Say whether the log's data file is there."""
        return self._data.exists()

    def format(self) -> int:
        """Return the format that the store has."""
        return int(Path(store_folder.format_file(self.folder)).read_bytes())

    def free_bytes(self) -> int:
        """Return how much room is left on the disk."""
        return shutil.disk_usage(self._root).free

    def leftovers(self) -> list[str]:
        """Return what killed processes left behind: it takes room and does no harm."""
        found = [
            *self._log.glob(f"{_COMPACT}*"),
            *self._blobs.glob("??/tmp-*"),
            *self._archive.glob("tmp-*"),
        ]
        return sorted(map(str, found))

    # Checks.

    def damage(self) -> list[str]:
        """Return what is wrong with the pages of the log's data file.

        The file is read, not mapped: this comes before opening the log, since a damaged file
        can kill the process that maps it. Raises StoreNotFoundError.
        """
        if not self.has_log():
            raise StoreNotFoundError(self.folder)
        problems, fatal = page_problems(self._data)
        if not problems or fatal:
            return problems
        # Others may have written while the file was read: look again while nobody can.
        try:
            environment = open_environment(self._log, create=False)
        except StoreError:
            return problems  # nobody can write, or the damage keeps it from being opened
        try:
            with environment.write():
                return page_problems(self._data)[0]
        finally:
            environment.close()

    # Backups.

    @contextmanager
    def backup_at(self, target: str) -> Iterator[str]:
        """Give a new folder to fill, beside `target`; at the block's end it is named so.

        Nothing is left of it when the block raises. Raises StoreExistsError when something is
        there already, StorePathError when it would be inside this store.
        """
        path = Path(os.path.abspath(target))
        if path.is_relative_to(self._root):
            raise StorePathError(target, f"it is inside the store {self.folder}")
        if path.exists() and not _is_empty_folder(path):
            raise StoreExistsError(str(path))
        with _translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            made = Path(mkdtemp(prefix=f"{path.name}.partial-", dir=path.parent))
        try:
            yield str(made)
            with _translated(path):
                _sync_tree(made)
                made.replace(path)  # over an empty folder, never over anything else
                sync_folder(str(path.parent))
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def copy_log(self, target: str) -> None:
        """Copy the log as of one moment while others write, and the small files."""
        copy = Path(store_folder.log_folder(target))
        with _translated(copy):
            copy.mkdir(parents=True)
            for name in ("format", "config"):
                if (self._root / name).is_file():
                    _copy(self._root / name, Path(target) / name)
        environment = open_environment(self._log, create=False, readonly=True)
        try:
            environment.copy_to(str(copy))
        finally:
            environment.close()
        _sync_data(copy)

    def copy_blob(self, ref: BlobRef, target: str) -> None:
        """Copy the file of a payload; after this returns it is on disk."""
        copy = _blob_path(Path(store_folder.blob_folder(target)), ref)
        with _translated(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            _copy(_blob_path(self._blobs, ref), copy)

    def copy_archive(self, number: int, target: str) -> None:
        """Copy an archive of bodies, unless it is gone; after this returns it is on disk."""
        copy = Path(store_folder.archive_folder(target)) / name_of(number)
        source = self._archive / name_of(number)
        with _translated(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.exists():
                _copy(source, copy)

    # Compaction.

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all others from opening the log. Raises StoreBusyError while one has it open."""
        try:
            lock = lmdb_files.lock_out(str(self._log))
        except BlockingIOError as error:
            raise StoreBusyError(self.folder, "another process has it open") from error
        except OSError as error:
            raise translate(error, self.folder) from error
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    @contextmanager
    def compact_copy(self) -> Iterator[str]:
        """Give a folder with a copy of the log that has no free pages; it is removed at the end.

        Needs no lock: the copy is of one moment. It is written value by value: LMDB's own copy
        keeps pages as they are, half empty where bodies went to archives, and with bytes of
        what was erased.
        """
        with _translated(self._log):
            folder = Path(mkdtemp(prefix=_COMPACT, dir=self._log))
        try:
            rewrite_into(str(self._log), str(folder))
            yield str(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def swap_in(self, folder: str) -> None:
        """Make the copy in a folder the log. To be called while alone; durable on return."""
        with _translated(self._log):
            (Path(folder) / _DATA).replace(self._data)
            sync_folder(str(self._log))

    def data_bytes(self, folder: str | None = None) -> int:
        """Return the size of the log's data file, or of the one in a folder."""
        return (self._data if folder is None else Path(folder) / _DATA).stat().st_size

    def drop_views(self) -> None:
        """Remove all views; the next read makes them anew (G8)."""
        with _translated(self._views):
            for name in ("current", ""):  # what names the rest goes first
                path = self._views / name
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.exists():
                    path.unlink()

    def remove_leftovers(self) -> None:
        """Remove what killed compactions left. To be called while alone."""
        for path in self._log.glob(f"{_COMPACT}*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in self._archive.glob(f"{TEMPORARY}*"):
            path.unlink(missing_ok=True)

    def remove_blob(self, ref: BlobRef) -> None:
        """Remove a payload that no event refers to. To be called while alone."""
        _blob_path(self._blobs, ref).unlink(missing_ok=True)


@contextmanager
def new_file(path: str) -> Iterator[TextIO]:
    """Give a text file to fill; at the block's end it is on disk under its name, which was free.

    Raises StoreExistsError. Nothing is left of it when the block raises.
    """
    target = Path(path)
    if os.path.lexists(target):
        raise StoreExistsError(path)
    with _translated(target):
        handle, name = mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            sync_file(file.fileno())
        with _translated(target):
            Path(name).replace(target)
            sync_folder(str(target.parent))
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Say in Tachograph's words what the system could not do."""
    import lmdb

    try:
        yield
    except (OSError, lmdb.Error) as error:
        raise translate(error, str(path)) from error


def _blob_path(folder: Path, ref: BlobRef) -> Path:
    return folder / ref.digest[:2] / ref.digest


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _size(folder: Path) -> int:
    """Return the bytes of all files below a folder, of those that do not vanish meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _copy(source: Path, copy: Path) -> None:
    with source.open("rb") as original, copy.open("xb") as file:
        shutil.copyfileobj(original, file, _COPY_BYTES)
        file.flush()
        sync_file(file.fileno())
    shutil.copymode(source, copy)


def _sync_tree(folder: Path) -> None:
    for parent, _, _ in os.walk(folder):
        sync_folder(parent)


def _sync_data(folder: Path) -> None:
    sync_path(str(folder / _DATA))
