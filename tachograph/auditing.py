"""Answer exactly why a run stands as it does, from the log alone.

What comes out is plain values: the verdict with its rule, the facts with their events, what came
back from the model or parser, what was ruled out, what would have changed it, and whether the
verdict follows from the evidence. Judges nothing anew and records nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph import explaining, recounting, verdict_audit
from tachograph.advising import effects_in_doubt, next_step
from tachograph.domain import reasons
from tachograph.domain.errors import BodyLostError
from tachograph.explaining import who
from tachograph.faulting import fault_path

if TYPE_CHECKING:
    from typing import Any

    from tachograph.payloads import Payloads
    from tachograph.recounting import Recount
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

FINISHED = "run.finished"
ENDINGS = ("run.cancelled", "run.expired", "run.bodies-erased")
REVISED = "run.verdict-revised"
JOB_RUNS = "job-runs"
"""Kind of the origin of a run that another tool recorded."""

JUDGED, NAMED, UNFINISHED = "judged", "named", "unfinished"
ERASED, UNREADABLE = "erased", "unreadable"
"""How a run came to stand as it does: the gate judged it, somebody named its outcome or ended it,
it has not ended, its events are erased, or they are in an archive that is lost."""


def audit(repository: RunRepository, payloads: Payloads, summary: Fields) -> Fields:
    """Return everything that explains a run; `summary` is that of `reading.summary`."""
    run_id = summary["id"]
    try:
        told = _told(repository, payloads, summary)
    except BodyLostError as error:
        told = _unreadable(str(error))
    return {
        "run_id": run_id,
        "command": summary["command"],
        "title": summary["title"],
        "kind": told["kind"],
        "status": summary["status"],
        "status_reason": summary["status_reason"],
        "outcome": summary["outcome"],
        "reason_code": summary["reason_code"],
        "reason": summary["reason"],
        "meaning": _meaning(summary),
        "origin": summary["origin"],
        "parent": summary["parent"],
        "steps": _steps(summary),
        "stall": summary["stall"],
        "effects_in_doubt": effects_in_doubt(summary),
        "attention": summary["attention"],
        "bodies": summary["bodies"],
        **told,
        "next_step": _look_at(told["faults"]) + next_step(summary),
    }


def _told(repository: RunRepository, payloads: Payloads, summary: Fields) -> Fields:
    """Return what the events say. Raises BodyLostError where an archive has lost them."""
    run_id = summary["id"]
    recount = recounting.recount(repository, payloads, run_id)
    ending = _ending(repository, run_id, summary)
    kind = _kind(summary, recount, ending)
    returned = summary["resume"] is not None
    found = (
        verdict_audit.nothing()
        if recount is None or kind == ERASED
        else verdict_audit.audit(
            recount, repository, payloads, decided=kind == JUDGED, ended=kind == NAMED
        )
    )
    return {
        "kind": kind,
        "ending": ending,
        **found,
        "faults": _faults(repository, recount),
        "revisions": _revisions(repository, payloads, run_id),
        "doing": _doing(repository, summary) if kind == UNFINISHED else None,
        "resume": explaining.last_resume(repository, payloads, run_id) if returned else None,
    }


def _unreadable(problem: str) -> Fields:
    """Return what is told of a run whose events an archive has lost."""
    check: Fields = {"follows": None, "problem": problem, "would_be": None, "stated": []}
    text = f"its events cannot be read: {problem}"
    return {
        "kind": UNREADABLE,
        "ending": None,
        **verdict_audit.nothing(),
        "check": {**check, "text": text, "differences": []},
        "faults": [],
        "revisions": [],
        "doing": None,
        "resume": None,
    }


def _meaning(summary: Fields) -> str | None:
    """Return what the run's outcome means, in words."""
    origin = summary["origin"] or {}
    if summary["reason_code"] is None and summary["outcome"] and origin.get("kind") == JOB_RUNS:
        return "the record that it was imported from says so"
    return reasons.meaning(summary["reason_code"])


def _steps(summary: Fields) -> list[Fields]:
    """Return what became of each step of an orchestrator run, in order."""
    names = ("status", "summary", "outcome", "reason_code", "runs", "guard")
    return [
        {
            "step": name,
            **{each: step.get(each) for each in names},
            "meaning": reasons.meaning(step.get("reason_code")),
        }
        for name, step in summary["maintenance_steps"].items()
    ]


def _look_at(faults: list[Fields]) -> str:
    """Say where the first step at fault is explained."""
    run = next((each["run"] for each in faults if each["run"] is not None), None)
    return "" if run is None else f"Look first at `tacho run explain {run}`. "


def _faults(repository: RunRepository, recount: Recount | None) -> list[Fields]:
    """Return the steps of an orchestrator run that are at fault, the worst first."""
    run = None if recount is None else repository.get(recount.run.id)
    if run is None or run.maintenance is None:
        return []
    names = ("step", "status", "summary", "run", "outcome", "reason_code", "reason", "rule")
    return [
        {name: getattr(fault, name) for name in names} for fault in fault_path(run, repository.get)
    ]


def _kind(summary: Fields, recount: Recount | None, ending: Fields | None) -> str:
    if (summary["bodies"] or {}).get("state") == "erased":
        return ERASED
    if ending is None:
        return UNFINISHED
    judged = recount is not None and recount.verdict is not None
    if judged and ending["topic"] == FINISHED and _is_of(recount, summary):
        return JUDGED
    return NAMED


def _is_of(recount: Recount | None, summary: Fields) -> bool:
    """Say whether the run ended by its verdict, and not by another outcome that was named."""
    verdict = recount.verdict if recount is not None else None
    return verdict is not None and verdict["outcome"] == summary["outcome"]


def _ending(repository: RunRepository, run_id: str, summary: Fields) -> Fields | None:
    """Return the event that ended the run or its last attempt; None while it is open."""
    if summary["outcome"] is None and summary["ended"] is None:
        return None
    topics = (FINISHED,) if summary["ended"] is None else ENDINGS
    found = explaining.last_event(repository, run_id, *topics)
    if found is None:
        return None
    names = ("outcome", "reason_code", "reason")
    places = ("version", "position", "time_us", "topic")
    return {
        **{name: found.get(name) for name in names},
        **{name: found[name] for name in places},
        "meaning": reasons.meaning(found.get("reason_code")),
        "by": who(found["by"]),
    }


def _revisions(repository: RunRepository, payloads: Payloads, run_id: str) -> list[Fields]:
    """Return later judgements by other policies, the oldest first."""
    found = []
    for record, fields in explaining.latest_events(repository, run_id, REVISED):
        policy, problem = recounting.policy_of(fields["policy"], payloads)
        names = ("outcome", "rule", "rule_version", "reason_code", "reason", "revises", "why")
        rule = None if policy is None else policy.rule(fields["rule"])
        found.append(
            {
                **{name: fields[name] for name in names},
                "rule_text": None if rule is None else rule.text,
                "policy": {
                    **{name: fields["policy"][name] for name in ("id", "version", "digest")},
                    "problem": problem,
                },
                "by": who(fields["by"]),
                **explaining.place(record),
            }
        )
    return found[::-1]


def _doing(repository: RunRepository, summary: Fields) -> Fields:
    """Return what an unfinished run was doing, since when, and what its last word was."""
    run_id = summary["id"]
    last = repository.log.read_stream(run_id, limit=1, reverse=True)
    open_phases = [
        {
            "phase": name,
            "status": phase["status"],
            "since_us": phase["started_us"],
            "batches": phase["batches"],
            "total": phase["total"],
        }
        for name, phase in summary["phases"].items()
        if phase["finished_us"] is None
    ]
    return {
        "attempt": summary["epoch"],
        "alive": summary["status"] == "running",
        "since_us": _since(summary),
        "phases": open_phases,
        "steps": [
            {"step": name, "since_us": step["started_us"]}
            for name, step in summary["maintenance_steps"].items()
            if step["status"] is None
        ],
        "last_event": explaining.place(last[0]) if last else None,
        "worked_us": summary["worked_us"] or None,
    }


def _since(summary: Fields) -> int:
    attempts = summary["attempts"]
    since: int = attempts[-1]["started_us"] if attempts else summary["created_us"]
    return since
