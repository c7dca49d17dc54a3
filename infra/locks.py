"""Advisory file locks between processes. Never locks a file that LMDB opens itself."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class FileLock:
    """Hold an advisory lock on a file while in the `with` block; other holders wait.

    The system releases the lock when the process ends, however it ends. The file stays, empty:
    deleting it would let two processes hold locks on two files of the same name.

    Any number of `shared` holders go together, and none with one that is not. Without `wait`,
    entering raises BlockingIOError instead of waiting. A link is not followed: entering raises
    OSError.
    """

    __slots__ = ("_descriptor", "_path", "_shared", "_wait")

    def __init__(self, path: str, *, shared: bool = False, wait: bool = True) -> None:
        self._path = path
        self._shared = shared
        self._wait = wait
        self._descriptor = -1

    def __enter__(self) -> Self:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | _NO_LINK
        self._descriptor = os.open(self._path, flags, 0o644)
        try:
            _lock(self._descriptor, self._shared, self._wait)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _unlock(self._descriptor, self._shared)
        os.close(self._descriptor)


if sys.platform != "win32":
    import fcntl

    def _lock(descriptor: int, shared: bool, wait: bool) -> None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)

    def _unlock(descriptor: int, shared: bool) -> None:
        if not shared:  # closing does it, and in the child of a fork leaves the parent's alone
            fcntl.flock(descriptor, fcntl.LOCK_UN)

else:
    import msvcrt

    def _lock(descriptor: int, shared: bool, wait: bool) -> None:
        if shared:  # Windows has none; there, an open file cannot be replaced in any case
            return
        while True:  # LK_LOCK gives up after ten seconds
            try:
                mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK
                msvcrt.locking(descriptor, mode, 1)
            except OSError as error:
                if not wait:
                    raise BlockingIOError(*error.args) from error
                continue
            return

    def _unlock(descriptor: int, shared: bool) -> None:
        if not shared:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
