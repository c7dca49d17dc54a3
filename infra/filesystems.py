"""Tell which file system a folder is on, to keep LMDB off networks. Never mounts or writes."""

from __future__ import annotations

import os
import sys

from tachograph.domain.errors import NetworkFileSystemError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ALLOW_VARIABLE = "TACHO_ALLOW_NETWORK_FS"

# lmdb.h, caveats: "Do not use LMDB databases on remote filesystems": neither its locks nor its
# shared memory map hold between hosts. virtiofs and the shared folders of virtual machines map
# a host's files into a guest: the same case.
NETWORK_TYPES = frozenset(
    """
    9p acfs afpfs afs beegfs ceph cifs coda cvfs davfs fhgfs glusterfs gpfs ibrix lustre ncpfs
    nfs nfs3 nfs4 ocfs2 orangefs panfs prl_fs pvfs2 smb2 smb3 smbfs vboxsf vmhgfs virtiofs webdav
    fuse.9p fuse.ceph fuse.ceph-fuse fuse.cifs fuse.curlftpfs fuse.davfs fuse.davfs2 fuse.gcsfuse
    fuse.glusterfs fuse.goofys fuse.google-drive-ocamlfuse fuse.grpcfuse fuse.juicefs
    fuse.mount-s3 fuse.osxfs fuse.rclone fuse.s3fs fuse.sshfs fuse.virtiofs fuse.vmhgfs-fuse
    fuse.weed
    """.split()  # noqa: SIM905  a list of 50 quoted words is harder to read
)


def refuse_network(folder: str) -> None:
    """Refuse a folder on a network file system, unless TACHO_ALLOW_NETWORK_FS=1.

    Raises NetworkFileSystemError: LMDB could lose or damage data there.
    """
    if os.environ.get(ALLOW_VARIABLE) == "1":
        return
    kind = type_of(folder)
    if kind in NETWORK_TYPES:
        raise NetworkFileSystemError(folder, kind)


def type_of(folder: str) -> str:
    """Return the type of the file system that holds an absolute path, "" if nobody knows."""
    return type_at(folder, _mounts())


def type_at(path: str, mounts: Iterable[tuple[str, str]]) -> str:
    """Return the type of the file system that holds an absolute path, "" if no mount does.

    The longest mount point wins, and the last of equals, which hides the earlier ones.

    >>> type_at("/home/a/x", [("/", "ext4"), ("/home", "nfs4"), ("/home/ab", "xfs")])
    'nfs4'
    """
    best, kind = -1, ""
    for point, found in mounts:
        if len(point) >= best and _is_within(path, point):
            best, kind = len(point), found
    return kind


def parse_mountinfo(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield mount point and type of each line of /proc/self/mountinfo (proc(5)).

    >>> list(parse_mountinfo("36 35 0:5 / /my\\040disk rw shared:1 - nfs4 host:/x rw"))
    [('/my disk', 'nfs4')]
    """
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ", 5)
        if separator and len(fields) > 4:
            yield _decode(fields[4]), after.split(" ", 1)[0]


def _is_within(path: str, point: str) -> bool:
    return path == point or path.startswith(point if point.endswith(os.sep) else point + os.sep)


def _decode(point: str) -> str:
    r"""Replace the octal escapes of space, tab, newline and backslash."""
    if "\\" not in point:
        return point
    for code in (" ", "\t", "\n", "\\"):
        point = point.replace(f"\\{ord(code):03o}", code)
    return point


def _mounts() -> Iterable[tuple[str, str]]:
    if sys.platform == "linux":
        try:
            with open("/proc/self/mountinfo", errors="surrogateescape") as table:
                return list(parse_mountinfo(table.read()))
        except OSError:
            return ()  # /proc is not mounted: nothing to judge by
    return _partitions()


def _partitions() -> Iterable[tuple[str, str]]:
    """Return the mounts of macOS, BSD and Windows; psutil is slow to import, so only there."""
    import psutil

    return [(part.mountpoint, part.fstype.lower()) for part in psutil.disk_partitions(all=True)]
