"""What a person can do with a run now, told from its summary. Decides and changes nothing."""

from __future__ import annotations

from tachograph.domain.ids import job_of_run
from tachograph.domain.outcome import is_terminal, traits
from tachograph.domain.recovery import Recovery

IMPORTED = ("job-runs", "checkpoint-file")
"""Kinds of origin of runs that were not recorded here: others have named them."""

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
    if run["ended"] == "erased":
        return (
            f"Nothing is left of it but the proof that it was there: it was erased {run['reason']}."
        )
    if run["ended"] == "unreadable":
        return f"Put the archive back, then run `tacho view rebuild`: {run['reason']}."
    job = job_of_run(run["id"])
    if job is not None:
        return (
            f"It is the run of a job: `tacho queue show {job}` says how that stands. Its queue "
            f"tries it again; a dead one waits again with `tacho queue requeue --ids {job}`."
        )
    if run["ended"] is not None or is_terminal(run["outcome"], run["reason_code"]):
        return "It is finished. The same command over the same inputs makes a new run."
    steps = [_settle(run, key) for key in effects_in_doubt(run) if not _is_idempotent(run, key)]
    if run["approval"] is not None:
        steps.append(_decide(run))
    elif run["status"] == "blocked":
        steps.append(f"It waits: {run['blocked']}.")
    elif run["depends_on"] and not run["epoch"]:
        steps.append(_look_at(run["depends_on"]))
    spent = spent_phase(run)
    steps.append(_resume(run) if spent is None else _fork(run, spent))
    return " ".join(steps)


def orchestrator_of(run: Summary) -> str | None:
    """Return the orchestrator run that a run is a maintenance step of; None when it is none.

    It takes the step up again when it is resumed itself. A fork is a step of none.
    """
    inputs, origin = run["inputs"], run["origin"] or {}
    if run["parent"] is None or not isinstance(inputs, dict) or "run" in origin:
        return None
    return str(run["parent"]) if inputs.get("orchestrator") == run["parent"] else None


def spent_phase(run: Summary) -> str | None:
    """Return the phase that no new attempt does anew, though what it gave made the run fail.

    Finished batches are never done again. None where a new attempt can change the outcome.
    """
    verdict = run["verdict"]
    if verdict is None or verdict["outcome"] != run["outcome"]:
        return None
    if not traits(run["outcome"], run["reason_code"]).fails_step:
        return None
    done = {name: phase for name, phase in run["phases"].items() if phase["batches"]}
    fruitless = [name for name, each in done.items() if each["inputs"] and not each["parsed"]]
    if fruitless:
        return str(fruitless[0])
    if any(phase["status"] not in ("completed", "skipped") for phase in run["phases"].values()):
        return None
    return next(reversed(done or run["phases"]), None)


def _fork(run: Summary, name: str) -> str:
    """Say how a phase is done anew."""
    from shlex import quote

    point = f"phase:{name}" if name.isdecimal() or name == "latest" else name
    return (
        f"A new attempt would {_kept(name, run['phases'][name])}, and come to the same. "
        f"`tacho run fork {quote(run['id'])} --from {quote(point)}` makes a run that does it anew."
    )


def _kept(name: str, phase: dict[str, Any]) -> str:
    """Say what a new attempt does not do again.

    >>> _kept("parse", {"batches": 2, "parsed": 0})
    "keep the 2 finished batches of phase 'parse', which gave nothing"
    >>> _kept("render", {"batches": 0, "parsed": 0})
    "find phase 'render' completed"
    """
    count = phase["batches"]
    if not count:
        return f"find phase {name!r} completed"
    batches = "the finished batch" if count == 1 else f"the {count} finished batches"
    return f"keep {batches} of phase {name!r}{'' if phase['parsed'] else ', which gave nothing'}"


def _look_at(runs: list[str]) -> str:
    from shlex import quote

    commands = " or ".join(f"`tacho run explain {quote(run_id)}`" for run_id in runs[:3])
    have = "has" if len(runs) == 1 else "have"
    return f"It waits until {', '.join(runs)} {have} ended well: see {commands}."


def _resume(run: Summary) -> str:
    """Say how a new attempt is made."""
    from shlex import quote

    if Recovery.from_fields(run["recovery"]).can_be_dispatched:
        words = f"`tacho run resume {quote(run['id'])}`"
        return f"{words} {_from(run)}; `tacho run plan` shows it beforehand."
    whole = orchestrator_of(run)
    if whole is not None:
        return f"It is a step of {whole}: `tacho run resume {quote(whole)}` takes it up again."
    return f"Start {run['command']} with the same {_named(run)} again: a new attempt {_from(run)}."


def _named(run: Summary) -> str:
    """Return what finds a run again: its inputs, and the id where they do not lead to it."""
    from tachograph.domain.ids import job_run_id

    is_fork = run["origin"] is not None and "run" in run["origin"]
    base = run["id"].partition("~")[0]
    if is_fork and base != job_run_id(run["command"], run["fingerprint"]):
        return f"inputs and the id {run['id']}"
    if (run["origin"] or {}).get("kind") in IMPORTED:  # named as others named it
        return f"{'inputs and the ' if run['inputs'] else ''}id {run['id']}"
    return "inputs"


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
    if run.get("maintenance") is not None:
        return "goes on with the steps that have not done their work"
    phases = run["phases"]
    cut_off = [name for name, phase in phases.items() if phase["status"] == "interrupted"]
    if cut_off:
        return f"goes on in phase {cut_off[-1]!r}{_after(phases[cut_off[-1]])}"
    if run["checkpoint"] is not None:
        return f"goes on from the checkpoint of version {run['checkpoint']['version']}"
    failed = [name for name, phase in phases.items() if phase["status"] == "failed"]
    if failed:
        return f"takes up phase {failed[0]!r} again{_after(phases[failed[0]])}"
    if phases:
        return f"goes on after phase {list(phases)[-1]!r}"
    return "begins at the start"


def _after(phase: dict[str, Any]) -> str:
    """Say how many batches need not be done again; nothing where there are none at all.

    >>> _after({"batches": 1, "total": 2}), _after({"batches": 0, "total": None})
    (' after 1 of 2 batches', '')
    """
    if phase["total"] is not None:
        return f" after {phase['batches']} of {phase['total']} batches"
    count = phase["batches"]
    return f" after {count} batch{'' if count == 1 else 'es'}" if count else ""
