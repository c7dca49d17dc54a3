"""A run is replayed from its events alone, and what is stored about it is compared with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores import Seen
from workbench import Workbench

from tachograph import replaying
from tachograph.domain.changes import Change
from tachograph.domain.errors import ReplayDivergedError
from tachograph.domain.records import SnapshotRecord
from tachograph.infra.memory_views import MemoryViews
from tachograph.projecting import catch_up
from tachograph.replaying import mend_snapshots, states, strict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tachograph.infra.view_rows import Rows


@pytest.fixture
def bench() -> Workbench:
    """A store in which a run has finished two batches; every fourth event has a snapshot."""
    bench = Workbench(snapshot_every=4)
    session = bench.start(run_id="job")
    session.start_phase("parse")
    session.plan_batches("parse", 2, 1, None)
    session.complete_batch("parse", 0, inputs=1, parsed=1)
    session.complete_batch("parse", 1, inputs=1, parsed=1)
    session.end_phase("parse")
    session.finish("success")
    return bench


@pytest.fixture
def views(bench: Workbench) -> MemoryViews:
    """The views of that store, caught up."""
    views = MemoryViews(bench.codec)
    catch_up(bench.log, bench.codec, views)
    return views


def change_summary(views: MemoryViews, change: Callable[[dict[str, Any]], None]) -> None:
    """Damage the stored summary of the run."""

    def work(rows: Rows) -> None:
        summary = rows.summary("job") or {}
        change(summary)
        rows.put_summary(summary)

    views.update(work)


def replay(bench: Workbench, views: MemoryViews) -> replaying.Agreement:
    with views.read() as reader:
        return strict(bench.repository, "job", reader)


def snapshots(bench: Workbench) -> Iterator[SnapshotRecord]:
    """Yield the snapshots of the run, latest first."""
    up_to: int | None = None
    while snapshot := bench.log.snapshot("job", up_to=up_to):
        yield snapshot
        up_to = snapshot.version - 1


def damage_snapshot(bench: Workbench, version: int, name: str, value: Any) -> None:
    """Write a wrong value into the snapshot at a version."""
    snapshot = bench.log.snapshot("job", up_to=version)
    assert snapshot is not None
    state = bench.codec.unpack(snapshot.body)
    state[name] = value
    bench.log.append([], snapshot=SnapshotRecord("job", version, bench.codec.pack(state)))


# States


def test_each_event_is_shown_with_what_it_changed(bench: Workbench) -> None:
    moments = [(m.version, m.topic, m.changes) for m in states(bench.repository, "job")]

    assert [(version, topic) for version, topic, _ in moments][2:5] == [
        (3, "run.phase-started"),
        (4, "run.batches-planned"),
        (5, "run.batch-completed"),
    ]
    assert Change("phases.parse.done", "changed", [[0, 0]], [[0, 1]]) in moments[5][2]
    assert Change("phases.parse.status", "changed", "running", "completed") in moments[6][2]


def test_a_change_names_its_event_and_who_caused_it(bench: Workbench) -> None:
    moment = list(states(bench.repository, "job"))[2]

    assert (moment.position, moment.time_us, moment.by) == (3, 2, ["tester", "here", 7, 1])


def test_the_state_at_a_version_is_what_the_run_was_then(bench: Workbench) -> None:
    last = list(states(bench.repository, "job", up_to_version=5))[-1]
    loaded = bench.repository.get("job", up_to=5)

    assert loaded is not None
    assert loaded.to_snapshot() == last.run.to_snapshot()


def test_the_state_at_a_time_ends_before_the_first_later_event(bench: Workbench) -> None:
    times = [moment.time_us for moment in states(bench.repository, "job")]

    assert [m.time_us for m in states(bench.repository, "job", at_us=times[3])] == times[:4]
    assert list(states(bench.repository, "job", at_us=0)) == []


def test_applying_all_changes_leads_to_the_last_state(bench: Workbench) -> None:
    """So no change is left out, whatever the events were."""
    flat: dict[str, Any] = {}
    last = None
    for last in states(bench.repository, "job"):
        flat.update({change.path: change.new for change in last.changes})
    assert last is not None
    state = last.run.to_snapshot()

    assert flat["outcome"] == state["outcome"] == "success"
    assert flat["phases.parse.done"] == state["phases"][0]["done"] == [[0, 1]]


def test_a_run_without_events_has_no_states(bench: Workbench) -> None:
    assert list(states(bench.repository, "nobody")) == []


# Strict


def test_a_whole_run_agrees_with_everything_stored(bench: Workbench, views: MemoryViews) -> None:
    agreement = replay(bench, views)

    assert (agreement.events, agreement.snapshots, agreement.views) == (8, 2, 2)


@pytest.mark.parametrize(
    ("change", "field", "version"),
    [
        # The summary is as it was before event 6: that one is the first it does not know.
        (lambda run: run["phases"]["parse"].update(batches=1, parsed=1), "batches", 6),
        # It never was so: the event that said otherwise last.
        (lambda run: run["phases"]["parse"].update(batches=99), "batches", 6),
        (lambda run: run.update(outcome=None), "outcome", 8),
        (lambda run: run.update(command="other"), "command", 1),
        (lambda run: run["phases"].clear(), "phases.parse", 3),
        (lambda run: run["attention"].update(surprise="x"), "attention.surprise", 1),
    ],
)
def test_the_first_event_that_a_view_contradicts_is_named(
    bench: Workbench,
    views: MemoryViews,
    change: Callable[[dict[str, Any]], None],
    field: str,
    version: int,
) -> None:
    change_summary(views, change)
    with pytest.raises(ReplayDivergedError) as raised:
        replay(bench, views)

    run_id, found, what, path, *_ = raised.value.args
    assert (run_id, what, found) == ("job", "summary", version)
    assert field in path


def test_a_view_that_lacks_the_run_diverges(bench: Workbench) -> None:
    with pytest.raises(ReplayDivergedError, match="summary"):
        replay(bench, MemoryViews(bench.codec))


def test_a_snapshot_that_differs_is_named_with_its_version(
    bench: Workbench, views: MemoryViews
) -> None:
    damage_snapshot(bench, 4, "epoch", 7)
    with pytest.raises(ReplayDivergedError) as raised:
        replay(bench, views)

    assert raised.value.args == ("job", 4, "snapshot", "epoch", 7, 1)


@pytest.mark.parametrize("body", [b"\xc1", b"\x80", b"\x01"])
def test_a_snapshot_that_no_load_would_use_is_left_out(
    bench: Workbench, views: MemoryViews, body: bytes
) -> None:
    bench.log.append([], snapshot=SnapshotRecord("job", 4, body))

    assert replay(bench, views).snapshots == 1


# Mending


def test_only_snapshots_that_differ_are_written_anew(bench: Workbench, views: MemoryViews) -> None:
    damage_snapshot(bench, 4, "epoch", 7)
    first = mend_snapshots(bench.repository, list(snapshots(bench)))
    again = mend_snapshots(bench.repository, list(snapshots(bench)))

    assert (first, again) == (1, 0)
    assert replay(bench, views).snapshots == 2


def test_an_unreadable_snapshot_is_written_anew(bench: Workbench, views: MemoryViews) -> None:
    bench.log.append([], snapshot=SnapshotRecord("job", 8, b"\xc1"))
    seen = Seen()

    assert mend_snapshots(bench.repository, list(snapshots(bench)), seen) == 1
    assert replay(bench, views).snapshots == 2
    assert seen == [(1, 1)]


def test_snapshots_of_other_applications_are_left_alone(bench: Workbench) -> None:
    from tachograph.domain.records import NewRecord

    bench.log.append([NewRecord("other", 1, "other.made", 0, b"\x80")])
    odd = SnapshotRecord("other", 1, b"\xc1")

    assert mend_snapshots(bench.repository, [odd]) == 0
