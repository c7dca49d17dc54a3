"""Find the events behind the facts of a verdict, and what the model or parser had returned.

Reads a bounded part of a run's events, however long the run is.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

from tachograph.domain.answers import is_about_items
from tachograph.domain.blank import says_nothing
from tachograph.domain.blobref import BlobRef
from tachograph.domain.errors import BlobMissingError
from tachograph.domain.facts import DERIVED, MEANINGS
from tachograph.domain.recovery_state import ending_key
from tachograph.explaining import cut, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.payloads import Payloads
    from tachograph.recounting import Recount
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]
    Matches = Callable[[Fields], bool]

FIRST = 3
LAST = 2
"""Events of a fact that are named: its first ones and its last ones."""
MOST_EXCERPTS = 5
LONGEST = 600
"""Characters of an excerpt that are shown; its digest covers all of it."""
PAGE = 500
MOST_READ = 20_000
"""Events that are looked through for excerpts, from the newest on."""

ANSWER, BATCH = "run.answer-received", "run.batch-completed"
STEP, PHASE_ENDED = "run.step-completed", "run.phase-ended"
RETRY = "run.retry-scheduled"
MOST_SEARCHED = 2_000
"""Events that are looked through for those of one fact, from either end."""


def facts(recount: Recount, repository: RunRepository) -> list[Fields]:
    """Return each fact with its meaning, where it comes from and the events that say it.

    `source` is `counted` (from events), `stated` (by the job, in the verdict itself) or `derived`
    (from other facts). Of many events the first and the last few are named.
    """
    found: list[Fields] = []
    for name, value in recount.facts.said().items():
        span = recount.evidence.get(name)
        stated = span is None and recount.verdict is not None and recount.is_stated(name)
        entry = {
            "name": name,
            "value": value,
            "meaning": MEANINGS[name][1],
            "source": "stated" if stated else "counted",
            "events": [],
            "count": 0 if span is None else span[2],
        }
        if span is not None:
            entry["events"] = _named(recount, repository, name, span)
        found.append(entry)
    faults = recount.facts.value("faults")
    if faults and recount.facts.said().get("faults") is None:
        found.append(_derived("faults", faults, "faults of each kind and failed phases together"))
    for name, (_kind, text) in DERIVED.items():
        value = recount.facts.value(name)
        if value is not None:
            found.append(_derived(name, value, text))
    return found


def _derived(name: str, value: Any, meaning: str) -> Fields:
    plain = {"name": name, "value": value, "meaning": meaning, "source": "derived"}
    return {**plain, "events": [], "count": 0}


def _named(recount: Recount, repository: RunRepository, fact: str, span: list[int]) -> list[Fields]:
    """Return where the first and the last events are that say a fact."""
    first, last, count = span
    topic = _topic(repository, recount.run.id, first)
    says = _says(recount, fact, topic)

    def search(most: int, *, reverse: bool) -> Iterator[Fields]:
        records = _records(repository, recount.run.id, first, last, reverse=reverse)
        for record in islice(records, MOST_SEARCHED):
            if record.topic == topic and not record.absent and says(repository.fields(record)):
                yield place(record)
                most -= 1
                if not most:
                    return

    named = list(search(min(count, FIRST + LAST), reverse=False))
    if len(named) == count:
        return named
    known = {each["version"] for each in named[:FIRST]}
    back = [each for each in search(LAST, reverse=True) if each["version"] not in known]
    return [*named[:FIRST], *back[::-1]]


def _topic(repository: RunRepository, run_id: str, version: int) -> str:
    found = repository.log.read_stream(run_id, after=version - 1, up_to=version)
    return found[0].topic if found else ""


def _says(recount: Recount, fact: str, topic: str) -> Matches:
    """Return which events of a topic say a fact: those that `domain.counting` counts it from."""
    if topic == ANSWER:
        return _answers(recount, fact)
    if topic == PHASE_ENDED:
        return lambda fields: bool(fields["status"] == "failed")
    if topic != BATCH or fact == "batches_done":
        return lambda _fields: True
    spoken = {recount.counted.phase}
    blank = {name for name, phase in recount.run.phases.items() if phase.blank}
    phases = blank if fact == "blank" else spoken
    return lambda fields: fields["phase"] in phases


def _answers(recount: Recount, fact: str) -> Matches:
    if fact.endswith("_faults"):
        kind = fact.removesuffix("_faults")
        return lambda fields: bool(fields["fault"] == kind)
    answers, spoken = recount.run.answers, recount.counted.phase
    if fact == "recovered":
        mended = {name for name, each in answers.items() if each.recovered}
        return lambda fields: fields["fault"] is not None and (fields["phase"] or "") in mended
    if fact == "quiet":
        speaking = set(answers) if spoken is None else {spoken}
        return lambda fields: fields["declared"] is not None and (fields["phase"] or "") in speaking
    if fact == "filtered":  # what could not be read took nothing out
        return lambda fields: (
            fields["fault"] == "filter"
            or (fields["filtered"] is not None and is_about_items(fields))
        )
    filters = {name for name, each in answers.items() if "filtered" in each.counts}
    phases = filters if fact == "extracted" else {spoken or ""}
    says = "asked" if fact in ("extracted", "inputs") else fact
    return lambda fields: (
        (fields["phase"] or "") in phases and fields[says] is not None and is_about_items(fields)
    )


def _records(
    repository: RunRepository, run_id: str, first: int, last: int, *, reverse: bool
) -> Iterator[Record]:
    """Yield the records of a stretch of a stream, page by page."""
    while first <= last:
        page = repository.log.read_stream(
            run_id, after=first - 1, up_to=last, limit=PAGE, reverse=reverse
        )
        yield from page
        if len(page) < PAGE:
            return
        if reverse:
            last = page[-1].version - 1
        else:
            first = page[-1].version + 1


def excerpts(
    recount: Recount, repository: RunRepository, payloads: Payloads, *, whole: bool = False
) -> list[Fields]:
    """Return what was said back where that decided something, the newest first.

    Up to the verdict, or in the `whole` run.

    That are answers with a fault or without a readable item, declarations that there is nothing
    to do, batches of which nothing came out, and the last output of a wrapped command; where no
    verdict says why, the last retry too.
    """
    found: list[Fields] = []
    topics = {ANSWER, BATCH, STEP} | ({RETRY} if whole else set())
    run_id = recount.run.id
    end = repository.log.stream_version(run_id) if whole else recount.run.version
    for record in islice(_records(repository, run_id, 1, end, reverse=True), MOST_READ):
        if record.absent or record.topic not in topics:
            continue
        if record.topic == RETRY:
            topics.remove(RETRY)  # the last one says it
        said = _said(record.topic, repository.fields(record), recount.run.epoch)
        if said is not None:
            stored = said.pop("stored")
            excerpt = {**said, **place(record), **_text(stored, payloads)}
            if found and _repeats(found[-1], excerpt):
                found.pop()  # the job handed over as it was what it had been told
            found.append(excerpt)
            if len(found) > MOST_EXCERPTS:
                return found[:MOST_EXCERPTS]
    return found


def _repeats(later: Fields, excerpt: Fields) -> bool:
    """Say whether a batch holds nothing but the text of the answer before it."""
    same = ("phase", "batch", "digest")
    return later["what"] == "batch" and all(later[name] == excerpt[name] for name in same)


def _said(topic: str, fields: Fields, epoch: int) -> Fields | None:
    """Return what an event tells of what came back, None when it decides nothing."""
    if topic == ANSWER:
        decides = fields["fault"] is not None or fields["declared"] is not None
        decides = decides or (fields["parsed"] == 0 and bool(fields["asked"]))
        names = ("phase", "batch", "source", "fault", "error", "declared")
        said = {"what": "answer", **{name: fields[name] for name in names}}
        return {**said, "stored": fields["text"]} if decides else None
    empty: Fields = {"source": None, "fault": None, "error": None, "declared": None}
    if topic == BATCH:
        if fields["output"] is None or not _is_fruitless(fields):
            return None
        said = {"what": "batch", "phase": fields["phase"], "batch": fields["index"], **empty}
        return {**said, "stored": fields["output"]}
    if topic == RETRY:
        said = {**empty, "what": "retry", "phase": None, "batch": None, "stored": None}
        return {**said, "source": fields["model"], "error": fields["error"]}
    if fields["key"] != ending_key(epoch):
        return None
    return {"what": "command", "phase": None, "batch": None, **empty, "stored": fields["result"]}


def _is_fruitless(fields: Fields) -> bool:
    """Say whether a batch went in and nothing came out of it."""
    if fields["parsed"] == 0 and fields["inputs"]:
        return True
    return not fields["parsed"] and says_nothing(fields["output"])


def _text(stored: Any, payloads: Payloads) -> Fields:
    """Return a text as an excerpt: its beginning (a command's end), its digest and its length."""
    if stored is None:
        return {"text": None, "digest": None, "characters": 0, "kept": None}
    kept = "blob" if isinstance(stored, BlobRef) else "event"
    try:
        value = payloads.load(stored)
    except BlobMissingError as error:
        digest = stored.digest if isinstance(stored, BlobRef) else None
        return {"text": f"({error})", "digest": digest, "characters": 0, "kept": kept}
    tail = isinstance(value, dict) and "output_bytes" in value
    text = _as_text(value["output"] if tail else value)
    shown = _end(text) if tail else cut(text, LONGEST)
    digest = (
        stored.digest
        if isinstance(stored, BlobRef)
        else blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
    )
    return {"text": shown, "digest": digest, "characters": len(text), "kept": kept}


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    from json import dumps

    return dumps(value, ensure_ascii=False, default=str)


def _end(text: str) -> str:
    return text if len(text) <= LONGEST else f"… {text[-LONGEST:]}"
