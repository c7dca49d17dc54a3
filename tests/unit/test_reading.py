"""What lists and summaries answer, with the status as of the moment of asking."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from given_when_then import NOW_US
from viewed import DAY_US, Viewed

from tachograph import reading
from tachograph.domain.errors import AmbiguousRunError, RunNotFoundError
from tachograph.domain.events import ApprovalRequested, AttentionRaised
from tachograph.domain.outcome import OUTCOMES, is_terminal
from tachograph.domain.run import Run

if TYPE_CHECKING:
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.session import Session


@pytest.fixture
def bench() -> Viewed:
    return Viewed()


def recorded(run: Run, cause: Cause, kind: type[Any], **fields: Any) -> None:
    """Record an event that no command of the aggregate makes yet."""
    run._record(kind, cause, **fields)


def ask_approval(session: Session) -> None:
    event = partial(recorded, kind=ApprovalRequested, approval="deploy", subject=1)
    session.execute(lambda run, why: event(run, why, subject_digest="d"))


# Status.


def status_of(bench: Viewed, run_id: str) -> tuple[str, str | None]:
    run = bench.ask(reading.summary, run_id)
    (card,) = (card for card in bench.ask(reading.list_runs) if card["id"] == run_id)

    assert card["status"] == run["status"], "the list and the run say the same"
    assert card["status_reason"] == run["status_reason"]
    return run["status"], run["status_reason"]


def test_a_run_is_running_while_its_owner_is_alive(bench: Viewed) -> None:
    """G7."""
    bench.start(run_id="job-1")
    bench.alive.add("job-1")

    assert status_of(bench, "job-1") == ("running", "process 1 is alive")


def test_a_run_whose_owner_is_gone_was_interrupted(bench: Viewed) -> None:
    """G7: nothing was recorded since; the answer differs because it is judged when asked."""
    bench.start(run_id="job-1")
    bench.alive.add("job-1")
    assert status_of(bench, "job-1")[0] == "running"
    bench.alive.clear()

    assert status_of(bench, "job-1") == ("interrupted", "process 1 is gone")


def test_it_says_when_an_interrupted_run_was_last_heard_of(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    bench.now = 500
    session.start_phase("read")

    assert bench.ask(reading.summary, "job-1")["seen_us"] == 501

    bench.beaten_us = 900

    assert bench.ask(reading.summary, "job-1")["seen_us"] == 900


def test_a_phase_of_an_interrupted_run_does_not_run(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    session.start_phase("read")
    session.end_phase("read")
    session.start_phase("write")

    def statuses() -> list[str]:
        run = bench.ask(reading.summary, "job-1")
        return [phase["status"] for phase in run["phases"].values()]

    assert statuses() == ["completed", "interrupted"]
    bench.alive.add("job-1")
    assert statuses() == ["completed", "running"]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_run_whose_attempt_ended_shows_its_outcome(bench: Viewed, outcome: str) -> None:
    bench.start(run_id="job-1").finish(outcome, reason="because")

    assert status_of(bench, "job-1") == (outcome, "because")
    assert bench.judged == []


def test_a_run_that_a_person_ended_says_so(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    session.execute(lambda run, why: run.cancel(why, "not needed"))
    session = bench.start(run_id="job-2")
    session.execute(lambda run, why: run.expire(why, "too old"))

    assert status_of(bench, "job-1") == ("cancelled", "not needed")
    assert status_of(bench, "job-2") == ("expired", "too old")


def test_a_blocked_run_says_what_it_waits_for(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    session.execute(lambda run, why: run.block(why, "disk is full"))
    bench.alive.add("job-1")

    assert status_of(bench, "job-1") == ("blocked", "disk is full")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_blocked_run_stays_blocked_unless_it_ends_for_good(bench: Viewed, outcome: str) -> None:
    session = bench.start(run_id="job-1")
    session.execute(lambda run, why: run.block(why, "disk is full"))
    session.finish(outcome)
    expected = outcome if is_terminal(outcome) else "blocked"

    assert status_of(bench, "job-1")[0] == expected


def test_a_run_waits_for_an_approval(bench: Viewed) -> None:
    ask_approval(bench.start(run_id="job-1"))
    bench.alive.add("job-1")

    assert status_of(bench, "job-1") == ("waiting", "approval of 'deploy' is asked for")


def test_a_run_without_an_attempt_waits(bench: Viewed) -> None:
    from given_when_then import PERSON

    from tachograph.domain.run import Run

    run = Run.create(PERSON, "job-1", command="c", fingerprint="f", inputs=1, inputs_digest="d")
    bench.repository.save(run)

    assert status_of(bench, "job-1") == ("waiting", "no attempt has started")


def test_every_status_is_listed() -> None:
    assert set(reading.STATUSES) == {
        *("running", "interrupted", "blocked", "waiting", "cancelled", "expired"),
        *("erased", "unreadable"),
        *OUTCOMES,
    }


# Lists.


def several(bench: Viewed) -> None:
    """Record one run a day; job-1 is the oldest."""
    bench.now = NOW_US
    for number in range(1, 6):
        command = "parse" if number % 2 else "index"
        session = bench.start(command, {"n": number}, run_id=f"job-{number}")
        if number < 4:
            session.finish("success" if number < 3 else "failed")
        bench.now += DAY_US
    bench.alive.add("job-5")


def test_runs_are_listed_latest_created_first(bench: Viewed) -> None:
    several(bench)

    assert bench.listed() == ["job-5", "job-4", "job-3", "job-2", "job-1"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"limit": 2}, ["job-5", "job-4"]),
        ({"limit": 0}, []),
        ({"command": "index"}, ["job-4", "job-2"]),
        ({"command": "parse", "limit": 2}, ["job-5", "job-3"]),
        ({"outcomes": ["success"]}, ["job-2", "job-1"]),
        ({"statuses": ["running"]}, ["job-5"]),
        ({"statuses": ["interrupted"]}, ["job-4"]),
        ({"statuses": ["interrupted", "running"]}, ["job-5", "job-4"]),
        ({"statuses": ["interrupted", "failed"]}, ["job-4", "job-3"]),
        ({"statuses": ["expired"]}, []),
        ({"since_us": NOW_US + 3 * DAY_US}, ["job-5", "job-4"]),
        ({"since_us": NOW_US + 3 * DAY_US, "statuses": ["running"]}, ["job-5"]),
        ({"since_us": NOW_US + 4 * DAY_US, "statuses": ["interrupted"]}, []),
        ({"since_us": NOW_US + 30 * DAY_US}, []),
        ({"since_us": 0, "limit": 1}, ["job-5"]),
    ],
)
def test_lists_are_filtered(bench: Viewed, filters: Any, expected: list[str]) -> None:
    several(bench)

    assert bench.listed(**filters) == expected


def test_a_list_can_be_of_one_orchestrator_run(bench: Viewed) -> None:
    bench.start(run_id="job-1", parent="night-1")
    bench.start(run_id="job-2")

    assert bench.listed(parent="night-1") == ["job-1"]


def test_an_old_run_that_went_on_lately_is_listed(bench: Viewed) -> None:
    several(bench)
    bench.start("index", {"n": 4}, run_id="job-4")
    session = bench.start("parse", {"n": 3}, run_id="job-3")
    session.execute(lambda run, why: run.add_note(why, "again"))

    assert bench.listed(since_us=NOW_US + 5 * DAY_US) == ["job-4", "job-3"]
    assert bench.listed(since_us=NOW_US + 4 * DAY_US) == ["job-5", "job-4", "job-3"]


def test_the_only_run_may_be_an_old_one_that_went_on(bench: Viewed) -> None:
    bench.now = NOW_US
    session = bench.start(run_id="job-1")
    bench.now += 5 * DAY_US
    session.start_phase("read")

    assert bench.listed(since_us=NOW_US + DAY_US) == ["job-1"]


def test_a_clock_that_was_set_back_hides_no_run(bench: Viewed) -> None:
    bench.now = NOW_US
    bench.start(run_id="job-1")
    bench.now = 0  # the clock's battery is empty
    bench.start(run_id="job-2")
    bench.now = NOW_US + DAY_US
    bench.start(run_id="job-3")

    assert bench.listed(since_us=NOW_US) == ["job-3", "job-1"]
    assert bench.listed() == ["job-3", "job-2", "job-1"]


def test_a_clock_that_was_ahead_hides_no_run(bench: Viewed) -> None:
    bench.now = NOW_US + 1000 * DAY_US
    bench.start(run_id="job-1")
    bench.now = NOW_US
    bench.start(run_id="job-2")
    bench.now = NOW_US + 2 * DAY_US
    bench.start(run_id="job-3")

    assert bench.listed(since_us=NOW_US + DAY_US) == ["job-3", "job-1"]


def test_only_open_runs_are_judged(bench: Viewed) -> None:
    several(bench)
    bench.listed()

    assert sorted(bench.judged) == ["job-4", "job-5"]


class Counted:
    """A view that counts the rows it gives out."""

    def __init__(self, view: Any) -> None:
        self.view = view
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def _counted(self, rows: Any) -> Any:
        for row in rows:
            self.rows += 1
            yield row

    def cards(self) -> Any:
        return self._counted(self.view.cards())

    def open_cards(self) -> Any:
        return self._counted(self.view.open_cards())

    def touched(self) -> Any:
        return self._counted(self.view.touched())


@pytest.mark.parametrize(
    "filters",
    [
        {"limit": 5},
        {"since_us": NOW_US + 195 * DAY_US},
        {"since_us": NOW_US + 195 * DAY_US, "limit": 5},
        {"statuses": ["running", "interrupted"]},
    ],
)
def test_a_list_reads_no_more_than_it_needs(bench: Viewed, filters: Any) -> None:
    bench.now = NOW_US
    for number in range(200):
        session = bench.start(run_id=f"job-{number}")
        if number != 5:
            session.finish("success")
        bench.now = NOW_US + (number + 1) * DAY_US
    bench.catch_up()
    with bench.views.read() as view:
        counted = Counted(view)
        reading.list_runs(counted, bench.judge, **filters)  # type: ignore[arg-type]

    assert counted.rows <= 15


# Finding.


def test_an_exact_id_wins_over_longer_ones(bench: Viewed) -> None:
    for _ in range(3):
        bench.start("parse", {"n": 1}).finish("success")
    ids = bench.listed()

    assert [run_id.partition("~")[2] for run_id in ids] == ["3", "2", ""]
    assert bench.find(ids[-1]) == ids[-1]


def test_a_unique_beginning_is_enough(bench: Viewed) -> None:
    several(bench)
    bench.start(run_id="other")

    assert bench.find("o") == "other"
    assert bench.find("job-3") == "job-3"


def test_an_ambiguous_beginning_lists_what_fits_latest_first(bench: Viewed) -> None:
    several(bench)

    with pytest.raises(AmbiguousRunError) as caught:
        bench.find("job")

    assert "'job' fits several runs: job-5, job-4, job-3, job-2, job-1." in str(caught.value)


def test_a_long_list_of_what_fits_is_cut(bench: Viewed) -> None:
    for number in range(30):
        bench.start(run_id=f"job-{number:02}")

    with pytest.raises(AmbiguousRunError, match=r"job-29, job-28, .*, job-20, …"):
        bench.find("job")


def test_a_misspelt_id_suggests_near_ones(bench: Viewed) -> None:
    bench.start(run_id="job-report-1")
    bench.start(run_id="weekly")

    with pytest.raises(RunNotFoundError, match=r"Did you mean job-report-1\? "):
        bench.find("job-reprot-1")
    with pytest.raises(RunNotFoundError, match=r"Did you mean weekly\? "):
        bench.ask(reading.summary, "weekl")


@pytest.mark.parametrize("text", ["", "nothing like it"])
def test_an_unknown_id_is_not_found(bench: Viewed, text: str) -> None:
    bench.start(run_id="job-1")

    with pytest.raises(RunNotFoundError, match=r"There is no run .*\. `tacho run list`"):
        bench.find(text)


# Timelines.


def timeline(bench: Viewed, **options: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = bench.ask(reading.timeline, "job-1", **options)
    return entries


def test_a_timeline_shows_what_is_open_as_interrupted_when_nobody_is_alive(bench: Viewed) -> None:
    """G7."""
    session = bench.start(run_id="job-1")
    session.start_phase("read")

    assert [entry.get("status") or entry.get("outcome") for entry in timeline(bench)] == [
        None,
        "interrupted",
        "interrupted",
    ]
    bench.alive.add("job-1")
    assert [entry.get("status") or entry.get("outcome") for entry in timeline(bench)] == [
        None,
        None,
        "running",
    ]


def test_the_newest_entries_of_a_timeline_can_be_asked_for(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    for number in range(20):
        text = f"note {number}"
        session.execute(partial(Run.add_note, text=text))

    assert [entry["text"] for entry in timeline(bench, newest=2)] == ["note 18", "note 19"]


def test_a_timeline_of_no_run_is_an_error(bench: Viewed) -> None:
    with pytest.raises(RunNotFoundError):
        timeline(bench)


def test_runs_that_need_a_person_can_be_listed_alone(bench: Viewed) -> None:
    for name in ("job-1", "job-2", "job-3"):
        session = bench.start(run_id=name)
        if name != "job-2":
            session.execute(lambda run, why: run.raise_attention(why, "no_adapter"))

    assert bench.listed(needing=True) == ["job-3", "job-1"]
    assert bench.listed(needing=True, limit=1) == ["job-3"]


def test_attention_is_marked_on_the_card(bench: Viewed) -> None:
    session = bench.start(run_id="job-1")
    raised = partial(recorded, kind=AttentionRaised, reason="stalled", detail=None)
    session.execute(raised)

    assert [card["attention"] for card in bench.ask(reading.list_runs)] == [True]
    assert bench.ask(reading.summary, "job-1")["attention"] == {"stalled": None}
