"""Find in the log what explains a run: single events, where they stand, what a resume left.

It tells what is recorded and judges nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]

JUDGED = "run.semantic-gate-judged"
RETURNED = "run.resume-returned"
PAGE = 500
MOST_LOOKED_AT = 2_000
"""Events that are looked through for what comes after a run has ended."""
TAIL = 8_000
"""Characters of an adapter's stderr that are shown: its end says most."""
LONGEST = 2_000
"""Characters of each single thing that an adapter said: its beginning says most."""
MOST_SAID = 16_000
"""Characters of all that it said."""
OTHERS = "…"
"""Counts the members of a reply of which nothing is shown."""


def last_event(repository: RunRepository, run_id: str, *topics: str) -> Fields | None:
    """Return the fields of a run's last event of these topics, and where it stands.

    None without one, and where its body was erased.
    """
    before: int | None = None
    while True:
        records = repository.log.read_stream(
            run_id, up_to=None if before is None else before - 1, limit=PAGE, reverse=True
        )
        for record in records:
            if record.topic in topics:
                return None if record.absent else {**repository.fields(record), **place(record)}
        if len(records) < PAGE:
            return None
        before = records[-1].version


def event_at(repository: RunRepository, run_id: str, version: int) -> Fields | None:
    """Return the fields of one event, with its version, position and time; None if it is gone."""
    for record in repository.log.read_stream(run_id, after=version - 1, up_to=version):
        if not record.absent:
            return {**repository.fields(record), **place(record)}
    return None


def place(record: Record) -> Fields:
    """Return where an event stands, and when it was recorded."""
    return {
        "version": record.version,
        "position": record.position,
        "time_us": record.time_us,
        "topic": record.topic,
    }


def who(by: list[Any]) -> Fields:
    """Return who caused an event."""
    actor, host, pid, epoch = by
    return {"actor": actor, "host": host, "pid": pid, "epoch": epoch}


def latest_events(
    repository: RunRepository, run_id: str, topic: str, *, most: int = MOST_LOOKED_AT
) -> Iterator[tuple[Record, Fields]]:
    """Yield the newest events of a topic among the newest `most` events, the newest first."""
    for record in repository.log.read_stream(run_id, limit=most, reverse=True):
        if record.topic == topic and not record.absent:
            yield record, repository.fields(record)


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
