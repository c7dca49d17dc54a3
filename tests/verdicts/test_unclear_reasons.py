"""Reasons that users of other systems could not find out. Named by the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from audit.bench import Audited
from audit.by_its_end import ended, printed, wrapped
from audit.by_the_gate import outputs_present, work
from audit.unfinished import STRICT
from command_line import here
from stores import opened, record_run

from tachograph.audit_page import page
from tachograph.domain.gate import judge
from tachograph.looking import audit_of
from tachograph.session import Actor, Session
from tachograph.shapes import explanation_shape

if TYPE_CHECKING:
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bench(tmp_path: Path) -> Audited:
    return Audited(tmp_path)


class TestReport77:
    """A run is killed, and the failure that led to it is nowhere."""

    def failing(self, bench: Audited) -> Session:
        session = bench.job("reflect", run_id="job")
        work(session, "analyse", [], total=2, end=False)
        for number in (1, 2):
            session.receive_answer(
                phase="analyse",
                batch=0,
                asked=50,
                answered=0,
                fault="provider",
                error=f"HTTP 529 for the {number}. time",
            )
            session.execute(
                lambda run, why, number=number: run.schedule_retry(  # type: ignore[misc]
                    why, "provider", number, delay_seconds=60.0, error="overloaded", model="large"
                )
            )
        return session

    def test_one_that_was_killed_while_it_tried_again_names_the_last_failure(
        self, bench: Audited
    ) -> None:
        self.failing(bench)
        bench.kill("job")
        audit = bench.audit("job")

        assert audit["status"] == "interrupted"
        assert [(each["what"], each["error"]) for each in audit["excerpts"]] == [
            ("retry", "overloaded"),
            ("answer", "HTTP 529 for the 2. time"),
            ("answer", "HTTP 529 for the 1. time"),
        ]
        assert "the last retry, from large: overloaded" in bench.screen("job")

    def test_one_that_a_person_cancelled_keeps_it(self, bench: Audited) -> None:
        self.failing(bench)
        bench.kill("job")
        bench.attempt("job", 0).execute(lambda run, why: run.cancel(why, "it hangs again"))
        audit = bench.audit("job")

        assert audit["ending"]["reason"] == "it hangs again"
        assert audit["excerpts"][0]["error"] == "overloaded"

    def test_a_command_that_was_killed_keeps_its_last_words(self, bench: Audited) -> None:
        run_id = ended(bench, wrapped(bench), printed(None, "out of memory\n", number=9))
        (excerpt,) = bench.audit(run_id)["excerpts"]

        assert (excerpt["what"], excerpt["text"]) == ("command", "out of memory\n")


class TestReport78:
    """A verdict is made by another process, whose log nobody sees."""

    def test_a_verdict_says_who_judged_by_which_rule_and_what_it_saw(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 48, "48 of 50")])
        judge_of_it = Session(
            bench.repository,
            bench.payloads,
            bench.lasting.beat,
            Actor("judge", "grace", 99, bench.tick),
            "job",
            1,
        )
        judge_of_it.finish()
        judged = bench.audit("job")["judged"]
        facts = {each["name"]: each["value"] for each in bench.audit("job")["facts"]}

        assert judged["by"] == {"actor": "judge", "host": "grace", "pid": 99, "epoch": 1}
        assert (judged["rule"], judged["rule_version"]) == ("fewer-outputs", 2)
        assert judged["policy"]["digest"]
        assert (facts["inputs"], facts["outputs"]) == (50, 48)
        assert "by judge on grace, process 99, attempt 1" in bench.screen("job")

    def test_so_does_each_later_verdict(self, bench: Audited) -> None:
        run_id = outputs_present(bench)
        person = bench.attempt(run_id, 0)
        policy = person.policy(STRICT)
        counted = bench.run(run_id).counted()
        facts = counted.facts.with_(outputs=3)

        def revise(run: Run, why: Cause) -> None:
            run.revise_verdict(why, judge(facts, policy), counted, policy, "blank ones had passed")

        person.execute(revise)
        (revision,) = bench.audit(run_id)["revisions"]

        assert revision["by"] == {"actor": "tacho", "host": "ada", "pid": 4711, "epoch": 0}
        assert revision["policy"]["id"] == "strict"
        assert revision["why"] == "blank ones had passed"


class TestReport85:
    """A path is too long, and what would explain it lies under the same path."""

    LONG = "x" * 300

    def test_a_page_that_cannot_be_written_is_no_explanation_lost(
        self, capsys: Capture, store_environment: Path, tmp_path: Path
    ) -> None:
        with opened(store_environment) as services:
            record_run(services, "job")
        target = tmp_path / f"{self.LONG}.html"
        done = here(capsys, "run", "explain", "job", "--html", target)

        assert done.returncode != 0
        assert "File name too long" in done.stderr
        assert list(tmp_path.glob("*.html")) == []
        assert here(capsys, "run", "explain", "job").stdout.startswith("Run     job")

    def test_a_file_under_a_long_path_is_named_in_the_log(self, bench: Audited) -> None:
        """The log is somewhere else: it holds the path however long it is."""
        from tachograph.domain.expectations import Expectations

        path = bench.folder / self.LONG / self.LONG
        session = bench.job("weekly-report", run_id="job")
        session.expect(Expectations(), files=[str(path)])
        bench.ends(session)
        audit = bench.audit("job")

        assert audit["reason_code"] == "expected_files_missing"
        assert audit["expected"]["files"] == [{"path": str(path), "recorded": False}]


class TestReport86:
    """A secret is redacted on one surface and stands on the next."""

    def test_the_longest_secret_goes_first_and_no_surface_has_a_part_of_it(
        self, store_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        short, long = "hunter2hunter2", "hunter2hunter2-and-its-tail"
        monkeypatch.setenv("SERVICE_TOKEN", short)
        monkeypatch.setenv("OTHER_TOKEN", long)
        monkeypatch.setenv("TACHO_STORE", str(store_path))
        with opened(store_path) as services:
            session = record_run(services, "job", outcome=None)
            session.receive_answer(
                asked=1, answered=1, parsed=0, fault="parser", error=long, text=f"{long} {short}"
            )
            session.end_phase("parse")
            session.finish("failed", reason=f"{long} was refused", reason_code="exception")
            audit = audit_of(services, "job")
        everything: list[Any] = [
            json.dumps(explanation_shape(audit), default=str),
            page(audit),
            here(capsys, "run", "explain", "job").stdout,
            here(capsys, "run", "explain", "job", "--html", "-").stdout,
        ]

        for surface in everything:
            assert "hunter2" not in surface
            assert "its-tail" not in surface
            assert "was refused" in surface


class TestReport89:
    """An approval stands for something else than what the person saw.

    See tests/cli/test_approvals.py: `test_an_approval_is_void_for_anything_else`,
    `test_it_is_bound_to_what_the_person_saw` and `test_several_approvals_are_decided_by_name`.
    """

    def ask(self, bench: Audited, name: str, digest: str) -> bool:
        return bench.attempt("job").execute(
            lambda run, why: run.request_approval(why, name, subject=1, subject_digest=digest)
        )

    def approve(self, bench: Audited, name: str) -> None:
        bench.attempt("job", 0).execute(lambda run, why: run.approve(why, name, "looks right"))

    def test_a_run_says_that_it_waits_again_when_the_subject_has_changed(
        self, bench: Audited
    ) -> None:
        bench.job("deploy-site", run_id="job")
        self.ask(bench, "deploy", "aa" * 16)
        self.approve(bench, "deploy")
        same, changed = self.ask(bench, "deploy", "aa" * 16), self.ask(bench, "deploy", "bb" * 16)
        bench.kill("job")
        audit = bench.audit("job")

        assert (same, changed) == (True, False)
        assert audit["status"] == "waiting"
        assert "tacho run approve job deploy" in audit["next_step"]

    def test_the_second_approval_of_a_run_is_not_lost(self, bench: Audited) -> None:
        bench.job("deploy-site", run_id="job")
        self.ask(bench, "deploy", "aa" * 16)
        self.ask(bench, "publish", "bb" * 16)
        self.approve(bench, "deploy")
        bench.kill("job")
        audit = bench.audit("job")

        assert list(audit["attention"]) == ["approval:publish"]
        assert "tacho run approve job publish" in audit["next_step"]
