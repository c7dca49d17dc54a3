"""Catching up, rebuilding, checking views: deterministic, restartable, never past a bad event."""

from __future__ import annotations

import pickle
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from viewed import Viewed, everything

from tachograph import portions, projecting, reading
from tachograph.domain.errors import StoreCorruptError, UnknownEventTypeError
from tachograph.domain.records import NewRecord, Record
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.infra.memory_views import MemoryViews
from tachograph.portions import ProjectionStoppedError
from tachograph.projections.views import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bench() -> Viewed:
    return Viewed()


@pytest.fixture
def on_disk(tmp_path: Path) -> Viewed:
    bench = Viewed()
    bench.views = LMDBViews(str(tmp_path / "views"), bench.codec)
    return bench


@cache
def recorded() -> Viewed:
    """Return a workbench with everything recorded and caught up, for tests that only read it."""
    bench = Viewed()
    everything(bench)
    bench.catch_up()
    return bench


def append(bench: Viewed, topic: str, body: Any, stream: Any = "job-odd", version: int = 1) -> int:
    """Append an event as another program might have written it."""
    packed = body if isinstance(body, bytes) else bench.codec.pack(body)
    return bench.log.append([NewRecord(stream, version, topic, 5, packed)])[0]


def shown(bench: Viewed) -> list[str]:
    with bench.views.read() as reader:
        return [card["id"] for card in reader.cards()]


# Catching up.


def test_the_views_reach_the_head(bench: Viewed) -> None:
    everything(bench)
    head = bench.log.head().position

    assert projecting.lag(bench.log, bench.views) == dict.fromkeys(VERSIONS, head)
    assert bench.catch_up() == head
    assert projecting.lag(bench.log, bench.views) == dict.fromkeys(VERSIONS, 0)
    assert shown(bench) == ["job-last", "job-other", "job-one"]


def test_an_empty_log_is_caught_up(bench: Viewed) -> None:
    assert bench.catch_up() == 0


def test_nothing_is_written_where_nothing_is_new(on_disk: Viewed) -> None:
    on_disk.start()
    on_disk.catch_up()
    on_disk.views.update = None  # type: ignore[assignment, method-assign]

    assert on_disk.catch_up() == 2


def test_what_is_new_is_folded_into_what_is_there(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    bench.catch_up()
    session.start_phase("read")
    bench.catch_up()
    session.end_phase("read")
    bench.catch_up()
    run = bench.ask(reading.summary, "job-1")

    assert (run["version"], run["phases"]["read"]["status"]) == (4, "completed")


@given(chunk=st.integers(1, 50), chunks=st.integers(1, 4))
def test_portions_make_no_difference(chunk: int, chunks: int) -> None:
    """G8: the content depends on the log alone."""
    bench = recorded()
    other = MemoryViews(Codec())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portions, "CHUNK", chunk)
        patch.setattr(portions, "CHUNKS", chunks)
        projecting.catch_up(bench.log, bench.codec, other)

    assert bench.content(other) == bench.content()


@given(stops=st.lists(st.integers(1, 40), max_size=5))
def test_when_it_is_caught_up_makes_no_difference(stops: list[int]) -> None:
    bench = recorded()
    other = MemoryViews(Codec())
    for stop in sorted(stops):
        portions.fold(bench.log, bench.codec, other, up_to=stop)
    projecting.catch_up(bench.log, bench.codec, other)

    assert bench.content(other) == bench.content()


def test_deleted_views_come_back_byte_for_byte(on_disk: Viewed, tmp_path: Path) -> None:
    """G8."""
    import shutil

    everything(on_disk)
    on_disk.catch_up()
    before = on_disk.content()
    shutil.rmtree(tmp_path / "views")
    on_disk.catch_up()

    assert on_disk.content() == before


def test_progress_is_shown(bench: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "CHUNK", 10)
    monkeypatch.setattr(portions, "CHUNKS", 2)
    everything(bench)
    seen: list[tuple[int, int | None]] = []
    projecting.catch_up(
        bench.log, bench.codec, bench.views, lambda done, total: seen.append((done, total))
    )

    head = bench.log.head().position

    assert seen == [(20, head), (head, head)]


def test_events_of_other_applications_are_passed_over(bench: Viewed) -> None:
    append(bench, "dogs.registered", b"\xc1 not even packed", uuid4())
    append(bench, "running-late", {}, "train")
    bench.start(run_id="job-1")

    assert bench.catch_up() == 4
    assert shown(bench) == ["job-1"]


def test_an_old_event_is_brought_up_to_date(bench: Viewed) -> None:
    created = {
        "time_us": 1,
        "by": ["a", "h", 1, 0],
        "command": "c",
        "fingerprint": "f",
        "inputs": None,
        "inputs_digest": "",
        "title": None,
        "parent": None,
        "model_policy": None,
    }
    started = {"time_us": 2, "by": ["a", "h", 1, 0], "epoch": 1, "host": "ada", "pid": 9}
    append(bench, "run.created", created)
    append(bench, "run.attempt-started", started, version=2)
    run = bench.ask(reading.summary, "job-odd")

    assert run["owner"] == {"kind": "process", "host": "ada", "pid": 9}


def test_a_value_of_a_type_that_is_not_registered_stops_nothing() -> None:
    """The reader does not import the job."""
    from decimal import Decimal

    class Money(Decimal):
        pass

    bench = Viewed()
    bench.codec.register(Money, "money", str, Money)
    session = bench.start(run_id="job-1")
    session.complete_step("pay", Money("1.50"))
    bench.codec = Codec(keep_custom=True)

    assert bench.catch_up() == 3


def test_an_erased_event_stops_nothing(bench: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    session = bench.start(run_id="job-1")
    session.complete_step("load", "secret")
    real = bench.log.read

    def read(**options: Any) -> list[Record]:
        records = real(**options)
        for record in records:
            if record.topic == "run.step-completed":
                record.body, record.absent = b"", True
        return records

    monkeypatch.setattr(bench.log, "read", read)
    run = bench.ask(reading.summary, "job-1")

    assert (run["version"], run["counters"]) == (3, {"erased": 1})


# An event that cannot be read.


@pytest.mark.parametrize(
    ("topic", "body", "reason"),
    [
        ("run.teleported", {}, "Unknown event type 'run.teleported' at position 4"),
        ("run.created", b"\xc1", "not a stored value"),
        ("run.created", {}, "KeyError"),
        ("run.finished", [1, 2], "TypeError"),
    ],
)
def test_a_view_stops_at_an_event_that_cannot_be_read(
    bench: Viewed, topic: str, body: Any, reason: str
) -> None:
    bench.start(run_id="job-1").start_phase("read")
    append(bench, topic, body)
    bench.start(run_id="job-2")
    with pytest.raises(ProjectionStoppedError, match="stopped at position 4") as caught:
        bench.catch_up()

    assert reason in str(caught.value)
    assert f"{topic}, version 1 of 'job-odd'" in str(caught.value)
    assert shown(bench) == ["job-1"]
    lag = projecting.lag(bench.log, bench.views)
    assert lag.pop("maintenance_guards") in (0, 3)  # it looks into few events
    assert lag.pop("queue_health") == 0  # the event is none of its own
    assert set(lag.values()) == {3}


def test_a_run_in_a_stream_that_is_no_text_cannot_be_read(bench: Viewed) -> None:
    append(bench, "run.created", {}, uuid4())

    with pytest.raises(ProjectionStoppedError, match="the stream of a run is a text"):
        bench.catch_up()


def test_it_stops_again_at_the_same_event(bench: Viewed) -> None:
    append(bench, "run.teleported", {})
    for _ in range(2):
        with pytest.raises(ProjectionStoppedError, match="position 1"):
            bench.catch_up()


def test_other_views_go_on(bench: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    from tachograph.projections import timeline

    bench.start(run_id="job-1").complete_step("load", 1)
    session = bench.start(run_id="job-2")
    handlers = timeline._HANDLERS
    broken = {**handlers, "run.step-completed": lambda run, fields: 1 / 0}
    monkeypatch.setattr(timeline, "_HANDLERS", broken)
    with pytest.raises(ProjectionStoppedError, match="view 'timeline' stopped at position 3"):
        bench.catch_up()

    assert projecting.lag(bench.log, bench.views) == {
        "run_summaries": 0,
        "timeline": 3,
        "maintenance_guards": 0,
        "queue_health": 0,
    }

    session.start_phase("read")
    with pytest.raises(ProjectionStoppedError, match="ZeroDivisionError"):
        bench.catch_up()

    assert projecting.lag(bench.log, bench.views) == {
        "run_summaries": 0,
        "timeline": 4,
        "maintenance_guards": 0,
        "queue_health": 0,
    }

    monkeypatch.setattr(timeline, "_HANDLERS", handlers)  # the next release
    bench.catch_up()
    fresh = MemoryViews(Codec())
    projecting.catch_up(bench.log, bench.codec, fresh)

    assert bench.content() == bench.content(fresh)


def test_the_error_survives_pickling(bench: Viewed) -> None:
    append(bench, "run.teleported", {})
    with pytest.raises(ProjectionStoppedError) as caught:
        bench.catch_up()
    copy = pickle.loads(pickle.dumps(caught.value))

    assert str(copy) == str(caught.value)
    assert isinstance(caught.value.__cause__, UnknownEventTypeError)


# Asking.


def test_a_question_is_answered_from_the_latest_events(bench: Viewed) -> None:
    bench.start(run_id="job-1")
    assert bench.listed() == ["job-1"]
    bench.start(run_id="job-2")
    assert bench.listed() == ["job-2", "job-1"]


def test_a_stopped_view_is_reported_and_still_answers(bench: Viewed) -> None:
    bench.start(run_id="job-1")
    append(bench, "run.teleported", {})
    errors: list[ProjectionStoppedError] = []
    answer = projecting.ask(
        bench.log,
        bench.codec,
        bench.views,
        lambda view: [card["id"] for card in view.cards()],
        report=errors.append,
    )

    assert answer == ["job-1"]
    assert ["position 3" in str(error) for error in errors] == [True]
    with pytest.raises(ProjectionStoppedError):
        bench.listed()


def damage_row(views: LMDBViews) -> None:
    from tachograph.infra.view_rows import CARDS

    views.update(lambda rows: rows._tables.put(CARDS, bytes(7) + b"\1", b"\xc1"))


def test_damaged_views_are_made_anew_before_the_answer(on_disk: Viewed) -> None:
    everything(on_disk)
    before = on_disk.listed()
    assert isinstance(on_disk.views, LMDBViews)
    damage_row(on_disk.views)

    assert on_disk.listed() == before


def test_damage_that_folding_meets_is_mended(on_disk: Viewed) -> None:
    from tachograph.infra.view_rows import SUMMARIES

    session = on_disk.start(run_id="job-1")
    on_disk.catch_up()
    on_disk.views.update(
        lambda rows: rows._tables.put(SUMMARIES, bytes(7) + b"\1", b"\xc1")  # type: ignore[attr-defined]
    )
    session.start_phase("read")
    run = on_disk.ask(reading.summary, "job-1")

    assert list(run["phases"]) == ["read"]


def test_damage_that_does_not_go_away_is_an_error(bench: Viewed) -> None:
    def question(_view: object) -> None:
        raise StoreCorruptError("views", "damaged for good")

    with pytest.raises(StoreCorruptError, match="for good"):
        projecting.ask(bench.log, bench.codec, bench.views, question)


def test_a_damaged_log_does_not_cost_the_views(
    bench: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.start(run_id="job-1")
    bench.catch_up()
    bench.start(run_id="job-2")

    def read(**_options: Any) -> list[Record]:
        raise StoreCorruptError("log", "page 7")

    monkeypatch.setattr(bench.log, "read", read)
    with pytest.raises(StoreCorruptError, match="The store at log is damaged: page 7"):
        bench.catch_up()

    assert shown(bench) == ["job-1"]


def test_a_log_without_a_head_does_not_cost_the_views(
    bench: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.start(run_id="job-1")
    bench.catch_up()

    def head() -> None:
        raise StoreCorruptError("log", "no head")

    monkeypatch.setattr(bench.log, "head", head)
    with pytest.raises(StoreCorruptError, match="no head"):
        bench.catch_up()

    assert shown(bench) == ["job-1"]


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
def test_views_of_another_log_are_made_anew(bench: Viewed, kept: int) -> None:
    """A backup was restored, and other events were recorded since."""
    bench.start(run_id="job-1").start_phase("read")
    bench.catch_up()
    restored = Viewed(bench.views)
    if kept:
        restored.start(run_id="job-new")
    for index in range(kept - 1):
        restored.start(run_id=f"job-new{index}")

    assert restored.listed() == [f"job-new{i}" for i in range(kept - 2, -1, -1)] + (
        ["job-new"] if kept else []
    )
    assert projecting.check(restored.log, restored.codec, restored.views) == []


# Rebuilding and checking.


def test_a_rebuild_gives_the_same_content(on_disk: Viewed) -> None:
    """G8."""
    everything(on_disk)
    on_disk.catch_up()
    before = on_disk.content()
    reached = projecting.rebuild(on_disk.log, on_disk.codec, on_disk.views)

    assert reached == on_disk.log.head().position
    assert on_disk.content() == before


def test_a_rebuild_mends_what_a_check_finds(on_disk: Viewed) -> None:
    from tachograph.infra.view_rows import CARDS, NAMES, OPEN

    everything(on_disk)
    on_disk.catch_up()

    def spoil(rows: Any) -> None:
        tables = rows._tables
        tables.put(OPEN, bytes(8), b"")
        tables.put(CARDS, bytes(7) + b"\1", on_disk.codec.pack({"id": "forged"}))
        tables.delete(NAMES, next(tables.scan(NAMES))[0])

    on_disk.views.update(spoil)
    found = projecting.check(on_disk.log, on_disk.codec, on_disk.views)

    assert [str(difference).split()[0] for difference in found] == ["cards", "names", "open"]
    assert [str(difference).split(": ")[1] for difference in found] == [
        "differs",
        "missing",
        "should not be there",
    ]

    projecting.rebuild(on_disk.log, on_disk.codec, on_disk.views)

    assert projecting.check(on_disk.log, on_disk.codec, on_disk.views) == []


def test_a_check_of_good_views_finds_nothing_and_changes_nothing(on_disk: Viewed) -> None:
    everything(on_disk)
    on_disk.catch_up()
    before = on_disk.content()

    assert projecting.check(on_disk.log, on_disk.codec, on_disk.views) == []
    assert on_disk.content() == before


def test_a_check_lists_a_bounded_number_of_differences(
    bench: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projecting, "MOST_DIFFERENCES", 3)
    bench.catch_up()

    def spoil(rows: Any) -> None:
        from tachograph.infra.view_rows import OPEN

        for number in range(10):
            rows._tables.put(OPEN, number.to_bytes(8, "big"), b"")

    bench.views.update(spoil)

    assert len(projecting.check(bench.log, bench.codec, bench.views)) == 3


def test_a_check_compares_at_one_position_while_events_arrive(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")

    def more(done: int, total: int | None) -> None:
        session.complete_step(f"step {session.run.version}", 1)
        bench.catch_up()

    assert projecting.check(bench.log, bench.codec, bench.views, more) == []
    assert len(bench.topics("job-1")) > 2


def test_a_rebuild_that_stops_leaves_the_old_views(
    bench: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.projections import run_summaries

    everything(bench)
    bench.catch_up()
    before = bench.content()
    monkeypatch.setattr(run_summaries, "_HANDLERS", {})
    with pytest.raises(ProjectionStoppedError):
        projecting.rebuild(bench.log, bench.codec, bench.views)

    assert bench.content() == before


def test_logs_on_disk_and_in_memory_give_the_same_views(tmp_path: Path) -> None:
    bench = Viewed()
    everything(bench)
    bench.catch_up()
    environment = open_environment(str(tmp_path / "log"))
    log = LMDBLog(environment)
    for record in bench.log.read():
        new = NewRecord(record.stream, record.version, record.topic, record.time_us, record.body)
        log.append([new])
    views = LMDBViews(str(tmp_path / "views"), Codec())
    projecting.catch_up(log, Codec(), views)
    content = bench.content(views)
    views.close()
    environment.close()

    assert content == bench.content()
