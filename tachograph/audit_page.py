"""An explanation of a run as one page of HTML that needs nothing else: no script, no network."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tachograph import audit_words as words
from tachograph.domain import attention
from tachograph.domain.iso_time import iso
from tachograph.domain.outcome import is_outcome, traits
from tachograph.shapes import explanation_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Fields = dict[str, Any]
    Row = tuple[object, ...]

STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #777; --good: #1a7f37; --bad: #cf222e;
  --odd: #9a6700; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; }
th { font-weight: 600; white-space: nowrap; }
table.named td { overflow-wrap: anywhere; } table.named th { width: 10rem; }
@media (max-width: 36rem) { table.named th { width: 5.5rem; white-space: normal; } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--line);
  margin: .25rem 0 1rem; padding-left: .75rem; }
code { font-size: .92em; } .dim { color: var(--dim); } .verdict { font-size: 1.15rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .odd { color: var(--odd); }
.next { border: 1px solid var(--line); border-radius: 6px; padding: .75rem 1rem; }
@media print { details { display: block; } }
"""


def page(audit: Fields, timeline: Iterable[str] = ()) -> str:
    """Return the page; `audit` is that of `auditing.audit`, `timeline` lines of what happened.

    Everything that came from outside is escaped. The same in JSON is part of the page.
    """
    from json import dumps

    title = f"{audit['run_id']}: {audit['status']}"
    # In a script element only `</` could end the data early.
    data = dumps(explanation_shape(audit), ensure_ascii=False, default=str).replace("</", "<\\/")
    body = "\n".join(_sections(audit, list(timeline)))
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head><body>\n{body}\n"
        f'<script type="application/json" id="audit">{data}</script>\n'
        "</body></html>\n"
    )


def _sections(audit: Fields, timeline: list[str]) -> Iterator[str]:
    yield f"<h1>Why run <code>{escape(audit['run_id'])}</code> stands as it does</h1>"
    yield _headline(audit)
    yield f'<p class="next"><b>Next:</b> {_with_code(audit["next_step"])}</p>'
    yield from _section("The run", _table(_run_rows(audit)))
    yield from _section("At fault", _list(words.fault_text(each) for each in audit["faults"]))
    yield from _section("Steps", _table(_step_rows(audit), ("Step", "What became of it", "Means")))
    yield from _section("The verdict", _table(_verdict_rows(audit)))
    yield from _section("What it was doing", _table(_doing_rows(audit["doing"])))
    yield from _section("Facts", _table(_fact_rows(audit), ("Fact", "Value", "Comes from")))
    yield from _section("What came back", "\n".join(_excerpts(audit)))
    yield from _section("Ruled out", _table(_ruled_out_rows(audit), ("Rule", "Why not")))
    yield from _section("What would have changed it", _table(_what_if_rows(audit), _CHANGES))
    yield from _section(words.DIFFERENT, _list(_differences(audit)))
    yield from _section("Revised since", _table(_revision_rows(audit), _REVISIONS))
    yield from _section("The last resume", _table(_resume_rows(audit["resume"])))
    if timeline:
        lines = escape("\n".join(timeline))
        yield f"<h2>What happened</h2><details><summary>{len(timeline)} entries</summary>"
        yield f"<pre>{lines}</pre></details>"


_CHANGES = ("Fact", "Was", "Had it been", "Outcome", "Because")
_REVISIONS = ("When", "Outcome", "By rule", "Why it was judged again", "By")


def _headline(audit: Fields) -> str:
    told = audit["judged"] if audit["kind"] == "judged" else audit["ending"]
    reason = audit["status_reason"] if told is None else told["reason"]
    why = f": {escape(reason)}" if reason else ""
    meaning = f' <span class="dim">({escape(audit["meaning"])})</span>' if audit["meaning"] else ""
    status = escape(audit["status"])
    return f'<p class="verdict"><b class="{_colour(audit)}">{status}</b>{why}{meaning}</p>'


def _colour(audit: Fields) -> str:
    outcome = audit["outcome"]
    if outcome is None or not is_outcome(outcome):
        return "odd"
    meant = traits(outcome, audit["reason_code"])
    return "bad" if meant.fails_step else "odd" if meant.alerts or not meant.terminal else "good"


def _run_rows(audit: Fields) -> Iterator[Row]:
    for name, value in (
        ("Command", audit["command"]),
        ("Title", audit["title"]),
        ("Part of", audit["parent"]),
        ("Where it comes from", audit["origin"] and words.origin_text(audit["origin"])),
    ):
        if value:
            yield name, value
    bodies, ending = audit["bodies"], audit["ending"]
    if bodies:
        yield "Its events", f"{words.bodies_text(bodies)}, {iso(bodies['time_us'])}"
    if audit["kind"] == "erased" and ending is not None:
        yield "It was", ending["outcome"] or "of no outcome"
        yield "Erased", f"{_place(ending)} by {words.who_text(ending['by'])}"
    elif ending is not None and audit["kind"] != "judged":
        what = ending["outcome"] or ending["topic"].partition(".")[2]
        yield "Ended", words.outcome_text({**ending, "outcome": what})
        if ending["meaning"]:
            yield "Means", ending["meaning"]
        yield "", f"{_place(ending)} by {words.who_text(ending['by'])}"
    for text in _expected(audit["expected"]):
        yield "Expected", text
    for key in audit["effects_in_doubt"]:
        yield "In doubt", key
    if audit["stall"] is not None:
        stall = audit["stall"]
        yield "Noticed", f"{stall['kind']}, {iso(stall['time_us'])}: {stall['reason']}"
    for reason, detail in audit["attention"].items():
        yield "A person is needed", attention.text(reason) + (f": {detail}" if detail else "")


def _expected(expected: Fields | None) -> Iterator[str]:
    if expected is None:
        return
    for name in ("inputs", "extracted", "minimum_fraction"):
        if expected[name] is not None:
            yield f"{name} {expected[name]}"
    if expected["deadline_us"] is not None:
        yield f"deadline {iso(expected['deadline_us'])}"
    yield from map(words.file_text, expected["files"])


def _step_rows(audit: Fields) -> Iterator[Row]:
    for each in audit["steps"]:
        yield each["step"], words.step_text(each), each["meaning"] or ""


def _verdict_rows(audit: Fields) -> Iterator[Row]:
    judged, check = audit["judged"], audit["check"]
    if judged is not None:
        policy = judged["policy"]
        yield "Outcome", words.outcome_text(judged)
        if judged["meaning"]:
            yield "Means", judged["meaning"]
        yield "Rule", words.rule_text(judged)
        for each in judged["conditions"]:
            yield "", words.condition_text(each)
        yield "Policy", f"{policy['id']}, version {policy['version']}, BLAKE2b {policy['digest']}"
        yield "Judged", f"{_place(judged)} by {words.who_text(judged['by'])}"
    if check is not None:
        yield "Check", check["text"]


def _doing_rows(doing: Fields | None) -> Iterator[Row]:
    if doing is None:
        return
    since = iso(doing["since_us"])
    attempt = f"{doing['attempt']}, begun {since}" if doing["attempt"] else f"none; made {since}"
    yield "Attempt", attempt
    for each in doing["phases"]:
        yield "At work in", words.phase_text(each, iso(each["since_us"]))
    for each in doing["steps"]:
        yield "Step", f"{each['step']}, begun {iso(each['since_us'])}"
    if doing["last_event"] is not None:
        last = doing["last_event"]
        yield "Last event", f"{last['topic'].partition('.')[2]}, {_place(last)}"


def _fact_rows(audit: Fields) -> Iterator[Row]:
    for each in words.telling(audit["facts"]):
        yield each["name"], words.value_text(each["value"]), words.source_text(each)


def _excerpts(audit: Fields) -> Iterator[str]:
    for each in audit["excerpts"]:
        head = escape(words.excerpt_text(each))
        yield f'<p>{head} <span class="dim">({escape(_place(each))})</span></p>'
        if each["text"]:
            kept = escape(words.kept_text(each))
            yield f'<pre>{escape(each["text"])}\n<span class="dim">{kept}</span></pre>'


def _ruled_out_rows(audit: Fields) -> Iterator[Row]:
    for each in audit["ruled_out"]:
        if each["text"] is not None:
            yield each["rule"], each["text"]


def _what_if_rows(audit: Fields) -> Iterator[Row]:
    for each in audit["what_if"]:
        was, to = words.value_text(each["was"]), words.value_text(each["to"])
        yield each["fact"], was, to, each["outcome"], each["reason"]


def _differences(audit: Fields) -> Iterator[str]:
    yield from map(words.difference_text, (audit["check"] or {}).get("differences", ()))


def _revision_rows(audit: Fields) -> Iterator[Row]:
    for each in audit["revisions"]:
        rule, who = words.rule_text(each), words.who_text(each["by"])
        yield _place(each), words.outcome_text(each), rule, each["why"], who


def _resume_rows(resume: Fields | None) -> Iterator[Row]:
    if resume is None:
        return
    yield "Returned", iso(resume["time_us"]) or ""
    yield "The run", "got further" if resume["progressed"] else "got no further"
    yield "Its adapter", resume["error"] or "ended well"
    if resume["stderr"]:
        yield "It wrote to stderr", resume["stderr"]


def _section(heading: str, content: str) -> Iterator[str]:
    if content:
        yield f"<h2>{heading}</h2>\n{content}"


def _table(rows: Iterable[Row], heads: tuple[str, ...] = ()) -> str:
    """Return a table; without heads the first cell of each row names it."""
    lines = []
    for row in rows:
        cells = [escape(str(cell)) for cell in row]
        first = f"<th>{cells[0]}</th>" if not heads else f"<td><code>{cells[0]}</code></td>"
        lines.append(f"<tr>{first}{''.join(f'<td>{cell}</td>' for cell in cells[1:])}</tr>")
    if not lines:
        return ""
    head = "".join(f"<th>{name}</th>" for name in heads)
    start = f"<table><tr>{head}</tr>" if heads else '<table class="named">'
    return start + "\n" + "\n".join(lines) + "\n</table>"


def _list(items: Iterable[str]) -> str:
    lines = [f"<li>{escape(item)}</li>" for item in items]
    return "<ul>\n" + "\n".join(lines) + "\n</ul>" if lines else ""


def _with_code(text: str) -> str:
    """Return a text with what stands in backquotes as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a backquote without a partner is one of the text's own
        return escape(text)
    marked = [f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)]
    return "".join(marked)


def _place(place: Fields) -> str:
    return f"{iso(place['time_us'])}, version {place['version']}, position {place['position']}"
