"""The views of a store on disk. Never touches the log, never answers from a half rebuilt view.

The folder holds one *generation*, an LMDB environment of its own, and the file `current` that
names it. A rebuild makes another generation beside it and then swaps the name. Processes that
have the old one open go on with it and see the swap at their next use; its files are removed.
"""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
from threading import Lock

from tachograph.domain.errors import (
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreNotFoundError,
)
from tachograph.infra.durable import sync_file
from tachograph.infra.lmdb_errors import translate
from tachograph.infra.lmdb_generation import BuildLock, Generation, remove
from tachograph.infra.view_rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import TypeVar

    from tachograph.infra.codec import Codec
    from tachograph.infra.lmdb_generation import ReadingViews

    T = TypeVar("T")

_CURRENT = "current"
_LOCK = "rebuild.lock"
_PREFIX = "generation-"
_TRIES = 10
"""Swaps by others that one call follows before it gives up."""
_BUSY = "other processes keep replacing its views"


class LMDBViews:
    """The views of a store. Satisfies the ViewStore port; may be shared by threads.

    Views that are missing, damaged or of another version are replaced by empty ones at the next
    use; whoever reads folds the log into them first.
    """

    def __init__(self, folder: str, codec: Codec) -> None:
        self._folder = folder
        self._codec = codec
        self._opened: Generation | None = None
        self._left: list[Generation] = []
        """Old ones that are still to be closed."""
        self._opening = Lock()
        self._building = BuildLock(os.path.join(folder, _LOCK))

    def read(self) -> _Reading:
        """Return a `with` block that sees all views as of one moment.

        Raises StoreReadOnlyError when the folder cannot be written, StoreCorruptError from
        inside the block when a page or row is damaged: `discard` them then.
        """
        return _Reading(self)

    def update(self, work: Callable[[Rows], T]) -> T:
        """Run `work` in one transaction: all of it is kept, or (when it raises) nothing.

        It may run again from the start when the memory map has to grow.
        """
        return self._with_current(lambda generation: generation.update(work))

    def rebuilding(self) -> _Building:
        """Return a `with` block for an empty generation that becomes the current one at its end.

        When the block raises, or the process ends in it, the current one stays. One process
        rebuilds at a time; others wait here.
        """
        return _Building(self, publish=True)

    def scratch(self) -> _Building:
        """Return a `with` block for an empty generation that is removed at its end."""
        return _Building(self, publish=False)

    def discard(self) -> None:
        """Throw the current generation away, unless another process has replaced it already."""
        with self._opening:
            name = self._opened.name if self._opened is not None else self._named()
            self._leave()
            with self._building:
                if name is not None and name == self._named():
                    os.unlink(os.path.join(self._folder, _CURRENT))
        self._close_left()

    def close(self) -> None:
        """Give the files back. The next use opens them again."""
        with self._opening:
            self._leave()
        self._close_left()

    # The current generation.

    def _with_current(self, use: Callable[[Generation], T]) -> T:
        """Use the current generation; again, when another thread closes it just then."""
        for _ in range(_TRIES):
            generation = self._current()
            try:
                return use(generation)
            except StoreClosedError:
                with self._opening:
                    if self._opened is generation:
                        self._opened = None
        raise StoreBusyError(self._folder, _BUSY)

    def _current(self) -> Generation:
        with self._opening:
            current = self._find()
        self._close_left()
        return current

    def _find(self) -> Generation:
        """Return the current generation, opened or made where there is none that can be read."""
        for _ in range(_TRIES):
            name = self._named()
            if self._opened is not None and self._opened.name == name:
                return self._opened
            self._leave()
            self._opened = self._open(name) if name is not None else None
            if self._opened is not None:
                return self._opened
            self._replace(name)
        raise StoreBusyError(self._folder, _BUSY)

    def _named(self) -> str | None:
        """Return the name of the current generation, None when there is no readable one."""
        try:
            handle = os.open(os.path.join(self._folder, _CURRENT), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise translate(error, self._folder) from error
        try:
            text = os.read(handle, 100).decode("ascii", "replace")
        finally:
            os.close(handle)
        name = text.removesuffix("\n")
        known = name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isalnum()
        return name if known else None

    def _open(self, name: str) -> Generation | None:
        """Open a generation; None when it is missing, damaged or of another version."""
        try:
            generation = Generation(self._folder, name, self._codec)
        except (StoreNotFoundError, StoreCorruptError):
            return None
        if generation.is_current():
            return generation
        generation.close()
        return None

    def _leave(self) -> None:
        if self._opened is not None:
            self._left.append(self._opened)
            self._opened = None

    def _close_left(self) -> None:
        """Close old generations, once nobody reads from them; other threads are waited for."""
        left, self._left = self._left, []
        for generation in left:
            try:
                generation.close()
            except StoreBusyError:  # this thread is reading from it
                self._left.append(generation)

    def _replace(self, name: str | None) -> None:
        """Make an empty generation the current one, unless another process was first."""
        try:
            os.makedirs(self._folder, exist_ok=True)
            with self._building:
                if self._named() == name:
                    self._publish(self._make(sync=True))
        except OSError as error:
            raise translate(error, self._folder) from error

    # Making generations. The caller holds the lock.

    def _make(self, *, sync: bool) -> Generation:
        name = _PREFIX + os.urandom(8).hex()
        generation = Generation(self._folder, name, self._codec, create=True, sync=sync)
        generation.update(Rows.create)
        return generation

    def _publish(self, generation: Generation) -> None:
        """Make a finished generation the current one, and remove all others."""
        generation.flush()
        generation.close()  # so that this process can open it with other settings
        current = os.path.join(self._folder, _CURRENT)
        with open(current + ".new", "w", encoding="ascii") as file:
            file.write(generation.name + "\n")
            file.flush()
            sync_file(file.fileno())
        os.replace(current + ".new", current)
        if not self._building.nested:  # else the outer block is still using its own
            self._sweep()

    def _sweep(self) -> None:
        """Remove every generation that is not the current one: old ones, and leftovers."""
        current = self._named()
        for name in os.listdir(self._folder):
            if name.startswith(_PREFIX) and name != current:
                remove(os.path.join(self._folder, name))


class _Reading:
    """A `with` block that sees the current generation as of one moment."""

    __slots__ = ("_block", "_views")

    def __init__(self, views: LMDBViews) -> None:
        self._views = views

    def __enter__(self) -> Rows:
        self._block, rows = self._views._with_current(_enter)
        return rows

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._block.__exit__(kind, error, trace)


def _enter(generation: Generation) -> tuple[ReadingViews, Rows]:
    block = generation.read()
    return block, block.__enter__()


class _Building:
    """A `with` block for a new generation, while nobody else makes one."""

    __slots__ = ("_made", "_publish", "_views")

    def __init__(self, views: LMDBViews, *, publish: bool) -> None:
        self._views = views
        self._publish = publish

    def __enter__(self) -> Generation:
        views = self._views
        try:
            os.makedirs(views._folder, exist_ok=True)
            views._building.__enter__()
        except OSError as error:
            raise translate(error, views._folder) from error
        try:
            views._sweep()  # what killed processes left
            # Nobody reads it before it is whole, so it is brought to the disk once, at its end.
            self._made = views._make(sync=False)
        except BaseException:
            views._building.__exit__()
            raise
        return self._made

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        views = self._views
        try:
            if error is None and self._publish:
                views._publish(self._made)
            else:
                self._made.close()
                remove(self._made.path)
        except OSError as failed:
            raise translate(failed, views._folder) from failed
        finally:
            views._building.__exit__()
