"""Golden runs that the semantic gate judged: one for each reason code of its policies and more.

Each function records a run and returns its id. Holds no test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audit.bench import golden

from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from audit.bench import Audited

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.session import Session

MINUTE_US = 60_000_000
NOTHING_FOUND = "I could not find any problems in these files."


def retry(number: int) -> Callable[[Run, Cause], None]:
    """Return the command that something is tried once more."""
    return lambda run, why: run.schedule_retry(
        why, "parse", number, delay_seconds=2.0, error="not a JSON array"
    )


def work(
    session: Session,
    phase: str,
    results: Sequence[tuple[int | None, int | None, Any]],
    *,
    total: int | None = None,
    end: bool = True,
) -> None:
    """Record a phase of batches, each with its inputs, the items that came out, and its output."""
    session.start_phase(phase)
    session.plan_batches(phase, len(results) if total is None else total, 50, "items")
    for index, (inputs, parsed, output) in enumerate(results):
        session.complete_batch(phase, index, inputs=inputs, parsed=parsed, output=output)
    if end:
        session.end_phase(phase)


@golden
def outputs_present(bench: Audited) -> str:
    """All that went in came out."""
    session = bench.job("index-notes", title="Nightly index of the notes")
    work(session, "embed", [(50, 50, "ok"), (50, 50, "ok"), (20, 20, "ok")])
    bench.ends(session)
    return session.run_id


@golden
def outputs_present_recovered(bench: Audited) -> str:
    """A parser failed twice and a later try made both good: that decides nothing."""
    session = bench.job("extract-facts")
    session.start_phase("extract")
    session.plan_batches("extract", 2, 25, "items")
    for batch, tries in enumerate((2, 0)):
        for number in range(1, tries + 1):
            session.receive_answer(
                phase="extract",
                batch=batch,
                source="large",
                asked=25,
                answered=25,
                parsed=0,
                fault="parser",
                error="not a JSON array",
                text=f"Here is the list you asked for ({number}): [",
            )
            session.execute(retry(number))
        session.receive_answer(
            phase="extract", batch=batch, source="large", asked=25, answered=25, parsed=25
        )
        session.complete_batch("extract", batch, inputs=25, parsed=25, output="ok")
    session.end_phase("extract")
    bench.ends(session)
    return session.run_id


@golden
def files_made(bench: Audited) -> str:
    """All files that the run was to make are there."""
    session = bench.job("weekly-report")
    path = bench.folder / "report.html"
    session.expect(Expectations(), files=[str(path)])
    path.write_text("<h1>Week 9</h1>" + "<p>All is well.</p>" * 20, encoding="utf-8")
    session.start_phase("render")
    session.end_phase("render")
    bench.ends(session)
    return session.run_id


@golden
def effects_done(bench: Audited) -> str:
    """All its work is a side effect."""
    session = bench.job("send-digest")
    session.intend_effect("mail the digest", description="to 12 readers")
    session.complete_effect("mail the digest", {"message": "<7@ada>"})
    bench.ends(session)
    return session.run_id


@golden
def not_judged(bench: Audited) -> str:
    """Nothing says whether it did its work."""
    session = bench.job("tidy-up")
    session.start_phase("tidy")
    session.end_phase("tidy", summary="done")
    bench.ends(session)
    return session.run_id


@golden
def fewer_outputs(bench: Audited) -> str:
    """Two items of a batch are missing."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok"), (50, 48, "48 of 50"), (20, 20, "ok")])
    bench.ends(session)
    return session.run_id


@golden
def faults_seen(bench: Audited) -> str:
    """A tool failed on the way; all items came out."""
    session = bench.job("check-links")
    session.start_phase("check")
    session.plan_batches("check", 1, 30, "items")
    session.receive_answer(
        phase="check",
        source="fetch",
        asked=1,
        answered=0,
        fault="tool",
        error="HTTP 503 from the archive",
    )
    session.complete_batch("check", 0, inputs=30, parsed=30, output="ok")
    session.end_phase("check")
    bench.ends(session)
    return session.run_id


@golden
def tool_and_model(bench: Audited) -> str:
    """A tool failed within a phase whose answers are counted: it says nothing about the items."""
    session = bench.job("check-links")
    session.start_phase("check")
    for asked in (10, 20):
        session.receive_answer(
            phase="check", source="large", asked=asked, answered=asked, parsed=asked
        )
        session.receive_answer(
            phase="check", source=f"fetch {asked}", asked=1, answered=0, fault="tool", error="404"
        )
    session.end_phase("check")
    bench.ends(session)
    return session.run_id


@golden
def outputs_without_input(bench: Audited) -> str:
    """The job states that nothing came in and that something came out."""
    session = bench.job("summarise-inbox")
    session.judge(Facts(inputs=0, outputs=3))
    bench.ends(session)
    return session.run_id


@golden
def some_files_missing(bench: Audited) -> str:
    """One of two files is there."""
    session = bench.job("weekly-report")
    made, missing = bench.folder / "report.html", bench.folder / "report.pdf"
    session.expect(Expectations(), files=[str(made), str(missing)])
    made.write_text("<h1>Week 9</h1>" + "<p>All is well.</p>" * 20, encoding="utf-8")
    session.execute(
        lambda run, why: run.record_artifact(
            why, "report", path=str(made), size=made.stat().st_size, sha256="ab" * 32
        )
    )
    bench.ends(session)
    return session.run_id


@golden
def no_file_made(bench: Audited) -> str:
    """None of the files that it was to make is there."""
    session = bench.job("weekly-report")
    session.expect(Expectations(), files=[str(bench.folder / "report.html")])
    session.start_phase("render")
    session.end_phase("render")
    bench.ends(session)
    return session.run_id


@golden
def stopped_by_budget(bench: Audited) -> str:
    """The job says that it stopped at its budget, with half of the work done."""
    session = bench.job("reflect-on-incidents")
    work(session, "analyse", [(50, 50, "ok")], total=2, end=False)
    session.judge(Facts(inputs=100, stopped="budget of 200000 tokens is spent"))
    bench.ends(session)
    return session.run_id


@golden
def deadline_passed(bench: Audited) -> str:
    """The declared deadline passed while batches were left."""
    session = bench.job("reflect-on-incidents")
    session.expect(Expectations(inputs=100, deadline_us=bench.now + 10 * MINUTE_US))
    work(session, "analyse", [(50, 50, "ok")], total=2, end=False)
    bench.passes(600)
    bench.ends(session)
    return session.run_id


@golden
def stopped_before_output(bench: Audited) -> str:
    """The job says that its time was up before anything came out."""
    session = bench.job("reflect-on-incidents")
    work(session, "analyse", [], total=2, end=False)
    session.judge(Facts(inputs=100, stopped="deadline"))
    bench.ends(session)
    return session.run_id


@golden
def deadline_before_output(bench: Audited) -> str:
    """The declared deadline passed before the first batch was finished."""
    session = bench.job("reflect-on-incidents")
    session.expect(Expectations(inputs=100, deadline_us=bench.now + 10 * MINUTE_US))
    work(session, "analyse", [], total=2, end=False)
    bench.passes(601)
    bench.ends(session)
    return session.run_id


@golden
def provider_failed(bench: Audited) -> str:
    """The provider answered none of the requests."""
    session = bench.job("reflect-on-incidents")
    session.start_phase("analyse")
    session.plan_batches("analyse", 2, 50, "items")
    for batch in range(2):
        session.receive_answer(
            phase="analyse",
            batch=batch,
            source="large",
            asked=50,
            answered=0,
            fault="provider",
            error="HTTP 529: overloaded",
        )
    session.end_phase("analyse", status="failed", summary="nobody answered")
    bench.ends(session)
    return session.run_id


@golden
def never_asked(bench: Audited) -> str:
    """There was work, and the model was never called."""
    session = bench.job("reflect-on-incidents")
    session.expect(Expectations(inputs=12))
    session.judge(Facts(asked=0, outputs=0))
    bench.ends(session)
    return session.run_id


@golden
def below_minimum_fraction(bench: Audited) -> str:
    """Less came out than was declared as the least."""
    session = bench.job("index-notes")
    session.expect(Expectations(minimum_fraction=0.95))
    work(session, "embed", [(50, 50, "ok"), (50, 30, "30 of 50")])
    bench.ends(session)
    return session.run_id


@golden
def filter_unreadable(bench: Audited) -> str:
    """A classifier whose answers cannot be read lets nothing through: not `no input`."""
    session = bench.job("reflect-on-incidents")
    session.start_phase("classify")
    session.receive_answer(
        phase="classify",
        source="small",
        asked=40,
        answered=40,
        fault="filter",
        error="expected one of yes, no; got prose",
        text="As an assistant I would say that most of these incidents are not incidents.",
    )
    session.end_phase("classify")
    bench.ends(session)
    return session.run_id


@golden
def faults_only(bench: Audited) -> str:
    """Answers were cut off, and nothing else came of it."""
    session = bench.job("reflect-on-incidents")
    session.start_phase("analyse")
    session.receive_answer(
        phase="analyse",
        source="large",
        asked=40,
        answered=40,
        fault="truncated",
        error="stop reason: max_tokens",
        text='[{"incident": 1, "cause": "the disk was fu',
    )
    session.end_phase("analyse", status="failed")
    bench.ends(session)
    return session.run_id


@golden
def blank_output(bench: Audited) -> str:
    """Whitespace and placeholders are no output."""
    session = bench.job("summarise-inbox")
    session.start_phase("summarise")
    session.plan_batches("summarise", 2, 1, "items")
    for index, output in enumerate(("(no text output)", " \n\t")):
        session.complete_batch("summarise", index, inputs=1, output=output)
    session.end_phase("summarise")
    bench.ends(session)
    return session.run_id


@golden
def no_item_parsed(bench: Audited) -> str:
    """The model answered in prose, and no item could be read from it."""
    session = bench.job("reflect-on-incidents", title="What went wrong yesterday")
    session.expect(Expectations(deadline_us=bench.now + 45 * MINUTE_US))
    session.start_phase("analyse")
    session.plan_batches("analyse", 2, 50, "items")
    for batch, asked in enumerate((50, 34)):
        session.receive_answer(
            phase="analyse",
            batch=batch,
            source="large",
            asked=asked,
            answered=asked,
            parsed=0,
            text=NOTHING_FOUND,
        )
        session.complete_batch("analyse", batch, inputs=asked, parsed=0, output=NOTHING_FOUND)
    session.end_phase("analyse")
    bench.ends(session)
    return session.run_id


@golden
def declared_no_work(bench: Audited) -> str:
    """The job says that there was nothing to do."""
    session = bench.job("summarise-inbox")
    session.judge(Facts(inputs=0, outputs=0, declared="no mail since yesterday"))
    bench.ends(session)
    return session.run_id


@golden
def declared_for_each(bench: Audited) -> str:
    """For each item it was declared that there is nothing to do."""
    session = bench.job("check-links")
    session.start_phase("check")
    session.plan_batches("check", 2, 20, "items")
    for index, items in enumerate((20, 11)):
        session.complete_batch(
            "check", index, inputs=items, parsed=0, declared="no link has changed"
        )
    session.end_phase("check")
    bench.ends(session)
    return session.run_id


@golden
def all_filtered(bench: Audited) -> str:
    """A filter that could be read took everything out."""
    session = bench.job("reflect-on-incidents")
    session.start_phase("classify")
    session.receive_answer(
        phase="classify", source="small", asked=14, answered=14, filtered=14, text="14 x no"
    )
    session.end_phase("classify")
    bench.ends(session)
    return session.run_id


@golden
def no_input(bench: Audited) -> str:
    """There was nothing to work on."""
    session = bench.job("index-notes")
    work(session, "embed", [(0, 0, None)])
    bench.ends(session)
    return session.run_id
