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

from tachograph.domain.ages import Moment
from tachograph.domain.errors import StoreCorruptError, StoreFullError, UnstorableValueError
from tachograph.domain.liveness import Lease
from tachograph.infra import clock, processes
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import Environment, open_environment
from tachograph.infra.locks import FileLock
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


def test_a_lease_may_stand_for_an_earlier_sign_of_life(presence: Presence) -> None:
    """Even one of an earlier boot: then it has ended, and says so."""
    hour, century = 3_600_000_000, 36_525 * 86_400_000_000
    before = clock.boottime_us(), clock.now_us()
    presence.beat("fresh", 1, lease_seconds=7_200, ago_us=hour)
    presence.beat("ended", 1, lease_seconds=7_200, ago_us=century)
    fresh, ended = presence.lease("fresh"), presence.lease("ended")

    assert fresh is not None
    assert ended is not None
    assert before[0] - hour <= fresh.boottime_us <= clock.boottime_us() - hour
    assert before[1] - hour <= fresh.time_us
    assert ended.boottime_us < 0
    assert presence.expired(clock.boottime_us()) == ["ended"]


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
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["boot-2"]


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


def test_a_folder_that_somebody_else_has_mended_meanwhile_stays(
    folder: Path, presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new file may have the number of the damaged one: only a second look tells them apart."""
    presence.beat("run-1", 1)
    update = Environment.update

    def was_damaged(environment: Environment, work: Any) -> Any:
        monkeypatch.setattr(Environment, "update", update)
        raise StoreCorruptError(environment.folder, "as it was a moment ago")

    monkeypatch.setattr(Environment, "update", was_damaged)
    presence.beat("run-2", 1)

    assert {stream for stream, _ in presence.leases()} == {"run-1", "run-2"}


def test_no_folder_is_put_aside_while_it_is_opened(
    folder: Path, presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB would make a second data file then, and the beats in it would be lost."""
    tried: list[type[BaseException] | None] = []

    def opened(path: str, **options: Any) -> Environment:
        try:
            with FileLock(str(folder / "lock"), wait=False):
                tried.append(None)
        except BlockingIOError as error:
            tried.append(type(error))
        return open_environment(path, **options)

    monkeypatch.setattr("tachograph.infra.presence.open_environment", opened)
    presence.beat("run-1", 1)

    assert (tried, epoch_of(presence, "run-1")) == ([BlockingIOError], 1)


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


# Leases by their end


@pytest.fixture
def time_us(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the hands of the clock that counts since boot."""
    hands = [1_000_000_000]
    monkeypatch.setattr(clock, "boottime_us", lambda: hands[0])
    return hands


SECOND = 1_000_000


def index_of(presence: Presence) -> list[bytes]:
    """Return the keys that are no lease's own."""
    with presence._opened(write=True).read() as txn:
        return [key for key, _ in txn.cursor() if len(key) != 16]


def test_leases_that_have_ended_are_found_the_longest_ended_first(
    presence: Presence, time_us: list[int]
) -> None:
    for run_id, seconds in (("long", 90), ("short", 30), ("middle", 60), ("longest", 3600)):
        presence.beat(run_id, 1, lease_seconds=seconds)

    assert presence.expired(time_us[0] + 30 * SECOND) == []
    assert presence.expired(time_us[0] + 60 * SECOND + 1) == ["short", "middle"]
    assert presence.expired(time_us[0] + 100 * SECOND) == ["short", "middle", "long"]


def test_a_lease_ends_when_it_is_judged_to_have_ended(
    presence: Presence, time_us: list[int]
) -> None:
    """Else a run would be looked at too early for ever, or too late."""
    presence.beat("run-1", 1, lease_seconds=0.5)
    lease = presence.lease("run-1")
    assert lease is not None
    end_us = lease.boottime_us + round(lease.seconds * SECOND)

    assert presence.expired(end_us) == []
    assert presence.expired(end_us + 1) == ["run-1"]


def test_a_lease_that_is_renewed_has_not_ended(presence: Presence, time_us: list[int]) -> None:
    for _ in range(3):
        presence.beat("run-1", 1)
        time_us[0] += 20 * SECOND
    presence.beat("run-2", 1)

    assert presence.expired(time_us[0]) == []
    assert presence.expired(time_us[0] + 10 * SECOND + 1) == ["run-1"]
    assert len(index_of(presence)) == 2


def test_a_shorter_lease_takes_the_place_of_a_longer_one(
    presence: Presence, time_us: list[int]
) -> None:
    presence.beat("run-1", 1, lease_seconds=3600)
    presence.beat("run-1", 2, lease_seconds=1)

    assert presence.expired(time_us[0] + 2 * SECOND) == ["run-1"]
    assert len(index_of(presence)) == 1


def test_a_superseded_attempt_does_not_put_off_the_end(
    presence: Presence, time_us: list[int]
) -> None:
    presence.beat("run-1", 2, lease_seconds=1)
    presence.beat("run-1", 1, lease_seconds=3600)

    assert presence.expired(time_us[0] + 2 * SECOND) == ["run-1"]


def test_nothing_has_ended_where_nothing_was(presence: Presence) -> None:
    assert (presence.expired(2**62), presence.expired(-1)) == ([], [])
    presence.settle("run-1")
    presence.beat("run-1", 1)

    assert presence.expired(0) == []


def test_every_kind_of_run_is_found(presence: Presence, time_us: list[int]) -> None:
    streams: set[str | UUID] = {"run-1", "rün \ud800", "x" * 5_000, UUID(int=7)}
    for stream in streams:
        presence.beat(stream, 1)

    assert set(presence.expired(time_us[0] + 31 * SECOND)) == streams


def test_a_run_that_is_settled_is_listed_no_more_and_keeps_its_lease(
    presence: Presence, time_us: list[int]
) -> None:
    presence.beat("run-1", 1)
    presence.beat("run-2", 1)
    presence.settle("run-1")
    presence.settle("run-1")
    presence.settle("nobody")

    assert presence.expired(time_us[0] + 31 * SECOND) == ["run-2"]
    assert epoch_of(presence, "run-1") == 1


def test_a_settled_run_that_beats_again_is_listed_again(
    presence: Presence, time_us: list[int]
) -> None:
    presence.beat("run-1", 1)
    presence.settle("run-1")
    time_us[0] += 5 * SECOND
    presence.beat("run-1", 1)

    assert presence.expired(time_us[0] + 31 * SECOND) == ["run-1"]


@pytest.mark.parametrize(("epoch", "left"), [(None, 0), (2, 0), (3, 0), (1, 1)])
def test_a_cleared_lease_is_out_of_the_index_too(
    presence: Presence, time_us: list[int], epoch: int | None, left: int
) -> None:
    presence.beat("run-1", 2)
    presence.clear("run-1", epoch)

    assert len(presence.expired(time_us[0] + 31 * SECOND)) == left
    assert len(index_of(presence)) == left


def test_the_index_is_not_listed_among_the_leases(presence: Presence) -> None:
    presence.beat("run-1", 1)
    presence.note_moment(Moment(1, 2, 3))

    assert [stream for stream, _ in presence.leases()] == ["run-1"]


def test_an_end_that_an_older_version_left_behind_is_none(
    presence: Presence, time_us: list[int]
) -> None:
    """It renews a lease, and knows of no index."""
    presence.beat("run-1", 1)
    (stale,) = index_of(presence)
    time_us[0] += 20 * SECOND
    presence.beat("run-1", 1)
    presence._opened(write=True).update(lambda txn: txn.put(stale, b""))

    assert presence.expired(time_us[0] + 15 * SECOND) == []
    assert presence.expired(time_us[0] + 31 * SECOND) == ["run-1"]


def test_an_end_without_its_lease_is_none(presence: Presence, time_us: list[int]) -> None:
    presence.beat("run-1", 1)
    keys = [*index_of(presence), b"\0x" + bytes(9)]
    presence.clear("run-1")
    for key in keys:
        presence._opened(write=True).update(lambda txn, k=key: txn.put(k, b""))  # type: ignore[misc]

    assert presence.expired(time_us[0] + 31 * SECOND) == []


@pytest.mark.parametrize("seconds", [0, -5, 1e300, float("inf"), float("nan")])
def test_an_odd_length_of_a_lease_fails_no_job(presence: Presence, seconds: float) -> None:
    presence.beat("run-1", 1, lease_seconds=seconds)
    presence.beat("run-1", 2, lease_seconds=30)

    assert epoch_of(presence, "run-1") == 2
    assert len(index_of(presence)) == 1


@pytest.mark.parametrize(
    "odd", [["run-1", 1, "soon", 5, 30, None], ["run-1", 1, 5, 5, "long", None]]
)
def test_a_lease_of_another_shape_is_replaced(presence: Presence, odd: list[Any]) -> None:
    from tachograph.infra.layout import stream_key

    presence.beat("run-1", 1)
    key, value = stream_key("run-1")[0], Codec().pack(odd)
    presence._opened(write=True).update(lambda txn: txn.put(key, value))
    unreadable = presence.lease("run-1")
    presence.beat("run-1", 2)

    assert (unreadable, epoch_of(presence, "run-1")) == (None, 2)


def test_a_read_only_presence_finds_and_settles_nothing(folder: Path, presence: Presence) -> None:
    presence.beat("run-1", 1)
    reader = Presence(str(folder), read_only=True)
    reader.settle("run-1")
    reader.note_moment(Moment(1, 2, 3))
    found = reader.expired(2**62), reader.moments()
    reader.close()

    assert found == (["run-1"], [])


# What the clocks showed


def test_moments_are_kept_in_the_order_of_the_clock_since_boot(presence: Presence) -> None:
    moments = [Moment(wall, boot, boot - 1) for wall, boot in ((900, 5), (100, 2), (500, 70_000))]
    for moment in moments:
        presence.note_moment(moment)

    assert presence.moments() == [moments[1], moments[0], moments[2]]


def test_without_moments_there_are_none(presence: Presence) -> None:
    assert presence.moments() == []
    presence.beat("run-1", 1)

    assert presence.moments() == []


def test_only_the_newest_moments_are_kept(
    presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.infra.presence.MOST_MOMENTS", 3)
    for number in range(1, 6):
        presence.note_moment(Moment(number, number, number))

    assert [moment.boot_us for moment in presence.moments()] == [3, 4, 5]
    assert len(index_of(presence)) == 3


def test_a_lease_whose_key_looks_like_a_moment_is_kept(
    presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.infra.presence.MOST_MOMENTS", 1)
    odd = UUID(bytes=b"\0m" + bytes(14))
    presence.beat(odd, 1)
    for number in (1, 2, 3):
        presence.note_moment(Moment(number, number, number))

    assert presence.lease(odd) is not None
    assert [moment.boot_us for moment in presence.moments()] == [3]


def test_a_moment_of_another_shape_is_none(presence: Presence) -> None:
    presence.note_moment(Moment(1, 2, 3))
    for number, value in enumerate([b"", b"\xc1", b"\x91\x01", b"\xc0"]):
        key = b"\0m" + bytes(7) + bytes([100 + number])
        presence._opened(write=True).update(lambda txn, k=key, v=value: txn.put(k, v))  # type: ignore[misc]

    assert presence.moments() == [Moment(1, 2, 3)]


def test_moments_of_an_earlier_boot_are_worth_nothing(folder: Path) -> None:
    before = Presence(str(folder), boot_id="boot-1")
    before.note_moment(Moment(1, 2, 3))
    before.close()
    after = Presence(str(folder), boot_id="boot-2")
    found = after.moments()
    after.close()

    assert found == []
