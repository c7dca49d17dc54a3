"""Whatever a job run's files say, they are told by the rules of a run, and once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from job_run_trees import JOB, at, batches, event, summary
from workbench import Workbench

from tachograph.domain.event import Cause
from tachograph.domain.run import Run
from tachograph.import_desk import IMPORTED, KNOWN, Desk, Row
from tachograph.importing import Family
from tachograph.infra.job_run_files import FileRead
from tachograph.job_run_records import record_of

PHASES = st.sampled_from(["extract", "analyze", "apply"])
ENDS = st.sampled_from(["completed", "failed", "skipped", "running", "odd"])
OUTCOMES = st.sampled_from(
    ["success", "success_with_review", "partial", "failed", "empty", "monitoring", "odd"]
)
TIMES = st.integers(0, 90).map(at)
EVENTS = st.one_of(
    st.builds(lambda ts, name: event("phase_start", ts, phase=name), TIMES, PHASES),
    st.builds(lambda ts, name, end: event("phase_end", ts, phase=name, status=end), TIMES, PHASES,
              ENDS),
    st.builds(lambda ts, index: event("batch_complete", ts, index=index, parsed=index), TIMES,
              st.integers(0, 4)),
    st.builds(lambda ts: event("retry", ts, kind="parse", attempt=1), TIMES),
    st.builds(lambda ts: event("fallback", ts, **{"from": "a", "to": "b"}), TIMES),
    st.builds(lambda ts, said: event("semantic_gate", ts, outcome=said, reason="r"), TIMES,
              OUTCOMES),
)  # fmt: skip
PHASE_RECORDS = st.builds(
    lambda name, status, begin, end: {
        "name": name, "status": status, "startedAt": begin, "finishedAt": end,
    },
    PHASES, ENDS, st.none() | TIMES, st.none() | TIMES,
)  # fmt: skip
CHECKPOINTS = st.one_of(
    st.none(),
    st.lists(st.integers(0, 2), unique=True).map(batches),
    st.just({"offset": 1, "total": 2}),
    st.just({"mine": 1}),
)


@st.composite
def folders(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the files of a job run."""
    said = summary(
        startedAt=draw(TIMES),
        finishedAt=draw(st.none() | TIMES),
        phases=draw(st.lists(PHASE_RECORDS, max_size=3)),
        semanticOutcome=draw(OUTCOMES),
        attempt=draw(st.none() | st.integers(1, 3)),
    )
    return {
        "summary.json": said,
        "events.jsonl": draw(st.lists(EVENTS, max_size=12)),
        "checkpoint.json": draw(CHECKPOINTS),
    }


def files_of(folder: dict[str, Any], lines: int | None = None) -> dict[str, FileRead]:
    """Return the files as they would be read, with the first `lines` events."""
    events = folder["events.jsonl"][:lines]
    texts = {
        "summary.json": json.dumps(folder["summary.json"]),
        "events.jsonl": "".join(json.dumps(each) + "\n" for each in events),
    }
    if folder["checkpoint.json"] is not None:
        texts["checkpoint.json"] = json.dumps(folder["checkpoint.json"])
    return {name: FileRead(f"/tree/{name}", text.encode()) for name, text in texts.items()}


def take(bench: Workbench, files: dict[str, FileRead]) -> Row:
    """Import one folder."""
    record, problems = record_of(f"/tree/{JOB}", JOB, files, 2**60)
    assert record is not None, problems
    desk = Desk(bench.repository, bench.payloads, Cause(0, "import", "here", 7), apply=True)
    family = Family(desk, JOB)
    row = family.take(record, problems)
    family.save([row])
    return row


def check_runs(bench: Workbench, row: Row) -> None:
    """Every run that was told can be read back, and nothing open is called a success."""
    for run_id in row.runs:
        run = bench.repository.get(run_id)
        assert run is not None
        assert isinstance(run, Run)
        if run.finished:
            assert all(phase.status != "running" for phase in run.phases.values())


@given(folders())
def test_every_folder_is_told_and_then_known(folder: dict[str, Any]) -> None:
    bench = Workbench()
    row = take(bench, files_of(folder))
    before = bench.log.head()
    again = take(bench, files_of(folder))

    assert row.state == IMPORTED, row.problems
    assert (again.state, bench.log.head()) == (KNOWN, before)
    check_runs(bench, row)


@given(folders(), st.data())
def test_a_folder_that_grows_is_told_to_its_end(
    folder: dict[str, Any], data: st.DataObject
) -> None:
    bench = Workbench()
    lines = data.draw(st.integers(0, len(folder["events.jsonl"])))
    earlier = {**folder, "summary.json": {**folder["summary.json"], "finishedAt": None}}
    take(bench, files_of(earlier, lines))
    row = take(bench, files_of(folder))
    last = take(bench, files_of(folder))

    check_runs(bench, row)
    assert last.state in (KNOWN, row.state)
