"""The sentences of an explanation, the same on a screen, on a page and as JSON. Pure functions."""

from __future__ import annotations

from tachograph.domain.outcome import NOT_JUDGED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Fields = dict[str, Any]

FOLLOWS = "judged again from the log: the verdict follows from the evidence"
DIFFERENT = "Said otherwise"
"""Heading of the facts for which verdict and events do not say the same."""
NOTHING = "nothing that is recorded could be judged"


def change_text(fact: str, was: object, to: object, outcome: str) -> str:
    """Say what another fact would have come to.

    >>> change_text("outputs", 0, 1, "success_with_review")
    'outputs 1 instead of 0 → success_with_review'
    >>> change_text("stopped", "deadline", None, "success")
    "stopped unsaid instead of 'deadline' → success"
    """
    return f"{fact} {_plain(to)} instead of {_plain(was)} → {outcome}"


def _plain(value: object) -> str:
    return repr(value) if isinstance(value, str) else value_text(value)


def check_text(check: Fields, judged: Fields | None) -> str:
    """Say whether a verdict follows from the log, or what the gate would conclude.

    `check` is that of an explanation without this text, `judged` its verdict.
    """
    if judged is None:
        return _unjudged(check["would_be"])
    if check["follows"]:
        return FOLLOWS + _with_stated(check["stated"])
    if judged["policy"]["problem"] is not None:
        return f"it cannot be judged again: {check['problem']}"
    return f"THE VERDICT DOES NOT FOLLOW: {check['problem']}"


def _with_stated(stated: Sequence[str]) -> str:
    """Say of which facts there is no evidence but the job's own word."""
    return f", and from what was stated with it: {', '.join(stated)}" if stated else ""


def _unjudged(would_be: Fields | None) -> str:
    if would_be is None or would_be["reason_code"] == NOT_JUDGED:
        return NOTHING
    if would_be["refused"] is not None:
        return f"no verdict: {would_be['refused']}"
    had = would_be["had"] or "by what is recorded"
    return f"the gate would judge {had}: {would_be['outcome']} ({would_be['reason']})"


def missing_text(count: int) -> str:
    """Say how many planned batches are left.

    >>> missing_text(1), missing_text(3)
    ('1 planned batch is not finished', '3 planned batches are not finished')
    """
    return f"{count} planned batch{' is' if count == 1 else 'es are'} not finished"


def value_text(value: object) -> str:
    """Return a fact's value.

    >>> value_text(None), value_text(0.95), value_text(-6.0), value_text("deadline")
    ('unsaid', '0.95', '-6', 'deadline')
    """
    if value is None:
        return "unsaid"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def source_text(fact: Fields) -> str:
    """Say what a fact is, and what says so."""
    meaning: str = fact["meaning"]
    if fact["source"] == "derived":
        return f"= {meaning}"
    if fact["source"] == "stated":
        looked = "looked up" if fact["name"] == "files_present" else "stated"
        return f"{meaning}; {looked} when it was judged, no event says it"
    if not fact["events"]:
        return f"{meaning}; no event says otherwise"
    places = ", ".join(str(each["version"]) for each in fact["events"])
    more = fact["count"] - len(fact["events"])
    versions = "version" if fact["count"] == 1 else "versions"
    return f"{meaning}; {versions} {places}{f' and {more} more' if more > 0 else ''}"


REPEATS = {"work": "inputs", "done": "outputs"}
"""Derived facts, and what most of them are."""
PLUMBING = frozenset({"produced", "accounted", "made", "deadline_left"})
"""Derived facts that only rules care for."""


def telling(facts: Sequence[Fields]) -> list[Fields]:
    """Return the facts that say something new to a person."""
    values = {each["name"]: each["value"] for each in facts}

    def tells(fact: Fields) -> bool:
        name, value = fact["name"], fact["value"]
        if fact["source"] != "derived":
            return True
        if name in REPEATS:
            return bool(value != values.get(REPEATS[name]))
        return bool(value) and name not in PLUMBING

    return [each for each in facts if tells(each)]


def rule_text(judged: Fields) -> str:
    """Name the rule of a verdict and its policy."""
    policy = judged["policy"]
    version = f", version {judged['rule_version']}" if judged["rule_version"] else ""
    return f"{judged['rule']}{version}, of policy {policy['id']}, version {policy['version']}"


def condition_text(condition: Fields) -> str:
    """Say whether a condition of a rule holds, and by what."""
    value = value_text(condition["value"])
    if condition["against"] is not None:
        value += f" against {value_text(condition['against'])}"
    return f"{condition['condition']}: {condition['state']} ({value})"


def outcome_text(found: Fields) -> str:
    """Return an outcome with its reason code.

    >>> outcome_text({"outcome": "failed", "reason_code": None, "reason": "no disk"})
    'failed: no disk'
    """
    code = f" ({found['reason_code']})" if found["reason_code"] else ""
    return f"{found['outcome']}{code}: {found['reason'] or 'no reason was given'}"


def status_reason(audit: Fields) -> str | None:
    """Return why a run has its status, where nothing else of the explanation says the same."""
    reason: str | None = audit["status_reason"]
    told = [each["reason"] for each in (audit["judged"], audit["ending"]) if each is not None]
    return None if reason in told or audit["kind"] == "erased" else reason


def excerpt_text(excerpt: Fields) -> str:
    """Say what an excerpt is, without its text."""
    if excerpt["what"] == "command":
        words = "the last that its command printed"
        return words if excerpt["characters"] else "its command printed nothing"
    parts = [_EXCERPTS[excerpt["what"]]]
    parts += [f"{name} {excerpt[name]}" for name in ("phase", "batch") if excerpt[name] is not None]
    if excerpt["source"]:
        parts.append(f"from {excerpt['source']}")
    fault = f"{excerpt['fault']} fault" if excerpt["fault"] else None
    found = [each for each in (fault, excerpt["error"], excerpt["declared"]) if each]
    return ", ".join(parts) + (f": {', '.join(found)}" if found else "")


_EXCERPTS = {
    "answer": "answer",
    "batch": "output of a batch",
    "retry": "the last retry",
}


def kept_text(excerpt: Fields) -> str:
    """Say how long a text is, and what proves that it is the one."""
    count = excerpt["characters"]
    whole = f"{count} character{'' if count == 1 else 's'}"
    return f"{whole} in its {excerpt['kept']}, BLAKE2b-256 {excerpt['digest']}"


def fault_text(fault: Fields) -> str:
    """Name a step at fault, with the run and the rule behind it."""
    words = f"step {fault['step']} {fault['status']}: {fault['summary']}"
    if fault["run"] is None:
        return words
    rule = f" by rule {fault['rule']}" if fault["rule"] else ""
    return f"{words} → run {fault['run']}: {fault['outcome'] or 'no outcome'}{rule}"


def step_text(step: Fields) -> str:
    """Say what became of a step of an orchestrator run."""
    status = step["status"] or "not ended"
    outcome = f", {step['outcome']}" if step["outcome"] else ""
    summary = f": {step['summary']}" if step["summary"] else ""
    return f"{status}{outcome}{summary}"


def difference_text(difference: Fields) -> str:
    """Say how a verdict and the events before it differ."""
    who = "the job states" if difference["stated"] else "the verdict has"
    recorded, counted = value_text(difference["recorded"]), value_text(difference["counted"])
    return f"{difference['fact']}: {who} {recorded}, the events before it say {counted}"


def phase_text(phase: Fields, begun: str | None) -> str:
    """Say how far an open phase is."""
    total = "" if phase["total"] is None else f" of {phase['total']}"
    batches = f", {phase['batches']}{total} batches" if phase["total"] or phase["batches"] else ""
    since = f", begun {begun}" if begun else ""
    return f"phase {phase['phase']!r} {phase['status']}{since}{batches}"


def who_text(by: Fields) -> str:
    """Say who caused an event."""
    attempt = f", attempt {by['epoch']}" if by["epoch"] else ""
    return f"{by['actor']} on {by['host']}, process {by['pid']}{attempt}"


def file_text(file: Fields) -> str:
    """Say of an expected file whether the run recorded that it made it."""
    recorded = "recorded as an artifact" if file["recorded"] else "no artifact of it is recorded"
    return f"{file['path']} ({recorded})"


def origin_text(origin: Fields) -> str:
    """Say where a run's history comes from.

    >>> origin_text({"kind": "fork", "run": "job-a", "version": 7})
    'a fork: run job-a, version 7'
    """
    parts = [f"{name} {value}" for name, value in origin.items() if name != "kind"]
    kind = str(origin.get("kind"))
    told = _ORIGINS.get(kind, kind)
    return f"{told}: {', '.join(parts)}" if parts else told


_ORIGINS = {
    "fork": "a fork",
    "job-runs": "a record that another tool has kept",
    "checkpoint-file": "a checkpoint file that its job has kept",
}
"""By kind of origin."""


def bodies_text(bodies: Fields) -> str:
    """Say what became of the bodies of a run's events."""
    where = f" in {bodies['archive']}" if bodies["archive"] else ""
    because = f", because: {bodies['reason']}" if bodies["reason"] else ""
    return f"{bodies['state']}{where} by {bodies['by']}{because}"
