"""Write an archive of runs anew without some of its members. The old one stays until it is done."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tachograph.domain.errors import ArchiveDamagedError
from tachograph.infra.archive_writing import Source, write
from tachograph.infra.archives import CHUNK, open_tar

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterator, Sequence

    from tachograph.infra.archives import Member


def write_part(path: str, target: str, manifest: bytes, members: Sequence[Member]) -> str:
    """Write some members of an archive, in its order, to a new one; return its SHA-256.

    The same part makes the same bytes. Raises ArchiveDamagedError, StoreExistsError, and
    FileChangedError when a member is not what it should be; nothing is left behind then.
    """
    times = _times(path)
    with open(path, "rb") as file, open_tar(file) as tar:
        reader = _Members(path, tar)
        sources = [
            Source(member, partial(reader.chunks, member.name), times.get(member.name, 0))
            for member in members
        ]
        return write(target, manifest, sources)


def _times(path: str) -> dict[str, int]:
    """Return the time of each member in µs."""
    with open(path, "rb") as file, open_tar(file) as tar:
        return {info.name: int(info.mtime) * 1_000_000 for info in tar}


class _Members:
    """The members of an archive, one after the other."""

    def __init__(self, path: str, tar: tarfile.TarFile) -> None:
        self._path = path
        self._tar = tar

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a member, which comes after those that were asked for before."""
        while (info := self._tar.next()) is not None:
            content = self._tar.extractfile(info) if info.name == name else None
            if content is not None:
                while data := content.read(CHUNK):
                    yield data
                return
        raise ArchiveDamagedError(self._path, f"{name} is missing")
