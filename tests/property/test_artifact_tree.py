"""However often the files of runs are written while they go on: in the end they are the same.

Random runs, written at random moments by writers that remember and by writers that do not, with
files torn in between, against one writer that comes when all is over.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tree_reader import check_line, check_record, events, load
from treed import Treed

from tachograph.domain.errors import RefusalError
from tachograph.domain.event import Cause
from tachograph.domain.gate import Facts
from tachograph.domain.run import Run
from tachograph.session import Session

RUNS = ("job-a", "job-b")
Dice = random.Random
Act = Callable[[Session, str, Dice], object]


def given_to(command: Callable[[Run, Cause, Dice], object]) -> Act:
    """Return an act that gives the run itself a command."""
    return lambda session, _phase, dice: session.execute(lambda run, why: command(run, why, dice))


ACTS: dict[str, Act] = {
    "phase": lambda session, phase, _dice: session.start_phase(phase),
    "end": lambda session, phase, dice: session.end_phase(
        phase, status=dice.choice(["completed", "failed"])
    ),
    "plan": lambda session, phase, _dice: session.plan_batches(phase, 4, 2, None),
    "batch": lambda session, phase, dice: session.complete_batch(
        phase, dice.randrange(5), inputs=2, parsed=dice.randrange(3), output=[1]
    ),
    "offset": lambda session, _phase, dice: session.save_checkpoint(
        {"offset": dice.randrange(4), "total": 4}, kind="offset"
    ),
    "state": lambda session, _phase, dice: session.save_checkpoint(
        {"row": dice.randrange(4), "odd": (b"x", float("nan"))}
    ),
    "effect": lambda session, _phase, _dice: session.intend_effect("mail"),
    "done": lambda session, _phase, _dice: session.complete_effect("mail"),
    "judge": lambda session, _phase, dice: session.judge(
        Facts(inputs=1, outputs=dice.randrange(2))
    ),
    "finish": lambda session, _phase, _dice: session.finish(),
    "give up": lambda session, _phase, dice: session.finish(
        dice.choice(["partial", "failed"]), reason="so\n# it | goes"
    ),
    "retry": given_to(
        lambda run, why, dice: run.schedule_retry(
            why, "transient", 1, model=dice.choice([None, "m"])
        )
    ),
    "fallback": given_to(lambda run, why, _dice: run.take_fallback(why, "m3", "m2")),
    "progress": given_to(
        lambda run, why, dice: run.report_progress(why, 3, dice.choice([None, 9]))
    ),
    "note": given_to(lambda run, why, _dice: run.add_note(why, "look \ud800 here")),
    "stall": given_to(lambda run, why, _dice: run.detect_stall(why, "gone", {})),
    "answer": given_to(
        lambda run, why, _dice: run.receive_answer(why, asked=2, answered=1, fault="parser")
    ),
}
CHOICES = (*ACTS, "again", "batch", "batch", "phase")


def act(bench: Treed, what: str, run_id: str, dice: Dice) -> None:
    """Let something happen to a run. Raises RefusalError for what its rules refuse."""
    if what == "again" or bench.repository.get(run_id) is None:
        parent = "orch-1" if run_id == "job-b" else None
        bench.start("distill", {"id": run_id}, run_id=run_id, parent=parent)
    else:
        ACTS[what](bench.session(run_id), dice.choice(["extract", "analyze"]), dice)


def tear(bench: Treed, dice: Dice) -> None:
    """Cut a file off, or let something in the middle of it go, be said twice, or be nonsense."""
    found = sorted(bench.root.rglob("events.jsonl"))
    if found:
        path = dice.choice(found)
        data = path.read_bytes()
        lines = data.splitlines(keepends=True)
        at = dice.randrange(len(lines) + 1)
        what = dice.choice(["cut", "gone", "twice", "nonsense"])
        if what == "cut":
            lines = [data[: len(data) - dice.randrange(min(60, len(data) + 1))]]
        elif what == "nonsense":
            lines.insert(at, b"\0nonsense\n")
        else:
            lines[at : at + 1] = [] if what == "gone" else lines[at : at + 1] * 2
        path.write_bytes(b"".join(lines))


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 7))
def test_a_tree_written_as_runs_go_on_is_the_one_that_is_written_at_their_end(
    seed: int, snapshot_every: int
) -> None:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        bench = Treed(Path(folder) / "tree", snapshot_every)
        for _ in range(50):
            run_id = dice.choice(RUNS)
            try:
                act(bench, dice.choice(CHOICES), run_id, dice)
            except RefusalError:
                continue
            if dice.random() < 0.3:
                writer = dice.choice([bench.layout, bench.writer(bench.root)])
                writer.refresh(run_id, whole=dice.random() < 0.5)
            if dice.random() < 0.1:
                tear(bench, dice)
        assert bench.catch_up(thorough=True) == []
        incremental = bench.written()
        bench.root.rename(Path(folder) / "aside")
        assert bench.catch_up() == []

        assert bench.written() == incremental
        for path in bench.root.rglob("summary.json"):
            record = load(path)
            assert record is not None
            check_record(record)
            for line in events(path.parent / "events.jsonl"):
                check_line(line)
