"""What went wrong with the original scripts does not go wrong here; each rule is one test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from workspaces import ADAPTER, Bench, Job, lines

from tachograph.infra.processes import process_start

if TYPE_CHECKING:
    from pathlib import Path

DEAD = ("--allow-auto-resume", "--resume-adapter", "skills/a/task_resume.py")


def adapter(bench: Bench, body: str) -> Path:
    """Write an adapter that notes each of its runs, and does what `body` says."""
    text = f"""
import json, sys
from pathlib import Path
sys.path.insert(0, {str(bench.workspace.scripts)!r})
from task_runtime import *
task_id = sys.argv[2]
with open({str(bench.root / "ran")!r}, "a") as file:
    file.write(task_id + "\\n")
{body}
print(json.dumps({{"ok": True}}))
"""
    return bench.write("skills/a/task_resume.py", text)


def ran(bench: Bench) -> list[str]:
    """Return the tasks that the adapter was run for."""
    return list(lines(bench.root / "ran"))


def died(bench: Bench, *options: str) -> None:
    """Leave a task behind whose process was killed."""
    with Job(bench) as job:
        job.create("job", *options)
        job.ask("checkpoint", "job", "--phase", "collect")
        job.kill()


# 1. Half a file, and cards that vanish.


def test_a_card_file_is_never_half_written(bench: Bench) -> None:
    """Whoever reads while others write finds a whole card."""
    bench.create("job", "--notes", "x" * 20_000)
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(bench.path())], stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n"
    for number in range(4):
        bench.runtime("checkpoint", "job", "--notes", str(number) * 20_000)
    told = json.loads(reader.communicate()[0])

    assert told["broken"] == 0
    assert told["seen"] > 1


READER = """
import json, sys
print("reading", flush=True)
seen, broken, last = set(), 0, ""
while not last.startswith("3"):
    try:
        last = json.loads(open(sys.argv[1], encoding="utf-8").read())["notes"]
        seen.add(last)
    except ValueError:
        broken += 1
print(json.dumps({"seen": len(seen), "broken": broken}))
"""


def test_a_card_that_cannot_be_read_is_named(bench: Bench) -> None:
    bench.create("good")
    broken = bench.write("data/task-runs/broken.json", '{"id": "broken", "sta')
    answer = bench.runtime("list")

    assert [task["task_id"] for task in answer["tasks"]] == ["good"]
    assert [each["file"] for each in answer["unreadable"]] == [str(broken)]
    assert broken.read_text("utf-8") == '{"id": "broken", "sta'


def test_a_card_file_that_cannot_be_written_fails_no_command(bench: Bench) -> None:
    bench.create("job")
    bench.path().unlink()
    bench.path().mkdir()
    done = bench.program("runtime", "checkpoint", "job", "--phase", "render")

    assert done.returncode == 0
    assert "job.json was left alone" in done.stderr
    assert json.loads(done.stdout)["task"]["phase"] == "render"


# 2. Changes that overwrite each other.


def test_task_and_adapter_do_not_undo_each_others_changes(bench: Bench) -> None:
    """Each saves an older copy of the card: both changes stay."""
    bench.create("job", "--meta", "a=1")
    with Job(bench) as first:
        assert first.ask("python", "card = runtime.load_card('job')") == (0, "")
        bench.runtime("update", "job", "--meta", "b=2", "--notes", "by another")
        assert first.ask("python", SAVE_OLD_COPY) == (0, "")

    card = bench.card()
    assert card["meta"] == {"a": "1", "b": "2", "c": "3"}
    assert (card["notes"], card["phase"]) == ("by another", "analyze")
    assert [entry["event"] for entry in card["history"]] == ["created", "update", "mine"]


SAVE_OLD_COPY = """
card["meta"]["c"] = "3"
card["phase"] = "analyze"
runtime.append_history(card, "mine")
runtime.save_card(card)
"""


def test_a_card_that_is_saved_twice_is_applied_once(bench: Bench) -> None:
    """Saving brings the card in memory up to date, and tables that the caller holds as well."""
    bench.create("job")
    with Job(bench) as job:
        code = """
card = runtime.load_card("job")
artifacts = card["artifacts"]
artifacts["a"] = "1"
runtime.append_history(card, "mine")
runtime.save_card(card)
artifacts["b"] = "2"
runtime.save_card(card)
runtime.save_card(card)
"""
        assert job.ask("python", code) == (0, "")

    card = bench.card()
    assert card["artifacts"] == {"a": "1", "b": "2"}
    assert [entry["event"] for entry in card["history"]] == ["created", "mine"]


def test_two_heartbeats_at_once_resume_a_task_once(bench: Bench) -> None:
    adapter(bench, "card = load_card(task_id); card['status'] = 'done'; save_card(card)")
    died(bench, *DEAD)
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: bench.watch("--auto-resume"), range(2)))

    assert ran(bench) == ["job"]
    assert sum(len(report["recoveries"]) for report in reports) == 1


# 3. Retries that are used up.


def test_a_task_without_retries_left_is_still_seen(bench: Bench) -> None:
    adapter(bench, "pass")
    died(bench, *DEAD, "--max-retries", "1")
    first = bench.watch("--auto-resume")
    later = bench.watch("--auto-resume")

    assert [each["action"] for each in first["resumed"]] == ["ineffective"]
    assert [each["reason"] for each in first["needs_attention"]] == [
        "auto-resume failed and retries are exhausted"
    ]
    assert (later["needs_attention"], later["resumed"]) == ([], [])
    assert [each["task_id"] for each in later["active_needs_attention"]] == ["job"]
    assert [each["task_id"] for each in later["running"]] == ["job"]
    assert later["running"][0]["retry_count"] == 1


# 4. Exit code 0 is no recovery.


def test_an_adapter_that_does_nothing_is_no_recovery(bench: Bench) -> None:
    adapter(bench, "pass")
    died(bench, *DEAD)
    code, answer = bench.resume()
    report = bench.watch("--auto-resume")

    assert (code, answer["ok"], answer["progressed"]) == (2, False, False)
    assert "got no further" in answer["error"]
    assert report["recoveries"] == []


# 5. The time limit.


@pytest.mark.skipif(sys.platform != "linux", reason="reads process groups of Linux")
def test_at_the_time_limit_the_children_of_an_adapter_die_too(bench: Bench) -> None:
    pids = bench.root / "pids"
    adapter(
        bench,
        f"""
import os, subprocess
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"],
                         stdin=subprocess.PIPE)
Path({str(pids)!r}).write_text(f"{{os.getpid()}} {{child.pid}}")
child.wait()
""",
    )
    died(bench, *DEAD)
    code, answer = bench.resume("job", "--timeout-seconds", "1")
    left = [pid for pid in map(int, pids.read_text().split()) if process_start(pid) is not None]

    assert (code, answer["ok"]) == (2, False)
    assert "time limit" in answer["error"]
    assert left == []


# 6. Whoever wakes up after it was resumed elsewhere.


def test_a_frozen_process_that_wakes_up_is_refused_with_6(bench: Bench) -> None:
    """G5: by the commands, and by an import."""
    source = bench.write("in.json", "[]")
    bench.write("skills/a/task_resume.py", ADAPTER)
    with Job(bench) as job:
        job.create("job", *DEAD, "--phase", "render", "--artifact", f"source={source}")
        job.ask("checkpoint", "job", "--meta", "at=1")
        job.freeze()
        asked = subprocess.run(
            [sys.executable, "-m", "tachograph", "run", "resume", "job", "--takeover",
             "--reason", "it hangs"],
            env={**os.environ, "TACHO_STORE": str(bench.workspace.store)},
            capture_output=True, text=True,
        )  # fmt: skip
        job.say("checkpoint", "job", "--phase", "late")
        job.thaw()
        late = job.hear()
        imported = job.ask("python", "runtime.save_card({'id': 'job', 'phase': 'late'})")

    assert asked.returncode == 0, asked.stderr
    assert late[0] == 6
    assert "superseded by attempt 2" in json.loads(late[1])["error"]
    assert imported[0] == "FencedError"
    assert bench.card()["status"] == "done"
    assert "late" not in json.dumps(bench.card())


def test_whoever_did_nothing_yet_does_not_come_between_a_worker_and_its_task(bench: Bench) -> None:
    with Job(bench) as job:
        job.create()
        job.ask("checkpoint", "job", "--phase", "collect")
        code, error = bench.refused("checkpoint", "job", "--phase", "other")
        looked = bench.runtime("inspect", "job")["task"]
        noted = bench.runtime("update", "job", "--notes", "a person looked")

    assert code == 6
    assert f"process {job.process.pid}" in error
    assert (looked["phase"], noted["task"]["phase"]) == ("collect", "collect")
    assert bench.card()["notes"] == "a person looked"


def test_who_asks_for_a_resume_of_its_own_task_goes_on_afterwards(bench: Bench) -> None:
    """A script may hand its task to an adapter, and finish it."""
    adapter(bench, "card = load_card(task_id); card['phase'] = 'next'; save_card(card)")
    with Job(bench) as job:
        job.create("job", *DEAD)
        job.ask("checkpoint", "job", "--phase", "collect")
        script = str(bench.workspace.scripts / "task_runtime_resume.py")
        code = f"subprocess.run(['python3', {script!r}, '--task-id', 'job'], stdout=-3)"
        assert job.ask("python", code) == (0, "")
        done = job.ask("complete", "job")

    assert done[0] == 0, done[1]
    assert bench.card()["phase"] == "next"
    assert bench.fields("finished")[0]["by"][3] > 1


# 7. Dry runs.


def test_a_dry_run_writes_nothing(bench: Bench) -> None:
    adapter(bench, "pass")
    died(bench, *DEAD)
    before = (bench.topics(), bench.path().read_bytes())
    report = bench.watch("--auto-resume", "--dry-run")
    plain = bench.watch()

    assert [each["action"] for each in report["resumed"]] == ["dry-run"]
    assert [each["task_id"] for each in plain["skipped"]] == ["job"]
    assert (bench.topics(), bench.path().read_bytes()) == before
    assert ran(bench) == []
    assert bench.card()["retry_count"] == 0


# 8. What counts as life.


def test_a_task_whose_process_lives_is_not_resumed_beside_itself(bench: Bench) -> None:
    """However old its checkpoint is."""
    adapter(bench, "pass")
    with Job(bench) as job:
        job.create("job", *DEAD, "--stale-after-minutes", "1")
        job.ask("checkpoint", "job", "--phase", "long")
        bench.tasks().services.presence.beat("job", 1, lease_seconds=0.0)
        report = bench.watch("--auto-resume")
        code, answer = bench.resume()

    assert (report["resumed"], ran(bench)) == ([], [])
    assert (code, answer["ok"]) == (6, False)


def test_a_task_whose_process_died_is_found_at_once(bench: Bench) -> None:
    """However young its checkpoint is."""
    adapter(bench, "card = load_card(task_id); card['phase'] = 'next'; save_card(card)")
    died(bench, *DEAD, "--stale-after-minutes", "600")
    report = bench.watch("--auto-resume")

    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    assert report["recoveries"][0]["to_phase"] == "next"


def test_a_task_without_a_process_is_alive_until_its_time_is_up(bench: Bench) -> None:
    adapter(bench, "card = load_card(task_id); card['phase'] = 'next'; save_card(card)")
    bench.create("job", *DEAD)
    young = bench.watch("--auto-resume")
    tasks = bench.tasks()
    tasks.services.presence.beat("job", 1, lease_seconds=0.0)
    tasks.services.close()
    old = bench.watch("--auto-resume")

    assert (young["stale"], young["resumed"]) == ([], [])
    assert [each["task_id"] for each in old["recoveries"]] == ["job"]


def test_an_agent_that_runs_task_and_heartbeat_is_no_sign_of_life(bench: Bench) -> None:
    """It outlives the task, and its later commands are those of the task all the same."""
    adapter(bench, "card = load_card(task_id); card['phase'] = 'next'; save_card(card)")
    with Job(bench) as agent:
        agent.create("job", *DEAD)
        agent.ask("checkpoint", "job", "--phase", "collect")
        watch = "import subprocess; subprocess.run(['python3', {!r}, '--auto-resume'])".format(
            str(bench.workspace.scripts / "task_runtime_watch.py")
        )
        quiet = watch.replace("'--auto-resume']", "'--auto-resume'], stdout=subprocess.DEVNULL")
        agent.ask("python", quiet)
        tasks = bench.tasks()
        tasks.services.presence.beat("job", 1, lease_seconds=0.0)
        tasks.services.close()
        agent.ask("python", quiet)
        resumed = ran(bench)
        code, text = agent.ask("checkpoint", "job", "--phase", "deliver")

    assert resumed == ["job"]
    assert code == 0, text
    assert bench.card()["phase"] == "deliver"


@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of other processes")
def test_an_agent_with_its_marker_is_never_taken_for_a_worker(bench: Bench) -> None:
    """OpenClaw marks what it starts."""
    with Job(bench) as agent:
        agent.ask("python", "os.environ['OPENCLAW_SHELL'] = 'exec'")
        agent.create("job", "--allow-auto-resume")
        agent.ask("checkpoint", "job", "--phase", "collect")
        agent.ask("checkpoint", "job", "--phase", "render")

    assert "worker-started" not in bench.topics()
    assert "pid" not in bench.fields("attempt-started")[0]["owner"]
    assert bench.watch("--auto-resume")["stale"] == []


# 9. Clocks.


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "UTC"])
def test_times_are_in_the_zone_of_the_machine_with_an_offset(
    bench: Bench, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    bench.create()
    answer = bench.runtime("inspect", "job")["task"]

    offset = {"Asia/Shanghai": "+08:00", "UTC": "+00:00"}.get(zone, "-0")
    assert offset in answer["created_at"][19:]
    assert len(answer["created_at"]) == len("2026-01-01T00:00:00+00:00")


def test_a_checkpoint_in_the_future_makes_no_task_negative_or_stale(bench: Bench) -> None:
    """The clock was set back since."""
    bench.write("data/task-runs/job.json", json.dumps({
        "id": "job", "task_type": "report", "status": "running", "allow_auto_resume": True,
        "stale_after_minutes": 30, "last_checkpoint_at": "2999-01-01T00:00:00+00:00",
    }))  # fmt: skip
    (task,) = bench.runtime("list")["tasks"]

    assert task["seconds_since_checkpoint"] == 0
    assert bench.runtime("stale")["count"] == 0


# 10. Ids.


def test_two_ids_that_become_one_do_not_share_a_card(bench: Bench) -> None:
    bench.create("Weekly Report")
    code, error = bench.refused(
        "create", "--task-id", "weekly/report", "--task-type", "report", "--title", "x"
    )

    assert code == 1
    assert "'weekly/report' and 'Weekly Report' both become the task id weekly-report" in error


def test_a_second_create_does_not_wipe_a_history(bench: Bench) -> None:
    bench.create("job", "--notes", "first")
    before = bench.card()
    code, error = bench.refused(
        "create", "--task-id", "job", "--task-type", "report", "--title", "x"
    )

    assert code == 1
    assert "Task job exists already and is running" in error
    assert bench.card() == before


def test_of_two_that_create_a_task_at_once_one_gets_it(bench: Bench) -> None:
    words = ("create", "--task-id", "job", "--task-type", "report", "--title", "x")
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda _: bench.program("runtime", *words), range(3)))

    assert sorted(each.returncode for each in done) == [0, 1, 1]
    assert bench.topics().count("created") == 1


def test_a_finished_task_is_begun_again_as_its_next_execution(bench: Bench) -> None:
    bench.create("job", "--notes", "first")
    bench.runtime("complete", "job")
    bench.create("job", "--notes", "second")

    assert bench.card()["ledger"]["run_id"] == "job~2"
    assert (bench.card()["notes"], bench.card()["status"]) == ("second", "running")
    assert bench.topics("job")[-1] == "finished"


# 12. History.


def test_history_beyond_80_entries_is_kept(bench: Bench) -> None:
    bench.create()
    with Job(bench) as job:
        code = """
card = runtime.load_card("job")
for number in range(20):
    runtime.append_history(card, f"step-{number}")
runtime.save_card(card)
for number in range(20, 120):
    runtime.append_history(card, f"step-{number}")
runtime.save_card(card)
"""
        assert job.ask("python", code) == (0, "")

    shown = [entry["event"] for entry in bench.card()["history"]]
    kept = [entry["event"] for each in bench.fields("card-edited") for entry in each["entries"]]
    assert shown == [f"step-{number}" for number in range(40, 120)]
    assert kept == ["created", *(f"step-{number}" for number in range(120))]


# 13. Status words.


def test_a_status_that_nobody_knows_hides_no_task(bench: Bench) -> None:
    adapter(bench, "card = load_card(task_id); card['status'] = 'done'; save_card(card)")
    with Job(bench) as job:
        job.create("job", *DEAD)
        job.ask("checkpoint", "job", "--status", "runing")
        job.kill()
    card = bench.card()
    looked = bench.watch()
    report = bench.watch("--auto-resume")

    assert card["status"] == "runing"
    assert [each["task_id"] for each in looked["running"]] == ["job"]
    assert [each["task_id"] for each in looked["stale"]] == ["job"]
    assert [each["reason"] for each in looked["active_needs_attention"]] == [
        "its card has a status that nobody knows"
    ]
    assert [each["task_id"] for each in report["recoveries"]] == ["job"]
    assert bench.card()["status"] == "done"
