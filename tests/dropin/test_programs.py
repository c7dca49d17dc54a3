"""The programs behind the scripts: their commands, options, answers and exit codes."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from workspaces import ADAPTER, Bench

from tachograph import cards
from tachograph.dropin.__main__ import main
from tachograph.dropin.opening import open_services
from tachograph.dropin.runtime import parser
from tachograph.infra import ancestry

if TYPE_CHECKING:
    from collections.abc import Sequence

Capture = pytest.CaptureFixture[str]

RESULT = [
    "task_id",
    "task_path",
    "task_type",
    "title",
    "mode",
    "status",
    "phase",
    "retry_count",
    "max_retries",
    "allow_auto_resume",
    "stale_after_minutes",
    "seconds_since_checkpoint",
    "artifacts",
    "resume_command",
    "resume_adapter",
    "watchdog",
]
CARD = [
    "id", "task_type", "title", "mode", "owner_skill", "status", "phase", "created_at",
    "updated_at", "last_checkpoint_at", "allow_auto_resume", "safe_to_retry",
    "stale_after_minutes", "retry_count", "max_retries", "resume_adapter", "resume_command",
    "resume_command_argv", "artifacts", "notes", "meta", "history", "watchdog", "ledger",
]  # fmt: skip
REPORT = {
    "checked_at", "running_count", "stale_count", "running", "stale", "alerts", "recoveries",
    "resumed", "skipped", "needs_attention", "active_needs_attention",
}  # fmt: skip


class Programs:
    """Calls the programs in this process, for a workspace."""

    def __init__(self, bench: Bench, capsys: Capture) -> None:
        self.bench = bench
        self._capsys = capsys

    def call(self, program: str, *arguments: str) -> tuple[int, Any, str]:
        """Return the exit code, the JSON on stdout (None without any), and stderr."""
        self._capsys.readouterr()
        code = main([program, str(self.bench.root), *arguments])
        out, err = self._capsys.readouterr()
        return code, json.loads(out) if out else None, err

    def do(self, *arguments: str) -> dict[str, Any]:
        code, answer, err = self.call("runtime", *arguments)
        assert (code, err) == (0, "")
        result: dict[str, Any] = answer
        return result

    def create(self, *arguments: str, task_id: str = "job") -> dict[str, Any]:
        words = ("create", "--task-id", task_id, "--task-type", "report", "--title", "R")
        return self.do(*words, *arguments)

    def refused(self, *arguments: str) -> tuple[int, str]:
        code, answer, err = self.call("runtime", *arguments)
        assert answer is None
        said = json.loads(err)
        assert said["ok"] is False
        return code, said["error"]


@pytest.fixture
def programs(empty: Bench, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Programs:
    # What a program sets for its adapters must not reach the next test.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    # Who runs the tests belongs to no attempt.
    monkeypatch.setattr(ancestry, "ancestors", list)
    return Programs(empty, capsys)


def test_create_answers_with_the_short_form(programs: Programs) -> None:
    answer = programs.create()

    assert (answer["ok"], answer["action"]) == (True, "create")
    assert list(answer["task"]) == RESULT
    task = answer["task"]
    assert (task["task_id"], task["status"], task["phase"]) == ("job", "running", "planning")
    assert (task["max_retries"], task["stale_after_minutes"], task["mode"]) == (2, 30, "full")
    assert (task["allow_auto_resume"], task["seconds_since_checkpoint"]) == (False, 0)


def test_inspect_answers_with_the_whole_card(programs: Programs) -> None:
    programs.create("--notes", "n", "--meta", "k=v", "--owner-skill", "s", "--mode", "lite")
    answer = programs.do("inspect", "job")

    card = answer["task"]
    assert list(card) == CARD
    assert (card["notes"], card["meta"], card["owner_skill"]) == ("n", {"k": "v"}, "s")
    assert (card["mode"], card["safe_to_retry"]) == ("lite", True)
    assert answer["task_path"] == str(programs.bench.path())
    assert programs.bench.card() == card


@pytest.mark.parametrize(
    ("command", "action", "status", "message"),
    [
        ("checkpoint", "checkpoint", "running", "checkpoint"),
        ("update", "update", "running", "update"),
        ("complete", "complete", "done", "task completed"),
        ("block", "blocked", "blocked", "task blocked"),
        ("fail", "failed", "failed", "task failed"),
    ],
)
def test_each_change_has_its_action_and_entry(
    programs: Programs, command: str, action: str, status: str, message: str
) -> None:
    programs.create("--allow-auto-resume")
    answer = programs.do(command, "job", "--phase", "next", "--meta", "k=v", "--notes", "n")

    card = programs.bench.card()
    assert (answer["action"], answer["task"]["status"]) == (action, status)
    last = card["history"][-1]
    assert (last["event"], last["phase"], last["status"], last["message"]) == (
        action,
        "next",
        status,
        message,
    )
    assert (card["phase"], card["meta"], card["notes"]) == ("next", {"k": "v"}, "n")
    ends = command in ("complete", "block", "fail")
    assert (card["allow_auto_resume"], card["safe_to_retry"]) == (not ends, not ends)


def test_the_options_of_progress_change_what_is_declared(programs: Programs) -> None:
    programs.create()
    for command in ("checkpoint", "update"):
        programs.do(command, "job", "--title", command, "--stale-after-minutes", "5",
                    "--max-retries", "7", "--no-safe-to-retry", "--allow-auto-resume",
                    "--resume-adapter", "skills/a.py", "--artifact", "a=1")  # fmt: skip
        card = programs.bench.card()
        assert (card["title"], card["stale_after_minutes"], card["max_retries"]) == (command, 5, 7)
        assert (card["safe_to_retry"], card["allow_auto_resume"]) == (False, True)
        assert card["resume_adapter"] == str(programs.bench.root / "skills" / "a.py")
        assert card["artifacts"] == {"a": "1"}
    programs.do("update", "job", "--resume-command", "make 'a b'")

    assert programs.bench.card()["resume_command_argv"] == ["make", "a b"]


def test_a_word_of_the_command_line_counts(programs: Programs) -> None:
    programs.create()

    assert programs.do("complete", "job", "--status", "blocked")["task"]["status"] == "blocked"
    assert programs.do("checkpoint", "job", "--status", "odd")["task"]["status"] == "odd"
    assert programs.do("complete", "job", "--status", "shipped")["task"]["status"] == "shipped"


def test_mark_retry_counts_up(programs: Programs) -> None:
    programs.create()
    programs.do("mark-retry", "job", "--error", "boom")
    answer = programs.do("mark-retry", "job", "--message", "again")

    card = programs.bench.card()
    assert (answer["action"], answer["task"]["retry_count"]) == ("mark-retry", 2)
    assert card["last_resume_error"] == "boom"
    assert [each["message"] for each in card["history"][1:]] == ["boom", "again"]


def test_list_filters_and_puts_the_newest_first(programs: Programs) -> None:
    programs.create(task_id="a")
    programs.create(task_id="b")
    programs.do("complete", "a")

    def of(answer: dict[str, Any]) -> list[str]:
        return [task["task_id"] for task in answer["tasks"]]

    everything = programs.do("list")
    assert (everything["action"], everything["count"]) == ("list", 2)
    assert sorted(of(everything)) == ["a", "b"]
    assert of(programs.do("list", "--status", "done")) == ["a"]
    assert of(programs.do("list", "--task-type", "none")) == []
    assert of(programs.do("list", "--only-stale")) == []


def test_stale_lists_what_may_be_resumed(programs: Programs) -> None:
    old = {"task_type": "report", "status": "running", "allow_auto_resume": True,
           "stale_after_minutes": 30, "last_checkpoint_at": "2020-01-01T00:00:00Z"}  # fmt: skip
    programs.bench.write("data/task-runs/a.json", json.dumps({**old, "resume_command": "make"}))
    programs.bench.write("data/task-runs/b.json", json.dumps(old))
    programs.create(task_id="young")

    assert {task["task_id"] for task in programs.do("stale")["tasks"]} == {"a", "b"}
    assert programs.do("stale", "--task-type", "none")["count"] == 0
    found = programs.do("stale", "--require-resume-command")
    assert [task["task_id"] for task in found["tasks"]] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("inspect", "none"), "task not found: none"),
        (("checkpoint", "none"), "task not found: none"),
        (("update", "job", "--meta", "odd"), "expected key=value, and there is no `=` in 'odd'"),
        (("update", "job", "--artifact", "=x"), "there is nothing before the `=` in '=x'"),
        (("inspect", "///"), "nothing is left of it after cleaning"),
        (("update", "job", "--resume-command", "make 'it"), "No closing quotation"),
    ],
)
def test_an_error_is_json_on_stderr_and_exit_code_1(
    programs: Programs, arguments: Sequence[str], said: str
) -> None:
    programs.create()
    code, error = programs.refused(*arguments)

    assert code == 1
    assert said in error


def test_a_superseded_attempt_ends_with_6(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.create()
    programs.do("fail", "job")
    programs.do("checkpoint", "job")
    monkeypatch.setitem(os.environ, "TACHO_EPOCH", "1")
    code, error = programs.refused("checkpoint", "job")

    assert code == 6
    assert "Attempt 1 of run job was superseded" in error


def test_a_wrong_command_line_ends_with_2(programs: Programs) -> None:
    for arguments in (["create"], ["checkpoint"], ["nothing"], []):
        with pytest.raises(SystemExit) as ended:
            programs.call("runtime", *arguments)
        assert ended.value.code == 2


def test_every_command_has_help() -> None:
    shown = parser().format_help()

    for command in ("create", "checkpoint", "update", "complete", "block", "fail", "inspect",
                    "list", "stale", "mark-retry"):  # fmt: skip
        assert command in shown


def test_a_store_named_elsewhere_is_used(
    programs: Programs, store_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TACHO_STORE", str(store_path))
    programs.create()
    assert (store_path / "format").exists()
    monkeypatch.delitem(os.environ, "TACHO_STORE")
    (programs.bench.root / ".tachograph").mkdir()
    services = open_services(programs.bench.workspace)
    services.close()

    assert services.folder == str(programs.bench.root / ".tachograph")
    assert not programs.bench.workspace.store.exists()


# The watchdog and the dispatcher.


def lapse(bench: Bench, task_id: str = "job") -> None:
    """Let the lease of a task end, so that it counts as silent."""
    tasks = bench.tasks()
    run = tasks.get(task_id)
    tasks.services.presence.beat(run.id, run.epoch, lease_seconds=0.0)
    tasks.services.close()


def test_the_report_has_every_field_of_both_shapes(programs: Programs) -> None:
    source = programs.bench.write("in.json", "[]")
    programs.bench.write("skills/a.py", ADAPTER)
    programs.bench.install()
    tasks = programs.bench.tasks()
    for task_id, phase in (("good", "render"), ("bad", "deliver")):
        from tachograph.dropin.wishes import Wish

        tasks.create(
            "report",
            Wish(status="running", checkpoint=True, phase=phase, allow_auto_resume=True,
                 adapter=str(programs.bench.root / "skills" / "a.py"), max_retries=1,
                 artifacts={"source": str(source)}),
            given_id=task_id,
        )  # fmt: skip
        tasks.services.presence.beat(task_id, 1, lease_seconds=0.0)
    tasks.services.close()
    code, report, _ = programs.call("watch", "--auto-resume")

    assert (code, report.keys() >= REPORT) == (0, True)
    alert, recovery = report["alerts"][0], report["recoveries"][0]
    attention = report["needs_attention"][0]
    assert alert.keys() >= {
        "task_id", "task_type", "kind", "summary", "message",
        "phase", "stale_for_minutes", "last_checkpoint",
    }  # fmt: skip
    assert recovery.keys() >= {
        "task_id", "task_type", "retry_count", "summary", "message",
        "from_phase", "to_phase", "recovered_at",
    }  # fmt: skip
    assert attention.keys() >= {
        "task_id", "task_type", "reason", "summary", "message", "detail", "phase", "blocked_since",
    }  # fmt: skip
    assert (alert["kind"], recovery["task_id"], attention["task_id"]) == ("silent", "good", "bad")
    assert [list(task) for task in report["running"]] == [RESULT]
    assert report["running_count"] == report["stale_count"] == 1
    assert cards.parse_iso(report["checked_at"]) is not None
    assert programs.bench.card("good")["status"] == "done"


def test_only_tasks_of_the_wanted_type_are_watched(programs: Programs) -> None:
    programs.create("--allow-auto-resume")
    lapse(programs.bench)
    _, other, _ = programs.call("watch", "--auto-resume", "--task-type", "other")

    assert (other["running"], other["alerts"]) == ([], [])


def test_a_workspace_without_a_store_has_an_empty_report(programs: Programs) -> None:
    code, report, _ = programs.call("watch")

    assert (code, report.keys() >= REPORT) == (0, True)
    assert (report["running_count"], report["running"]) == (0, [])
    assert not programs.bench.workspace.store.exists()


def test_a_task_without_an_adapter_cannot_be_dispatched(programs: Programs) -> None:
    programs.create()
    code, answer, err = programs.call("resume", "--task-id", "job")
    missing = programs.call("resume", "--task-id", "none")

    assert (code, answer) == (2, None)
    assert json.loads(err)["ok"] is False
    assert (missing[0], json.loads(missing[2])["error"]) == (2, "task not found: none")


def test_the_dispatcher_prints_what_the_adapter_said(programs: Programs) -> None:
    programs.bench.write("say.sh", "#!/bin/sh\necho plain words\n")
    programs.create("--resume-adapter", "say.sh")
    code, answer, err = programs.call("resume", "--task-id", "job")

    told = json.loads(err[err.index("{") :])
    assert (code, answer, told["ok"]) == (2, None, False)
    assert (told["stdout"], told["returncode"]) == ("plain words", 0)
    assert "no further" in told["error"] or "JSON" in told["error"]


def test_a_file_that_cannot_be_read_is_no_task_to_dispatch(programs: Programs) -> None:
    programs.bench.write("data/task-runs/job.json", "{")
    code, _, err = programs.call("resume", "--task-id", "job")

    assert code == 2
    assert "Mend the file" in err


# The bridge.


def ask(programs: Programs, monkeypatch: pytest.MonkeyPatch, **question: Any) -> dict[str, Any]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question)))
    code, answer, _ = programs.call("bridge")
    assert code == 0
    result: dict[str, Any] = answer
    return result


def test_the_bridge_loads_saves_and_lists(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.create()
    card = ask(programs, monkeypatch, op="load", task_id="job")["value"]
    card["phase"] = "next"
    saved = ask(programs, monkeypatch, op="save", card=card)["value"]
    listed = ask(programs, monkeypatch, op="list", task_type="report")["value"]

    assert saved["card"]["phase"] == "next"
    assert saved["path"] == str(programs.bench.path())
    assert [each["id"] for each in listed["cards"]] == ["job"]
    assert listed["unreadable"] == []


def test_a_card_of_an_earlier_execution_does_not_reach_the_next(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.create()
    old = ask(programs, monkeypatch, op="load", task_id="job")["value"]
    programs.do("complete", "job")
    programs.create()
    old["phase"] = "late"
    answer = ask(programs, monkeypatch, op="save", card=old)

    assert answer["ok"] is False
    assert "is finished" in answer["error"]
    assert programs.bench.card()["phase"] == "planning"


def test_refusals_of_the_bridge_are_answers(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.create()
    programs.do("fail", "job")
    programs.do("checkpoint", "job")
    unknown = ask(programs, monkeypatch, op="nothing")
    missing = ask(programs, monkeypatch, op="load", task_id="none")
    monkeypatch.setitem(os.environ, "TACHO_EPOCH", "1")
    fenced = ask(programs, monkeypatch, op="save", card={"id": "job", "phase": "x"})

    assert (unknown["ok"], missing["kind"], fenced["kind"]) == (False, "error", "fenced")


def test_a_file_only_card_is_taken_over_by_a_save(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.bench.write("data/task-runs/old.json", json.dumps({"id": "old", "phase": "a"}))
    ask(programs, monkeypatch, op="save", card={"id": "old", "phase": "b", "resume_adapter": "x"})

    card = programs.bench.card("old")
    assert (card["phase"], card["resume_adapter"]) == ("b", str(programs.bench.root / "x"))
    assert "imported" in [entry["event"] for entry in card["history"]]
