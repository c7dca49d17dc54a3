"""Cards that a workspace had before are taken over with their history, once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here

from tachograph import cards
from tachograph.cli.workspace_shapes import WORKSPACE
from tachograph.dropin.adopting import import_cards, published
from tachograph.infra.clock import now_us

if TYPE_CHECKING:
    from pathlib import Path

    from workspaces import Bench

Capture = pytest.CaptureFixture[str]

PUBLISHED: dict[str, Any] = {
    "id": "weekly",
    "task_type": "report",
    "title": "Wöchentlich",
    "mode": "full",
    "owner_skill": "reports",
    "status": "running",
    "phase": "render",
    "created_at": "2025-04-15T02:20:34+08:00",
    "updated_at": "2025-04-15T03:45:12+08:00",
    "last_checkpoint_at": "2025-04-15T03:40:00+08:00",
    "allow_auto_resume": True,
    "safe_to_retry": True,
    "stale_after_minutes": 45,
    "retry_count": 1,
    "max_retries": 3,
    "resume_adapter": "skills/report/task_resume.py",
    "resume_command": None,
    "resume_command_argv": [],
    "artifacts": {"data": "/tmp/none.json"},
    "notes": "n",
    "meta": {"k": "v"},
    "history": [{"at": "2025-04-15T02:20:34+08:00", "event": "created", "message": "m"}],
    "last_resume_attempt_at": "2025-04-15T03:00:00+08:00",
    "watchdog": {"slot": "print"},
    "mine": {"deep": [1, 2]},
}
ARTICLE: dict[str, Any] = {
    "task_id": "research",
    "task_type": "overnight-research",
    "title": "R",
    "created_at": "2025-04-15T02:20:34Z",
    "status": "completed",
    "phase": "aggregate",
    "resume_adapter": "/skills/research/task_resume.py",
    "allow_auto_resume": True,
    "stale_after_minutes": 30,
    "retry_count": 0,
    "last_checkpoint_at": "2025-04-15T03:45:12Z",
    "artifacts": {"phase_collect": {"raw": "/tmp/raw.json"}},
    "checkpoints": [
        {"phase": "collect", "at": "2025-04-15T02:45:00Z", "message": "20 sources"},
        {"phase": "aggregate", "at": "2025-04-15T03:45:12Z", "message": "done"},
    ],
    "metadata": {"user": "alice", "tags": ["a", "b"]},
}


def put(bench: Bench, name: str, card: Any) -> Path:
    text = card if isinstance(card, str) else json.dumps(card, ensure_ascii=False)
    return bench.write(f"data/task-runs/{name}.json", text)


def importing(bench: Bench, capsys: Capture, *options: str, code: int = 0) -> list[dict[str, Any]]:
    done = here(capsys, "workspace", "import", "--workspace", bench.root, "--json", *options)
    assert done.returncode == code, done.stderr
    WORKSPACE["workspace-import"].validate_json(done.stdout)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["cards"]
    return rows


def test_a_running_card_becomes_an_unfinished_run(empty: Bench, capsys: Capture) -> None:
    put(empty, "weekly", PUBLISHED)
    importing(empty, capsys)

    card = empty.card("weekly")
    same = ("status", "phase", "title", "created_at", "last_checkpoint_at", "notes", "meta",
            "artifacts", "stale_after_minutes", "retry_count", "max_retries", "owner_skill",
            "last_resume_attempt_at", "watchdog", "mine", "updated_at",
            "allow_auto_resume")  # fmt: skip
    assert {name: card[name] for name in same} == {name: PUBLISHED[name] for name in same}
    assert card["resume_adapter"] == str(empty.root / "skills/report/task_resume.py")
    assert [entry["event"] for entry in card["history"]] == ["created", "imported"]
    assert card["history"][0] == PUBLISHED["history"][0]
    assert empty.fields("attempt-started", "weekly")[0]["owner"]["kind"] == "unowned"
    assert cards.is_sealed(card)


def test_a_finished_card_of_the_article_becomes_a_finished_run(
    empty: Bench, capsys: Capture
) -> None:
    put(empty, "research", ARTICLE)
    importing(empty, capsys)

    card = empty.card("research")
    assert (card["status"], card["max_retries"]) == ("completed", 3)
    assert card["meta"] == ARTICLE["metadata"]
    assert card["artifacts"] == ARTICLE["artifacts"]
    assert [entry.get("message") for entry in card["history"]][:2] == ["20 sources", "done"]
    assert empty.topics("research")[-2:] == ["finished", "card-edited"]


def test_a_second_time_changes_nothing(empty: Bench, capsys: Capture) -> None:
    put(empty, "weekly", PUBLISHED)
    put(empty, "research", ARTICLE)
    importing(empty, capsys)
    before = (empty.topics("weekly"), empty.path("weekly").read_bytes())
    rows = importing(empty, capsys)

    assert [row["state"] for row in rows] == ["known", "known"]
    assert (empty.topics("weekly"), empty.path("weekly").read_bytes()) == before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"id": "broken", "sta', "it is no JSON"),
        ("[1, 2]", "it holds no JSON object"),
        ('{"id": "x", "max_retries": "many"}', "its max_retries is 'many', no number"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_a_card_that_cannot_be_read_is_named_and_left_alone(
    empty: Bench, capsys: Capture, text: str, problem: str
) -> None:
    put(empty, "weekly", PUBLISHED)
    path = put(empty, "broken", text)
    rows = importing(empty, capsys, code=1)
    told = here(capsys, "workspace", "import", "--workspace", empty.root)

    assert [(row["taskId"], row["state"]) for row in rows] == [
        ("broken", "unreadable"),
        ("weekly", "imported"),
    ]
    assert problem in rows[0]["problem"]
    assert path.read_text("utf-8") == text
    assert "left alone" in told.stdout


def test_a_card_that_is_no_text_is_named(empty: Bench, capsys: Capture) -> None:
    path = put(empty, "binary", "{}")
    path.write_bytes(b"\xff\xfe\x00")

    assert "it is not UTF-8" in importing(empty, capsys, code=1)[0]["problem"]


def test_a_dry_run_writes_nothing(empty: Bench, capsys: Capture) -> None:
    path = put(empty, "weekly", PUBLISHED)
    before = path.read_bytes()
    rows = importing(empty, capsys, "--dry-run")
    told = here(capsys, "workspace", "import", "--workspace", empty.root, "--dry-run")

    assert [(row["state"], row["status"]) for row in rows] == [("imported", "running")]
    assert told.stdout.splitlines()[1].split()[:2] == ["weekly", "running"]
    assert "to be imported" in told.stdout
    assert path.read_bytes() == before
    assert not empty.workspace.store.exists()


def test_a_workspace_without_cards_says_so(empty: Bench, capsys: Capture) -> None:
    done = here(capsys, "workspace", "import", "--workspace", empty.root)

    assert (done.returncode, done.stdout) == (0, "")
    assert "There are no cards" in done.stderr


@pytest.mark.parametrize("status", ["failed", "blocked", "pending", "stalled", "odd word"])
def test_every_status_is_kept(empty: Bench, capsys: Capture, status: str) -> None:
    put(empty, "weekly", {**PUBLISHED, "status": status})
    importing(empty, capsys)

    assert empty.card("weekly")["status"] == status


def status_of(capsys: Capture, empty: Bench, task_id: str) -> dict[str, Any]:
    done = here(capsys, "run", "status", task_id, "--store", empty.workspace.store, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ago(minutes: float) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


def test_what_a_card_tells_has_happened_when_it_says(empty: Bench, capsys: Capture) -> None:
    """Only the last event has the time of the import."""
    put(empty, "weekly", PUBLISHED)
    before = now_us()
    importing(empty, capsys)
    times = [fields["time_us"] for fields in empty.fields("created", "weekly")]
    times += [fields["time_us"] for fields in empty.fields("attempt-started", "weekly")]
    times += [fields["time_us"] for fields in empty.fields("checkpoint-saved", "weekly")]
    expected = [cards.parse_iso(PUBLISHED[name]) for name in ("created_at", "last_checkpoint_at")]
    created, saved = [moment.timestamp() * 1_000_000 for moment in expected if moment]
    last = empty.fields("card-edited", "weekly")[-1]

    assert times == [created, saved, saved]
    assert (last["time_us"] >= before, last["entries"][0]["event"]) == (True, "imported")


def test_a_card_that_has_been_silent_for_long_is_found_at_once(
    empty: Bench, capsys: Capture
) -> None:
    put(empty, "weekly", PUBLISHED)
    importing(empty, capsys)
    status = status_of(capsys, empty, "weekly")
    looked = here(capsys, "watchdog", "run", "--once", "--json", "--store", empty.workspace.store)
    alerts = json.loads(looked.stdout)["alerts"]

    assert status["status"] == "interrupted"
    assert "last heartbeat" in status["statusReason"]
    assert [(each["task_id"], each["situation"]) for each in alerts] == [("weekly", "gone")]


def test_a_silent_card_can_be_resumed_after_its_import(empty: Bench, capsys: Capture) -> None:
    put(empty, "weekly", {**PUBLISHED, "resume_adapter": None, "resume_command": "echo {}"})
    importing(empty, capsys)
    done = here(capsys, "run", "resume", "weekly", "--store", empty.workspace.store)

    assert done.returncode == 1  # its command brings it no further
    assert "Attempt 2 of weekly got no further" in done.stderr


def test_a_card_that_showed_life_just_now_is_not_taken_from_its_job(
    empty: Bench, capsys: Capture
) -> None:
    """The job may be at work: it has as long as its threshold says, from its last checkpoint."""
    put(empty, "fresh", {**PUBLISHED, "last_checkpoint_at": ago(5), "updated_at": ago(5)})
    put(empty, "late", {**PUBLISHED, "last_checkpoint_at": ago(46), "updated_at": ago(1)})
    importing(empty, capsys)
    fresh = status_of(capsys, empty, "fresh")

    assert (fresh["status"], "last heartbeat 5m0" in fresh["statusReason"]) == ("running", True)
    assert status_of(capsys, empty, "late")["status"] == "interrupted"


@pytest.mark.parametrize(
    "silent",
    [
        {"stale_after_minutes": 0},
        {"last_checkpoint_at": None, "updated_at": None, "created_at": None},
        {"last_checkpoint_at": "soon", "updated_at": None, "created_at": "later"},
    ],
)
def test_of_a_card_that_says_no_time_nobody_knows(
    empty: Bench, capsys: Capture, silent: dict[str, Any]
) -> None:
    put(empty, "weekly", {**PUBLISHED, **silent})
    importing(empty, capsys)
    status = status_of(capsys, empty, "weekly")

    assert (status["status"], status["statusReason"]) == (
        "interrupted",
        "no process owns the run; there is no heartbeat to judge by",
    )


def test_a_time_in_the_future_counts_as_now(empty: Bench, capsys: Capture) -> None:
    put(empty, "weekly", {**PUBLISHED, "last_checkpoint_at": ago(-600)})
    importing(empty, capsys)

    assert empty.fields("checkpoint-saved", "weekly")[0]["time_us"] <= now_us()
    assert status_of(capsys, empty, "weekly")["status"] == "running"


def test_a_card_that_waits_to_be_started_begins_no_attempt(empty: Bench, capsys: Capture) -> None:
    put(empty, "weekly", {**PUBLISHED, "status": "pending"})
    importing(empty, capsys)
    status, card = status_of(capsys, empty, "weekly"), empty.card("weekly")

    assert (status["status"], status["statusReason"]) == ("waiting", "no attempt has started")
    assert "attempt-started" not in empty.topics("weekly")
    assert [card[name] for name in ("status", "phase", "last_checkpoint_at")] == [
        "pending",
        "render",
        PUBLISHED["last_checkpoint_at"],
    ]


def test_an_empty_card_has_all_that_a_card_must_have() -> None:
    found = published({}, "x")

    assert (found["id"], found["task_type"], found["status"]) == ("x", "task", "running")
    assert (found["max_retries"], found["history"], found["artifacts"]) == (2, [], {})


def test_a_card_is_taken_over_when_it_is_used(bench: Bench) -> None:
    """Nobody has to import before an adapter or a command works."""
    put(bench, "weekly", PUBLISHED)
    listed = bench.runtime("list")["tasks"]
    looked = bench.runtime("inspect", "weekly")["task"]
    untouched = bench.path("weekly").read_text("utf-8") == json.dumps(PUBLISHED, ensure_ascii=False)
    bench.runtime("checkpoint", "weekly", "--phase", "deliver")

    assert [task["task_id"] for task in listed] == ["weekly"]
    assert (looked["phase"], untouched) == ("render", True)
    assert bench.card("weekly")["phase"] == "deliver"
    assert [entry["event"] for entry in bench.card("weekly")["history"]] == [
        "created",
        "imported",
        "checkpoint",
    ]


def test_a_card_that_cannot_be_read_is_not_used(bench: Bench) -> None:
    put(bench, "broken", "{")
    code, error = bench.refused("checkpoint", "broken", "--phase", "x")

    assert code == 1
    assert "Mend the file, then run `tacho workspace import`" in error


def test_the_watchdog_takes_cards_over(bench: Bench) -> None:
    put(bench, "weekly", PUBLISHED)
    put(bench, "broken", "{")
    done = bench.program("runtime_watch", "--auto-resume")

    assert done.returncode == 0
    assert "broken" in done.stderr
    report = json.loads(done.stdout)
    assert [task["task_id"] for task in report["running"]] == ["weekly"]
    assert [alert["task_id"] for alert in report["alerts"]] == ["weekly"]
    assert [task["task_id"] for task in report["stale"]] == ["weekly"]


def test_a_task_that_is_created_to_wait_begins_with_its_first_work(bench: Bench) -> None:
    bench.create("job", "--status", "pending", "--artifact", "a=1")
    waiting, before = bench.card(), bench.topics()
    bench.runtime("update", "job", "--status", "pending", "--notes", "soon")
    still = bench.topics()
    bench.runtime("checkpoint", "job", "--phase", "collect")

    assert (waiting["status"], waiting["phase"]) == ("pending", "planning")
    assert waiting["artifacts"] == {"a": "1"}
    assert "attempt-started" not in before + still
    assert (bench.card()["status"], bench.card()["phase"]) == ("running", "collect")
    assert bench.topics().count("attempt-started") == 1


def test_two_files_that_become_one_id_are_not_mixed(empty: Bench) -> None:
    put(empty, "weekly", PUBLISHED)
    put(empty, "weekly!", {**PUBLISHED, "title": "another"})
    tasks = empty.tasks()
    rows = import_cards(empty.workspace, tasks, dry_run=False)
    tasks.services.close()

    assert {row["state"] for row in rows} == {"imported", "known"}
