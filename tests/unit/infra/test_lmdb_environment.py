"""Opening, sharing, growing, forking and refusing LMDB environments."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import lmdb
import pytest
from other_process import OtherProcess, run

from tachograph.domain.errors import (
    NetworkFileSystemError,
    SettingError,
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFailedError,
    StoreFullError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from tachograph.infra import filesystems, lmdb_environment, lmdb_files, lmdb_mapping
from tachograph.infra.lmdb_environment import Environment, map_size_setting, open_environment
from tachograph.infra.lmdb_errors import translate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 2**20
PAGE = 4096


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@contextmanager
def opened(folder: Path, *names: bytes, **options: object) -> Iterator[Environment]:
    environment = open_environment(folder, **options)  # type: ignore[arg-type]
    try:
        environment.open_databases(*names)
        yield environment
    finally:
        environment.close()


def put(environment: Environment, key: bytes, value: bytes) -> None:
    environment.update(lambda txn: txn.put(key, value))


def get(environment: Environment, key: bytes) -> bytes | None:
    with environment.read() as txn:
        return txn.get(key)


class TestOpening:
    def test_a_new_folder_is_made_with_its_parents(self, tmp_path: Path) -> None:
        with opened(tmp_path / "a" / "b") as environment:
            put(environment, b"k", b"v")

            assert get(environment, b"k") == b"v"

    def test_what_was_written_is_there_after_reopening(self, folder: Path) -> None:
        with opened(folder, b"names") as environment:
            put(environment, b"k", b"v")

        with opened(folder, b"names") as environment:
            assert get(environment, b"k") == b"v"

    def test_a_missing_environment_is_not_made_for_readers(self, folder: Path) -> None:
        with pytest.raises(StoreNotFoundError):
            open_environment(folder, readonly=True)
        with pytest.raises(StoreNotFoundError):
            open_environment(folder, create=False)

        assert not folder.exists()

    def test_two_openings_share_one_environment(self, folder: Path) -> None:
        """LMDB forbids to open a file twice in a process."""
        with opened(folder) as first, opened(folder) as second:
            assert first is second
        with pytest.raises(StoreClosedError):
            first.last_transaction()

    def test_another_path_to_a_folder_is_the_same_environment(
        self, folder: Path, tmp_path: Path
    ) -> None:
        with opened(folder) as first:
            (tmp_path / "link").symlink_to(folder)
            with opened(tmp_path / "link") as second:
                assert first is second

    def test_the_last_to_close_closes(self, folder: Path) -> None:
        first = open_environment(folder)
        second = open_environment(folder)
        first.close()

        put(second, b"k", b"v")

        second.close()
        with pytest.raises(StoreClosedError):
            put(second, b"k", b"v")

    def test_a_folder_made_anew_is_another_environment(self, folder: Path) -> None:
        with opened(folder) as old:
            put(old, b"k", b"old")
            shutil.rmtree(folder)
            with opened(folder) as new:
                assert new is not old
                assert get(new, b"k") is None
                assert get(old, b"k") == b"old"

    def test_environments_differ_in_sync_only_if_opened_apart(self, folder: Path) -> None:
        with opened(folder, sync=False), pytest.raises(StoreBusyError, match="sync"):
            open_environment(folder)

    def test_an_environment_opened_without_us_is_refused(self, folder: Path) -> None:
        with opened(folder):
            pass
        with lmdb.open(str(folder)), pytest.raises(StoreBusyError, match="already open"):
            open_environment(folder)

    def test_two_processes_may_create_it_at_once(self, folder: Path) -> None:
        script = """
say("ready"); hear()
environment = open_environment(folder)
environment.update(lambda txn: txn.put(str(os.getpid()).encode(), b"x"))
say("done")
"""
        others = [OtherProcess(script, folder) for _ in range(4)]
        for other in others:
            assert other.hear() == "ready"
        for other in others:
            other.say("go")
        for other in others:
            assert other.hear() == "done"
            other.end()

        with opened(folder) as environment, environment.read() as txn:
            assert sorted(key for key, _ in txn.cursor()) == sorted(
                str(other.pid).encode() for other in others
            )

    def test_what_a_killed_creator_left_is_no_hindrance(self, folder: Path) -> None:
        (folder / "new").mkdir(parents=True)
        (folder / "new" / "data.mdb").write_bytes(b"")

        with opened(folder) as environment:
            put(environment, b"k", b"v")

        assert not (folder / "new").exists()

    @pytest.mark.parametrize(
        ("text", "size"),
        [("", 64 * MIB), (" ", 64 * MIB), ("1048576", MIB), (" 2097152 ", 2 * MIB)],
    )
    def test_the_map_size_can_be_set(self, text: str, size: int) -> None:
        assert map_size_setting(text) == size

    @pytest.mark.parametrize("text", ["64M", "0", "-1", "1048575", str(2**50), "1e9"])
    def test_a_map_size_out_of_range_is_refused(self, text: str) -> None:
        with pytest.raises(SettingError, match="LMDB_MAP_SIZE"):
            map_size_setting(text)

    def test_the_environment_variable_sets_the_map_size(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LMDB_MAP_SIZE", str(3 * MIB))

        with opened(folder) as environment:
            assert environment.map_size == 3 * MIB

    def test_a_network_file_system_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(filesystems, "_mounts", lambda: [("/", "nfs4")])

        with pytest.raises(NetworkFileSystemError):
            open_environment(folder)

        assert not folder.exists()
        monkeypatch.setenv("TACHO_ALLOW_NETWORK_FS", "1")
        with opened(folder) as environment:
            put(environment, b"k", b"v")


class TestTransactions:
    def test_a_block_that_raises_writes_nothing(self, folder: Path) -> None:
        with opened(folder) as environment:
            with pytest.raises(ZeroDivisionError), environment.write() as txn:
                txn.put(b"k", b"v")
                raise ZeroDivisionError

            assert get(environment, b"k") is None

    def test_an_update_that_raises_writes_nothing(self, folder: Path) -> None:
        with opened(folder) as environment:

            def work(txn: lmdb.Transaction[bytes]) -> None:
                txn.put(b"k", b"v")
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                environment.update(work)

            assert get(environment, b"k") is None
            put(environment, b"k", b"w")

    def test_an_update_returns_what_its_work_returns(self, folder: Path) -> None:
        with opened(folder) as environment:
            assert environment.update(lambda txn: txn.stat()["entries"]) == 0

    def test_a_write_inside_a_write_is_refused(self, folder: Path) -> None:
        """LMDB would wait for itself."""
        with opened(folder) as environment, environment.write() as txn:
            with pytest.raises(StoreBusyError, match="already writing"):
                put(environment, b"a", b"b")
            txn.put(b"k", b"v")

        with opened(folder) as environment:
            assert get(environment, b"k") == b"v"

    def test_a_read_inside_a_write_sees_what_was_committed(self, folder: Path) -> None:
        with opened(folder) as environment, environment.write() as txn:
            txn.put(b"k", b"v")

            assert get(environment, b"k") is None

    def test_a_map_is_not_moved_from_inside_a_transaction(self, folder: Path) -> None:
        with opened(folder) as environment, environment.read():
            with pytest.raises(StoreBusyError, match="inside a transaction"):
                environment.open_databases(b"x")
            with pytest.raises(StoreBusyError, match="inside a transaction"):
                environment.grow(environment.map_size)
            with pytest.raises(StoreBusyError, match="inside a transaction"):
                environment.close()

    def test_errors_of_lmdb_do_not_come_out_of_blocks(self, folder: Path) -> None:
        with opened(folder) as environment:
            with pytest.raises(StoreError) as caught, environment.read() as txn:
                txn.put(b"k", b"v")
            assert isinstance(caught.value.__cause__, lmdb.Error)
            with pytest.raises(StoreError), environment.write() as txn:
                txn.put(b"k" * 600, b"v")
            with pytest.raises(StoreError):
                put(environment, b"k" * 600, b"v")

    def test_buffers_are_not_copied(self, folder: Path) -> None:
        with opened(folder) as environment:
            put(environment, b"k", b"v")
            with environment.read_buffers() as txn:
                assert isinstance(txn.get(b"k"), memoryview)

    def test_listeners_are_set_by_every_commit(self, folder: Path) -> None:
        with opened(folder) as environment:
            event = threading.Event()
            environment.listeners.add(event)
            put(environment, b"k", b"v")
            by_update = event.is_set()
            event.clear()
            with environment.write() as txn:
                txn.put(b"k", b"w")

            assert (by_update, event.is_set()) == (True, True)

    def test_an_interrupted_caller_still_learns_of_the_commit(self, folder: Path) -> None:
        """A signal most likely arrives while the disk is waited for, and is raised after it."""
        with opened(folder) as environment:
            calls: list[str] = []

            def committed() -> None:
                calls.append("committed")
                if len(calls) == 1:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                environment.update(lambda txn: txn.put(b"k", b"v"), committed)

            assert calls == ["committed", "committed"]
            assert get(environment, b"k") == b"v"

    def test_an_interrupted_caller_does_not_learn_of_a_commit_that_was_none(
        self, folder: Path
    ) -> None:
        def work(txn: lmdb.Transaction[bytes]) -> None:
            raise KeyboardInterrupt

        with opened(folder) as environment:
            calls: list[str] = []
            with pytest.raises(KeyboardInterrupt):
                environment.update(work, lambda: calls.append("committed"))

            assert calls == []

    def test_named_databases_are_found_again(self, folder: Path) -> None:
        with opened(folder, b"one") as environment:
            environment.update(lambda txn: txn.put(b"k", b"v", db=environment.databases[b"one"]))

        with opened(folder, b"one", b"two") as environment, environment.read() as txn:
            assert txn.get(b"k", db=environment.databases[b"one"]) == b"v"
            assert txn.get(b"k", db=environment.databases[b"two"]) is None

    def test_named_databases_are_not_made_unless_wanted(self, folder: Path) -> None:
        with opened(folder) as environment:
            assert not environment.open_databases(b"one", create=False)
            assert environment.open_databases(b"one")
            assert environment.open_databases(b"one", create=False)

    def test_a_copy_has_everything(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "copy").mkdir()
        with opened(folder) as environment:
            put(environment, b"k", b"v")
            environment.copy_to(str(tmp_path / "copy"))

        with opened(tmp_path / "copy") as copy:
            assert get(copy, b"k") == b"v"

    def test_a_copy_into_a_missing_folder_is_refused(self, folder: Path, tmp_path: Path) -> None:
        with opened(folder) as environment, pytest.raises(StoreNotFoundError):
            environment.copy_to(str(tmp_path / "missing"))


class TestGrowth:
    def test_a_full_map_grows_and_the_work_is_done_once(self, folder: Path) -> None:
        with opened(folder, map_size=MIB) as environment:
            runs: list[int] = []

            def work(txn: lmdb.Transaction[bytes]) -> None:
                runs.append(1)
                for number in range(50):
                    txn.put(b"%03d" % number, b"x" * 100_000)

            environment.update(work)

            assert len(runs) > 1
            assert environment.map_size >= 8 * MIB
            with environment.read() as txn:
                assert txn.stat()["entries"] == 50

    def test_a_block_has_room_ahead(self, folder: Path) -> None:
        with opened(folder, map_size=MIB) as environment:
            with environment.write() as txn:
                txn.put(b"k", b"x" * 7 * MIB)

            assert get(environment, b"k") == b"x" * 7 * MIB

    def test_a_block_beyond_its_room_fails_and_can_be_run_again(self, folder: Path) -> None:
        def write() -> None:
            with environment.write() as txn:
                for number in range(5):
                    txn.put(b"%d" % number, b"x" * 4 * MIB)

        with opened(folder, map_size=MIB) as environment:
            with pytest.raises(StoreFullError, match="memory map was full"):
                write()
            write()

            assert get(environment, b"4") == b"x" * 4 * MIB

    def test_the_bound_of_growth_is_an_error_and_nothing_is_lost(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lmdb_mapping, "MAX_MAP_SIZE", 4 * MIB)
        with opened(folder, map_size=MIB) as environment:
            put(environment, b"k", b"v")
            with pytest.raises(StoreFullError, match="may not exceed 4194304 bytes"):
                put(environment, b"big", b"x" * 5 * MIB)

            assert get(environment, b"k") == b"v"
            put(environment, b"small", b"w")
            assert get(environment, b"small") == b"w"

    def test_a_map_grown_by_another_process_is_followed(self, folder: Path) -> None:
        script = """
environment = open_environment(folder, map_size=2**20)
say(environment.map_size)
while (key := hear()):
    with environment.read() as txn:
        say(len(txn.get(key.encode()) or b""), environment.map_size > 2**20)
"""
        with opened(folder, map_size=MIB) as environment, OtherProcess(script, folder) as other:
            assert other.hear() == str(MIB)
            put(environment, b"k", b"x" * 3 * MIB)

            assert other.ask("k") == f"{3 * MIB} True"

    def test_two_processes_that_grow_at_once_lose_nothing(self, folder: Path) -> None:
        script = """
environment = open_environment(folder, map_size=2**20)
say("ready"); hear()
for number in range(40):
    key = b"%d-%d" % (os.getpid(), number)
    environment.update(lambda txn: txn.put(key, b"x" * 100_000))
say("done")
"""
        others = [OtherProcess(script, folder) for _ in range(2)]
        assert [other.hear() for other in others] == ["ready"] * 2
        for other in others:
            other.say("go")
        assert [other.hear() for other in others] == ["done"] * 2
        for other in others:
            other.end()

        with opened(folder) as environment, environment.read() as txn:
            assert txn.stat()["entries"] == 80

    def test_a_map_grown_by_another_process_is_followed_here(self, folder: Path) -> None:
        script = """
environment = open_environment(folder)
environment.update(lambda txn: txn.put(b"k", b"x" * 3 * 2**20))
"""
        with opened(folder, map_size=MIB) as environment:
            assert run(script, folder) == ""

            assert get(environment, b"k") == b"x" * 3 * MIB
            assert environment.map_size > MIB

    def test_a_map_that_others_keep_enlarging_is_given_up(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def resized(_: lmdb.Environment) -> None:
            raise lmdb.MapResizedError("x")

        with opened(folder) as environment:
            monkeypatch.setattr(lmdb_environment, "_begin_write", resized)
            with pytest.raises(StoreBusyError, match="keep enlarging"):
                put(environment, b"k", b"v")

    def test_an_environment_that_must_be_shut_down_is_reopened(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Liblmdb refuses everything after a meta page could not be written (MDB_PANIC)."""
        real = lmdb_environment._begin_write
        panics = [lmdb.PanicError("x")]

        def panic(environment: lmdb.Environment) -> lmdb.Transaction[bytes]:
            if panics:
                raise panics.pop()
            return real(environment)

        with opened(folder, b"one") as environment:
            before = environment._raw
            monkeypatch.setattr(lmdb_environment, "_begin_write", panic)
            environment.update(lambda txn: txn.put(b"k", b"v", db=environment.databases[b"one"]))

            assert environment._raw is not before
            with environment.read() as txn:
                assert txn.get(b"k", db=environment.databases[b"one"]) == b"v"

    def test_threads_that_grow_at_once_lose_nothing(self, folder: Path) -> None:
        with opened(folder, map_size=MIB) as environment:
            start = threading.Barrier(6)

            def write(thread: int) -> None:
                start.wait()
                for number in range(10):
                    put(environment, b"%d-%d" % (thread, number), b"x" * 100_000)

            threads = [threading.Thread(target=write, args=(each,)) for each in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            with environment.read() as txn:
                assert txn.stat()["entries"] == 60

    @pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of address space")
    def test_no_address_space_is_an_error_and_nothing_is_lost(self, folder: Path) -> None:
        script = """
import resource
environment = open_environment(folder, map_size=2**26)
environment.update(lambda txn: txn.put(b"k", b"v"))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, resource.RLIM_INFINITY))
written = 1
try:
    while True:
        environment.update(lambda txn: txn.put(b"%d" % written, b"x" * 2**20))
        written += 1
except StoreFullError as error:
    say("no memory map" in str(error), environment.map_size == 2**26)
with environment.read() as txn:
    say(txn.get(b"k"), txn.stat()["entries"] == written)
environment.update(lambda txn: txn.put(b"small", b"w"))
with environment.read() as txn:
    say(txn.get(b"small"))
"""
        assert run(script, folder).split("\n") == ["True True", "b'v' True", "b'w'"]

    def test_the_map_size_is_remembered(self, folder: Path) -> None:
        with opened(folder, map_size=MIB) as environment:
            put(environment, b"k", b"x" * 5 * MIB)
            size = environment.map_size

        with opened(folder, map_size=MIB) as environment:
            assert environment.map_size == size


class TestFullDisk:
    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        """A file system of 4 MiB."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
        if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("cannot mount a small file system here")
        yield disk
        subprocess.run(["umount", "-l", str(disk)], check=True)

    def test_a_full_disk_is_an_error_and_nothing_is_lost(self, small_disk: Path) -> None:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * MIB)
        with opened(small_disk / "log") as environment:
            acknowledged = 0
            with pytest.raises(StoreFullError, match=r"No space left|disk is full"):
                while True:
                    put(environment, b"%04d" % acknowledged, b"x" * 20_000)
                    acknowledged += 1

            assert acknowledged > 20
            with environment.read() as txn:
                assert txn.stat()["entries"] == acknowledged
            ballast.unlink()
            put(environment, b"after", b"v")
            assert get(environment, b"after") == b"v"

        with opened(small_disk / "log") as environment, environment.read() as txn:
            assert txn.stat()["entries"] == acknowledged + 1

    def test_a_disk_without_room_for_a_new_store_is_an_error(self, small_disk: Path) -> None:
        with pytest.raises(OSError, match="No space left"):
            (small_disk / "ballast").write_bytes(b"x" * 5 * MIB)

        with pytest.raises(StoreFullError):
            open_environment(small_disk / "log")


class TestReadOnly:
    def test_a_reader_reads(self, folder: Path) -> None:
        with opened(folder, b"one") as environment:
            put(environment, b"k", b"v")

        with opened(folder, b"one", readonly=True) as environment:
            assert get(environment, b"k") == b"v"
            with pytest.raises(StoreReadOnlyError):
                put(environment, b"k", b"w")

    def test_a_reader_makes_no_databases(self, folder: Path) -> None:
        with opened(folder):
            pass
        with opened(folder, readonly=True) as environment:
            assert not environment.open_databases(b"one")

    def test_a_reader_and_a_writer_share_one_writable_environment(self, folder: Path) -> None:
        with opened(folder, b"one"):
            pass
        with opened(folder, b"one", readonly=True) as reader:
            with opened(folder, b"one") as writer:
                put(writer, b"k", b"v")
                assert reader is writer
            with reader.read() as txn:
                assert txn.get(b"k") == b"v"
                assert txn.get(b"k", db=reader.databases[b"one"]) is None

    def test_a_reader_who_may_not_lock_reads_without_locks(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A folder of somebody else. As root, permissions do not bind: the refusal is injected."""
        with opened(folder) as environment:
            put(environment, b"k", b"v")
        real = lmdb_files._open

        def refuse_locks(path: str, *, lock: bool, **options: bool) -> lmdb.Environment:
            if lock:
                raise coded(errno.EACCES)
            return real(path, lock=lock, **options)

        monkeypatch.setattr(lmdb_files, "_open", refuse_locks)
        with opened(folder, readonly=True) as environment:
            assert (get(environment, b"k"), environment.locked) == (b"v", False)
        with pytest.raises(StoreReadOnlyError):
            open_environment(folder)

    @pytest.fixture
    def frozen(self, tmp_path: Path) -> Iterator[Path]:
        """A store on a file system that was then mounted read-only."""
        disk = tmp_path / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
        if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("cannot mount a file system here")
        try:
            with opened(disk / "log", b"one") as environment:
                put(environment, b"k", b"v")
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            yield disk / "log"
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)

    def test_a_read_only_file_system_can_be_read(self, frozen: Path) -> None:
        with opened(frozen, b"one", readonly=True) as environment:
            assert get(environment, b"k") == b"v"

    def test_a_read_only_file_system_cannot_be_written(self, frozen: Path) -> None:
        with pytest.raises(StoreReadOnlyError):
            open_environment(frozen)
        with pytest.raises(StoreReadOnlyError):
            open_environment(frozen.parent / "other")

    def test_a_reader_goes_on_reading_when_it_cannot_become_a_writer(self, frozen: Path) -> None:
        with opened(frozen, readonly=True) as environment:
            with pytest.raises(StoreReadOnlyError):
                open_environment(frozen)

            assert get(environment, b"k") == b"v"


class TestReaders:
    def test_the_slots_of_a_killed_reader_are_freed(self, folder: Path) -> None:
        script = """
environment = open_environment(folder)
with environment.read():
    say("reading"); hear()
"""
        with opened(folder) as environment:
            put(environment, b"k", b"v")
            with OtherProcess(script, folder) as other:
                assert other.hear() == "reading"
                assert [pid for pid, _ in environment.readers()] == [other.pid]
                assert environment.clear_stale_readers() == 0
                other.kill()

            assert environment.clear_stale_readers() == 1
            assert environment.readers() == []

    def test_opening_frees_the_slots_of_killed_readers(self, folder: Path) -> None:
        script = """
environment = open_environment(folder)
with environment.read():
    say("reading"); hear()
"""
        with OtherProcess(script, folder) as other:
            assert other.hear() == "reading"
            other.kill()

        with opened(folder) as environment:
            assert environment.readers() == []

    def test_a_full_table_of_killed_readers_is_cleared(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lmdb_files, "MAX_READERS", 3)
        script = """
environment = open_environment(folder)
blocks = [environment.read() for _ in range(3)]
for block in blocks: block.__enter__()
say("reading"); hear()
"""
        with opened(folder) as environment:
            put(environment, b"k", b"v")
            with OtherProcess(script, folder) as other:
                assert other.hear() == "reading"
                with pytest.raises(StoreBusyError):
                    get(environment, b"k")
                other.kill()

            assert get(environment, b"k") == b"v"

    def test_the_oldest_reader_comes_first(self, folder: Path) -> None:
        with opened(folder) as environment:
            put(environment, b"k", b"1")
            with environment.read() as old:
                started = old.id()
                thread = threading.Thread(target=put, args=(environment, b"k", b"2"))
                thread.start()
                thread.join()
                with environment.read():
                    readers = environment.readers()

            assert readers == [(os.getpid(), started), (os.getpid(), started + 1)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
class TestForks:
    def test_parent_and_child_both_go_on(self, folder: Path) -> None:
        script = """
environment = open_environment(folder, map_size=2**20)
log = LMDBLog(environment)
log.append([new("parent", 1)])
pid = os.fork()
if not pid:
    log.append([new("child", 1, b"x" * 3_000_000)])
    os._exit(len(log.read()))
_, status = os.waitpid(pid, 0)
log.append([new("parent", 2)])
say(os.waitstatus_to_exitcode(status), [r.stream for r in log.read()], list(log.verify()))
environment.close()
"""
        assert run(script, folder) == "2 ['parent', 'child', 'parent'] []"

    def test_a_child_that_uses_nothing_disturbs_nothing(self, folder: Path) -> None:
        script = """
log = LMDBLog(open_environment(folder))
log.append([new("a", 1)])
pid = os.fork()
if not pid:
    sys.exit(0)
os.waitpid(pid, 0)
log.append([new("a", 2)])
say(len(log.read()))
"""
        assert run(script, folder) == "2"

    def test_children_of_a_busy_parent_can_write(self, folder: Path) -> None:
        """Threads of the parent are anywhere in a commit when it forks."""
        script = """
log = LMDBLog(open_environment(folder))
stop = threading.Event()
def write(name):
    version = 0
    while not stop.is_set():
        version += 1
        log.append([new(name, version)])
        log.read(limit=5)
    counts.append(version)
counts = []
threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
for thread in threads: thread.start()
codes = []
for number in range(10):
    pid = os.fork()
    if not pid:
        for version in range(1, 6):
            log.append([new(f"child-{number}", version)])
        os._exit(log.stream_version(f"child-{number}"))
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
stop.set()
for thread in threads: thread.join()
say(codes)
say(log.head().position == sum(counts) + 50, list(log.verify(contiguous=True)))
"""
        assert run(script, folder).split("\n") == [str([5] * 10), "True []"]

    def test_a_child_forked_inside_a_transaction_is_refused(self, folder: Path) -> None:
        """It would have to close what its parent is using."""
        script = """
environment = open_environment(folder)
with environment.write() as txn:
    txn.put(b"k", b"v")
    pid = os.fork()
    if not pid:
        try:
            environment.last_transaction()
        except StoreBusyError:
            os._exit(7)
        os._exit(8)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
with environment.read() as txn:
    say(code, txn.get(b"k"))
"""
        assert run(script, folder) == "7 b'v'"

    def test_leaving_a_block_in_a_child_commits_nothing(self, folder: Path) -> None:
        script = """
environment = open_environment(folder)
pid = 1
with environment.write() as txn:
    txn.put(b"k", b"v")
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        say(code, environment.last_transaction())
if not pid:
    os._exit(3)
with environment.read() as txn:
    say(txn.get(b"k"))
"""
        assert run(script, folder).split("\n") == ["3 0", "b'v'"]

    def test_a_grandchild_can_write(self, folder: Path) -> None:
        script = """
log = LMDBLog(open_environment(folder))
log.append([new("a", 1)])
if not (pid := os.fork()):
    if not (pid := os.fork()):
        log.append([new("a", 2)])
        os._exit(0)
    os.waitpid(pid, 0)
    log.append([new("a", 3)])
    os._exit(0)
os.waitpid(pid, 0)
say([r.version for r in log.read()])
"""
        assert run(script, folder) == "[1, 2, 3]"

    def test_a_closed_environment_stays_closed_in_a_child(self, folder: Path) -> None:
        script = """
environment = open_environment(folder)
environment.close()
if not (pid := os.fork()):
    try:
        environment.last_transaction()
    except StoreClosedError:
        os._exit(7)
say(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
        assert run(script, folder) == "7"


class TestDamage:
    @pytest.fixture
    def filled(self, folder: Path) -> Path:
        with opened(folder) as environment:
            for number in range(40):
                put(environment, b"%d" % number, b"x" * 3000)
        return folder

    @pytest.mark.parametrize(
        "length",
        [0, 1, 100, PAGE - 1, PAGE, PAGE + 20, 2 * PAGE, 3 * PAGE, 20 * PAGE + 7, -PAGE, -1],
    )
    def test_a_data_file_that_was_cut_short_is_refused(self, filled: Path, length: int) -> None:
        """Mapping it and touching what is missing would kill the process (SIGBUS)."""
        data = filled / "data.mdb"
        os.truncate(data, length if length >= 0 else data.stat().st_size + length)

        for readonly in (False, True):
            with pytest.raises(StoreCorruptError):
                open_environment(filled, readonly=readonly)

    def test_an_empty_data_file_is_not_taken_for_a_new_one(self, filled: Path) -> None:
        os.truncate(filled / "data.mdb", 0)

        with pytest.raises(StoreCorruptError, match="empty"):
            open_environment(filled)

        assert (filled / "data.mdb").stat().st_size == 0

    def test_a_healthy_file_may_be_shorter_than_its_page_count(self, folder: Path) -> None:
        """LMDB counts pages that it allocated and freed in one commit, and never wrote."""
        with opened(folder) as environment:
            short = self._shorten(environment, folder)

            assert short, "this workload no longer makes such a file"
        with opened(folder) as environment, environment.read() as txn:
            assert txn.stat()["entries"] == 300

    def test_a_long_free_list_is_read_whole(self, folder: Path) -> None:
        """One with branches, and with a record that has pages of its own."""
        big = [b"big%d" % number for number in range(600)]

        def write(keys: list[bytes]) -> None:
            environment.update(lambda txn: [txn.put(key, b"x" * 9000) for key in keys])

        def delete(keys: list[bytes]) -> None:
            environment.update(lambda txn: [txn.delete(key) for key in keys])

        def work(txn: lmdb.Transaction[bytes]) -> None:
            for key in big:
                txn.put(key, b"x" * 9000)
            for key in big:
                txn.delete(key)

        def churn() -> None:
            for number in range(80):
                put(environment, b"%d" % number, b"y")
            environment.update(work)

        with opened(folder) as environment:
            write(big[:300])
            delete(big[:300])
            put(environment, b"k", b"v")
            with environment.read():  # keeps what is freed from now on in the list
                thread = threading.Thread(target=churn)
                thread.start()
                thread.join()
            pages = environment.enter().info()["last_pgno"] + 1
            environment.leave()

        assert (folder / "data.mdb").stat().st_size < pages * PAGE
        with opened(folder) as environment:
            assert get(environment, b"k") == b"v"

    @pytest.mark.parametrize("offset", [10, 16])  # flags of a page, place of its first node
    def test_a_short_file_with_a_damaged_free_list_is_refused(
        self, folder: Path, offset: int
    ) -> None:
        with opened(folder) as environment:
            assert self._shorten(environment, folder)
            page = environment.last_transaction() & 1
        with (folder / "data.mdb").open("r+b") as file:
            file.seek(page * PAGE + 80)
            root = int.from_bytes(file.read(8), sys.byteorder)  # of the free list
            file.seek(root * PAGE + offset)
            file.write(b"\xf0\xff")

        with pytest.raises(StoreCorruptError):
            open_environment(folder)

    def test_a_file_short_of_free_pages_and_of_others_is_refused(self, folder: Path) -> None:
        with opened(folder) as environment:
            assert self._shorten(environment, folder)

        os.truncate(folder / "data.mdb", (folder / "data.mdb").stat().st_size // 2)
        with pytest.raises(StoreCorruptError):
            open_environment(folder)

    @staticmethod
    def _shorten(environment: Environment, folder: Path) -> bool:
        """Free pages in the same transaction that has allocated them at the end of the file."""
        for number in range(6):
            environment.update(
                lambda txn, number=number: [  # type: ignore[misc]
                    txn.put(b"%03d" % key, b"%d" % number * 300) for key in range(300)
                ]
            )

        def work(txn: lmdb.Transaction[bytes]) -> None:
            for number in range(50):
                txn.put(b"big%d" % number, b"x" * 9000)
            for number in range(50):
                txn.delete(b"big%d" % number)

        environment.update(work)
        pages = environment.enter().info()["last_pgno"] + 1
        environment.leave()
        return (folder / "data.mdb").stat().st_size < pages * PAGE

    @pytest.mark.parametrize("page", [0, 1])
    @pytest.mark.parametrize(
        ("offset", "damage"), [(10, b"\0\0"), (16, b"\0\0"), (20, b"\xff")]
    )  # page flags, magic, version
    def test_a_damaged_meta_page_is_refused(
        self, filled: Path, page: int, offset: int, damage: bytes
    ) -> None:
        data = filled / "data.mdb"
        with data.open("r+b") as file:
            file.seek(page * PAGE + offset)
            file.write(damage)

        with pytest.raises(StoreCorruptError):
            open_environment(filled)

    def test_something_else_is_refused(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "data.mdb").write_bytes(os.urandom(3 * PAGE))

        with pytest.raises(StoreCorruptError):
            open_environment(folder)

    def test_a_folder_that_is_a_file_is_refused(self, folder: Path) -> None:
        folder.write_text("not a folder")

        with pytest.raises(StoreError):
            open_environment(folder)


def coded(code: int) -> lmdb.Error:
    """An error as liblmdb raises it for an error of the system."""
    error = lmdb.Error("x")
    error.code = code  # type: ignore[misc]
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (lmdb.MapFullError("x"), StoreFullError),
        (coded(errno.ENOSPC), StoreFullError),
        (coded(errno.ENOMEM), StoreFullError),
        (OSError(errno.ENOSPC, "x"), StoreFullError),
        (OSError(errno.EDQUOT, "x"), StoreFullError),
        (coded(errno.EACCES), StoreReadOnlyError),
        (coded(errno.EROFS), StoreReadOnlyError),
        (PermissionError(errno.EPERM, "x"), StoreReadOnlyError),
        (lmdb.CorruptedError("x"), StoreCorruptError),
        (lmdb.PageNotFoundError("x"), StoreCorruptError),
        (lmdb.InvalidError("x"), StoreCorruptError),
        (lmdb.PanicError("x"), StoreCorruptError),
        (lmdb.ReadersFullError("x"), StoreBusyError),
        (coded(errno.EAGAIN), StoreBusyError),
        (FileNotFoundError(errno.ENOENT, "x"), StoreNotFoundError),
        (coded(errno.EIO), StoreFailedError),
        (lmdb.BadValsizeError("x"), StoreFailedError),
    ],
)
def test_every_error_has_a_class_of_ours(error: Exception, kind: type[StoreError]) -> None:
    translated = translate(error, "/")

    assert type(translated) is kind
    assert translated.args[0] == "/"


def test_an_io_error_on_a_full_disk_is_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Liblmdb reports a write that was cut short by a full disk as EIO (mdb_page_flush)."""
    full = os.statvfs_result((4096, 4096, 1000, 10, 10, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)

    assert type(translate(coded(errno.EIO), "/store")) is StoreFullError
