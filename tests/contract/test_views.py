"""What every place for views must do, in memory and on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tachograph.domain.errors import StoreCorruptError
from tachograph.domain.records import GENESIS_DIGEST
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.infra.memory_views import MemoryViews
from tachograph.projections.run_summaries import new_summary
from tachograph.projections.views import VERSIONS, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.projections.views import ViewStore, ViewWriter


@pytest.fixture(params=["memory", "lmdb"])
def views(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ViewStore]:
    if request.param == "memory":
        yield MemoryViews(Codec())
        return
    on_disk = LMDBViews(str(tmp_path / "views"), Codec())
    yield on_disk
    on_disk.close()


def a_summary(run_id: str, created: int, updated: int | None = None, **more: Any) -> dict[str, Any]:
    """Make a summary of a run created at one position and touched last at another."""
    summary = new_summary(run_id)
    summary.update(
        created_position=created,
        updated_position=updated or created,
        latest_us=updated or created,
        **more,
    )
    return summary


def put(views: ViewStore, *summaries: dict[str, Any]) -> None:
    def work(writer: ViewWriter) -> None:
        for summary in summaries:
            writer.put_summary(summary)

    views.update(work)


def listed(views: ViewStore) -> list[str]:
    with views.read() as reader:
        return [card["id"] for card in reader.cards()]


def touched(views: ViewStore) -> list[tuple[int, int]]:
    with views.read() as reader:
        return list(reader.touched())


def ids(views: ViewStore, prefix: str, limit: int = 10) -> list[str]:
    with views.read() as reader:
        return [name for _, name in reader.ids(prefix, limit)]


# How far views are.


def test_new_views_are_at_the_start_of_the_log(views: ViewStore) -> None:
    with views.read() as reader:
        assert [reader.mark(name) for name in VERSIONS] == [Mark(0, GENESIS_DIGEST)] * 4
        assert list(reader.cards()) == []


def test_a_mark_is_kept_with_the_content(views: ViewStore) -> None:
    mark = Mark(7, b"d" * 32)
    views.update(lambda writer: writer.put_mark("timeline", mark))

    with views.read() as reader:
        assert reader.mark("timeline") == mark
        assert reader.mark("run_summaries") == Mark(0, GENESIS_DIGEST)


def test_an_update_returns_what_its_work_returns(views: ViewStore) -> None:
    assert views.update(lambda _writer: 42) == 42


def test_an_update_that_raises_keeps_nothing(views: ViewStore) -> None:
    def work(writer: ViewWriter) -> None:
        writer.put_summary(a_summary("job-1", 1))
        writer.put_mark("run_summaries", Mark(1, b"d" * 32))
        raise KeyError

    with pytest.raises(KeyError):
        views.update(work)

    assert listed(views) == []
    with views.read() as reader:
        assert reader.mark("run_summaries") == Mark(0, GENESIS_DIGEST)


def test_an_update_sees_its_own_writes(views: ViewStore) -> None:
    def work(writer: ViewWriter) -> list[str]:
        writer.put_summary(a_summary("job-1", 1))
        return [card["id"] for card in writer.cards()]

    assert views.update(work) == ["job-1"]


def test_a_reader_sees_one_moment(views: ViewStore) -> None:
    put(views, a_summary("job-1", 1))
    with views.read() as reader:
        put(views, a_summary("job-2", 2))

        assert [card["id"] for card in reader.cards()] == ["job-1"]

    assert listed(views) == ["job-2", "job-1"]


# Summaries and cards.


def test_a_summary_comes_back_equal(views: ViewStore) -> None:
    summary = a_summary("job-1", 1, inputs={"root": "/src"}, title="Ähm")
    put(views, summary)

    with views.read() as reader:
        assert reader.summary("job-1") == summary
        assert reader.summary("job-2") is None


def test_changing_what_one_got_changes_nothing(views: ViewStore) -> None:
    put(views, a_summary("job-1", 1))
    with views.read() as reader:
        summary = reader.summary("job-1")
        assert summary is not None
        summary["counters"]["batches"] = 9

        assert reader.summary("job-1") == a_summary("job-1", 1)


def test_cards_are_listed_latest_created_first(views: ViewStore) -> None:
    put(views, a_summary("b", 300), a_summary("a", 2), a_summary("c", 70_000))

    assert listed(views) == ["c", "b", "a"]


def test_a_card_is_found_by_its_position(views: ViewStore) -> None:
    put(views, a_summary("a", 2), a_summary("b", 3))

    with views.read() as reader:
        assert reader.card_at(2)["id"] == "a"
        with pytest.raises(StoreCorruptError, match="cards is missing"):
            reader.card_at(4)


def test_a_summary_put_again_replaces_the_first(views: ViewStore) -> None:
    put(views, a_summary("a", 1))
    put(views, a_summary("a", 1, 5, command="report"))

    with views.read() as reader:
        assert [card["command"] for card in reader.cards()] == ["report"]


def test_a_run_moves_forward_when_it_is_touched(views: ViewStore) -> None:
    put(views, a_summary("a", 1), a_summary("b", 2))

    assert touched(views) == [(2, 2), (1, 1)]

    put(views, a_summary("a", 1, 9))

    assert touched(views) == [(9, 1), (2, 2)]


def test_a_run_is_open_until_something_ends_it(views: ViewStore) -> None:
    put(views, a_summary("a", 1), a_summary("b", 2), a_summary("c", 3))
    put(views, a_summary("a", 1, 4, outcome="success"))
    put(views, a_summary("b", 2, 5, outcome="failed"))
    put(views, a_summary("b", 2, 6))  # a new attempt

    with views.read() as reader:
        assert [card["id"] for card in reader.open_cards()] == ["c", "b"]


def test_ids_are_found_by_their_beginning_latest_created_first(views: ViewStore) -> None:
    put(views, *(a_summary(name, 10 - n) for n, name in enumerate(["job-a", "job-b", "jot", "k"])))

    assert ids(views, "jo") == ["job-a", "job-b", "jot"]
    assert ids(views, "jo", 2) == ["job-a", "job-b"]
    assert ids(views, "job-b") == ["job-b"]
    assert ids(views, "") == ["job-a", "job-b", "jot", "k"]
    assert ids(views, "x") == []


def test_ids_longer_than_a_key_may_be_are_found(views: ViewStore) -> None:
    long = "job-" + "ä" * 400
    put(views, a_summary(long + "1", 1), a_summary(long + "2", 2))

    assert ids(views, long) == [long + "2", long + "1"]
    assert ids(views, long + "1") == [long + "1"]
    with views.read() as reader:
        assert (reader.summary(long + "1") or {})["created_position"] == 1


@pytest.mark.parametrize("name", ["~", "\xff\xff", "\U0010ffff", "a\udcffb"])
def test_ids_of_unusual_letters_are_found(views: ViewStore, name: str) -> None:
    put(views, a_summary(name, 1), a_summary(name + "x", 2), a_summary("other", 3))

    assert ids(views, name) == [name + "x", name]


def test_the_digest_in_a_key_is_no_part_of_the_id(views: ViewStore) -> None:
    """A short id is followed by its digest, whose bytes may look like letters."""
    put(views, *(a_summary(f"j{number}", number) for number in range(1, 500)))

    with views.read() as reader:
        for letter in map(chr, range(33, 127)):
            found = [name for _, name in reader.ids(f"j7{letter}", 1000)]

            assert all(name.startswith(f"j7{letter}") for name in found)


def test_a_beginning_that_fits_everything_reads_a_bounded_number(
    views: ViewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.infra import view_rows

    put(views, *(a_summary(f"job-{number}", number) for number in range(1, 9)))
    monkeypatch.setattr(view_rows, "_MOST_NAMES", 3)

    assert ids(views, "job-") == ["job-3", "job-2", "job-1"]


def test_a_row_of_another_length_is_said_to_be_damaged(views: ViewStore) -> None:
    from tachograph.infra.view_rows import CARDS

    put(views, a_summary("a", 1))
    short = Codec().pack(["a"])
    views.update(lambda rows: rows._tables.put(CARDS, bytes(7) + b"\1", short))  # type: ignore[attr-defined]

    with views.read() as reader, pytest.raises(StoreCorruptError, match="is odd"):
        reader.card_at(1)


def test_the_latest_time_is_kept(views: ViewStore) -> None:
    with views.read() as reader:
        assert reader.latest_us() == 0  # type: ignore[attr-defined]

    views.update(lambda writer: writer.put_latest_us(99))

    assert views.update(lambda writer: writer.latest_us()) == 99


# Timelines.


def fill_timelines(writer: ViewWriter) -> None:
    for created, run_id in ((1, "a"), (2, "b"), (255, "c"), (256, "d")):
        entries = {version: {"version": version, "run": run_id} for version in (1, 2, 300)}
        writer.put_timeline(run_id, {"created_position": created}, entries)


@pytest.mark.parametrize("run_id", ["a", "b", "c", "d"])
def test_the_entries_of_a_run_come_in_order(views: ViewStore, run_id: str) -> None:
    views.update(fill_timelines)
    expected = [{"version": version, "run": run_id} for version in (1, 2, 300)]

    with views.read() as reader:
        assert reader.timeline(run_id) == expected
        assert reader.timeline(run_id, newest=2) == expected[1:]
        assert reader.timeline(run_id, newest=0) == []


def test_a_run_without_events_has_no_timeline(views: ViewStore) -> None:
    with views.read() as reader:
        assert reader.timeline("nobody") == []


def test_the_state_of_a_timeline_comes_back(views: ViewStore) -> None:
    views.update(fill_timelines)

    assert views.update(lambda writer: writer.timeline_state("b")) == {"created_position": 2}
    assert views.update(lambda writer: writer.timeline_state("nobody")) is None


def test_an_entry_comes_back_by_its_version(views: ViewStore) -> None:
    views.update(fill_timelines)

    assert views.update(lambda writer: writer.timeline_entry(2, 300)) == {
        "version": 300,
        "run": "b",
    }
    with pytest.raises(StoreCorruptError, match="entries is missing"):
        views.update(lambda writer: writer.timeline_entry(2, 301))


def test_the_entries_of_one_run_can_be_dropped(views: ViewStore) -> None:
    views.update(fill_timelines)
    views.update(lambda writer: writer.drop_entries(255))

    with views.read() as reader:
        assert [len(reader.timeline(run_id)) for run_id in "abcd"] == [3, 3, 0, 3]
    views.update(lambda writer: writer.drop_entries(999))


# Rebuilding and discarding.


def test_a_rebuild_replaces_everything_at_its_end(views: ViewStore) -> None:
    put(views, a_summary("old", 1))
    with views.rebuilding() as fresh:
        fresh.update(lambda writer: writer.put_summary(a_summary("new", 1)))

        assert listed(views) == ["old"]

    assert listed(views) == ["new"]


def test_a_rebuild_that_raises_changes_nothing(views: ViewStore) -> None:
    put(views, a_summary("old", 1))
    with pytest.raises(KeyError), views.rebuilding() as fresh:
        fresh.update(lambda writer: writer.put_summary(a_summary("new", 1)))
        raise KeyError

    assert listed(views) == ["old"]


def test_a_rebuild_starts_empty(views: ViewStore) -> None:
    put(views, a_summary("old", 1))
    with views.rebuilding() as fresh, fresh.read() as reader:
        assert list(reader.cards()) == []
        assert reader.mark("timeline") == Mark(0, GENESIS_DIGEST)


def test_scratch_views_are_thrown_away(views: ViewStore) -> None:
    put(views, a_summary("old", 1))
    with views.scratch() as fresh:
        fresh.update(lambda writer: writer.put_summary(a_summary("new", 1)))

    assert listed(views) == ["old"]


def test_discarded_views_are_empty(views: ViewStore) -> None:
    put(views, a_summary("old", 1))
    views.discard()

    assert listed(views) == []


def test_views_can_be_discarded_beside_scratch_views(views: ViewStore) -> None:
    put(views, a_summary("old", 1))
    with views.scratch() as fresh:
        fresh.update(lambda writer: writer.put_summary(a_summary("new", 1)))
        views.discard()

        assert listed(views) == []
        with fresh.read() as reader:
            assert [card["id"] for card in reader.cards()] == ["new"]


def test_all_rows_come_in_order(views: ViewStore) -> None:
    put(views, a_summary("a", 1), a_summary("b", 2))
    views.update(fill_timelines)
    with views.read() as reader:
        rows = [row[:2] for row in reader.rows()]

    assert rows == sorted(rows)
    assert {table for table, _ in rows} == {
        "cards",
        "entries",
        "meta",
        "names",
        "open",
        "summaries",
        "timelines",
        "touched",
    }


def test_both_places_hold_the_same_bytes(tmp_path: Path) -> None:
    """So what one checks, the other is checked by."""
    content = []
    for views in (MemoryViews(Codec()), LMDBViews(str(tmp_path / "views"), Codec())):
        put(views, a_summary("a", 1), a_summary("b", 2))
        views.update(fill_timelines)
        with views.read() as reader:
            content.append(list(reader.rows()))
        views.close()

    assert content[0] == content[1]


def test_rows_are_packed_alike_with_and_without_msgpack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short command does not import msgpack, a long one does."""
    import sys

    import msgpack  # noqa: F401

    content = []
    for present in (True, False):
        if not present:
            monkeypatch.delitem(sys.modules, "msgpack")
        views = MemoryViews(Codec())
        put(views, a_summary("a", 1, title="ä" * 40, inputs={"x": [1, -7, 1.5, None, 2**40]}))
        with views.read() as reader:
            content.append(list(reader.rows()))

    assert content[0] == content[1]


@pytest.mark.parametrize("odd", [2**70, "a\udcffb"])
def test_rows_that_msgpack_refuses_are_packed_all_the_same(views: ViewStore, odd: Any) -> None:
    put(views, a_summary("a", 1, title=odd), a_summary("b", 2))

    with views.read() as reader:
        assert (reader.summary("a") or {})["title"] == odd
        assert reader.summary("b") == a_summary("b", 2)


# The watch list.

OWNER = {"kind": "process", "host": "ada", "boot_id": "b", "pid": 17, "started": 99}


def at_work(run_id: str, created: int, **more: Any) -> dict[str, Any]:
    """Make the summary of a run whose attempt is open."""
    named = {"attempt_open": True, "epoch": 1, "owner": OWNER, **more}
    return a_summary(run_id, created, **named)


def watched(views: ViewStore) -> list[list[int]]:
    """Return the runs that count on each process."""
    with views.read() as reader:
        processes = list(reader.watched_processes())
        found = [list(reader.watched_by(process)) for process, _ in processes]
        assert [one for _, one in processes] == [runs[0] for runs in found]
        assert reader.watched_count() == sum(map(len, found))
        return sorted(found)


def due(views: ViewStore, now_us: int) -> list[int]:
    with views.read() as reader:
        return list(reader.due(now_us))


def needing(views: ViewStore) -> list[int]:
    with views.read() as reader:
        return list(reader.needing())


def watch_rows(views: ViewStore) -> list[tuple[str, bytes, bytes]]:
    with views.read() as reader:
        return [row for row in reader.rows() if row[0] in ("due", "processes", "needing")]


def test_nobody_is_watched_at_first(views: ViewStore) -> None:
    assert (watched(views), due(views, 2**62), needing(views)) == ([], [], [])


def test_runs_are_found_by_the_process_they_count_on(views: ViewStore) -> None:
    put(
        views,
        at_work("a", 1),
        at_work("b", 2, owner={**OWNER, "pid": 18}),
        at_work("c", 3),
        at_work("d", 4, worker={**OWNER, "pid": 18}),
        a_summary("e", 5),
    )

    assert watched(views) == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "unowned"},
        {"host": "bob"},
        {"boot_id": "c"},
        {"pid": 18},
        {"started": 100},
        {"pid_namespace": "ns"},
    ],
)
def test_two_processes_are_never_taken_for_one(views: ViewStore, other: dict[str, Any]) -> None:
    put(views, at_work("a", 1), at_work("b", 2, owner={**OWNER, **other}))

    assert watched(views) == [[1], [2]]


def test_many_processes_are_found_one_by_one(views: ViewStore) -> None:
    put(views, *(at_work(f"j{n}", n, owner={**OWNER, "pid": n % 50}) for n in range(1, 201)))

    assert sorted(map(len, watched(views))) == [4] * 50
    assert sorted(run for runs in watched(views) for run in runs) == list(range(1, 201))


def test_a_process_is_found_whatever_bytes_stand_for_it(
    views: ViewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.infra import view_rows

    monkeypatch.setattr(view_rows, "_process_key", lambda process: bytes(process["key"]))
    keys = [bytes(16), b"\xfe" * 16, b"\xff" * 15 + b"\xfe", b"\xff" * 16]
    put(views, *(at_work(f"j{n}", n, owner={"key": list(key)}) for n, key in enumerate(keys, 1)))

    assert watched(views) == [[1], [2], [3], [4]]


def declares(**named: Any) -> dict[str, Any]:
    return {"recovery": {"auto_resume": True, **named}}


def test_runs_are_due_in_the_order_of_their_times(views: ViewStore) -> None:
    put(
        views,
        at_work("a", 1, worked_us=5, **declares(stale_after_seconds=3)),
        at_work("b", 2, worked_us=5, **declares(stale_after_seconds=1)),
        at_work("c", 3, worked_us=5, **declares(stale_after_seconds=2)),
        at_work("d", 4, **declares()),
        a_summary("e", 5, epoch=1, **declares()),
    )

    assert due(views, 0) == [5]
    assert due(views, 1_000_004) == [5]
    assert due(views, 1_000_005) == [5, 2]
    assert due(views, 9_000_000) == [5, 2, 3, 1]


def test_time_before_1970_is_the_beginning(views: ViewStore) -> None:
    put(views, at_work("a", 1, worked_us=-(10**12), **declares(stale_after_seconds=1)))

    assert due(views, -5) == [1]


@pytest.mark.parametrize("seconds", [1e300, 10**20])
def test_a_run_that_may_be_silent_for_ever_stops_no_view(views: ViewStore, seconds: float) -> None:
    put(views, at_work("a", 1, worked_us=5, **declares(stale_after_seconds=seconds)))

    assert due(views, 2**62) == [1]
    assert due(views, 10**17) == []


def test_who_needs_a_person_is_listed_earliest_created_first(views: ViewStore) -> None:
    put(
        views,
        a_summary("c", 300, attention={"no_adapter": None}),
        a_summary("a", 2, attention={"card_edited": "goal"}),
        a_summary("b", 3),
    )

    assert needing(views) == [2, 300]


def test_the_watch_list_follows_every_change_and_forgets_who_ended(views: ViewStore) -> None:
    steps: list[tuple[dict[str, Any], list[list[int]], list[int], list[int]]] = [
        ({"epoch": 0, "depends_on": ["x"]}, [], [1], []),
        ({"attempt_open": True, "owner": OWNER}, [[1]], [], []),
        ({"worker": {**OWNER, "pid": 18}}, [[1]], [], []),
        ({"noted": "gone"}, [], [1], []),
        ({"attention": {"no_adapter": None}}, [], [], [1]),
        ({"attention": {}}, [], [1], []),
        ({"noted": None, "epoch": 2, "worker": None}, [[1]], [], []),
        ({"attention": {"card_edited": None}}, [[1]], [], [1]),
        ({"attempt_open": False, "outcome": "failed"}, [], [1], [1]),
        ({"outcome": "success", "attention": {}}, [], [], []),
    ]
    summary = a_summary("a", 1, epoch=1, **declares())
    for changes, processes, at_once, persons in steps:
        summary.update(changes, updated_position=summary["updated_position"] + 1)
        put(views, summary)

        assert (watched(views), due(views, 0), needing(views)) == (processes, at_once, persons)

    assert watch_rows(views) == []


def test_several_changes_in_one_portion_leave_what_the_last_one_says(views: ViewStore) -> None:
    first = at_work("a", 1, worked_us=5, attention={"x": None}, **declares(stale_after_seconds=1))

    def work(writer: ViewWriter) -> None:
        writer.put_summary(first)
        writer.put_summary({**first, "worked_us": 9, "owner": {**OWNER, "pid": 18}})
        writer.put_summary({**first, "worked_us": 10, "attention": {}})

    views.update(work)

    assert [table for table, _, _ in watch_rows(views)] == ["due", "processes"]
    assert due(views, 1_000_009) == []
    assert due(views, 1_000_010) == [1]


def test_events_bring_the_watch_list_where_a_rebuild_brings_it(views: ViewStore) -> None:
    """G8: whatever became of the runs, and however often one stopped to look."""
    from viewed import Viewed

    from tachograph import projecting

    bench = Viewed(views)
    for step in watched_life(bench):
        step()
        bench.catch_up()
        before = bench.content()
        views.discard()
        bench.catch_up()

        assert bench.content() == before
    assert projecting.check(bench.log, bench.codec, views) == []
    assert {table for table, _, _ in watch_rows(views)} == {"due", "processes", "needing"}
    for run_id in ("job-one", "job-two", "job-three"):
        run = bench.repository.get(run_id)
        assert run is not None
        if not run.finished:
            run.cancel(bench.actor.cause(), "enough")
            bench.repository.save(run)
    bench.catch_up()

    assert watch_rows(views) == []


def watched_life(bench: Any) -> Iterator[Any]:
    """Yield what happens to three runs: a resume, a call for a person, and an end."""
    from tachograph.domain.recovery import Recovery

    auto = Recovery(adapter="a", auto_resume=True, stale_after_seconds=60)
    sessions: dict[str, Any] = {}

    def begin(run_id: str, **more: Any) -> None:
        sessions[run_id] = bench.start("parse", {"n": run_id}, run_id=run_id, **more)

    def execute(run_id: str, command: Any) -> Any:
        return lambda: sessions[run_id].execute(command)

    def watch(run_id: str, command: Any) -> Any:
        def work() -> None:
            run = bench.repository.get(run_id)
            command(run, bench.actor.cause())
            bench.repository.save(run)

        return work

    yield lambda: begin("job-one", recovery=auto)
    yield lambda: begin("job-two", recovery=auto)
    yield lambda: begin("job-three")
    yield execute("job-one", lambda run, why: run.save_checkpoint(why, state=1))
    yield watch("job-one", lambda run, why: run.detect_stall(why, "gone", {}))
    yield lambda: begin("job-one")
    yield execute("job-one", lambda run, why: run.dispatch_resume(why, "a", {"unattended": True}))
    yield execute("job-one", lambda run, why: run.start_worker(why, {**OWNER, "pid": 5}))
    yield execute("job-one", lambda run, why: run.return_resume(why, {}))
    yield watch("job-two", lambda run, why: run.detect_stall(why, "silent", {}))
    yield watch("job-two", lambda run, why: run.raise_attention(why, "no_adapter"))
    yield execute("job-two", lambda run, why: run.complete_step(why, "load", 1))
    yield watch("job-two", lambda run, why: run.raise_attention(why, "card_edited"))
    yield execute("job-two", lambda run, why: run.finish(why, "failed"))
    yield execute(
        "job-three",
        lambda run, why: run.request_approval(why, "deploy", subject=1, subject_digest="d"),
    )
