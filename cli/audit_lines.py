"""The explanation of a run as lines for people. Decides no content."""

from __future__ import annotations

from tachograph import audit_words as words
from tachograph.cli.tables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.cli.output import Output

    Fields = dict[str, Any]
    Row = tuple[str, str | None]

DIGEST = 16
"""Letters of a digest that are shown; `--json` has all."""


def print_audit(audit: Fields, out: Output) -> None:
    """Print an explanation, the most important first and the next step last."""
    from tachograph.cli.cards import card

    card(out, list(_rows(audit, out)))
    for heading, lines in (
        ("At fault", [shown(words.fault_text(each)) for each in audit["faults"]]),
        ("Steps", list(_step_lines(audit))),
        ("Facts", list(_fact_lines(audit))),
        ("What came back", list(_excerpt_lines(audit))),
        ("Ruled out", list(_ruled_out_lines(audit))),
        ("What would have changed it", list(_what_if_lines(audit))),
        (words.DIFFERENT, list(_difference_lines(audit))),
        ("Its adapter wrote to stderr", list(_stderr_lines(audit))),
    ):
        if lines:
            out.line()
            out.line(f"\033[1m{heading}\033[0m" if out.styled() else heading)
            for line in lines:
                out.line(f"  {line}")
    out.line()
    out.line(shown(audit["next_step"]))


def _rows(audit: Fields, out: Output) -> Iterator[Row]:
    reason = words.status_reason(audit)
    command = f"  ({audit['command']})" if audit["command"] else ""
    yield "Run", f"{audit['run_id']}{command}"
    yield "Title", audit["title"]
    yield "Part of", audit["parent"]
    yield "From", None if audit["origin"] is None else words.origin_text(audit["origin"])
    yield "Status", audit["status"] + (f": {reason}" if reason else "")
    yield from _doing_rows(audit["doing"], out)
    yield from _verdict_rows(audit, out)
    yield from _ending_rows(audit, out)
    yield from _revision_rows(audit, out)
    yield from _expected_rows(audit["expected"], out)
    yield "Check", None if audit["check"] is None else audit["check"]["text"]
    yield from _recovery_rows(audit, out)


def _verdict_rows(audit: Fields, out: Output) -> Iterator[Row]:
    judged = audit["judged"]
    if judged is None:
        return
    yield "Verdict", words.outcome_text(judged)
    yield "Means", judged["meaning"]
    yield "Rule", words.rule_text(judged)
    for each in judged["conditions"]:
        yield "", words.condition_text(each)
    yield "Judged", f"{_when(judged, out)} by {words.who_text(judged['by'])}"


def _ending_rows(audit: Fields, out: Output) -> Iterator[Row]:
    """Say how the run came by its outcome where it was not by the gate."""
    ending, bodies = audit["ending"], audit["bodies"]
    if bodies is not None:
        yield "Its events", f"{words.bodies_text(bodies)}, {out.when(bodies['time_us'], 'iso')}"
    if ending is None or audit["kind"] == "judged":
        return
    place = f"{_when(ending, out)} by {words.who_text(ending['by'])}"
    if audit["kind"] == "erased":
        yield "It was", ending["outcome"]
        yield "Erased", place
        return
    what = ending["topic"].partition(".")[2]
    yield "Ended", words.outcome_text({**ending, "outcome": ending["outcome"] or what})
    yield "Means", ending["meaning"] or (None if audit["judged"] is not None else audit["meaning"])
    yield "", place


def _revision_rows(audit: Fields, out: Output) -> Iterator[Row]:
    for each in audit["revisions"]:
        yield "Revised", words.outcome_text(each)
        yield "", f"by rule {words.rule_text(each)}; its outcome stays {audit['outcome']}"
        yield "", f"because {each['why'] or 'nobody said why'}"
        yield "", f"{_when(each, out)} by {words.who_text(each['by'])}"


def _doing_rows(doing: Fields | None, out: Output) -> Iterator[Row]:
    if doing is None:
        return
    since = out.when(doing["since_us"], "relative")
    attempt = (
        f"{doing['attempt']}, begun {since}" if doing["attempt"] else f"none yet; made {since}"
    )
    yield "Attempt", attempt
    what = "Doing" if doing["alive"] else "Was doing"
    for number, each in enumerate(doing["phases"]):
        begun = None if each["since_us"] is None else out.when(each["since_us"])
        yield "" if number else what, words.phase_text(each, begun)
    for number, each in enumerate(doing["steps"]):
        yield "" if number else "Step", f"{each['step']}, begun {out.when(each['since_us'])}"
    last = doing["last_event"]
    if last is not None:
        yield "Last event", f"{last['topic'].partition('.')[2]}, {_when(last, out)}"


def _expected_rows(expected: Fields | None, out: Output) -> Iterator[Row]:
    if expected is None:
        return
    names = ("inputs", "extracted", "minimum_fraction")
    said = [f"{name} {expected[name]}" for name in names if expected[name] is not None]
    if expected["deadline_us"] is not None:
        said.append(f"deadline {out.when(expected['deadline_us'], 'iso')}")
    said += [words.file_text(each) for each in expected["files"]]
    for number, text in enumerate(said):
        yield "" if number else "Expected", text


def _recovery_rows(audit: Fields, out: Output) -> Iterator[Row]:
    from tachograph.domain.attention import text

    stall, resume = audit["stall"], audit["resume"]
    if stall is not None:
        yield "Noticed", f"{stall['kind']}, {out.when(stall['time_us'])}: {stall['reason']}"
    if resume is not None:
        came = "the run got further" if resume["progressed"] else "the run got no further"
        yield "Resume", f"returned {out.when(resume['time_us'])}: {came}"
        yield "Adapter", resume["error"] or "ended well"
        yield "Said", _said(resume["result"])
    for number, key in enumerate(audit["effects_in_doubt"]):
        yield "" if number else "In doubt", key
    for number, (reason, detail) in enumerate(audit["attention"].items()):
        needed = text(reason) + (f": {detail}" if detail else "")
        yield "" if number else "Attention", needed


def _step_lines(audit: Fields) -> Iterator[str]:
    from tachograph.cli.tables import cells

    names = max((cells(each["step"]) for each in audit["steps"]), default=0)
    for each in audit["steps"]:
        meaning = f" ({each['meaning']})" if each["meaning"] else ""
        yield shown(f"{each['step']:<{names}}  {words.step_text(each)}{meaning}")


def _fact_lines(audit: Fields) -> Iterator[str]:
    from tachograph.cli.tables import cells

    told = words.telling(audit["facts"])
    rows = [
        (each["name"], words.value_text(each["value"]), words.source_text(each)) for each in told
    ]
    names = max((cells(name) for name, _, _ in rows), default=0)
    # A text, such as the reason for having stopped, does not push all numbers to the right.
    numbers = [
        words.value_text(each["value"]) for each in told if not isinstance(each["value"], str)
    ]
    width = max(map(cells, numbers), default=0)
    for name, value, source in rows:
        yield shown(f"{name:<{names}}  {value:>{width}}  {source}")


def _excerpt_lines(audit: Fields) -> Iterator[str]:
    for each in audit["excerpts"]:
        yield shown(f"{words.excerpt_text(each)} (version {each['version']})")
        if each["text"]:
            kept = words.kept_text({**each, "digest": f"{(each['digest'] or '')[:DIGEST]}…"})
            yield f"  {kept}"
            for line in each["text"].splitlines():
                yield f"  | {shown(line)}"


def _ruled_out_lines(audit: Fields) -> Iterator[str]:
    for each in audit["ruled_out"]:
        if each["text"] is not None:
            yield shown(f"{each['text']}  ({each['rule']})")


def _what_if_lines(audit: Fields) -> Iterator[str]:
    for each in audit["what_if"]:
        yield shown(f"{each['text']} ({each['reason']})")


def _difference_lines(audit: Fields) -> Iterator[str]:
    for each in (audit["check"] or {}).get("differences", ()):
        yield shown(words.difference_text(each))


def _stderr_lines(audit: Fields) -> Iterator[str]:
    resume = audit["resume"]
    if resume is None or not resume["stderr"]:
        return
    if resume["stderr_omitted"]:
        yield f"(its first {resume['stderr_omitted']} characters are left out)"
    yield from (shown(line) for line in resume["stderr"].rstrip("\n").splitlines())


def _said(result: Fields) -> str | None:
    import json

    reply = result.get("reply")
    if not reply:
        return None
    omitted = [f"{count} characters of {name}" for name, count in result.get("omitted", {}).items()]
    left_out = f"  ({', '.join(omitted)} are left out)" if omitted else ""
    return json.dumps(reply, ensure_ascii=False, default=str) + left_out


def _when(place: Fields, out: Output) -> str:
    when = out.when(place["time_us"], "iso")
    return f"{when} (version {place['version']}, position {place['position']})"
