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
LONGEST = 2_000
"""Characters of each single thing that an adapter said: its beginning says most."""
MOST_SAID = 16_000
"""Characters of all that it said."""
OTHERS = "…"
"""Counts the members of a reply of which nothing is shown."""


def last_event(repository: RunRepository, run_id: str, topic: str) -> Fields | None:
    """Return the fields of a run's last event of a topic, with its version.

    None without one, and where its body was erased.
    """
    before: int | None = None
    while True:
        records = repository.log.read_stream(
            run_id, up_to=None if before is None else before - 1, limit=PAGE, reverse=True
        )
        for record in records:
            if record.topic == topic:
                if record.absent:
                    return None
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
    """Return what the last resume that returned left: how it ended, what it said and printed.

    A long reply is cut: then `omitted` of the result counts, by member, the characters left out.
    """
    found = last_event(repository, run_id, RETURNED)
    if found is None or not isinstance(found["result"], dict):
        return None
    result = {name: payloads.load(value) for name, value in found["result"].items()}
    stderr = result.pop("stderr", None) or ""
    error = result.pop("error", None)
    if isinstance(result.get("reply"), dict):
        result["reply"], omitted = bounded(result["reply"])
        if omitted:
            result["omitted"] = omitted
    return {
        "version": found["version"],
        "time_us": found["time_us"],
        "progressed": found["progressed"],
        "error": None if error is None else cut(str(error)),
        "stderr": stderr[-TAIL:],
        "stderr_omitted": max(0, len(stderr) - TAIL),
        "result": result,
    }


def cut(text: str, most: int = LONGEST) -> str:
    """Return a text; of a long one its beginning, and how much is left out.

    >>> cut("0123456789", 4)
    '0123… (6 characters left out)'
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters left out)"


def bounded(reply: Fields) -> tuple[Fields, dict[str, int]]:
    """Return what of a reply is shown, and the characters left out of each other member.

    >>> bounded({"ok": True, "raw_stdout": 2_010 * "x"})[1]
    {'raw_stdout': 10}
    """
    from json import dumps

    shown: Fields = {}
    omitted: dict[str, int] = {}
    left = MOST_SAID
    for name, value in reply.items():
        is_text = isinstance(value, str)
        text = value if is_text else dumps(value, ensure_ascii=False, default=str)
        most = max(0, min(LONGEST, left - len(name)))
        if not most:
            omitted[OTHERS] = omitted.get(OTHERS, 0) + len(name) + len(text)
            continue
        left -= len(name) + min(len(text), most)
        if len(text) <= most:
            shown[name] = value
        else:
            shown[name], omitted[name] = text[:most], len(text) - most
    return shown, omitted
