"""False success and false failure that users of other systems reported. Named by the report."""

from __future__ import annotations

import asyncio
import pickle
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from command_line import TACHO, history, tacho
from workbench import Workbench

import tachograph
from tachograph import Nothing
from tachograph.domain.outcome import traits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

on_disk = pytest.mark.usefixtures("store_environment")


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def ended(bench: Workbench, run_id: str) -> tuple[str, str]:
    found = bench.fields(run_id, "finished")[-1]
    return found["outcome"], found["reason_code"]


def finished(run_id: str) -> tuple[str, str]:
    (found,) = [fields for topic, fields in history(run_id) if topic == "run.finished"]
    return found["outcome"], found["reason_code"]


AGENT = """
import tachograph

with tachograph.record("agent", run_id="job") as run:
    run.expect(files=["goal.md"])
    with run.phase("work") as phase:
        for batch in phase.batches(["reach the goal"]):
            batch.answered("", source="large")
            batch.complete("")
"""


@on_disk
class TestReport69:
    """Zero model output, the goal file absent, report says HEALTHY, exit 0."""

    def test_an_agent_that_said_nothing_and_made_nothing_has_failed(self, tmp_path: Path) -> None:
        (tmp_path / "agent.py").write_text(AGENT)
        done = subprocess.run(
            [sys.executable, "agent.py"], cwd=tmp_path, capture_output=True, text=True
        )

        assert done.returncode == 0, done.stderr
        assert finished("job") == ("failed_semantic_empty", "blank_output")
        assert tacho("run", "status", "job").stdout.count("failed_semantic_empty")

    def test_exit_code_0_of_a_wrapped_agent_is_not_healthy(self, tmp_path: Path) -> None:
        done = tacho(
            *("run", "exec", "--id", "job", "--expect-output", "goal.md", "--", "true"),
            cwd=tmp_path,
        )

        assert done.returncode == 7
        assert finished("job") == ("failed_semantic_empty", "expected_files_missing")

    def test_nor_is_a_goal_file_that_was_there_before(self, tmp_path: Path) -> None:
        (tmp_path / "goal.md").write_text("reached, last year")
        tacho(
            *("run", "exec", "--id", "job", "--expect-output", "goal.md", "--", "true"),
            cwd=tmp_path,
        )

        assert finished("job") == ("failed_semantic_empty", "expected_files_missing")


class TestReport70:
    """A placeholder, or whitespace, turns an empty result into success."""

    @pytest.mark.parametrize("text", ["(No text output)", " \n\t", "", "\u200b"])
    def test_it_is_no_output(self, bench: Workbench, text: str) -> None:
        with bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches(["question"]):
                batch.complete(text)

        assert ended(bench, run.id) == ("failed_semantic_empty", "blank_output")

    def test_it_is_none_at_any_call_site(self, bench: Workbench) -> None:
        blank = "(No text output)"
        with bench.record(inputs={"by": "map"}) as run, run.phase("ask") as phase:
            phase.map(lambda _items: [blank, blank], [1, 2], size=2)
        assert ended(bench, run.id)[0] == "failed_semantic_empty"
        with bench.record(inputs={"by": "dict"}) as run, run.phase("ask") as phase:
            phase.map(lambda _items: {"text": blank}, [1])
        assert ended(bench, run.id)[0] == "failed_semantic_empty"
        with bench.record(inputs={"by": "answer"}) as run:
            run.answered(blank, asked=1)
        assert ended(bench, run.id)[0] == "failed_semantic_empty"

    @on_disk
    def test_it_is_none_from_a_shell(self) -> None:
        attempt = {"TACHO_RUN_ID": "job", "TACHO_EPOCH": "1"}
        tacho("run", "start", "ask", "--id", "job", "--unowned")
        for line in ("phase start ask", "batch ask 0 --inputs 1 --output", "phase end ask"):
            more = ["(No text output)"] if line.endswith("--output") else []
            done = tacho("run", *line.split(), *more, environment=attempt)
            assert done.returncode == 0, done.stderr
        done = tacho("run", "finish", environment=attempt)

        assert (done.stdout, done.returncode) == ("failed_semantic_empty\n", 7)

    def test_a_short_answer_is_an_answer(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("ask") as phase:
            phase.map(lambda _items: "0", ["how many?"])

        assert ended(bench, run.id)[0] == "success"


class TestReport71:
    """Require produced output; but declared no work is success, and a loop limit is none."""

    def test_a_job_has_to_produce_something(self, bench: Workbench) -> None:
        with bench.record() as run:
            run.judge(inputs=3, outputs=0)

        assert ended(bench, run.id)[0] == "failed_semantic_empty"

    def test_or_to_declare_that_there_was_nothing_to_do(self, bench: Workbench) -> None:
        with bench.record() as run:
            run.judge(inputs=3, outputs=0, declared="all of them are up to date")

        assert ended(bench, run.id) == ("empty", "declared_no_work")
        assert not traits("empty").alerts

    def test_the_end_of_a_loop_limit_without_an_answer_is_no_success(
        self, bench: Workbench
    ) -> None:
        with bench.record() as run:
            run.judge(inputs=1, outputs=0, stopped="loop limit of 20 turns")

        assert ended(bench, run.id) == ("partial", "stopped_before_output")


class TestReport72:
    """COMPLETED although nodes failed; with care for jobs that only have side effects."""

    def test_a_phase_that_failed_is_looked_at(self, bench: Workbench) -> None:
        session = bench.start()
        for name, status in (("fetch", "failed"), ("write", "completed")):
            session.start_phase(name)
            session.complete_batch(name, 0, inputs=1, parsed=1)
            session.end_phase(name, status=status)

        assert session.finish() == "success_with_review"
        assert session.run.reason_code == "faults_seen"

    def test_a_job_whose_phases_all_failed_has_failed(self, bench: Workbench) -> None:
        session = bench.start()
        session.start_phase("fetch")
        session.end_phase("fetch", status="failed")

        assert session.finish() == "failed_semantic_empty"

    def test_a_job_that_only_has_side_effects_is_a_success(self, bench: Workbench) -> None:
        sent: list[str] = []
        with bench.record() as run:
            run.effect("mail", sent.append, "hello")

        assert sent == ["hello"]
        assert ended(bench, run.id) == ("success", "effects_done")

    def test_and_a_review_when_something_failed_beside_them(self, bench: Workbench) -> None:
        with bench.record() as run:
            run.effect("mail", list)
            run.answered(asked=1, fault="tool", error="no printer")

        assert ended(bench, run.id) == ("success_with_review", "faults_seen")

    def test_effects_excuse_no_work_that_was_not_done(self, bench: Workbench) -> None:
        """G12."""
        with bench.record() as run:
            run.expect(inputs=3)
            run.effect("mail", list)
            run.judge(outputs=0)

        assert ended(bench, run.id)[0] == "failed_semantic_empty"


def half(items: Sequence[int]) -> Any:
    """Work on even numbers; odd ones are left alone on purpose."""
    return [items[0] // 2] if items[0] % 2 == 0 else Nothing("odd numbers have no half")


class TestReport73:
    """Silence is read as a confirmed "not found": there is an explicit word for that."""

    def test_silence_is_not_nothing(self, bench: Workbench) -> None:
        for output, result in (([], "failed_semantic_empty"), (Nothing("no match"), "empty")):
            with bench.record(inputs={"said": repr(output)}) as run, run.phase("search") as phase:
                for batch in phase.batches(["needle"]):
                    batch.complete(output)
            assert ended(bench, run.id)[0] == result

    def test_nothing_is_recorded_as_an_answer_with_its_reason(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("search") as phase:
            for batch in phase.batches(["a", "b"], size=2):
                batch.complete(Nothing("no match"))

        (answer,) = bench.fields(run.id, "answer-received")
        (batch_done,) = bench.fields(run.id, "batch-completed")
        assert (answer["declared"], answer["asked"], answer["batch"]) == ("no match", 2, 0)
        assert (batch_done["parsed"], batch_done["output"]) == (0, None)
        assert run.outputs("search") == []

    def test_both_are_recorded_or_neither(self, bench: Workbench) -> None:
        """G2: a kill between the two would count it twice."""
        with bench.record() as run, run.phase("search") as phase:
            for batch in phase.batches(["a"]):
                batch.complete(Nothing("no match"))
        answered, done = bench.log.read_stream(run.id)[4:6]

        assert (answered.topic, done.topic) == ("run.answer-received", "run.batch-completed")
        assert answered.time_us == done.time_us

    def test_some_of_the_work_may_be_nothing(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("halve") as phase:
            assert phase.map(half, [2, 3, 4]) == [1, 2]

        assert ended(bench, run.id)[0] == "success"

    def test_it_can_be_said_of_one_item(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("halve") as phase:
            for batch in phase.batches([2, 3, 4], size=3):
                batch.complete([1, Nothing("odd numbers have no half"), 2])
        facts = bench.fields(run.id, "semantic-gate-judged")[0]["facts"]

        assert run.outputs("halve") == [1, 2]
        assert (facts["inputs"], facts["outputs"], facts["quiet"]) == (3, 2, 1)
        assert ended(bench, run.id)[0] == "success"

    def test_threads_may_return_it(self, bench: Workbench) -> None:
        with ThreadPoolExecutor(2) as pool, bench.record() as run, run.phase("halve") as phase:
            assert phase.map(half, [3, 5], executor=pool) == []

        assert ended(bench, run.id) == ("empty", "declared_no_work")

    def test_it_serves_asyncio_too(self, bench: Workbench) -> None:
        async def job() -> str:
            async with bench.record() as run, run.phase("search") as phase:
                async for batch in phase.batches(["a", "b"]):
                    await asyncio.to_thread(batch.answered, "none", declared="no match")
                    await asyncio.to_thread(batch.complete, Nothing("no match"))
            return run.id

        run_id = asyncio.run(job())

        assert ended(bench, run_id)[0] == "empty"
        assert bench.fields(run_id, "semantic-gate-judged")[0]["facts"]["quiet"] == 2

    def test_it_survives_a_process_boundary(self) -> None:
        assert pickle.loads(pickle.dumps(Nothing("no match"))) == Nothing("no match")


class TestReport75:
    """Legitimate silence, or an empty window, is marked as failed: the counter-tests."""

    def test_an_empty_window_is_empty(self, bench: Workbench) -> None:
        with bench.record() as run:
            items: list[str] = []
            with run.phase("summarise") as phase:
                for batch in phase.batches(items):
                    batch.complete("x")
            run.judge(inputs=len(items), outputs=0)

        assert ended(bench, run.id) == ("empty", "no_input")
        assert not traits("empty").alerts

    def test_a_filter_that_keeps_nothing_is_no_failure(self, bench: Workbench) -> None:
        with bench.record() as run:
            with run.phase("classify") as phase:
                phase.answered("none of them", asked=4, filtered=4)
            with run.phase("analyse") as phase:
                assert phase.map(str, []) == []

        assert ended(bench, run.id) == ("empty", "all_filtered")

    def test_silence_that_was_declared_for_every_item_is_no_failure(self, bench: Workbench) -> None:
        with bench.record() as run, run.phase("listen") as phase:
            phase.map(lambda _items: Nothing("nobody spoke"), range(6), size=2)

        assert ended(bench, run.id) == ("empty", "declared_no_work")

    def test_a_run_without_batches_that_did_its_effects_is_no_failure(
        self, bench: Workbench
    ) -> None:
        with bench.record() as run:
            run.effect("rotate logs", list)

        assert ended(bench, run.id)[0] == "success"


class TestReport76:
    """A recovered tool error decides the run; a summary frozen at an intermediate message."""

    @pytest.mark.parametrize("fault", ["provider", "parser", "truncated", "tool"])
    def test_a_fault_that_a_later_try_made_good_decides_nothing(
        self, bench: Workbench, fault: str
    ) -> None:
        with bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches([1, 2]):
                batch.answered(fault=fault)
                run.retry(fault, 1)
                batch.answered("[1]", parsed=1)
                batch.complete([1])

        assert ended(bench, run.id) == ("success", "outputs_present")
        assert bench.fields(run.id, "semantic-gate-judged")[0]["facts"]["recovered"] == 2

    def test_it_is_so_in_a_later_attempt_as_well(self, bench: Workbench) -> None:
        with pytest.raises(RuntimeError), bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches([1]):
                batch.answered(fault="tool", error="no such file")
                raise RuntimeError("cut off")
        with bench.record() as run, run.phase("ask") as phase:
            for batch in phase.batches([1]):
                batch.complete([1])

        assert ended(bench, run.id)[0] == "success"

    def test_one_that_nothing_made_good_is_looked_at(self, bench: Workbench) -> None:
        with bench.record() as run:
            with run.phase("ask") as phase:
                phase.map(list, [1])
            run.answered(asked=1, fault="tool")

        assert ended(bench, run.id) == ("success_with_review", "faults_seen")

    def test_the_last_judgement_counts_and_not_an_earlier_one(self, bench: Workbench) -> None:
        with bench.record() as run:
            assert run.judge(inputs=2, outputs=0) == "failed_semantic_empty"
            assert run.judge(inputs=2, outputs=2) == "success"

        assert ended(bench, run.id)[0] == "success"

    def test_what_is_recorded_after_a_judgement_is_no_part_of_it(self, bench: Workbench) -> None:
        """So the verdict names the versions of what it saw."""
        with bench.record() as run:
            with run.phase("ask") as phase:
                phase.map(list, [1])
            run.judge()
            run.answered(asked=1, fault="tool")
        (judged,) = bench.fields(run.id, "semantic-gate-judged")

        assert "tool_faults" not in judged["facts"]
        assert max(span[1] for span in judged["evidence"].values()) < judged["originator_version"]


def test_the_module_names_the_sentinel() -> None:
    assert tachograph.Nothing is Nothing


@on_disk
class TestWrappedCommandsThatJudgeThemselves:
    """What a command stated of itself is not forgotten when its files are looked at."""

    @pytest.mark.parametrize(
        ("script", "outcome", "code"),
        [
            ("{tacho} run judge --inputs 3 --declared 'nothing new'", "empty", 0),
            ("echo x >out; {tacho} run judge --inputs 3 --outputs 0", "failed_semantic_empty", 7),
            ("echo x >out; {tacho} run judge --inputs 3 --outputs 3", "success", 0),
            ("{tacho} run judge --inputs 3 --outputs 3", "success_with_review", 0),
            (
                "echo x >out; {tacho} run judge --inputs 3 --outputs 1 --stopped budget",
                "partial",
                75,
            ),
        ],
    )
    def test_it_counts_beside_the_files(
        self, script: str, outcome: str, code: int, tmp_path: Path
    ) -> None:
        command = shlex.join(TACHO)
        done = tacho(
            *("run", "exec", "--id", "job", "--expect-output", "out", "--"),
            *("sh", "-c", f"{script.format(tacho=command)}; exit 0"),
            cwd=tmp_path,
        )

        assert finished("job")[0] == outcome
        assert done.returncode == code
