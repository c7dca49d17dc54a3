"""An explanation says when a verdict does not follow, and answers where something is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from audit.bench import Audited
from audit.by_the_gate import no_item_parsed, outputs_present, work
from audit.pages import Page
from audit.unfinished import STRICT, custom_policy
from stores import opened, record_run

from tachograph import bodykeeping, erasurekeeping, evidence, explaining, offloading
from tachograph.audit_page import page
from tachograph.cli.shapes import SHAPES
from tachograph.domain.counting import Counted
from tachograph.domain.default_policy import default_policy
from tachograph.domain.facts import Facts
from tachograph.domain.gate import Judgement
from tachograph.domain.records import NewRecord
from tachograph.looking import audit_of
from tachograph.shapes import explanation_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run

    Fields = dict[str, Any]

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def bench(tmp_path: Path) -> Audited:
    return Audited(tmp_path)


def forge(bench: Audited, record: Callable[[Run, Cause], None]) -> Fields:
    """Judge three batches of which nothing came out, falsely, and return the explanation."""
    session = bench.job("index-notes", run_id="job")
    work(session, "embed", [(50, 0, "?"), (50, 0, "?")])
    session.execute(record)
    bench.ends(session)
    audit = bench.audit("job")
    SHAPES["run-explain"].validate_python(json.loads(json.dumps(bench.shape("job"))))
    return audit


def judged_by(rule: str, facts: Facts) -> Judgement:
    found = default_policy().rule(rule)
    assert found is not None
    return Judgement(found, facts)


class TestForged:
    def test_a_verdict_of_another_rule_does_not_follow(self, bench: Audited) -> None:
        def record(run: Run, why: Cause) -> None:
            counted = run.counted(why.time_us)
            run._record_verdict(
                why, None, counted, judged_by("all-done", counted.facts), "default", None
            )

        audit = forge(bench, record)

        assert audit["kind"] == "judged"
        assert audit["check"]["follows"] is False
        assert audit["check"]["text"] == (
            "THE VERDICT DOES NOT FOLLOW: its facts lead to failed_semantic_empty by rule "
            "no-item-parsed, not to success by rule all-done"
        )
        assert audit["check"]["would_be"]["outcome"] == "failed_semantic_empty"
        assert "THE VERDICT DOES NOT FOLLOW" in bench.screen("job")
        assert "THE VERDICT DOES NOT FOLLOW" in Page(page(audit)).text

    def test_evidence_that_says_something_else_is_named_fact_by_fact(self, bench: Audited) -> None:
        def record(run: Run, why: Cause) -> None:
            true = run.counted(why.time_us)
            said = true.facts.with_(outputs=100)
            counted = Counted(said, true.evidence, true.phase)
            run._record_verdict(why, None, counted, judged_by("all-done", said), "default", None)

        audit = forge(bench, record)
        (difference,) = audit["check"]["differences"]

        assert audit["check"]["follows"] is False
        assert (
            audit["check"]["problem"] == "the events before it do not say what it says of outputs"
        )
        assert (difference["fact"], difference["recorded"], difference["counted"]) == (
            "outputs",
            100,
            0,
        )
        assert difference["stated"] is False
        assert "outputs: the verdict has 100, the events before it say 0" in bench.screen("job")

    def test_evidence_that_is_left_out_is_missed(self, bench: Audited) -> None:
        def record(run: Run, why: Cause) -> None:
            true = run.counted(why.time_us)
            said = Facts(effects=3)
            counted = Counted(said, {"effects": [1, 2, 3]}, true.phase)
            run._record_verdict(
                why, None, counted, judged_by("effects-done", said), "default", None
            )

        differences = forge(bench, record)["check"]["differences"]

        assert {each["fact"]: each["recorded"] for each in differences} == {
            "inputs": None,
            "outputs": None,
            "batches_done": None,
            "effects": 3,
        }

    def test_what_the_job_states_against_its_events_is_told_and_no_forgery(
        self, bench: Audited
    ) -> None:
        def record(run: Run, why: Cause) -> None:
            run.judge(why, Facts(outputs=100))

        audit = forge(bench, record)

        assert audit["check"]["follows"] is True
        assert audit["check"]["stated"] == ["outputs"]
        assert audit["check"]["text"].endswith("and from what was stated with it: outputs")
        assert "outputs: the job states 100, the events before it say 0" in bench.screen("job")

    def test_a_policy_that_nobody_knows_is_no_forgery(self, bench: Audited) -> None:
        policy = default_policy()

        def record(run: Run, why: Cause) -> None:
            counted = run.counted(why.time_us)
            judgement = judged_by("no-item-parsed", counted.facts)
            run._record_verdict(why, None, counted, judgement, "default", policy)
            vars(run.pending_events[-1])["policy"]["version"] = 99

        check = forge(bench, record)["check"]

        assert check["follows"] is None
        assert check["text"] == (
            "it cannot be judged again: this Tachograph does not know policy default 99"
        )

    def test_rules_with_another_digest_than_the_verdict_names_are_not_believed(
        self, bench: Audited
    ) -> None:
        def record(run: Run, why: Cause) -> None:
            stored = bench.payloads.store_apart(STRICT.to_fields(), "policy")
            run.judge(why, Facts(), policy=STRICT.kept(stored))
            vars(run.pending_events[-1])["policy"]["digest"] = "00" * 16

        check = forge(bench, record)["check"]

        assert check["follows"] is None
        assert check["problem"] == "the stored rules are not those that the verdict names"


class TestDamaged:
    def test_a_policy_whose_blob_is_missing_is_named(self, bench: Audited) -> None:
        run_id = custom_policy(bench)
        known = bench.audit(run_id)
        bench.blobs.kept.clear()
        audit = bench.audit(run_id)

        assert known["check"]["follows"] is True
        assert audit["check"]["follows"] is None
        assert audit["check"]["text"].startswith(
            "it cannot be judged again: the stored rules are lost. "
        )
        assert audit["judged"]["reason"] == known["judged"]["reason"]
        assert audit["judged"]["conditions"] == []
        assert audit["facts"] == known["facts"]

    @pytest.mark.parametrize("stored", [b"\x00", {"id": "strict"}, {"rules": 7}])
    def test_rules_that_cannot_be_read_are_named(self, bench: Audited, stored: Any) -> None:
        run_id = custom_policy(bench)
        digest = next(iter(bench.blobs.kept))
        bench.blobs.kept[digest] = (
            stored if isinstance(stored, bytes) else bench.codec.pack(stored, "policy")
        )
        check = bench.audit(run_id)["check"]

        assert check["follows"] is None
        assert "the stored rules of strict 3 cannot be used" in check["text"]

    def test_a_text_whose_blob_is_missing_says_so(self, bench: Audited) -> None:
        session = bench.job("reflect", run_id="job")
        session.receive_answer(
            asked=1, answered=1, parsed=0, fault="parser", text="so it is " * 3_000
        )
        bench.ends(session)
        (whole,) = bench.audit("job")["excerpts"]
        bench.blobs.kept.clear()
        (left,) = bench.audit("job")["excerpts"]

        assert whole["kept"] == left["kept"] == "blob"
        assert whole["digest"] == left["digest"]
        assert whole["characters"] == 27_000
        assert len(whole["text"]) < evidence.LONGEST + 50
        assert "missing" in left["text"]

    def test_a_verdict_of_the_first_kind_is_explained(self, bench: Audited) -> None:
        """As Tachograph stored it before rules had versions."""
        session = bench.job("index-notes", run_id="job")
        work(session, "embed", [(50, 49, "49 of 50")])
        body = json.loads((GOLDEN / "run.semantic-gate-judged/v1.json").read_text("utf-8"))["body"]
        version = session.run.version + 1
        bench.log.append(
            [
                NewRecord(
                    "job", version, "run.semantic-gate-judged", bench.tick(), bytes.fromhex(body)
                )
            ]
        )
        session.reload()
        bench.ends(session)
        audit = bench.audit("job")

        assert audit["judged"]["policy"]["id"] == "default"
        assert audit["judged"]["policy"]["version"] == 1
        assert audit["judged"]["rule"] == "fewer-outputs"
        assert audit["judged"]["rule_version"] == 0
        assert audit["check"]["follows"] is True
        assert "Rule     fewer-outputs, of policy default, version 1" in bench.screen("job")
        SHAPES["run-explain"].validate_json(json.dumps(bench.shape("job")))


class TestBounds:
    def test_a_long_run_is_read_in_bounds(
        self, bench: Audited, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """20,000 batches: what is read grows no more beyond a bound, and has no time limit."""
        session = bench.job("index-notes", run_id="job")
        session.start_phase("embed")

        def batches(run: Run, why: Cause) -> None:
            for index in range(20_000):
                run.complete_batch(why, "embed", index, inputs=1, parsed=1)

        session.execute(batches)
        session.end_phase("embed")
        bench.ends(session)
        summary = bench.summary("job")
        read, records = bench.log.read_stream, [0]

        def counting(*args: Any, **options: Any) -> Any:
            found = read(*args, **options)
            records[0] += len(found)
            return found

        monkeypatch.setattr(bench.log, "read_stream", counting)
        audit = bench.audit_of(summary)

        assert audit["check"]["follows"] is True
        assert records[0] <= evidence.MOST_READ + 10_000
        inputs = next(each for each in audit["facts"] if each["name"] == "inputs")
        assert inputs["count"] == 20_000
        assert [each["version"] for each in inputs["events"]] == [4, 5, 6, 20_002, 20_003]

    def test_faults_that_lie_far_apart_are_found_from_both_ends(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")

        def answers(run: Run, why: Cause) -> None:
            for number in range(3 * evidence.MOST_SEARCHED):
                lost = number in (0, 10, 5_000, 3 * evidence.MOST_SEARCHED - 1)
                fault = "tool" if lost else None
                run.receive_answer(why, asked=1, answered=1, parsed=1, fault=fault)

        session.execute(answers)
        bench.ends(session)
        facts = {each["name"]: each for each in bench.audit("job")["facts"]}
        faults = facts["tool_faults"]

        assert faults["count"] == 4
        assert [each["version"] for each in faults["events"]] == [3, 13, 5_003, 6_002]

    def test_only_so_many_excerpts_are_shown_the_newest_first(self, bench: Audited) -> None:
        session = bench.job("index-notes", run_id="job")
        for number in range(evidence.MOST_EXCERPTS + 3):
            session.receive_answer(
                asked=1, answered=1, parsed=0, fault="parser", text=f"no {number}"
            )
        bench.ends(session)
        texts = [each["text"] for each in bench.audit("job")["excerpts"]]

        assert texts == ["no 7", "no 6", "no 5", "no 4", "no 3"]


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;\x1b[2J\x07\u202e\x00"


class TestHostileTexts:
    def hostile(self, bench: Audited) -> str:
        session = bench.job("index <b>notes</b>", title=HOSTILE, run_id="job")
        session.receive_answer(
            phase=HOSTILE, asked=1, answered=1, fault="parser", error=HOSTILE, text=HOSTILE
        )
        session.intend_effect(HOSTILE)
        session.execute(lambda run, why: run.raise_attention(why, HOSTILE, HOSTILE))
        session.judge(Facts(stopped=HOSTILE))
        bench.ends(session)
        return session.run_id

    def test_a_page_holds_no_element_of_a_text(self, bench: Audited) -> None:
        audit = bench.audit(self.hostile(bench))
        read = Page(page(audit, [HOSTILE]))

        assert read.data["title"] == HOSTILE
        assert read.data["excerpts"][0]["text"] == HOSTILE
        assert "alert(1)" in read.text

    def test_a_screen_is_not_moved_by_a_text(self, bench: Audited) -> None:
        screen = bench.screen(self.hostile(bench))

        assert all(each.isprintable() for line in screen.split("\n") for each in line)
        assert r"\x1b[2J\x07\u202e\x00" in screen

    def test_a_text_that_is_no_unicode_is_told(self, bench: Audited, tmp_path: Path) -> None:
        from tachograph.cli.output import Output
        from tachograph.cli.pages import write_page

        session = bench.job("index-notes", run_id="job")
        odd = "r\udce9sum\udce9.txt"
        session.receive_answer(asked=1, answered=1, fault="parser", error=odd, text=odd)
        bench.ends(session)
        audit = bench.audit("job")
        target = tmp_path / "page.html"
        with bench.clock():
            write_page(audit, [], str(target), Output(quiet=True))
        text = target.read_text("utf-8")

        assert r"r\udce9sum\udce9.txt" in Page(text).text
        assert r"r\udce9sum\udce9.txt" in bench.screen("job")
        assert audit["excerpts"][0]["characters"] == len(odd)

    def test_a_page_of_every_kind_can_be_read(self, bench: Audited) -> None:
        audit = bench.audit(no_item_parsed(bench))
        read = Page(page(audit, ["2026-03-01  created"]))

        assert read.data == bench.shape(audit["run_id"])
        assert read.headings == [
            "The run",
            "The verdict",
            "Facts",
            "What came back",
            "Ruled out",
            "What would have changed it",
            "What happened",
        ]


class TestStores:
    def test_a_secret_is_nowhere(self, store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Field-report 86: by value, before the write, on every surface."""
        secret = "sk-live-7f3a9c1e5b"
        monkeypatch.setenv("SERVICE_API_KEY", secret)
        with opened(store_path) as services:
            session = record_run(services, "job", outcome=None)
            session.receive_answer(
                asked=1,
                answered=1,
                parsed=0,
                fault="parser",
                error=f"401 for key {secret}",
                text=f"the key {secret} is not valid",
            )
            session.end_phase("parse")
            session.judge(Facts(stopped=f"key {secret} was refused"))
            session.finish()
            audit = audit_of(services, "job")
            everything = json.dumps(explanation_shape(audit), default=str) + page(audit)

        assert secret not in everything
        assert "the key " in everything
        stored = b"".join(path.read_bytes() for path in store_path.rglob("*") if path.is_file())
        assert secret.encode() not in stored

    def test_after_archiving_the_answer_is_the_same(self, store_path: Path) -> None:
        with opened(store_path) as services:
            session = record_run(services, "job", outcome=None)
            session.receive_answer(
                phase="parse",
                asked=1,
                answered=1,
                parsed=0,
                fault="parser",
                text="no JSON " * 4_000,
            )
            session.end_phase("parse")
            session.finish()
            before = explanation_shape(audit_of(services, "job"))
            plans = offloading.plan(services.repository, [("job", "a test")])
            assert bodykeeping.offload(services, plans).events
            after = explanation_shape(audit_of(services, "job"))

        assert after.pop("bodies")["state"] == "archived"
        assert before.pop("bodies") is None
        assert after == before

    @pytest.mark.parametrize(("looked", "outcome"), [(True, "success"), (False, None)])
    def test_an_archive_that_is_lost_is_named(
        self, store_path: Path, looked: bool, outcome: str | None
    ) -> None:
        """What somebody has seen before is still known."""
        with opened(store_path) as services:
            record_run(services, "job")
            if looked:
                audit_of(services, "job")
            plans = offloading.plan(services.repository, [("job", "a test")])
            bodykeeping.offload(services, plans)
            shelf = bodykeeping.Shelf(services.folder)
            for number in shelf.files.numbers():
                Path(shelf.files.path(number)).unlink()
        with opened(store_path) as services:
            audit = audit_of(services, "job")

        assert audit["kind"] == "unreadable"
        assert audit["outcome"] == outcome
        assert audit["check"]["text"].startswith("its events cannot be read: The body of version")
        assert audit["check"]["follows"] is None
        SHAPES["run-explain"].validate_python(explanation_shape(audit))

    def test_an_erased_run_says_who_when_and_why_and_nothing_else(self, store_path: Path) -> None:
        with opened(store_path) as services:
            record_run(services, "job", output="the name of a customer")
        erasurekeeping.erase(str(store_path), "job", "it names a customer", actor="ada")
        with opened(store_path) as services:
            audit = audit_of(services, "job")

        assert audit["kind"] == "erased"
        assert audit["facts"] == audit["excerpts"] == audit["what_if"] == []
        assert (audit["judged"], audit["check"]) == (None, None)
        assert audit["bodies"]["reason"] == "it names a customer"
        assert audit["ending"]["outcome"] == "success"
        assert audit["ending"]["by"]["actor"] == "ada"
        SHAPES["run-explain"].validate_python(explanation_shape(audit))


def test_a_run_of_nothing_but_its_beginning_is_explained(bench: Audited) -> None:
    session = bench.job("index-notes", run_id="job")
    audit = bench.audit(session.run_id)

    assert audit["kind"] == "unfinished"
    assert audit["check"]["text"] == "nothing that is recorded could be judged"
    assert audit["doing"]["phases"] == []


def test_notes_after_the_end_hide_nothing(bench: Audited) -> None:
    run_id = outputs_present(bench)
    before = bench.audit(run_id)

    def note(run: Run, why: Cause) -> None:
        for number in range(2 * explaining.PAGE):
            run.add_note(why, f"looked at it {number} times")

    bench.attempt(run_id, 0).execute(note)
    after = bench.audit(run_id)

    assert after["judged"] == before["judged"]
    assert after["ending"] == before["ending"]
    assert after["facts"] == before["facts"]
