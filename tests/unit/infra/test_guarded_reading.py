"""A file that somebody else has made is read whole, or refused: it holds nobody up."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tachograph.infra import guarded_reading
from tachograph.infra.guarded_reading import open_guarded, read_guarded

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"data")
    assert read_guarded(str(path), 4) == b"data"


def test_a_file_of_several_pieces_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_reading, "_PIECE", 3)
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert read_guarded(str(path), 10) == b"0123456789"


def test_a_longer_file_is_refused_with_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"datas")
    with pytest.raises(OSError, match="larger than 4 bytes") as caught:
        read_guarded(str(path), 4)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="no regular file") as caught:
        read_guarded(str(path), 4)
    assert caught.value.errno == errno.EINVAL


def put_in_its_place(monkeypatch: pytest.MonkeyPatch, path: Path, make: Callable[[], None]) -> None:
    """Replace a file by something else between the look at it and its opening."""
    opened = os.open

    def swap(name: str, flags: int) -> int:
        path.unlink()
        make()
        return opened(name, flags)

    monkeypatch.setattr(os, "open", swap)


def test_a_pipe_that_took_the_place_of_a_file_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"data")
    put_in_its_place(monkeypatch, path, lambda: os.mkfifo(path))
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(OSError, match="no regular file"):
        open_guarded(str(path))
    assert len(list(Path("/dev/fd").iterdir())) == before  # nothing was left open


def test_a_link_that_took_the_place_of_a_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"data")
    other.write_bytes(b"other")
    put_in_its_place(monkeypatch, path, lambda: path.symlink_to(other))
    with pytest.raises(OSError, match="links are not followed"):
        read_guarded(str(path), 4)


def test_a_device_is_refused() -> None:
    with pytest.raises(OSError, match="no regular file"):
        read_guarded("/dev/zero", 4)


def test_a_socket_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        with pytest.raises(OSError, match="no regular file"):
            read_guarded(path, 4)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        read_guarded(str(tmp_path), 4)


def test_a_link_is_refused_unless_links_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to("file")
    (tmp_path / "file").write_bytes(b"data")
    with pytest.raises(OSError, match="links are not followed"):
        read_guarded(str(path), 4)
    assert read_guarded(str(path), 4, follow_links=True) == b"data"


def test_a_link_to_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(OSError, match="no regular file"):
        read_guarded(str(tmp_path / "link"), 4, follow_links=True)


def test_a_file_that_is_not_there_is_told_as_the_system_does(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_guarded(str(tmp_path / "none"), 4)
