"""Answer what people ask about runs, from the views and from who is alive now. Never writes.

The questions take a view as of one moment, as `projecting.ask` gives it, and `judge`, which
says whether the owner of an attempt is alive: `running` is never answered without it (G7).
"""

from __future__ import annotations

from tachograph.domain.errors import AmbiguousRunError, RunNotFoundError
from tachograph.domain.liveness import ALIVE
from tachograph.domain.outcome import OUTCOMES, is_terminal
from tachograph.projections.run_summaries import progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

    from tachograph.domain.liveness import Liveness
    from tachograph.projections.views import ViewReader

    Fields = dict[str, Any]
    Judge = Callable[[str, int, Fields, Fields | None], Liveness]
    """Judges, now, an attempt (run id, epoch) by the stored fields of its owner and worker."""

RUNNING = "running"
INTERRUPTED = "interrupted"
BLOCKED = "blocked"
WAITING = "waiting"
OPEN_STATUSES = (RUNNING, INTERRUPTED, BLOCKED, WAITING)
GONE_STATUSES = ("erased", "unreadable")
"""Of runs whose events nobody can read: erased, or in an archive that is lost."""
STATUSES = (*OPEN_STATUSES, "cancelled", "expired", *OUTCOMES, *GONE_STATUSES)
"""Every status that a run can be seen in."""

MOST_CANDIDATES = 10
"""Ids that an ambiguous prefix lists."""
_MOST_SUGGESTIONS = 3
_NEAR = 200
"""Ids that are compared with a misspelt one."""


def list_runs(
    view: ViewReader,
    judge: Judge,
    *,
    since_us: int | None = None,
    statuses: Collection[str] = (),
    outcomes: Collection[str] = (),
    command: str | None = None,
    parent: str | None = None,
    needing: bool = False,
    limit: int | None = None,
) -> list[Fields]:
    """Return the cards of runs, latest created first, each with its status as of now.

    `since_us` keeps the runs in which something happened since then, `needing` those that need
    a person. Reads no more cards than
    the limit and the filters need.
    """
    found: list[Fields] = []
    for card in _cards(view, statuses, since_us, needing=needing):
        if len(found) == limit:
            break
        if (
            (since_us is None or card["updated_us"] >= since_us)
            and (command is None or card["command"] == command)
            and (parent is None or card["parent"] == parent)
            and (not outcomes or card["outcome"] in outcomes)
            and (not statuses or with_status(card, judge)["status"] in statuses)
        ):
            found.append(card if statuses else with_status(card, judge))
    return found


def _cards(
    view: ViewReader, statuses: Collection[str], since_us: int | None, *, needing: bool
) -> Iterator[Fields]:
    """Yield cards from the smallest index that has all that are asked for."""
    if needing:
        for created in sorted(view.needing(), reverse=True):
            yield view.card_at(created)
    elif statuses and set(statuses).issubset(OPEN_STATUSES):
        yield from view.open_cards()
    else:
        yield from _latest(view, since_us)


def find_run(view: ViewReader, text: str) -> str:
    """Return the id of the run that a person means: an id, or the unique beginning of one.

    Raises:
        AmbiguousRunError: several ids begin so; it lists them, latest created first.
        RunNotFoundError: none does; it names similar ones.

    """
    if view.summary(text) is not None:
        return text
    fitting = view.ids(text, MOST_CANDIDATES + 1) if text else []
    if len(fitting) == 1:
        return fitting[0][1]
    if fitting:
        names = [name for _, name in fitting[:MOST_CANDIDATES]]
        raise AmbiguousRunError(text, ", ".join(names) + ", …" * (len(fitting) > len(names)))
    raise RunNotFoundError(text, _suggestion(view, text))


def summary(view: ViewReader, judge: Judge, run_id: str) -> Fields:
    """Return what is known of a run, with its status and progress as of now.

    Raises RunNotFoundError; `find_run` turns what a person wrote into an id.
    """
    run = view.summary(run_id)
    if run is None:
        raise RunNotFoundError(run_id, _suggestion(view, run_id))
    run["progress"] = progress(run)
    run["approval"] = next(iter(run["approvals"]), None)
    run = with_status(run, judge)
    if not _is_alive(run):
        for phase in run["phases"].values():
            if phase["status"] == RUNNING:
                phase["status"] = INTERRUPTED
    return run


def timeline(
    view: ViewReader, judge: Judge, run_id: str, *, newest: int | None = None
) -> list[Fields]:
    """Return what happened in a run, in order; only the `newest` so many entries when given.

    Spans that are open are shown as interrupted when their owner is not alive.
    Raises RunNotFoundError.
    """
    run = summary(view, judge, run_id)
    entries = view.timeline(run_id, newest=newest)
    if not _is_alive(run):
        for entry in entries:
            if entry["kind"] == "phase" and entry["status"] == RUNNING:
                entry["status"] = INTERRUPTED
            elif entry["kind"] == "attempt" and entry["outcome"] is None:
                entry["outcome"] = INTERRUPTED
    return entries


def with_status(run: Fields, judge: Judge) -> Fields:
    """Add `status`, `status_reason`, `liveness` and `seen_us` to a card or summary; return it.

    `liveness` is alive, gone or unknown, None where no attempt is open. `seen_us` is when the
    attempt was last heard of, by an event or a heartbeat.
    """
    liveness = None
    if run["attempt_open"]:
        liveness = judge(run["id"], run["epoch"], run["owner"] or {}, run["worker"])
    run["status"], run["status_reason"] = _status(run, liveness)
    run["liveness"] = liveness.state if liveness is not None else None
    seen = [run["active_us"], liveness.since_us if liveness is not None else None]
    run["seen_us"] = max((time_us for time_us in seen if time_us), default=None)
    return run


def _status(run: Fields, liveness: Liveness | None) -> tuple[str, str | None]:
    """Return the status of a run and why it has it, where the run itself does not say."""
    if run["ended"] is not None:
        return run["ended"], run["reason"]
    if is_terminal(run["outcome"], run["reason_code"]):
        return run["outcome"], run["reason"]
    if run["blocked"] is not None:
        return BLOCKED, run["blocked"]
    if run["approval"] is not None:
        return WAITING, f"approval of {run['approval']!r} is asked for"
    if run["outcome"] is not None:
        return run["outcome"], run["reason"]
    if liveness is None and run["epoch"]:
        return INTERRUPTED, "its resume has returned, and it is not finished"
    if liveness is None:
        waited = ", ".join(run["depends_on"])
        return WAITING, f"it waits for {waited}" if waited else "no attempt has started"
    if liveness.state == ALIVE:
        return RUNNING, liveness.reason
    return INTERRUPTED, liveness.reason


def _is_alive(run: Fields) -> bool:
    return bool(run["liveness"] == ALIVE)


def _latest(view: ViewReader, since_us: int | None) -> Iterator[Fields]:
    """Yield cards, latest created first, leaving out most that nothing happened in since then.

    Clocks are set back at times, so what is compared with `since_us` is the latest time of any
    event up to the one in question: backwards it never rises, and the walk may stop.
    """
    created = 0
    for card in view.cards():
        if since_us is not None and card["created_latest_us"] < since_us:
            created = card["created_position"]
            break
        yield card
    else:
        return
    # Of the runs created before, some may have gone on since.
    gone_on = []
    for latest_us, position in view.touched():
        if since_us is None or latest_us < since_us:
            break
        if position <= created:
            gone_on.append(position)
    for position in sorted(gone_on, reverse=True):
        yield view.card_at(position)


def _suggestion(view: ViewReader, text: str) -> str:
    """Return a sentence that names ids like a misspelt one; nothing when there are none."""
    from difflib import get_close_matches
    from itertools import islice

    known = [card["id"] for card in islice(view.cards(), _NEAR)]
    known += [name for _, name in view.ids(text[: len(text) // 2], _NEAR)]
    near = get_close_matches(text, dict.fromkeys(known), _MOST_SUGGESTIONS)
    return f" Did you mean {' or '.join(near)}?" if near else ""
