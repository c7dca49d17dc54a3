"""A plan of a resume for people. Decides no content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.cli.cards import card
from tachograph.domain.plan import ASK_PERSON, FINISHED, GOOD, REUSE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.plan import Plan

MOST = 20
"""Lines of one kind; the JSON has all."""


def show(plan: Plan, digest: str, out: Output) -> None:
    """Print a plan."""
    card(out, list(rows(plan, digest)))


def rows(plan: Plan, digest: str) -> Iterator[tuple[str, str | None]]:
    """Yield a name and a value for each line."""
    yield "Run", plan.run_id
    if any(each.code == FINISHED for each in plan.obstacles):  # it has no next attempt
        yield from _in_the_way(plan)
        return
    yield "Resume", f"attempt {plan.epoch}, from version {plan.from_version}"
    yield "Checkpoint", _checkpoint(plan)
    yield from _named("Phases", map(_phase, plan.phases))
    yield "Steps", f"{len(plan.steps)} reused" if plan.steps else None
    yield from _named("Effects", map(_effect, plan.effects))
    yield from _named("Artifacts", map(_artifact, plan.artifacts))
    yield from _named("Files", map(_trace, plan.traces))
    yield from _named("Approvals", (f"{name}: {state}" for name, state in plan.approvals.items()))
    yield "Executes", _execute(plan.execute)
    yield "Retries", "{futile} without progress, {max_retries} allowed".format(**plan.retries)
    yield "Plan", digest
    yield from _in_the_way(plan)


def _in_the_way(plan: Plan) -> Iterator[tuple[str, str]]:
    obstacles = [f"{each.text} [{each.code}]" for each in plan.obstacles]
    return _named("In the way", obstacles or ["nothing"])


def _named(name: str, values: Any) -> Iterator[tuple[str, str]]:
    shown = list(values)
    for number, value in enumerate(shown[:MOST]):
        yield name if number == 0 else "", value
    if len(shown) > MOST:
        yield "", f"… and {len(shown) - MOST} more"


def _checkpoint(plan: Plan) -> str | None:
    if plan.checkpoint is None:
        return None
    phase = plan.checkpoint["phase"]
    return f"version {plan.checkpoint['version']}" + (f", phase {phase}" if phase else "")


def _phase(phase: dict[str, Any]) -> str:
    if phase["action"] == REUSE:
        return f"{phase['name']}: reuse ({phase['status']})"
    text = f"{phase['name']}: {phase['action']}"
    if phase["batches_reused"]:
        text += f", reuse batches {_ranges(phase['batches_reused'])}"
    if phase["batches_to_run"]:
        text += f", run batches {_ranges(phase['batches_to_run'])}"
    return text if phase["safe_to_retry"] else f"{text} (not safe to repeat)"


def _ranges(ranges: list[list[int]]) -> str:
    """Return ranges of batches for people.

    >>> _ranges([[0, 9], [12, 12]])
    '0-9, 12'
    """
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:MOST]]
    return ", ".join(parts) + (", …" if len(ranges) > MOST else "")


def _effect(effect: dict[str, Any]) -> str:
    mark = "! " if effect["action"] == ASK_PERSON else ""
    return f"{mark}{effect['key']}: {effect['action']} ({effect['why']})"


def _artifact(artifact: dict[str, Any]) -> str:
    mark = "" if artifact["state"] == GOOD else "! "
    return f"{mark}{artifact['name']}: {artifact['state']} ({artifact['path']})"


def _trace(trace: dict[str, Any]) -> str:
    state = "unchanged" if trace["state"] == GOOD else f"changed, {trace['state']}"
    return f"{trace['what']} {trace['path']}: {state}"


def _execute(execute: dict[str, Any] | None) -> str | None:
    if execute is None:
        return None
    import shlex

    text = shlex.join(execute["argv"])
    if execute["folder"]:
        text += f"  (in {execute['folder']})"
    limit = execute["timeout_seconds"]
    return text if limit is None else f"{text}, at most {limit:g} s"
