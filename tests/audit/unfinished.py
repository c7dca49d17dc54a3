"""Golden runs that have not ended, or whose end is not the last word: forked, revised, cancelled.

Each function records a run and returns its id. Holds no test.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from audit.bench import golden
from audit.by_the_gate import NOTHING_FOUND, no_item_parsed, outputs_present, work
from recovering import AUTO, fails

from tachograph.domain.errors import DependenciesWaitingError
from tachograph.domain.facts import Facts
from tachograph.domain.gate import judge
from tachograph.domain.policy import Policy
from tachograph.forking import fork

if TYPE_CHECKING:
    from audit.bench import Audited

STRICT = Policy.from_fields(
    {
        "id": "strict",
        "version": 3,
        "rules": [
            {
                "id": "blank-answers",
                "version": 1,
                "when": ["outputs < 100"],
                "outcome": "failed",
                "reason_code": "too_few",
                "text": "{outputs} outputs, and at least 100 are wanted",
                "otherwise": "at least 100 outputs came out: {outputs}",
            },
            {
                "id": "well",
                "version": 2,
                "when": ["outputs >= 100"],
                "outcome": "success",
                "reason_code": "enough",
                "text": "{outputs} outputs",
            },
            {
                "id": "else",
                "version": 1,
                "when": [],
                "outcome": "success_with_review",
                "reason_code": "unknown",
                "text": "nobody counted the outputs",
            },
        ],
    },
    "strict.toml",
)
"""The policy of a project."""


@golden
def running(bench: Audited) -> str:
    """It is at work."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok"), (50, 50, "ok")], total=4, end=False)
    bench.passes(90)
    session.beat()
    return session.run_id


@golden
def interrupted_in_a_phase(bench: Audited) -> str:
    """It was killed with one of three batches done, and an effect in doubt."""
    session = bench.cut_off_alive(AUTO, "job-translate-docs-7")
    session.intend_effect("mail the translator", description="one mail")
    bench.kill(session.run_id)
    bench.passes(3 * 3600)
    return session.run_id


@golden
def killed_while_it_tried_again(bench: Audited) -> str:
    """It was killed while it waited to ask a provider once more."""
    session = bench.job("reflect-on-incidents")
    work(session, "analyse", [], total=2, end=False)
    session.receive_answer(
        phase="analyse",
        batch=0,
        source="large",
        asked=50,
        answered=0,
        fault="provider",
        error="HTTP 529: overloaded",
    )
    session.execute(
        lambda run, why: run.schedule_retry(
            why, "provider", 1, delay_seconds=60.0, error="HTTP 529: overloaded", model="large"
        )
    )
    bench.kill(session.run_id)
    bench.passes(600)
    return session.run_id


@golden
def resumed_in_vain(bench: Audited) -> str:
    """It was killed, a watchdog noticed, and the adapter failed."""
    bench.adapters.work = fails
    bench.adapters.says = b'{"error": "no such model"}', b"Traceback: no such model\n"
    session = bench.cut_off("job-translate-docs-8")
    bench.passes(3 * 3600)
    bench.watch()
    return session.run_id


@golden
def blocked(bench: Audited) -> str:
    """It says what it waits for."""
    session = bench.job("rebuild-index")
    session.start_phase("rebuild")
    session.execute(lambda run, why: run.block(why, "the disk has 2 GB left, 20 GB are needed"))
    bench.kill(session.run_id)
    return session.run_id


@golden
def waiting_for_approval(bench: Audited) -> str:
    """It asked a person, and goes on working at something else."""
    session = bench.job("deploy-site")
    session.execute(
        lambda run, why: run.request_approval(
            why, "deploy", subject={"version": "1.2"}, subject_digest="ff" * 16
        )
    )
    bench.kill(session.run_id)
    return session.run_id


@golden
def waiting_for_runs(bench: Audited) -> str:
    """It waits for another run that failed."""
    other = bench.job("collect")
    bench.ends(other, "failed", reason="exit code 1", reason_code="exit_code")
    with contextlib.suppress(DependenciesWaitingError):
        bench.job("publish", run_id="job-publish", depends_on=[other.run_id])
    return "job-publish"


@golden
def cancelled(bench: Audited) -> str:
    """A person cancelled it."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok")], total=4, end=False)
    bench.kill(session.run_id)
    bench.attempt(session.run_id, 0).execute(
        lambda run, why: run.cancel(why, "the folder is to be moved first")
    )
    return session.run_id


@golden
def expired(bench: Audited) -> str:
    """It was left too long."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok")], total=4, end=False)
    bench.kill(session.run_id)
    bench.passes(30 * 24 * 3600)
    bench.attempt(session.run_id, 0).execute(
        lambda run, why: run.expire(why, "untouched for 30 days")
    )
    return session.run_id


@golden
def forked(bench: Audited) -> str:
    """A fork of a run that came back empty, from before its phase; nobody has started it yet."""
    source = no_item_parsed(bench)
    return fork(bench.repository, bench.actor, source, "analyse", reason="another model").run_id


@golden
def forked_and_done(bench: Audited) -> str:
    """A fork that shares a finished phase, and has done the rest."""
    first = bench.job("index-notes", run_id="job-index-notes-1")
    work(first, "read", [(30, 30, "ok")])
    work(first, "embed", [(30, 0, NOTHING_FOUND)])
    bench.ends(first)
    made = fork(bench.repository, bench.actor, first.run_id, "embed", reason="another model")
    session = bench.job("index-notes", run_id=made.run_id)
    work(session, "embed", [(30, 30, "ok")])
    bench.ends(session)
    return session.run_id


@golden
def custom_policy(bench: Audited) -> str:
    """The rules of a project judged it."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok")])
    session.judge(Facts(), by=STRICT)
    bench.ends(session)
    return session.run_id


@golden
def revised(bench: Audited) -> str:
    """It was a success, and another policy says that it failed: both stand."""
    run_id = outputs_present_small(bench)
    person = bench.attempt(run_id, 0)
    policy = person.policy(STRICT)
    counted = bench.run(run_id).counted()
    person.execute(
        lambda run, why: run.revise_verdict(
            why,
            judge(counted.facts, policy),
            counted,
            policy,
            "every night has more than 100 notes",
        )
    )
    return run_id


def outputs_present_small(bench: Audited) -> str:
    """Record a small success."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok")])
    bench.ends(session)
    return session.run_id


@golden
def second_attempt(bench: Audited) -> str:
    """A first attempt failed, and a second one is at work in the phase that was cut off."""
    session = bench.job("index-notes", run_id="job-index-notes-2")
    work(session, "embed", [(50, 50, "ok")], total=2, end=False)
    bench.ends(session, "failed", reason="exit code 1", reason_code="exit_code")
    again = bench.job("index-notes", run_id="job-index-notes-2")
    again.start_phase("embed")
    return session.run_id


@golden
def verdict_not_taken(bench: Audited) -> str:
    """The gate judged it a success, and the job ended it as failed all the same."""
    run_id = outputs_judged(bench)
    bench.ends(bench.attempt(run_id), "failed", reason="the upload failed", reason_code="exception")
    return run_id


def outputs_judged(bench: Audited) -> str:
    """Record work that is judged, and not ended."""
    session = bench.job("index-notes")
    work(session, "embed", [(50, 50, "ok")])
    session.judge(Facts())
    return session.run_id


@golden
def erased(bench: Audited) -> str:
    """Its bodies were destroyed on a person's word."""
    run_id = outputs_present(bench)
    run = bench.run(run_id)
    run.erase_bodies(bench.actor.cause(), "it names a customer", records=run.version)
    (happened,) = run.collect_events()
    bench.log.erase(bench.repository.record_of(happened))
    return run_id
