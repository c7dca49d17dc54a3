"""Views on disk: generations, and what happens when their files are not as they should be."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tachograph.domain.errors import StoreCorruptError, StoreReadOnlyError
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
    from tachograph.domain.errors import StoreError

    folder.write_text("not a folder")

    with pytest.raises(StoreError):
        listed(views_in(folder))
