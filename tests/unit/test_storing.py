"""A backup is a whole store, and a compaction loses nothing that an event needs."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stores import LARGE, Seen, files, make_store, opened, record_run

from tachograph import storekeeping
from tachograph.domain.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreExistsError,
    StoreFullError,
    StorePathError,
)
from tachograph.domain.records import Head, NewRecord
from tachograph.infra import store_files
from tachograph.infra.store_files import StoreFiles, new_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.storing import Backup, Compaction


def kinds(store: Path) -> list[str]:
    return [problem.kind for problem in storekeeping.verify(str(store))]


def head(store: Path) -> Head:
    with opened(store) as services:
        return services.log.head()


def backup(store: Path, target: Path, **options: Any) -> Backup:
    with opened(store) as services:
        return storekeeping.backup(services, str(target), **options)


def compact(store: Path, **options: Any) -> Compaction:
    return storekeeping.compact(str(store), **options)


def blobs(store: Path) -> list[str]:
    return sorted(path.name for path in (store / "blobs").glob("??/*"))


@pytest.fixture
def store(store_path: Path) -> Path:
    """A store with two runs and one payload."""
    return make_store(store_path)


# Measures


def test_a_store_is_described(store: Path) -> None:
    with opened(store) as services:
        found = storekeeping.describe(services)
        now = services.log.head()

    assert (found["events"], found["runs"], found["streams"], found["blobs"]) == (18, 2, 2, 1)
    assert found["anchor"] == f"{now.position}:{now.digest.hex()}"
    assert found["sizes"]["blobs"] == len(LARGE) + 3  # and a msgpack header
    assert found["sizes"]["log"] > 0
    assert (found["format"], found["snapshots"], found["readers"]) == (1, 0, [])


def test_an_empty_store_is_described(store_path: Path) -> None:
    with opened(store_path) as services:
        found = storekeeping.describe(services)

    assert (found["events"], found["runs"], found["lastWriteUs"]) == (0, 0, None)


def test_open_readers_are_listed(store: Path) -> None:
    with opened(store) as services, ThreadPoolExecutor(1) as other, services.environment.read():
        (reader,) = other.submit(storekeeping.describe, services).result()["readers"]

    assert reader["pid"] == os.getpid()


# Backups


def test_a_backup_is_the_same_store(store: Path, tmp_path: Path) -> None:
    made = backup(store, tmp_path / "copy")

    assert (made.head, made.blobs, made.problems) == (head(store), 1, [])
    assert head(tmp_path / "copy") == head(store)
    assert kinds(tmp_path / "copy") == []
    with opened(tmp_path / "copy") as services:
        outputs = services.session("job-1", 1).batch_outputs("parse")
        assert [output for _, output in outputs] == [LARGE] * 3


def test_the_store_goes_on_while_it_is_copied(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy ends with the events of one moment, and has every payload they need."""
    copy_blob = StoreFiles.copy_blob

    def write_meanwhile(self: StoreFiles, *arguments: Any) -> None:
        with opened(store) as services:
            record_run(services, "later", output=LARGE + "other")
        copy_blob(self, *arguments)

    monkeypatch.setattr(StoreFiles, "copy_blob", write_meanwhile)
    made = backup(store, tmp_path / "copy")

    assert (made.head.position, made.problems) == (18, [])
    assert head(store).position == 27


def test_the_settings_of_the_store_are_copied(store: Path, tmp_path: Path) -> None:
    (store / "config").write_text("snapshot_every = 7\n")
    backup(store, tmp_path / "copy")

    assert (tmp_path / "copy" / "config").read_text() == "snapshot_every = 7\n"


def test_an_empty_folder_may_become_a_backup(store: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    backup(store, tmp_path / "copy")

    assert kinds(tmp_path / "copy") == []


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_backup_never_replaces_anything(store: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "mine"
    inside = target if kind == "file" else target / "file"
    inside.parent.mkdir(exist_ok=True)
    inside.write_text("mine")
    with pytest.raises(StoreExistsError):
        backup(store, target)

    assert inside.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "store"]


def test_a_backup_inside_the_store_is_refused(store: Path) -> None:
    with pytest.raises(StorePathError, match="inside the store"):
        backup(store, store / "backup")


def test_a_backup_below_a_file_is_refused(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Exception, match="file"):
        backup(store, tmp_path / "file" / "copy")


def test_a_backup_of_a_damaged_store_is_kept_and_its_damage_told(
    store: Path, tmp_path: Path
) -> None:
    """What is left is worth saving."""
    (blob,) = (store / "blobs").glob("??/*")
    blob.unlink()
    made = backup(store, tmp_path / "copy")

    assert [problem.kind for problem in made.problems] == ["payload"]
    assert head(tmp_path / "copy") == head(store)


def test_a_backup_that_fails_leaves_nothing(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_files, "_copy", full)
    with pytest.raises(StoreFullError):
        backup(store, tmp_path / "copy")

    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_progress_of_a_backup_is_told_in_payloads(store: Path, tmp_path: Path) -> None:
    seen = Seen()
    backup(store, tmp_path / "copy", progress=seen)

    assert seen == [(1, 1)]


# Compaction


@pytest.fixture
def loose(store: Path) -> Path:
    """A store with free pages, views, and a payload that no event needs."""
    with opened(store) as services:
        database = b"filler"
        services.environment.open_databases(database)
        filler = services.environment.databases[database]
        for number in range(50):
            key = number.to_bytes(8, "big")
            with services.environment.write() as txn:
                txn.put(key, bytes(40_000), db=filler)
            with services.environment.write() as txn:
                txn.delete(key, db=filler)
        services.blobs.put(b"unneeded")
        storekeeping.rebuild(services)
    return store


def test_a_compaction_keeps_every_event_and_gives_room_back(loose: Path) -> None:
    before = head(loose)
    size = (loose / "log" / "data.mdb").stat().st_size
    done = compact(loose)

    assert (done.head, done.before_bytes) == (before, size)
    assert done.after_bytes < size / 2
    assert (loose / "log" / "data.mdb").stat().st_size == done.after_bytes
    assert head(loose) == before
    assert kinds(loose) == []


def test_only_payloads_that_no_event_needs_are_removed(loose: Path) -> None:
    done = compact(loose)

    assert (done.blobs, done.blob_bytes) == (1, len(b"unneeded"))
    with opened(loose) as services:
        assert len(list(services.session("job-0", 1).batch_outputs("parse"))) == 3


def test_views_are_removed_and_come_back(loose: Path) -> None:
    compact(loose)

    assert not list((loose / "views").glob("*"))
    with opened(loose) as services:
        assert storekeeping.check_views(services) == []


def test_a_dry_run_tells_the_same_and_changes_nothing(loose: Path) -> None:
    before = files(loose)
    planned = compact(loose, dry_run=True)

    assert files(loose) == before
    assert list((loose / "views").glob("*"))
    assert planned == compact(loose)


def test_a_second_compaction_finds_nothing_to_do(loose: Path) -> None:
    compact(loose)
    again = compact(loose)

    assert (again.before_bytes, again.blobs) == (again.after_bytes, 0)


def test_a_store_that_is_open_is_not_compacted(loose: Path) -> None:
    before = files(loose)
    with opened(loose), pytest.raises(StoreBusyError):
        compact(loose)

    assert files(loose) == before


def test_a_store_is_opened_only_after_a_compaction(loose: Path) -> None:
    """Whoever opens it meanwhile would write to the file that is thrown away."""
    with StoreFiles(str(loose)).alone():
        child = os.fork()
        if not child:
            with opened(loose) as services:
                record_run(services, "waited")
            os._exit(0)
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        assert not (loose / "log" / "compact-").exists()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    assert head(loose).position == 27


def test_a_payload_within_a_payload_is_kept(store: Path) -> None:
    with opened(store) as services:
        inner = services.blobs.put(services.codec.pack(["inner"]))
        outer = services.blobs.put(services.codec.pack({"ref": inner}))
        record_run(services, "nested", output=outer)
    compact(store)

    assert {inner.digest, outer.digest} <= set(blobs(store))


def test_nothing_is_removed_where_an_event_cannot_be_read(loose: Path) -> None:
    """Nobody knows what it refers to."""
    with opened(loose) as services:
        services.log.append([NewRecord("odd", 1, "other", 0, b"\xc1")])
    done = compact(loose)

    assert (done.blobs, len(blobs(loose))) == (0, 2)


def test_a_lost_payload_stands_in_no_ones_way(loose: Path) -> None:
    for path in (loose / "blobs").glob("??/*"):
        path.unlink()

    assert compact(loose).blobs == 0


def test_a_damaged_log_is_not_compacted(loose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(loose) as services:
        database = services.environment.databases[b"events.records"]
        with services.environment.write() as txn:
            txn.delete((3).to_bytes(8, "big"), db=database)
    before = files(loose)
    with pytest.raises(StoreCorruptError):
        compact(loose)

    assert files(loose) == before


def test_leftovers_of_killed_compactions_are_listed_and_removed(loose: Path) -> None:
    (loose / "log" / "compact-x1").mkdir()
    (loose / "log" / "compact-x1" / "data.mdb").write_bytes(b"half")
    kept = loose / "blobs" / "aa"
    kept.mkdir(exist_ok=True)
    (kept / "tmp-1-ab").write_bytes(b"half")
    found = StoreFiles(str(loose)).leftovers()
    compact(loose)

    assert [Path(path).name for path in found] == ["tmp-1-ab", "compact-x1"]
    assert StoreFiles(str(loose)).leftovers() == []


# New files


def test_a_new_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail() -> None:
        with new_file(str(tmp_path / "file")) as file:
            file.write("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("occupy", [Path.mkdir, Path.touch, lambda path: path.symlink_to("gone")])
def test_a_new_file_takes_no_occupied_name(
    tmp_path: Path, occupy: Callable[[Path], object]
) -> None:
    occupy(tmp_path / "file")

    with pytest.raises(StoreExistsError), new_file(str(tmp_path / "file")):
        pass
    assert len(list(tmp_path.iterdir())) == 1
