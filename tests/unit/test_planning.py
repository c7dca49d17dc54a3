"""A plan tells what a resume would do with every part of a run, and what stands in its way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from recovering import AUTO, DISPATCHER, Recovering, nothing

from tachograph.declaring import traced
from tachograph.domain.errors import RunNotFoundError
from tachograph.domain.plan import Plan
from tachograph.domain.recovery import Recovery
from tachograph.measuring import measure
from tachograph.planning import file_state, trace

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.session import Session


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def codes(plan: Plan) -> list[str]:
    return [each.code for each in plan.obstacles]


def record(session: Session, name: str, path: Path) -> None:
    """Record an artifact as it is now."""
    size, sha256 = measure(path)
    session.execute(
        lambda run, why: run.record_artifact(why, name, path=str(path), size=size, sha256=sha256)
    )


class TestWhatItDoesWithTheParts:
    def test_phases_and_batches(self, bench: Recovering) -> None:
        session = bench.begin()
        session.start_phase("load")
        session.end_phase("load")
        session.start_phase("parse")
        session.plan_batches("parse", 9, 1, None)
        for index in (0, 1, 4):
            session.complete_batch("parse", index)
        session.start_phase("render", safe_to_retry=False)
        bench.kill()
        load, parse, render = bench.planner.plan("job").phases

        assert (load["action"], load["status"]) == ("reuse", "completed")
        assert parse["action"] == "go on"
        assert parse["batches_reused"] == [[0, 1], [4, 4]]
        assert parse["batches_to_run"] == [[2, 3], [5, 8]]
        assert parse["batches"] == 9
        assert (render["action"], render["safe_to_retry"]) == ("run again", False)

    def test_a_skipped_phase_stays_skipped(self, bench: Recovering) -> None:
        session = bench.begin()
        session.start_phase("load")
        session.end_phase("load", status="skipped")
        bench.kill()

        assert bench.planner.plan("job").phases[0]["action"] == "reuse"

    def test_steps_are_reused(self, bench: Recovering) -> None:
        bench.cut_off().complete_step("load", 42)

        assert bench.planner.plan("job").steps == ["load"]

    @pytest.mark.parametrize(
        ("in_doubt", "action"),
        [("ask", "ask a person"), ("retry", "do again"), ("skip", "count as done")],
    )
    def test_an_effect_in_doubt(self, in_doubt: str, action: str, bench: Recovering) -> None:
        """G10."""
        bench.cut_off(recovery=AUTO.changed(in_doubt=in_doubt)).intend_effect("mail")
        (effect,) = bench.planner.plan("job").effects

        assert effect == {
            "key": "mail",
            "action": action,
            "why": f"in doubt, and the job says {in_doubt!r}",
        }

    def test_effects_that_are_settled(self, bench: Recovering) -> None:
        session = bench.cut_off()
        session.intend_effect("done")
        session.complete_effect("done")
        session.intend_effect("allowed")
        bench.person().allow_effect_retry("allowed", "the outbox is empty")
        session.intend_effect("harmless", idempotent=True)
        plan = bench.planner.plan("job")

        assert {effect["key"]: effect["action"] for effect in plan.effects} == {
            "done": "reuse",
            "allowed": "do again",
            "harmless": "do again",
        }
        assert plan.obstacles == []

    def test_the_checkpoint_and_the_version_to_go_on_from(self, bench: Recovering) -> None:
        session = bench.cut_off()
        session.save_checkpoint({"row": 7}, phase="parse")
        saved = bench.run().version
        session.execute(lambda run, why: run.add_note(why, "look here"))
        plan = bench.planner.plan("job")

        assert plan.checkpoint == {"version": saved, "phase": "parse", "kind": "state"}
        assert (plan.from_version, plan.version, plan.epoch) == (saved, saved + 1, 2)

    def test_what_would_be_executed(self, bench: Recovering) -> None:
        bench.cut_off(recovery=AUTO.changed(working_folder="/data", timeout_seconds=60))
        execute = bench.planner.plan("job").execute

        assert execute is not None
        assert execute["argv"] == ["run", "jobs:resume", "job"]
        assert (execute["folder"], execute["timeout_seconds"]) == ("/data", 60)

    def test_an_attempt_in_which_nothing_happened_has_a_plan_too(self, bench: Recovering) -> None:
        bench.begin()
        bench.kill()
        plan = bench.planner.plan("job")

        assert (plan.phases, plan.steps, plan.effects, plan.checkpoint) == ([], [], [], None)
        assert plan.obstacles == []


class TestFiles:
    def test_artifacts_are_looked_at(self, bench: Recovering, tmp_path: Path) -> None:
        session = bench.cut_off()
        for name in ("good", "cut", "changed", "missing"):
            (tmp_path / name).write_text("whole")
            record(session, name, tmp_path / name)
        (tmp_path / "cut").write_text("who")
        (tmp_path / "changed").write_text("whOle")
        (tmp_path / "missing").unlink()
        plan = bench.planner.plan("job")

        assert {each["name"]: each["state"] for each in plan.artifacts} == {
            "good": "good",
            "cut": "has another size than the recorded 5 bytes",
            "changed": "has another checksum than the recorded one",
            "missing": "is missing",
        }
        (obstacle,) = plan.obstacles
        assert obstacle.code == "artifact_damaged"
        assert "good" not in obstacle.text

    def test_a_check_of_the_jobs_own_looks_at_good_ones_only(
        self, bench: Recovering, tmp_path: Path
    ) -> None:
        session = bench.cut_off(
            recovery=AUTO.changed(artifact_check=["check"], working_folder="/data")
        )
        for name in ("good", "missing"):
            (tmp_path / name).write_text("whole")
            record(session, name, tmp_path / name)
        (tmp_path / "missing").unlink()
        bench.check_says = "no header"
        plan = bench.planner.plan("job")

        assert bench.checked == [(["check"], str(tmp_path / "good"), "/data")]
        assert plan.artifacts[0]["state"] == "does not pass its check: no header"

    def test_changed_code_and_inputs_are_told_and_stand_in_nobodys_way(
        self, bench: Recovering, tmp_path: Path
    ) -> None:
        code, data = tmp_path / "job.py", tmp_path / "data.csv"
        code.write_text("1")
        data.write_text("1")
        bench.cut_off(recovery=traced(AUTO, code=[str(code)], inputs=[str(data)]))
        code.write_text("2")
        plan = bench.planner.plan("job")

        assert plan.traces == [
            {
                "path": str(code),
                "what": "code",
                "state": "has another checksum than the recorded one",
            },
            {"path": str(data), "what": "input", "state": "good"},
        ]
        assert plan.obstacles == []

    def test_the_state_of_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"abc")
        known = trace(str(path), "input")

        assert file_state(str(path), known["size"], known["sha256"]) == "good"
        assert file_state(str(tmp_path), 3, "x") != "good"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_a_file_that_may_not_be_read(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"abc")
        path.chmod(0)

        assert file_state(str(path), 3, "x") == "cannot be read: Permission denied"

    def test_a_file_cannot_be_traced_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            trace(str(tmp_path / "none"), "input")


class TestObstacles:
    def test_of_a_finished_run_there_is_one_and_nothing_is_looked_at(
        self, bench: Recovering, tmp_path: Path
    ) -> None:
        """G6."""
        session = bench.begin(recovery=AUTO.changed(artifact_check=["check"]))
        (tmp_path / "file").write_text("x")
        record(session, "file", tmp_path / "file")
        session.finish("success")
        plan = bench.planner.plan("job")

        assert codes(plan) == ["finished"]
        assert bench.checked == []

    def test_all_of_them_are_shown_at_once(self, bench: Recovering) -> None:
        session = bench.begin(recovery=Recovery(safe_to_retry=False, resume_window_seconds=1))
        session.intend_effect("mail")
        bench.passes(5)

        assert codes(bench.planner.plan("job", unattended=True)) == [
            "owned",
            "effects_in_doubt",
            "unsafe_to_retry",
            "no_adapter",
            "resume_window_passed",
            "auto_resume_off",
        ]

    def test_a_person_may_disregard_some_of_them(self, bench: Recovering) -> None:
        session = bench.cut_off(recovery=AUTO.changed(safe_to_retry=False))
        session.intend_effect("mail")
        plan = bench.planner.plan("job")
        left = plan.without(["unsafe_to_retry", "effects_in_doubt"])

        assert [each.code for each in left] == ["effects_in_doubt"]

    def test_why_there_is_no_adapter(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.missing = "a module jobs in /data"
        (obstacle,) = bench.planner.plan("job").obstacles

        assert obstacle.code == "no_adapter"
        assert "a module jobs in /data" in obstacle.text

    def test_a_run_whose_resume_returned_is_nobodys(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.adapters.work = nothing
        bench.dispatcher.resume("job")

        assert DISPATCHER in bench.processes
        assert not bench.planner.is_alive(bench.run())
        assert codes(bench.planner.plan("job")) == []

    def test_is_alive(self, bench: Recovering) -> None:
        bench.begin("living")
        bench.cut_off("dead")

        assert bench.planner.is_alive(bench.run("living"))
        assert not bench.planner.is_alive(bench.run("dead"))

    def test_nobody_is_robbed_of_what_cannot_be_judged(self, bench: Recovering) -> None:
        bench.cut_off()
        bench.here.pid_namespace = "another container"
        bench.lasting.leases.clear()

        assert bench.planner.is_alive(bench.run())
        assert codes(bench.planner.plan("job")) == ["owner_not_judged"]


def test_a_plan_of_a_run_that_is_not_there(bench: Recovering) -> None:
    with pytest.raises(RunNotFoundError):
        bench.planner.plan("job")


def test_a_plan_can_be_stored(bench: Recovering) -> None:
    """It is recorded with the resume."""
    session = bench.cut_off(recovery=AUTO.changed(safe_to_retry=False))
    session.intend_effect("mail")
    fields: dict[str, Any] = bench.planner.plan("job").to_fields()

    assert bench.codec.unpack(bench.codec.pack(fields)) == fields
