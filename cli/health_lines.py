"""How diagnoses, cycles and repairs are printed. Decides nothing about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.cli.tables import shown
from tachograph.domain.repair_errors import MEANINGS, in_words, next_step
from tachograph.infra.clock import iso

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.health import DomainHealth, Health
    from tachograph.domain.repair_policy import RepairPolicy
    from tachograph.domain.repairs import Denial, Repairs
    from tachograph.health.caring import CareReport, Executed
    from tachograph.health.judging import Judged

    Fields = dict[str, Any]

_COLOURS = {"healthy": "32", "degraded": "33", "unhealthy": "31"}
_HIDDEN = ("queues", "thresholds")
"""Facts that have lines of their own, or belong to --json."""


def health_document(health: Health) -> Fields:
    """Return a diagnosis as `--json` prints it."""
    return {
        "timestamp": iso(health.time_us),
        "composite": {"score": health.score, "status": health.status},
        "domains": [domain_document(domain) for domain in health.domains],
    }


def domain_document(domain: DomainHealth) -> Fields:
    """Return one domain as `--json` prints it."""
    return {
        "name": domain.name,
        "weight": domain.weight,
        "score": domain.score,
        "status": domain.status,
        "facts": domain.facts,
        "error": domain.error,
        "penalties": [
            {
                "rule": penalty.rule,
                "scope": penalty.scope or None,
                "value": penalty.value,
                "threshold": penalty.threshold,
                "points": round(penalty.points, 4),
                "atLeast": penalty.at_least,
                "text": penalty.text,
            }
            for penalty in domain.penalties
        ],
    }


def care_document(report: CareReport) -> Fields:
    """Return a maintenance cycle as `--json` prints it."""
    return {
        "run": report.run,
        "mode": report.mode,
        "report": health_document(report.before),
        "recommendations": [each.to_fields() for each in report.recommendations],
        "executed": [each.to_fields() for each in report.executed],
        "judged": [each.to_fields() for each in report.judged],
        "reset": report.reset,
        "after": None if report.after is None else health_document(report.after),
        "delta": report.delta,
    }


def print_health(health: Health, out: Output) -> None:
    """Print a diagnosis for people: each domain, what it lost by which rule, its facts."""
    out.line(f"composite  {health.score:.4f}  {status(health.status, out)}")
    for domain in health.domains:
        print_domain(domain, out)


def print_domain(domain: DomainHealth, out: Output) -> None:
    """Print one domain for people."""
    out.line(
        f"{domain.name:<10} {domain.score:.4f}  {status(domain.status, out)}  "
        f"weight {domain.weight:g}"
    )
    for penalty in domain.penalties:
        where = f" ({penalty.scope})" if penalty.scope else ""
        out.line(f"  -{penalty.points:.4f}  {penalty.rule}{where}: {shown(penalty.text)}")
    for line in _facts(domain.facts):
        out.line(f"  {shown(line)}")


def _facts(facts: Fields) -> Iterator[str]:
    plain = {name: value for name, value in facts.items() if name not in _HIDDEN}
    said = [f"{name}={value}" for name, value in plain.items() if value not in (None, {}, [])]
    if said:
        yield "  ".join(said)
    for name, counts in facts.get("queues", {}).items():
        numbers = [f"{fact}={value}" for fact, value in counts.items() if fact != "lastError"]
        yield f"{name}: {'  '.join(numbers)}"


def status(name: str, out: Output) -> str:
    """Return a status, coloured where that may be."""
    return f"\033[{_COLOURS[name]}m{name}\033[0m" if out.styled() else name


def print_care(report: CareReport, out: Output) -> None:
    """Print a cycle for people."""
    after = "" if report.after is None else f" → {report.after.score:.4f} ({report.delta:+.4f})"
    words = status(report.before.status, out)
    out.line(f"{report.run}  {report.before.score:.4f}{after}  {words}  mode {report.mode}")
    for wanted in report.recommendations:
        out.line(f"  recommended  {wanted.action}: {shown(wanted.trigger)}")
    for done in report.executed:
        out.line(f"  {_ended(done):<11}  {done.action}: {shown(done.message)}")
    for judged in report.judged:
        out.line(f"  {_helped(judged):<11}  {judged.repair}: {shown(judged.evidence['text'])}")
    for action in report.reset:
        out.line(f"  reset        {action}: nothing is held against it any more")
    if not report.recommendations:
        out.line("  nothing to repair")


def _ended(done: Executed) -> str:
    if done.success:
        return "done"
    return "failed" if done.failed else "denied"


def _helped(judged: Judged) -> str:
    return {True: "helped", False: "no help", None: "unseen"}[judged.improved]


def repairs_document(
    repairs: Repairs, policy: RepairPolicy, denial: Denial | None, history: list[tuple[str, Fields]]
) -> Fields:
    """Return what is known of an action as `--json` prints it."""
    limits = policy.of(repairs.action)
    last = repairs.last
    return {
        "action": repairs.action,
        "allowed": denial is None,
        "rule": None if denial is None else denial.rule,
        "remainingSeconds": None
        if denial is None or denial.remaining_us is None
        else denial.remaining_us / 1_000_000,
        "explanation": explanation(repairs, denial),
        "halted": repairs.halted,
        "haltedAt": None if repairs.halted_us is None else iso(repairs.halted_us),
        "strikes": repairs.strikes,
        "uselessRepairs": repairs.useless,
        "unjudged": list(repairs.unjudged),
        "unfinished": list(repairs.open),
        "repairs": repairs.count,
        "lastRepair": None
        if last is None
        else {
            "repair": last["repair"],
            "at": iso(last["time_us"]),
            "actorKind": last["actor_kind"],
            "reason": last["reason"],
            "forced": last["forced"],
            "success": last.get("success"),
            "affected": last.get("affected"),
            "message": last.get("message"),
        },
        "cooldownSeconds": limits.cooldown_us / 1_000_000,
        "hourlyBudget": limits.hourly_budget,
        "haltAfter": policy.halt_after,
        "events": [_event(topic, fields) for topic, fields in history],
    }


def explanation(repairs: Repairs, denial: Denial | None) -> str:
    """Return in a sentence or two whether the maintenance worker may do an action, and why not.

    >>> from tachograph.domain.repairs import Repairs
    >>> explanation(Repairs("pruneTerminalJobs"), None)
    'pruneTerminalJobs may be done now.'
    """
    if denial is None:
        held = f" {repairs.strikes} run(s) in a row did not help." if repairs.strikes else ""
        return f"{repairs.action} may be done now.{held}"
    why = f"{repairs.action} is denied: {MEANINGS[denial.rule]}."
    if repairs.halted:
        why += f" {', '.join(repairs.useless)} did not help."
    return f"{why} {next_step(repairs.action, denial.rule, denial.remaining_us)}"


def _event(topic: str, fields: Fields) -> Fields:
    return {
        "event": topic.removeprefix("repair."),
        "at": iso(fields["time_us"]),
        "by": fields["by"][0],
        "text": in_short(topic, fields),
    }


def in_short(topic: str, fields: Fields) -> str:
    """Return an event of repairs in a line."""
    kind = topic.removeprefix("repair.")
    return _LINES[kind](fields) if kind in _LINES else kind


_LINES = {
    "allowed": lambda said: (
        f"{said['repair']} by {said['actor_kind']}: {said['reason']}"
        + (f" (forced over {said['forced']})" if said["forced"] else "")
    ),
    "step-done": lambda said: f"{said['repair']} step {said['number']}: {said['affected']}",
    "ended": lambda said: (
        f"{said['repair']} {'ended' if said['success'] else 'failed'}: {said['message']}"
    ),
    "denied": lambda said: (
        f"{said['actor_kind']} denied by {said['rule']}"
        + ("" if said["remaining_us"] is None else f", {in_words(said['remaining_us'])} left")
    ),
    "judged": lambda said: (
        f"{said['repair']} "
        f"{ {True: 'helped', False: 'did not help', None: 'says nothing'}[said['improved']] }: "
        f"{said['evidence']['text']}"
    ),
    "halted": lambda said: f"halted after {said['strikes']}: {', '.join(said['repairs'])}",
    "halt-lifted": lambda said: f"lifted ({said['code']}): {said['reason']}",
}
