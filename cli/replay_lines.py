"""A replay as lines: the state of a run, the changes of each event, or what was compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tachograph.cli.cards import card
from tachograph.cli.event_lines import brief
from tachograph.cli.tables import shown
from tachograph.domain.changes import ADDED, REMOVED, path_of
from tachograph.domain.errors import RunNotFoundError
from tachograph.replaying import states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.cli.output import Output
    from tachograph.domain.changes import Change
    from tachograph.replaying import Moment


def compare(services: Services, out: Output, run_id: str) -> None:
    """Replay strictly. Raises ReplayDivergedError."""
    from tachograph import storekeeping

    found = storekeeping.replay_strictly(services, run_id)
    if out.json:
        out.document(
            {
                "jobRunId": run_id,
                "agrees": True,
                "events": found.events,
                "snapshots": found.snapshots,
                "views": found.views,
            }
        )
    else:
        out.line(
            f"Run {run_id} replays to what is stored: {found.events} events agree with "
            f"{found.snapshots} snapshots and {found.views} views."
        )


def show_changes(
    services: Services, out: Output, run_id: str, up_to: int | None, at_us: int | None
) -> None:
    """Print each event with what it changed."""
    for moment in states(services.repository, run_id, up_to_version=up_to, at_us=at_us):
        if out.json:
            out.document_line(_moment(moment))
            continue
        who = f"{moment.by[0]}, process {moment.by[2]} on {moment.by[1]}"
        when = out.when(moment.time_us, "iso")
        out.line(shown(f"{moment.version}  {when}  {moment.topic}  ({who})"))
        for change in moment.changes:
            out.line(shown(f"    {_change(change)}"))


def show_state(
    services: Services, out: Output, run_id: str, up_to: int | None, at_us: int | None
) -> None:
    """Print the state after the last event that counts."""
    last = None
    for moment in states(services.repository, run_id, up_to_version=up_to, at_us=at_us):
        last = moment
    if last is None:
        raise RunNotFoundError(run_id, " It had no event by then.")
    state = last.run.to_snapshot()
    state.pop("snapshot_format")
    if out.json:
        place = {"version": last.version, "position": last.position, "timeUs": last.time_us}
        out.document({"jobRunId": run_id, **place, "state": state})
        return
    state["phases"] = {phase.pop("name"): phase for phase in state["phases"]}
    card(out, ((path, brief(value)) for path, value in _leaves(state)))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield everything in a state that is not nothing, with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, path_of(path, key))
    elif value is not None and value != []:
        yield path, value


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "version": moment.version,
        "position": moment.position,
        "type": moment.topic,
        "timeUs": moment.time_us,
        "by": moment.by,
        "changes": [
            {"path": each.path, "kind": each.kind, "old": each.old, "new": each.new}
            for each in moment.changes
        ],
    }


def _change(change: Change) -> str:
    if change.kind == ADDED:
        return f"{change.path}: {brief(change.new)}"
    if change.kind == REMOVED:
        return f"{change.path}: {brief(change.old)} → gone"
    return f"{change.path}: {brief(change.old)} → {brief(change.new)}"
