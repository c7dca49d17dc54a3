"""What a person can do with a run now, told from its summary. Decides and changes nothing."""

from __future__ import annotations

from tachograph.domain.outcome import is_terminal
from tachograph.domain.recovery import Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Summary = dict[str, Any]


def status_shape(run: Summary) -> dict[str, Any]:
    """Return a run as `run status --json` prints it: what is in doubt is what is so now."""
    from tachograph.shapes import summary_shape

    shape = summary_shape(run)
    doubted = effects_in_doubt(run)
    shape["effectsInDoubt"] = [each for each in shape["effectsInDoubt"] if each["key"] in doubted]
    return {**shape, "nextStep": next_step(run)}


def effects_in_doubt(run: Summary) -> list[str]:
    """Return the side effects that may have happened; none that a living attempt is at (G10)."""
    alive = run["liveness"] == "alive"
    return [
        key for key, effect in run["effects"].items() if not alive or effect["epoch"] < run["epoch"]
    ]


def next_step(run: Summary) -> str:
    """Return how the run can go on, in one sentence or two.

    `run` is a summary as `reading.summary` gives it.
    """
    if run["status"] == "running":
        return f"It is at work: `tacho run events {run['id']} --follow` shows what it does."
    if run["ended"] is not None or is_terminal(run["outcome"], run["reason_code"]):
        return "It is finished. The same command over the same inputs makes a new run."
    steps = [_settle(run, key) for key in effects_in_doubt(run) if not _is_idempotent(run, key)]
    if run["approval"] is not None:
        steps.append(_decide(run))
    elif run["status"] == "blocked":
        steps.append(f"It waits: {run['blocked']}. Then start it again.")
    steps.append(_resume(run))
    return " ".join(steps)


def _resume(run: Summary) -> str:
    """Say how a new attempt is made."""
    from shlex import quote

    if Recovery.from_fields(run["recovery"]).can_be_dispatched:
        words = f"`tacho run resume {quote(run['id'])}`"
        return f"{words} {_from(run)}; `tacho run plan` shows it beforehand."
    return f"Start {run['command']} with the same inputs again: a new attempt {_from(run)}."


def _decide(run: Summary) -> str:
    from shlex import quote

    words = f"{run['id']} {quote(run['approval'])}"
    return (
        f"It waits for a person: `tacho run approve {words} --reason …`, or `tacho run reject "
        f"{words} --reason …`."
    )


def _is_idempotent(run: Summary, key: str) -> bool:
    return bool(run["effects"][key]["idempotent"])


def _settle(run: Summary, key: str) -> str:
    from shlex import quote

    return (
        f"Find out whether {key!r} has happened, and say so: `tacho run effect {quote(key)} "
        f"--run {run['id']} --done --reason …`, or `--retry --reason …` to let it be done again."
    )


def _from(run: Summary) -> str:
    """Say where a new attempt goes on.

    >>> _from({"phases": {}, "checkpoint": None})
    'begins at the start'
    """
    cut_off = [name for name, phase in run["phases"].items() if phase["status"] == "interrupted"]
    if cut_off:
        phase = run["phases"][cut_off[-1]]
        total = "" if phase["total"] is None else f" of {phase['total']}"
        return f"goes on in phase {cut_off[-1]!r} after {phase['batches']}{total} batches"
    if run["checkpoint"] is not None:
        return f"goes on from the checkpoint of version {run['checkpoint']['version']}"
    if run["phases"]:
        return f"goes on after phase {list(run['phases'])[-1]!r}"
    return "begins at the start"
