"""LMDB is kept off network file systems."""

from __future__ import annotations

import sys

import pytest

from tachograph.domain.errors import NetworkFileSystemError
from tachograph.infra import filesystems

MOUNTINFO = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 27 0:40 / /home rw,relatime shared:5 master:1 - nfs4 server:/home rw,vers=4.2
32 31 254:1 / /home/local rw - xfs /dev/vdb rw
33 27 0:41 / /mnt/my\\040disk\\134x rw - cifs //server/share rw
34 27 0:42 / /mnt/ssh rw,nosuid - fuse.sshfs user@host: rw
35 27 0:43 / /mnt/twice rw - nfs server:/x rw
36 27 0:44 / /mnt/twice rw - tmpfs none rw
37 27 0:45 / /mnt/c rw - 9p drvfs rw
a broken line
"""


@pytest.fixture(autouse=True)
def _mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        filesystems, "_mounts", lambda: list(filesystems.parse_mountinfo(MOUNTINFO))
    )


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/homes", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/store", "nfs4"),
        ("/home/local", "xfs"),
        ("/home/local/store", "xfs"),
        ("/home/locals", "nfs4"),
        ("/mnt/my disk\\x/store", "cifs"),
        ("/mnt/ssh/a", "fuse.sshfs"),
        ("/mnt/twice/a", "tmpfs"),
        ("/mnt/c/Users", "9p"),
    ],
)
def test_the_longest_and_last_mount_point_holds_a_path(path: str, kind: str) -> None:
    found = filesystems.type_at(path, filesystems.parse_mountinfo(MOUNTINFO))

    assert found == kind


@pytest.mark.parametrize("path", ["/home/me/store", "/mnt/my disk\\x", "/mnt/ssh/a", "/mnt/c/a"])
def test_a_network_file_system_is_refused(path: str) -> None:
    with pytest.raises(NetworkFileSystemError, match="TACHO_ALLOW_NETWORK_FS=1"):
        filesystems.refuse_network(path)


@pytest.mark.parametrize("path", ["/", "/home/local/store", "/mnt/twice/a"])
def test_a_local_file_system_is_taken(path: str) -> None:
    filesystems.refuse_network(path)

    assert filesystems.type_at(path, filesystems._mounts()) not in filesystems.NETWORK_TYPES


def test_the_refusal_can_be_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACHO_ALLOW_NETWORK_FS", "1")

    filesystems.refuse_network("/home/me/store")

    monkeypatch.setenv("TACHO_ALLOW_NETWORK_FS", "0")
    with pytest.raises(NetworkFileSystemError):
        filesystems.refuse_network("/home/me/store")


def test_a_path_that_no_mount_holds_has_no_type() -> None:
    assert filesystems.type_at("/a", [("/b", "nfs")]) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/mountinfo")
def test_the_mounts_of_this_machine_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    mounts = list(filesystems._mounts())

    assert "/" in [point for point, _ in mounts]
    assert filesystems.type_at("/proc/self", mounts) == "proc"


def test_other_systems_are_asked_through_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil  # before the next line, which it would believe

    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")

    mounts = list(filesystems._mounts())

    assert len(mounts) == len(psutil.disk_partitions(all=True)) > 0
