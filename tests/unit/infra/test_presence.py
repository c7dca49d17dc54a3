"""Leases say who is here now; whatever happens to their folder, no job notices."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tachograph.domain.errors import StoreFullError, UnstorableValueError
from tachograph.domain.liveness import Lease
from tachograph.infra import clock, processes
from tachograph.infra.lmdb_environment import Environment
from tachograph.infra.presence import Presence


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "presence"


@pytest.fixture
def presence(folder: Path) -> Iterator[Presence]:
    opened = Presence(str(folder))
    yield opened
    opened.close()


def epoch_of(presence: Presence, stream: str) -> int | None:
    lease = presence.lease(stream)
    return lease.epoch if lease else None


def data_file(folder: Path) -> Path:
    (found,) = folder.glob("*/data.mdb")
    return found


def test_a_beat_is_a_lease_of_this_boot(presence: Presence) -> None:
    before = clock.boottime_us(), clock.now_us()
    presence.beat("run-1", 3, {"at": "batch 7"})
    lease = presence.lease("run-1")

    assert lease is not None
    assert (lease.epoch, lease.note, lease.seconds) == (3, {"at": "batch 7"}, 30)
    assert lease.boot_id == processes.boot_id()
    assert before[0] <= lease.boottime_us <= clock.boottime_us()
    assert before[1] <= lease.time_us


def test_each_beat_renews_the_lease(presence: Presence) -> None:
    presence.beat("run-1", 1, {"a": 1})
    first = presence.lease("run-1")
    presence.beat("run-1", 1)
    second = presence.lease("run-1")

    assert first is not None
    assert second is not None
    assert second.boottime_us >= first.boottime_us
    assert second.note is None


def test_a_superseded_attempt_does_not_renew_the_lease_of_its_successor(
    presence: Presence,
) -> None:
    presence.beat("run-1", 2)
    presence.beat("run-1", 1, {"late": True})

    lease = presence.lease("run-1")

    assert lease is not None
    assert (lease.epoch, lease.note) == (2, None)


def test_a_lease_says_how_long_it_is_good_for(folder: Path, presence: Presence) -> None:
    """A reader with other settings must not take a slow job for dead."""
    Presence(str(folder), lease_seconds=300).beat("slow", 1)
    presence.beat("slower", 1, lease_seconds=3600.5)

    found = {stream: lease.seconds for stream, lease in presence.leases()}

    assert found == {"slow": 300, "slower": 3600.5}


def test_a_run_without_beats_has_no_lease(presence: Presence) -> None:
    assert (presence.lease("run-1"), presence.leases()) == (None, [])
    presence.clear("run-1")
    presence.beat("run-2", 1)

    assert presence.lease("run-1") is None


def test_reading_makes_no_folder(folder: Path, presence: Presence) -> None:
    presence.lease("run-1")
    presence.leases()

    assert not folder.exists()


def test_every_lease_is_listed(presence: Presence) -> None:
    uuid = UUID(int=7)
    streams: set[str | UUID] = {"run-1", "rün \ud800", "x" * 5_000, uuid}
    for stream in streams:
        presence.beat(stream, 1)

    assert {stream for stream, _ in presence.leases()} == streams
    assert presence.lease(uuid) is not None


@pytest.mark.parametrize(("epoch", "left"), [(None, None), (2, None), (3, None), (1, 2)])
def test_a_lease_is_cleared_by_its_own_attempt_or_a_later_one(
    presence: Presence, epoch: int | None, left: int | None
) -> None:
    presence.beat("run-1", 2)
    presence.clear("run-1", epoch)

    assert epoch_of(presence, "run-1") == left


def test_another_process_sees_the_lease_of_a_killed_one(folder: Path, presence: Presence) -> None:
    """Nothing is synced, yet the kernel has what a killed process wrote."""
    code = (
        "import os, signal, sys; from tachograph.infra.presence import Presence;"
        "Presence(sys.argv[1]).beat('run-1', 5); os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True)

    assert run.returncode == -signal.SIGKILL, run.stderr
    assert epoch_of(presence, "run-1") == 5
    presence.beat("run-1", 6)
    assert epoch_of(presence, "run-1") == 6


def test_threads_share_it(folder: Path, presence: Presence) -> None:
    def beat(number: int) -> None:
        for epoch in range(1, 21):
            presence.beat(f"run-{number}", epoch)
            presence.beat("common", epoch)

    threads = [threading.Thread(target=beat, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {stream: lease.epoch for stream, lease in presence.leases()} == {
        "run-0": 20, "run-1": 20, "run-2": 20, "run-3": 20, "common": 20
    }  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_beats_as_well(presence: Presence) -> None:
    presence.beat("parent", 1)
    child = os.fork()
    if not child:
        presence.beat("child", 1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    presence.beat("parent", 2)

    assert status == 0
    assert {stream for stream, _ in presence.leases()} == {"parent", "child"}


# A reboot


def test_a_reboot_makes_every_lease_worthless(folder: Path) -> None:
    before = Presence(str(folder), boot_id="boot-1")
    before.beat("run-1", 9)
    before.close()
    after = Presence(str(folder), boot_id="boot-2")
    seen = after.lease("run-1"), after.leases()
    after.beat("run-1", 1)
    lease = after.lease("run-1")
    after.close()

    assert seen == (None, [])
    assert isinstance(lease, Lease)
    assert (lease.epoch, lease.boot_id) == (1, "boot-2")
    assert sorted(path.name for path in folder.iterdir()) == ["boot-2"]


def test_files_that_a_power_cut_damaged_are_never_opened(folder: Path) -> None:
    """Without syncing LMDB's pages may be anything then, which can kill whoever maps them."""
    (folder / "boot-1").mkdir(parents=True)
    (folder / "boot-1/data.mdb").write_bytes(os.urandom(100_000))
    after = Presence(str(folder), boot_id="boot-2")
    after.beat("run-1", 1)
    found = epoch_of(after, "run-1")
    after.close()

    assert found == 1
    assert not (folder / "boot-1").exists()


def test_where_no_boot_is_known_leases_say_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "boot_id", lambda: None)
    presence = Presence(str(folder))
    presence.beat("run-1", 1)
    lease = presence.lease("run-1")
    presence.close()

    assert lease is not None
    assert lease.boot_id is None


# Damage


@pytest.mark.parametrize("open_first", [False, True], ids=["closed", "open"])
def test_a_deleted_folder_is_made_anew(folder: Path, open_first: bool) -> None:
    presence, reader = Presence(str(folder)), Presence(str(folder))
    presence.beat("run-1", 1)
    reader.lease("run-1")
    if not open_first:
        presence.close()
    shutil.rmtree(folder)
    gone = reader.lease("run-1")
    presence.beat("run-1", 2)
    found = epoch_of(reader, "run-1"), epoch_of(presence, "run-1")
    presence.close()
    reader.close()

    assert (gone, found) == (None, (2, 2))


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"\0" * 65_536, b"\xff" * 65_536], ids=["0", "short", "0s", "1s"]
)
def test_a_damaged_file_is_put_aside(folder: Path, content: bytes) -> None:
    presence = Presence(str(folder))
    presence.beat("run-1", 1)
    presence.close()
    data_file(folder).write_bytes(content)
    unreadable = presence.lease("run-1")
    presence.beat("run-1", 2)
    found = epoch_of(presence, "run-1")
    presence.close()

    assert (unreadable, found) == (None, 2)
    assert list(folder.glob("damaged-*")) == []


def test_a_file_cut_short_is_put_aside(folder: Path) -> None:
    presence = Presence(str(folder))
    for number in range(100):
        presence.beat(f"run-{number}", 1, {"note": "x" * 1_000})
    presence.close()
    os.truncate(data_file(folder), 8_192)
    presence.beat("run-1", 2)
    found = epoch_of(presence, "run-1"), len(presence.leases())
    presence.close()

    assert found == (2, 1)


def test_several_processes_mend_a_damaged_file_once(folder: Path, presence: Presence) -> None:
    presence.beat("run-1", 1)
    presence.close()
    data_file(folder).write_bytes(b"garbage" * 10_000)
    code = (
        "import sys; from tachograph.infra.presence import Presence; sys.stdin.readline();"
        "Presence(sys.argv[1]).beat(sys.argv[2], 1)"
    )
    command = [sys.executable, "-c", code, str(folder)]
    beaters = [
        subprocess.Popen([*command, f"run-{number}"], stdin=subprocess.PIPE) for number in range(4)
    ]
    for beater in beaters:
        assert beater.stdin
        beater.stdin.write(b"go\n")
        beater.stdin.close()

    assert [beater.wait() for beater in beaters] == [0] * 4
    assert {stream for stream, _ in presence.leases()} == {f"run-{number}" for number in range(4)}


@pytest.mark.parametrize("damaged", ["a file", "a data file that is a folder"])
def test_what_is_no_folder_of_leases_fails_no_job(folder: Path, damaged: str) -> None:
    boot = processes.boot_id() or ""
    if damaged == "a file":
        folder.write_text("")
    else:
        (folder / boot / "data.mdb").mkdir(parents=True)
    presence = Presence(str(folder))
    presence.beat("run-1", 1)
    presence.clear("run-1")

    assert (presence.lease("run-1"), presence.leases()) == (None, [])
    presence.close()


def test_an_entry_of_another_shape_is_no_lease(presence: Presence) -> None:
    presence.beat("run-1", 1)
    codec_bytes = [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x96" + b"\xa1x" * 6]
    environment = presence._opened(write=True)
    for number, value in enumerate(codec_bytes):
        environment.update(lambda txn, n=number, v=value: txn.put(bytes([n]) * 16, v))  # type: ignore[misc]

    assert [stream for stream, _ in presence.leases()] == ["run-1"]


def test_a_folder_closed_by_another_thread_is_opened_again(
    presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    presence.beat("run-1", 1)
    update = Environment.update

    def close_first(environment: Environment, work: Any) -> Any:
        monkeypatch.setattr(Environment, "update", update)
        presence.close()
        return update(environment, work)

    monkeypatch.setattr(Environment, "update", close_first)
    presence.beat("run-1", 2)

    assert epoch_of(presence, "run-1") == 2


def test_a_full_disk_fails_no_job(presence: Presence, monkeypatch: pytest.MonkeyPatch) -> None:
    presence.beat("run-1", 1)

    def refuse(*arguments: Any) -> None:
        raise StoreFullError("here", "No space left on device")

    monkeypatch.setattr(Environment, "update", refuse)
    presence.beat("run-1", 2)

    assert epoch_of(presence, "run-1") == 1


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_cannot_be_written_has_no_leases(folder: Path) -> None:
    presence = Presence(str(folder))
    presence.beat("run-1", 1)
    presence.close()
    data_file(folder).parent.chmod(0o500)
    for path in data_file(folder).parent.iterdir():
        path.chmod(0o400)
    presence.beat("run-1", 2)
    found = presence.lease("run-1")
    data_file(folder).parent.chmod(0o700)

    assert found is None


def test_a_read_only_presence_writes_nothing(folder: Path) -> None:
    presence = Presence(str(folder), read_only=True)
    presence.beat("run-1", 1)
    presence.clear("run-1")

    assert presence.lease("run-1") is None
    assert not folder.exists()


def test_a_reader_may_become_a_writer(folder: Path, presence: Presence) -> None:
    other = Presence(str(folder))
    other.beat("run-1", 1)
    other.close()
    seen = epoch_of(presence, "run-1")
    presence.beat("run-1", 2)

    assert (seen, epoch_of(presence, "run-1")) == (1, 2)


def test_a_note_without_a_stored_form_is_refused(presence: Presence) -> None:
    """The one error that is the caller's."""
    with pytest.raises(UnstorableValueError, match="note"):
        presence.beat("run-1", 1, {"lock": threading.Lock()})


def test_nothing_stays_open(folder: Path, no_open_files_left: None) -> None:
    presence = Presence(str(folder))
    presence.beat("run-1", 1)
    presence.lease("run-1")
    presence.close()
    presence.close()
    presence.beat("run-1", 2)
    found = epoch_of(presence, "run-1")
    presence.close()

    assert found == 2
