"""`tacho run explain`: why a run stands as it does."""

from __future__ import annotations

from tachograph.cli.finding import find_run, warn
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

    Fields = dict[str, Any]

SPEC = Spec(
    "Say why a run stands as it does.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    details="""Shows the verdict with its rule, the facts it saw and the events they come from;
what the watchdog noticed; what the last resume left, with what its adapter wrote to stderr; what
is in doubt; and the next step. Everything comes from the log.""",
)


def run(params: Params, out: Output) -> None:
    """Print the explanation."""
    from tachograph.advising import effects_in_doubt, next_step
    from tachograph.explaining import last_resume, verdict
    from tachograph.looking import summary_of

    services = open_store(out, read_only=True)
    run_id = find_run(services, params.run, out)
    summary = summary_of(services, run_id, report=warn(out))
    judged = verdict(services.repository, run_id)
    resume = last_resume(services.repository, services.payloads, run_id)
    doubted, step = effects_in_doubt(summary), next_step(summary)
    if out.json:
        from tachograph.shapes import explanation_shape

        shape = explanation_shape(summary, judged, resume)
        out.document({**shape, "effectsInDoubt": doubted, "nextStep": step})
        return
    from tachograph.cli.cards import card

    card(out, list(_rows(summary, judged, resume, doubted, out)))
    if resume is not None and resume["stderr"]:
        out.line()
        out.line("Its adapter wrote to stderr:" + _omitted(resume["stderr_omitted"]))
        for line in resume["stderr"].rstrip("\n").splitlines():
            out.line(f"  {line}")
    out.line()
    out.line(step)


def _rows(
    summary: Fields,
    judged: Fields | None,
    resume: Fields | None,
    doubted: list[str],
    out: Output,
) -> Iterator[tuple[str, str | None]]:
    from tachograph.domain.attention import text

    why = f": {summary['status_reason']}" if summary["status_reason"] else ""
    yield "Run", f"{summary['id']}  ({summary['command']})"
    yield "Status", summary["status"] + why
    if judged is not None:
        yield "Verdict", f"{judged['outcome']} ({judged['reason_code']}): {judged['reason']}"
        yield "Rule", f"{judged['rule']}, policy {judged['policy_version']}"
        facts = judged["facts"] if isinstance(judged["facts"], dict) else {}
        said = [f"{name} {value}" for name, value in facts.items() if value is not None]
        yield "Facts", ", ".join(said) or None
        yield "Evidence", _versions(judged["evidence"])
    stall = summary["stall"]
    if stall is not None:
        yield "Noticed", f"{stall['kind']}, {out.when(stall['time_us'])}: {stall['reason']}"
    if resume is not None:
        came = "the run got further" if resume["progressed"] else "the run got no further"
        yield "Resume", f"returned {out.when(resume['time_us'])}: {came}"
        yield "Adapter", resume["error"] or "ended well"
        yield "Said", _said(resume["result"])
    for number, key in enumerate(doubted):
        yield "In doubt" if not number else "", key
    for number, (reason, detail) in enumerate(summary["attention"].items()):
        needed = text(reason) + (f": {detail}" if detail else "")
        yield "Attention" if not number else "", needed


def _versions(versions: list[int]) -> str | None:
    if not versions:
        return None
    return f"events of version {', '.join(map(str, versions))} (`tacho run events`)"


def _said(result: Fields) -> str | None:
    import json

    reply = result.get("reply")
    if not reply:
        return None
    omitted = [f"{count} characters of {name}" for name, count in result.get("omitted", {}).items()]
    left_out = f"  ({', '.join(omitted)} are left out)" if omitted else ""
    return json.dumps(reply, ensure_ascii=False, default=str) + left_out


def _omitted(characters: int) -> str:
    return f" (its first {characters} characters are left out)" if characters else ""
