"""The view of queues is the same wherever it is kept, and whoever makes it anew (G8)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmdb
import pytest
from job_bench import Jobs, made_anew, us

import tachograph
from tachograph import portions, projecting
from tachograph.domain.queue_settings import QueuePlan
from tachograph.domain.queue_thresholds import HealthThresholds
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.queues.looking import health

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.projections.views import ViewStore


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[ViewStore]:
    views = LMDBViews(str(tmp_path / "views"), Jobs().codec)
    yield views
    views.close()


def everything(jobs: Jobs) -> str:
    """Let jobs come into every state, and return one that was pruned and restored."""
    jobs.add(0, available_us=us(500))
    jobs.lease(jobs.add(1, "summary"), 2)
    failed = jobs.add(3)
    jobs.lease(failed, 4)
    jobs.fail(failed, 5, retry_us=us(60))
    jobs.done(70)
    jobs.do(jobs.add(71, "summary"), "cancel", 72, "not wanted")
    jobs.prune(jobs.done(73), 74)
    back = jobs.dead(75)
    jobs.prune(back, 76)
    jobs.do(back, "restore", 77, "by mistake")
    return back


def test_both_places_hold_the_same_rows(on_disk: ViewStore) -> None:
    jobs = Jobs(views=on_disk)
    everything(jobs)
    jobs.catch_up()

    assert jobs.content() == made_anew(jobs)


@pytest.mark.parametrize(("chunk", "chunks"), [(1, 1), (2, 3), (7, 2), (1000, 1)])
def test_a_rebuild_in_any_portions_gives_the_same_bytes(
    on_disk: ViewStore, chunk: int, chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(views=on_disk)
    everything(jobs)
    jobs.catch_up()
    before = jobs.content()
    monkeypatch.setattr(portions, "CHUNK", chunk)
    monkeypatch.setattr(portions, "CHUNKS", chunks)
    projecting.rebuild(jobs.log, jobs.codec, on_disk)

    assert jobs.content() == before
    assert projecting.check(jobs.log, jobs.codec, on_disk) == []


def test_a_restored_job_is_what_it_was_before_it_was_pruned(on_disk: ViewStore) -> None:
    jobs = Jobs(views=on_disk)
    job_id = everything(jobs)
    kept = jobs.look(lambda view: view.job(job_id))

    assert (kept.status, kept.ended_us, kept.error) == ("dead", us(75), "boom")
    assert jobs.ids("memory", "dead") == [job_id]


def reads(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many rows are looked at to say how the queues are."""
    jobs.catch_up()
    seen = 0
    with jobs.views.read() as view:
        kind = type(view._tables)  # type: ignore[attr-defined]
        get, scan = kind.get, kind.scan

        def counted_get(self: Any, *args: Any) -> Any:
            nonlocal seen
            seen += 1
            return get(self, *args)

        def counted_scan(self: Any, *args: Any, **options: Any) -> Iterator[Any]:
            nonlocal seen
            for found in scan(self, *args, **options):
                seen += 1
                yield found

        with monkeypatch.context() as patch:
            patch.setattr(kind, "get", counted_get)
            patch.setattr(kind, "scan", counted_scan)
            document = health(view.queues, QueuePlan(), HealthThresholds(), us(90))
    assert document["queues"]["memory"]["dead"]
    return seen


def test_more_jobs_are_no_more_to_read(on_disk: ViewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The original counted whole tables to answer."""
    jobs = Jobs(views=on_disk)
    everything(jobs)
    few = reads(jobs, monkeypatch)
    for _ in range(40):
        everything(jobs)

    assert reads(jobs, monkeypatch) <= few + 5


def test_a_list_of_runs_loads_nothing_of_queues(tmp_path: Path) -> None:
    """Short commands pay for what they need; a store without jobs needs no jobs."""
    paths = [str(Path(found).parent.parent) for found in (tachograph.__file__, lmdb.__file__)]
    script = f"""import sys; sys.path += {paths!r}
from tachograph.bootstrap import open_store
from tachograph.looking import ask
from tachograph.starting import Start
services = open_store("store", create=True)
services.starter.start(Start("demo", run_id="job-1"), services.owner())
assert ask(services, lambda view: [card["id"] for card in view.cards()]) == ["job-1"]
print(*[name for name in sys.modules if name.startswith("tachograph.") and "queue" in name])
services.close()"""
    command = [sys.executable, "-I", "-S", "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)

    loaded = [name for name in done.stdout.split() if not name.endswith("_errors")]
    assert loaded == []
