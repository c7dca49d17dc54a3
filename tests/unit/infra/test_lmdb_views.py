"""Views on disk: generations, and what happens when their files are not as they should be."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from tachograph.domain.errors import (
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.projections import views as catalogue
from tachograph.projections.run_summaries import new_summary

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.projections.views import ViewWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "views"


def views_in(folder: Path) -> LMDBViews:
    return LMDBViews(str(folder), Codec())


def put(views: LMDBViews, run_id: str = "job-1") -> None:
    def work(writer: ViewWriter) -> None:
        summary = new_summary(run_id)
        summary.update(created_position=1, updated_position=1)
        writer.put_summary(summary)

    views.update(work)


def listed(views: LMDBViews) -> list[str]:
    with views.read() as reader:
        return [card["id"] for card in reader.cards()]


def generations(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def current(folder: Path) -> str:
    return (folder / "current").read_text().strip()


def test_views_survive_closing(folder: Path) -> None:
    views = views_in(folder)
    put(views)
    views.close()

    assert listed(views) == ["job-1"]
    assert listed(views_in(folder)) == ["job-1"]


def test_nothing_stays_open(folder: Path, no_open_files_left: None) -> None:
    views = views_in(folder)
    put(views)
    with views.rebuilding() as fresh, fresh.read() as reader:
        next(reader.cards(), None)
    with views.read() as reader:
        assert next(reader.cards(), None) is None
    views.close()


def test_another_user_of_the_folder_sees_the_rebuilt_views(folder: Path) -> None:
    views, other = views_in(folder), views_in(folder)
    put(views, "old")
    assert listed(other) == ["old"]

    with views.rebuilding() as fresh:
        put(fresh, "new")  # type: ignore[arg-type]

    assert listed(other) == ["new"]
    assert generations(folder) == [current(folder)]


def test_a_reader_of_the_old_views_reads_on(folder: Path) -> None:
    views, other = views_in(folder), views_in(folder)
    put(views, "old")
    with other.read() as reader:
        with views.rebuilding() as fresh:
            put(fresh, "new")  # type: ignore[arg-type]

        assert [card["id"] for card in reader.cards()] == ["old"]


def test_a_thread_that_reads_the_old_views_can_read_the_new_ones(
    folder: Path, no_open_files_left: None
) -> None:
    views, other = views_in(folder), views_in(folder)
    put(views, "old")
    with views.read() as reader:
        with other.rebuilding() as fresh:
            put(fresh, "new")  # type: ignore[arg-type]

        assert listed(views) == ["new"]
        assert [card["id"] for card in reader.cards()] == ["old"]

    views.close()
    other.close()


def test_what_killed_rebuilds_left_is_removed(folder: Path) -> None:
    views = views_in(folder)
    put(views)
    (folder / "generation-0123").mkdir()
    (folder / "generation-0123" / "data.mdb").write_bytes(b"half")
    (folder / "generation-0456-removed").mkdir()
    with views.scratch():
        pass

    assert generations(folder) == [current(folder)]
    assert listed(views) == ["job-1"]


@pytest.mark.parametrize(
    "pointer", [b"", b"\0\0\0\0", b"generation-0123\n", b"../log\n", b"generation-../../log\n"]
)
def test_a_pointer_that_makes_no_sense_is_replaced(folder: Path, pointer: bytes) -> None:
    views = views_in(folder)
    put(views)
    (folder / "current").write_bytes(pointer)

    assert listed(views) == []
    assert generations(folder) == [current(folder)]


@pytest.mark.parametrize("damage", ["emptied", "zeros", "cut", "removed", "a text"])
def test_damaged_views_are_replaced_by_empty_ones(folder: Path, damage: str) -> None:
    views = views_in(folder)
    put(views)
    views.close()
    data = folder / current(folder) / "data.mdb"
    before = current(folder)
    if damage == "removed":
        data.unlink()
    else:
        content = {
            "emptied": b"",
            "zeros": bytes(data.stat().st_size),
            "cut": data.read_bytes()[:8192],
            "a text": b"hello" * 5000,
        }
        data.write_bytes(content[damage])

    assert listed(views) == []
    assert current(folder) != before
    assert generations(folder) == [current(folder)]


def test_deleted_views_are_made_anew(folder: Path) -> None:
    import shutil

    views = views_in(folder)
    put(views)
    shutil.rmtree(folder)

    assert listed(views) == []
    put(views)
    assert listed(views) == ["job-1"]


def test_views_of_another_version_are_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = views_in(folder)
    put(views)
    views.close()
    monkeypatch.setitem(catalogue.VERSIONS, "timeline", "999")

    assert listed(views) == []


def test_a_row_that_cannot_be_read_is_said_to_be_damaged(folder: Path) -> None:
    from tachograph.infra.view_rows import SUMMARIES

    views = views_in(folder)
    put(views)
    views.update(lambda rows: rows._tables.put(SUMMARIES, bytes(7) + b"\1", b"\xc1"))

    with views.read() as reader, pytest.raises(StoreCorruptError, match="row of its views"):
        reader.summary("job-1")


def test_marks_that_cannot_be_read_are_replaced(folder: Path) -> None:
    from tachograph.infra.view_rows import META

    views = views_in(folder)
    put(views)
    views.update(lambda rows: rows._tables.put(META, b"timeline", b"\xc1"))
    views.close()

    assert listed(views) == []


def test_discarding_leaves_views_that_another_process_has_just_made(folder: Path) -> None:
    views, other = views_in(folder), views_in(folder)
    put(views, "old")
    listed(other)
    with views.rebuilding() as fresh:
        put(fresh, "new")  # type: ignore[arg-type]
    other.discard()  # still has the old ones open

    assert listed(other) == ["new"]


def test_views_grow_beyond_their_first_map(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMDB_MAP_SIZE", str(2**20))
    views = views_in(folder)
    runs = []

    def work(writer: ViewWriter) -> None:
        runs.append(0)
        for number in range(1, 3001):
            summary = new_summary(f"job-{number}")
            summary.update(created_position=number, updated_position=number, title="x" * 400)
            writer.put_summary(summary)

    views.update(work)

    assert len(runs) > 1
    assert len(listed(views)) == 3000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said_to_be_so(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o500)

    with pytest.raises(StoreReadOnlyError):
        listed(views_in(folder))


def test_a_file_in_the_place_of_the_folder_is_an_error_of_the_store(folder: Path) -> None:
    folder.write_text("not a folder")

    with pytest.raises(StoreError):
        listed(views_in(folder))


def test_a_rebuild_in_the_place_of_a_file_is_an_error_of_the_store(folder: Path) -> None:
    folder.write_text("not a folder")

    with pytest.raises(StoreError), views_in(folder).rebuilding():
        pass


def test_a_rebuild_that_finds_no_room_lets_others_rebuild(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views, other = views_in(folder), views_in(folder)

    def make(*, sync: bool) -> None:
        raise StoreFullError(str(folder), "no space left")

    monkeypatch.setattr(views, "_make", make)
    with pytest.raises(StoreFullError), views.rebuilding():
        pass
    with other.rebuilding() as fresh:
        put(fresh, "new")  # type: ignore[arg-type]

    assert listed(other) == ["new"]


def test_views_that_are_replaced_all_the_time_are_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = views_in(folder)
    monkeypatch.setattr(views, "_open", lambda _name: None)

    with pytest.raises(StoreBusyError, match="other processes keep replacing its views"):
        listed(views)


def test_a_generation_whose_tables_cannot_be_opened_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_open_files_left: None
) -> None:
    from tachograph.infra.lmdb_environment import Environment

    def open_databases(self: Environment, *names: bytes) -> bool:
        raise StoreFullError(str(folder), "no space left")

    monkeypatch.setattr(Environment, "open_databases", open_databases)
    with pytest.raises(StoreFullError):
        listed(views_in(folder))


def test_threads_share_the_views_while_they_are_rebuilt(folder: Path) -> None:
    views = views_in(folder)
    put(views, "old")
    seen: list[list[str]] = []

    def look() -> None:
        seen.extend(listed(views) for _ in range(50))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        with views.rebuilding() as fresh:
            put(fresh, "old")  # type: ignore[arg-type]
    for thread in threads:
        thread.join()

    assert seen == [["old"]] * 200


def test_views_that_another_thread_closes_just_then_are_opened_again(folder: Path) -> None:
    views = views_in(folder)
    put(views)
    views._current().close()

    assert listed(views) == ["job-1"]

    views._current().close()
    put(views, "job-2")

    assert listed(views) == ["job-2"]


def test_views_that_are_closed_all_the_time_are_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = views_in(folder)
    put(views)
    current = views._current

    def closed() -> object:
        generation = current()
        generation.close()
        return generation

    monkeypatch.setattr(views, "_current", closed)
    with pytest.raises(StoreBusyError, match="keep replacing"):
        listed(views)
