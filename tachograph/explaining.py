"""Say why a run stands as it does, from the log: its verdict, and what its last resume left.

It tells what is recorded and judges nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

JUDGED = "run.semantic-gate-judged"
RETURNED = "run.resume-returned"
PAGE = 500
TAIL = 8_000
"""Characters of an adapter's stderr that are shown: its end says most."""


def last_event(repository: RunRepository, run_id: str, topic: str) -> Fields | None:
    """Return the fields of a run's last event of a topic, with its version; None without one."""
    before: int | None = None
    while True:
        records = repository.log.read_stream(
            run_id, up_to=None if before is None else before - 1, limit=PAGE, reverse=True
        )
        for record in records:
            if record.topic == topic:
                return {**repository.fields(record), "version": record.version}
        if len(records) < PAGE:
            return None
        before = records[-1].version


def verdict(repository: RunRepository, run_id: str) -> Fields | None:
    """Return the gate's last verdict with the facts it saw and the versions they come from."""
    found = last_event(repository, run_id, JUDGED)
    if found is None:
        return None
    names = ("version", "gate", "outcome", "rule", "reason_code", "reason", "facts", "evidence")
    return {name: found[name] for name in (*names, "policy_version")}


def last_resume(repository: RunRepository, payloads: Payloads, run_id: str) -> Fields | None:
    """Return what the last resume that returned left: how it ended, what it said and printed."""
    found = last_event(repository, run_id, RETURNED)
    if found is None or not isinstance(found["result"], dict):
        return None
    result = {name: payloads.load(value) for name, value in found["result"].items()}
    stderr = result.pop("stderr", None) or ""
    return {
        "version": found["version"],
        "time_us": found["time_us"],
        "progressed": found["progressed"],
        "error": result.pop("error", None),
        "stderr": stderr[-TAIL:],
        "stderr_omitted": max(0, len(stderr) - TAIL),
        "result": result,
    }
