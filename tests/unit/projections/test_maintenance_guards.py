"""Guards come from the log alone: granted by the end of a step, gone with its body (G8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from viewed import Viewed

from tachograph import projecting
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.infra.memory_views import MemoryViews
from tachograph.projections.maintenance_guards import NEVER, Guard, Standing, standing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.session import Session

STEPS = ["prune", "reflect", "backfill"]


@pytest.fixture(params=["memory", "lmdb"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Viewed]:
    bench = Viewed()
    if request.param == "lmdb":
        bench.views = LMDBViews(str(tmp_path / "views"), bench.codec)
    yield bench
    bench.views.close()  # type: ignore[attr-defined]


def orchestrate(bench: Viewed, run_id: str) -> Session:
    session = bench.start("maintenance-nightly", {"n": run_id}, run_id=run_id)
    session.execute(lambda run, why: run.plan_maintenance(why, "nightly", STEPS))
    return session


def end(session: Session, step: str, status: str = "ok", **more: Any) -> None:
    given = {"guard": status == "ok", **more}
    session.execute(lambda run, why: run.start_maintenance_step(why, step))
    session.execute(lambda run, why: run.end_maintenance_step(why, step, status, "done", **given))


def known(bench: Viewed, step: str, *, once: bool = False) -> Standing:
    return projecting.ask(
        bench.log, bench.codec, bench.views, lambda view: standing(view, step, once=once)
    )


def test_a_step_that_was_never_done_has_no_guard(bench: Viewed) -> None:
    assert known(bench, "prune") == NEVER


def test_a_step_that_did_its_work_has_one(bench: Viewed) -> None:
    session = orchestrate(bench, "orch-1")
    end(session, "prune")
    found = known(bench, "prune")

    assert (found.done_us, found.done_run, found.once_done) == (bench.now, "orch-1", False)
    assert bench.log.read(after=found.position - 1, limit=1)[0].topic == (
        "run.maintenance-step-ended"
    )


@pytest.mark.parametrize("status", ["failed", "deferred", "skipped_guard", "rate_limited"])
def test_what_a_step_did_not_do_leaves_the_guard_as_it_was(bench: Viewed, status: str) -> None:
    session = orchestrate(bench, "orch-1")
    end(session, "prune")
    before = known(bench, "prune")
    end(session, "prune", status)
    end(session, "reflect", status)

    assert known(bench, "prune") == before
    assert known(bench, "reflect") == NEVER


def test_the_last_time_counts(bench: Viewed) -> None:
    end(orchestrate(bench, "orch-1"), "prune")
    end(orchestrate(bench, "orch-2"), "prune")

    assert known(bench, "prune").done_run == "orch-2"


def test_a_one_time_step_stays_done(bench: Viewed) -> None:
    first, second = orchestrate(bench, "orch-1"), orchestrate(bench, "orch-2")
    end(first, "backfill", once=True)
    end(second, "backfill")

    assert known(bench, "backfill", once=True).once_done
    assert known(bench, "backfill", once=True).done_run == "orch-2"
    assert not known(bench, "prune", once=True).once_done


def test_with_its_events_a_run_loses_its_guards_and_an_earlier_one_counts_again(
    bench: Viewed,
) -> None:
    """What nothing in the log grants any more must not be in the view either (G8)."""
    from tachograph.domain.bodies import ERASED
    from tachograph.projections.maintenance_guards import MaintenanceGuards

    end(orchestrate(bench, "orch-1"), "prune")
    end(orchestrate(bench, "orch-2"), "prune")
    bench.catch_up()

    def forget(writer: Any) -> None:
        guards = MaintenanceGuards(writer)
        guards.fold("run.bodies-erased", {"up_to": 99, "time_us": 1}, 99, "orch-2")
        gone = {ERASED: True, "originator_version": 5, "time_us": 1}
        guards.fold("run.maintenance-step-ended", gone, 100, "orch-3")
        guards.fold("run.bodies-erased", gone, 101, "orch-1")
        guards.flush()

    bench.views.update(forget)

    with bench.views.read() as view:
        assert [guard.run for guard in view.all_guards()] == ["orch-1"]
        assert standing(view, "prune").done_run == "orch-1"


def test_of_a_run_whose_beginning_is_gone_the_rest_counts(bench: Viewed) -> None:
    from tachograph.projections.maintenance_guards import MaintenanceGuards

    def put(writer: Any) -> None:
        for position, version in ((10, 3), (20, 7)):
            writer.put_guard(
                Guard("prune", position, "orch-1", version, position, cadence=True, once=False)
            )
        MaintenanceGuards(writer).fold("run.bodies-erased", {"up_to": 3}, 30, "orch-1")

    bench.views.update(put)

    with bench.views.read() as view:
        assert [guard.position for guard in view.all_guards()] == [20]


def test_events_bring_the_guards_where_a_rebuild_brings_them(bench: Viewed) -> None:
    """G8: byte for byte, however often one stopped to look."""
    for number in range(3):
        session = orchestrate(bench, f"orch-{number}")
        for step, status in (("prune", "ok"), ("reflect", "failed"), ("backfill", "ok")):
            end(session, step, status, once=step == "backfill")
            bench.catch_up()
    before = bench.content()
    bench.views.discard()
    bench.catch_up()

    assert bench.content() == before
    assert projecting.check(bench.log, bench.codec, bench.views) == []
    assert len([row for row in before if row[0] == "guards"]) == 6
    fresh = MemoryViews(bench.codec)
    projecting.catch_up(bench.log, bench.codec, fresh)
    assert bench.content(fresh) == before
