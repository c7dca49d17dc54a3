"""Whatever finished runs leave the log: every read answers as before, and the chain stands."""

from __future__ import annotations

import shutil
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from stores import LARGE, begin, opened, record_run

from tachograph import bodykeeping, explaining, offloading, reading, replaying, storekeeping
from tachograph.looking import ask, judge_of

if TYPE_CHECKING:
    from tachograph.bootstrap import Services

RUNS = 5
shapes = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["text", LARGE, ""]), st.booleans()),
    min_size=RUNS,
    max_size=RUNS,
)


def answers(services: Services) -> dict[str, Any]:
    """Return what everybody reads, as far as archiving must not change it."""
    found: dict[str, Any] = {}
    for number in range(RUNS):
        run_id = f"job-{number}"
        events = [
            each for each in services.log.read_stream(run_id) if each.topic != "run.bodies-archived"
        ]
        moments = [
            [str(change) for change in moment.changes]
            for moment in replaying.states(services.repository, run_id)
            if moment.topic != "run.bodies-archived"
        ]
        found[run_id] = {
            "events": [(each.version, each.body, each.digest) for each in events],
            "moments": moments,
            "verdict": explaining.last_event(services.repository, run_id, explaining.JUDGED),
            "lines": [storekeeping.event_line(services, each) for each in events],
            "summary": ask(
                services,
                lambda view, run_id=run_id: _plain(  # type: ignore[misc]
                    reading.summary(view, judge_of(services), run_id)
                ),
            ),
            "timeline": [
                entry
                for entry in ask(
                    services,
                    lambda view, run_id=run_id: view.timeline(run_id),  # type: ignore[misc]
                )
                if entry["kind"] != "bodies"
            ],
        }
    return found


def _plain(summary: dict[str, Any]) -> dict[str, Any]:
    changed = ("bodies", "updated_us", "updated_position", "latest_us", "version", "seen_us")
    return {name: value for name, value in summary.items() if name not in changed}


@given(shapes, st.sets(st.integers(0, RUNS - 1)), st.sets(st.integers(0, RUNS - 1)))
@settings(max_examples=25, deadline=None)
def test_any_subset_of_runs_may_leave_the_log(
    runs: list[tuple[int, str, bool]], first: set[int], second: set[int]
) -> None:
    folder = mkdtemp()
    try:
        with opened(folder) as services:
            for number, (batches, output, finished) in enumerate(runs):
                if finished:
                    record_run(services, f"job-{number}", batches=batches, output=output)
                else:
                    begin(services, f"job-{number}").start_phase("parse")
            before, head = answers(services), services.log.head()
            for chosen in (first, second):
                wanted = [(f"job-{number}", "?") for number in sorted(chosen)]
                plans = offloading.plan(services.repository, wanted)
                bodykeeping.offload(services, plans)
            moved = {each for each in first | second if runs[each][2]}

            assert answers(services) == before
            assert services.log.read(after=head.position - 1, limit=1)[0].digest == head.digest
            assert sum(services.log.archives().values()) == sum(
                len(before[f"job-{number}"]["events"]) for number in moved
            )
            assert storekeeping.check_views(services) == []
            storekeeping.rebuild(services)
            assert answers(services) == before
        assert list(storekeeping.verify(folder, anchor=head)) == []
    finally:
        shutil.rmtree(folder)
