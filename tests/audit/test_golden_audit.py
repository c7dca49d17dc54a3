"""The golden audit: exactly why each of these runs stands as it does, now and in years.

Explanations are only ever added: `make_audit.py` writes those that are missing and changes none.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from audit.bench import Audited
from audit.make_audit import FOLDER, explained, main, recorders
from audit.pages import Page
from audit.recordable import reason_codes

from tachograph.audit_page import page
from tachograph.audit_words import telling
from tachograph.cli.shapes import SHAPES
from tachograph.domain import outcome, reasons
from tachograph.domain.facts import Facts
from tachograph.domain.gate import judge
from tachograph.recounting import policy_of, recount
from tachograph.replaying import states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.domain.policy import Policy
    from tachograph.domain.run import Run

    Fields = dict[str, Any]

NAMES = sorted(recorders())
EACH = pytest.mark.parametrize("name", NAMES)
DYNAMIC = {"expired", "returned"}
"""Reason codes of a step that are the end of its run, and stand in no line of the source."""


class Golden:
    """A golden run, recorded just now, and its explanation."""

    def __init__(self, name: str, folder: Path) -> None:
        self.bench = Audited(folder)
        self.run_id = recorders()[name](self.bench)
        self.audit = self.bench.audit(self.run_id)
        self.shape = self.bench.shape(self.run_id)

    @property
    def version(self) -> int:
        """The version of its last event."""
        return self.bench.log.stream_version(self.run_id)

    def at(self, version: int) -> Run:
        """Return the run as its events alone say that it was."""
        moments = states(self.bench.repository, self.run_id, up_to_version=version)
        return [moment.run for moment in moments][-1]

    @property
    def policy(self) -> Policy:
        """The policy that judged it."""
        found = recount(self.bench.repository, self.bench.payloads, self.run_id)
        assert found is not None
        assert found.policy is not None
        return found.policy

    @property
    def facts(self) -> Facts:
        """The facts of the explanation."""
        said = {f["name"]: f["value"] for f in self.audit["facts"] if f["source"] != "derived"}
        return Facts(**said)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Golden]:
    """Golden runs that were recorded already: these tests only read them."""
    return {}


@pytest.fixture
def golden(name: str, recorded: dict[str, Golden], tmp_path: Path) -> Golden:
    if name not in recorded:
        recorded[name] = Golden(name, tmp_path)
    return recorded[name]


def read(name: str) -> Fields:
    shape: Fields = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return shape


@EACH
def test_it_is_explained_as_it_was_when_it_was_written(name: str, tmp_path: Path) -> None:
    shape, screen = explained(name, tmp_path)

    assert json.loads(shape) == read(name)
    assert screen == (FOLDER / f"{name}.txt").read_text("utf-8")


@EACH
def test_its_json_has_the_published_shape(name: str) -> None:
    SHAPES["run-explain"].validate_json((FOLDER / f"{name}.json").read_text("utf-8"))

    assert read(name)["jobRunId"]


def test_there_is_no_explanation_of_nothing() -> None:
    written = {path.stem for path in FOLDER.iterdir()}

    assert written == set(NAMES)
    assert len(NAMES) >= 50


def test_every_outcome_and_every_way_to_stand_is_among_them() -> None:
    shapes = [read(name) for name in NAMES]
    wanted = {*outcome.OUTCOMES, "running", "interrupted", "blocked", "waiting"}
    wanted |= {"cancelled", "expired", "erased"}

    assert {shape["status"] for shape in shapes} == wanted
    assert {shape["kind"] for shape in shapes} == {"judged", "named", "unfinished", "erased"}
    assert {(shape["origin"] or {}).get("kind") for shape in shapes} == {
        None,
        "fork",
        "job-runs",
        "checkpoint-file",
    }
    assert any(shape["revisions"] for shape in shapes)
    assert any(shape["faults"] for shape in shapes)
    assert any(shape["resume"] for shape in shapes)
    assert any(shape["effectsInDoubt"] for shape in shapes)


def test_every_reason_code_is_among_them() -> None:
    found = {read(name)["reasonCode"] for name in NAMES} - {None}
    by_policies_of_a_project = {"too_few"}

    assert found - by_policies_of_a_project == {*reasons.BY_THE_GATE, *reasons.BY_ITS_END}


def test_every_reason_code_that_can_be_recorded_has_words() -> None:
    known = {*reasons.BY_THE_GATE, *reasons.BY_ITS_END, *reasons.OF_A_STEP}
    recordable = reason_codes()

    assert {code: files for code, files in recordable.items() if code not in known} == {}
    assert known - recordable.keys() == DYNAMIC


@EACH
def test_no_text_of_it_is_unfinished(name: str) -> None:
    """Nothing is left to be filled in, and nothing technical shows through."""
    ours = _THEIRS.sub("", (FOLDER / f"{name}.txt").read_text("utf-8"))

    assert not re.search(r"\bNone\b|\bTrue\b|\bFalse\b|[ \t]$", ours, re.MULTILINE)
    assert not re.search(r"\{\w*\}", ours)


_THEIRS = re.compile(r"^(Said |    \| ).*$", re.MULTILINE)
"""What an adapter or a model has said, as it said it."""


def test_the_maker_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("audit.make_audit.FOLDER", tmp_path)
    (tmp_path / "running.txt").write_text("by hand")
    monkeypatch.setattr("audit.make_audit.recorders", lambda: {"running": recorders()["running"]})
    main()

    assert (tmp_path / "running.txt").read_text() == "by hand"
    assert (tmp_path / "running.json").read_text("utf-8") == (FOLDER / "running.json").read_text(
        "utf-8"
    )


@EACH
def test_its_page_says_the_same(golden: Golden) -> None:
    audit = golden.audit
    read = Page(page(audit, ["2026-03-01  created"]))
    told = [audit["status"], audit["next_step"].replace("`", "")]
    told += [each["reason"] for each in (audit["judged"], audit["ending"]) if each is not None]
    told += [each["name"] for each in telling(audit["facts"])]
    told += [each["text"] for each in audit["ruled_out"] if each["text"] is not None]
    told += [each["step"] for each in audit["steps"]]
    told += [] if audit["check"] is None else [audit["check"]["text"]]
    whole = read.text.replace("\n", "")

    assert json.loads(golden.bench.anywhere(json.dumps(read.data))) == golden.shape
    assert [text for text in told if text and text not in whole] == []


# Time travel.


@EACH
def test_every_event_that_is_cited_is_there(golden: Golden) -> None:
    audit, log = golden.audit, golden.bench.log
    if audit["kind"] == "erased":
        assert audit["facts"] == []
        return
    records = {record.version: record for record in log.read_stream(golden.run_id)}
    cited = list(_places(audit))

    assert cited
    for place in cited:
        record = records[place["version"]]
        assert (record.position, record.time_us) == (place["position"], place["time_us"])
        assert record.topic == place.get("topic", record.topic)


def _places(value: Any) -> Iterator[Fields]:
    if isinstance(value, dict):
        if {"version", "position", "time_us"} <= value.keys():
            yield value
        for each in value.values():
            yield from _places(each)
    elif isinstance(value, list):
        for each in value:
            yield from _places(each)


@EACH
def test_a_fact_names_its_first_events_and_its_last_ones(golden: Golden) -> None:
    for fact in golden.audit["facts"]:
        assert len(fact["events"]) == min(fact["count"], 5), fact["name"]
        versions = [event["version"] for event in fact["events"]]
        assert versions == sorted(set(versions))


@EACH
def test_every_version_is_what_its_events_fold_to(golden: Golden) -> None:
    for version in range(1, golden.version + 1):
        loaded = golden.bench.repository.get(golden.run_id, up_to=version)

        assert loaded is not None
        assert loaded.to_snapshot() == golden.at(version).to_snapshot()


@EACH
def test_at_the_version_of_the_verdict_it_was_so(golden: Golden) -> None:
    judged = golden.audit["judged"]
    if judged is None:
        assert golden.at(golden.version).verdict is None
        return
    verdict = golden.at(judged["version"]).verdict
    before = golden.at(judged["version"] - 1)

    names = ("gate", "outcome", "rule", "reason_code", "reason", "version")
    assert verdict is not None
    assert {name: verdict[name] for name in names} == {name: judged[name] for name in names}
    assert before.verdict is None or before.verdict["version"] < judged["version"]
    counted = before.counted(judged["time_us"]).facts
    for fact in golden.audit["facts"]:
        if fact["source"] == "counted":
            assert getattr(counted, fact["name"]) == fact["value"]


@EACH
def test_at_the_version_of_its_end_it_ended(golden: Golden) -> None:
    ending = golden.audit["ending"]
    if ending is None:
        assert golden.audit["doing"] is not None
        return
    run = golden.at(ending["version"])

    assert not run.attempt_open
    assert run.outcome == ending["outcome"]
    assert run.outcome is not None or run.ended is not None


@EACH
def test_after_its_last_event_it_is_as_it_is_explained(golden: Golden) -> None:
    audit, run = golden.audit, golden.at(golden.version)

    assert (run.outcome, run.reason_code) == (audit["outcome"], audit["reason_code"])
    if audit["doing"] is not None:
        assert run.epoch == audit["doing"]["attempt"]
        open_phases = {name for name, each in run.phases.items() if each.status == "running"}
        assert {each["phase"] for each in audit["doing"]["phases"]} == open_phases
    if audit["judged"] is None:
        assert run.counted(run.updated_us).facts == golden.facts


@EACH
def test_the_verdict_follows_from_the_evidence(golden: Golden) -> None:
    check, judged = golden.audit["check"], golden.audit["judged"]
    if judged is None:
        assert check is None or check["follows"] is None
        return

    assert check["follows"] is True
    assert check["problem"] is None
    assert judge(golden.facts, golden.policy).outcome == judged["outcome"]


@EACH
def test_what_would_have_changed_it_would_have(golden: Golden) -> None:
    if golden.audit["kind"] != "judged":
        assert golden.audit["what_if"] == []
        return
    facts, now = golden.facts, golden.audit["judged"]
    for change in golden.audit["what_if"]:
        other = judge(facts.with_(**{change["fact"]: change["to"]}), golden.policy)

        assert getattr(facts, change["fact"]) == change["was"]
        assert other.to_fields() == {name: change[name] for name in other.to_fields()}
        assert other.outcome != now["outcome"]


@EACH
def test_what_was_ruled_out_does_not_hold(golden: Golden) -> None:
    if golden.audit["judged"] is None:
        assert golden.audit["ruled_out"] == []
        return
    policy, facts = golden.policy, golden.facts
    for each in golden.audit["ruled_out"]:
        rule = policy.rule(each["rule"])
        assert rule is not None
        assert not rule.holds(facts)


@EACH
def test_a_revision_names_a_policy_whose_rules_are_kept(golden: Golden) -> None:
    records = golden.bench.log.read_stream(golden.run_id)
    found = [r for r in records if r.topic == "run.verdict-revised" and not r.absent]
    for record, told in zip(found, golden.audit["revisions"], strict=True):
        fields = golden.bench.repository.fields(record)
        policy, problem = policy_of(fields["policy"], golden.bench.payloads)

        assert (policy is not None, problem) == (True, None)
        assert told["rule"] == fields["rule"]
