"""`tacho queue requeue`, `cancel`, `prune`, `restore`, `sweep`: what is shown, done and refused.

The cases of acceptance that speak of HTTP are kept by what stands in its place, a command.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import Done, here
from queue_bench import Clock, QueueBench, opened_bench

from tachograph.cli import queue_requeue
from tachograph.domain.queue_selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Tacho = Callable[..., Done]

WHY = ("--apply", "--reason", "the model is back")
REPAIRS = ("requeue", "cancel", "prune", "restore")
each_repair = pytest.mark.parametrize("verb", REPAIRS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of everything."""
    return Clock(monkeypatch)


@pytest.fixture
def queue(
    store_environment: Path,
    tmp_path: Path,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Tacho:
    """Run `tacho queue` in this process, in a folder without a project."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: here(capsys, "queue", *words)


def filled(path: Path, clock: Clock, days: float = 100, **numbers: int) -> dict[str, list[str]]:
    """Make dead jobs in queues, and let time pass."""
    with opened_bench(path, clock) as bench:
        ids = {name: bench.dead(name, number) for name, number in numbers.items()}
    clock.pass_by(days=days)
    return ids


def seen(path: Path, clock: Clock, *ids: str) -> list[str]:
    with opened_bench(path, clock) as bench:
        return bench.statuses(*ids)


def head(path: Path, clock: Clock) -> int:
    with opened_bench(path, clock) as bench:
        return bench.services.log.head().position


def document(done: Done) -> dict[str, Any]:
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_only_who_is_asked_for_is_repaired(
    queue: Tacho, store_path: Path, clock: Clock, tmp_path: Path
) -> None:
    """Case 27, without HTTP: there is no route to guard; an agent that may not is refused."""
    filled(store_path, clock, memory=1)
    (tmp_path / "tachograph.toml").write_text("[repair]\nenabled = false\n")

    refused = queue("requeue", *WHY, "--actor", "agent")

    assert (refused.returncode, refused.stderr) == (8, "")
    assert refused.stdout.startswith("[denied] requeueDeadJobs: ")
    assert "switched off" in refused.stdout
    assert queue("requeue", *WHY).returncode == 0


def test_a_preview_says_what_would_be_done_of_which_queue(
    queue: Tacho, store_path: Path, clock: Clock
) -> None:
    """Case 28, its part about dead jobs; the counts themselves are `queue status`."""
    ids = filled(store_path, clock, memory=1, summary=2)

    shown = document(queue("requeue", "--json"))

    assert shown["byQueue"] == {
        "memory": {"matching": 1, "affected": 0},
        "summary": {"matching": 2, "affected": 0},
    }
    assert shown["preview"] == [*ids["memory"], *ids["summary"]]
    assert shown["jobs"][0] == {
        "jobId": ids["memory"][0],
        "queue": "memory",
        "type": "ingest",
        "status": "dead",
        "ageSec": 8_640_002,
        "error": "boom",
    }


@each_repair
def test_without_apply_nothing_is_changed(
    queue: Tacho, store_path: Path, clock: Clock, verb: str
) -> None:
    """Case 29: only --apply applies; a reason, --force or --json do not."""
    filled(store_path, clock, memory=2)
    before = head(store_path, clock)

    for words in ((), ("--reason", "because"), ("--force", "--reason", "x"), ("--dry-run",)):
        done = queue(verb, *words)
        assert (done.returncode, done.stdout[:10]) == (0, "[dry-run] ")
    assert queue(verb, "--apply", "--dry-run", "--reason", "x").returncode == 2
    assert head(store_path, clock) == before


def test_cancel_has_one_bound_for_all_queues(queue: Tacho, store_path: Path, clock: Clock) -> None:
    """Case 30, with fewer jobs: shared out, where the original took one queue first."""
    filled(store_path, clock, memory=70, summary=70)

    shown = document(queue("cancel", "--json"))
    assert (shown["totalMatching"], len(shown["preview"])) == (140, 100)
    done = document(queue("cancel", "--max-batch", "50", "--json", *WHY))

    assert (done["affected"], done["message"]) == (50, "cancelled 50 obsolete job(s)")
    assert done["byQueue"]["memory"] == {"matching": 70, "affected": 25}
    assert queue("cancel", "--max-batch", "1001").returncode == 2


def test_requeue_shares_50_out(queue: Tacho, store_path: Path, clock: Clock) -> None:
    """Case 31."""
    filled(store_path, clock, memory=101, summary=3)

    shown = queue("requeue")
    done = queue("requeue", *WHY)

    assert shown.stdout.splitlines()[:3] == [
        "[dry-run] requeueDeadJobs: 104 job(s) match requeue filter; preview shows 50",
        "  total matching: 104 (memory 101, summary 3)",
        "  preview (50):",
    ]
    assert shown.stdout.splitlines()[-1] == "    …and 40 more"
    assert len(shown.stdout.splitlines()) == 14
    assert "--apply --reason" in shown.stderr
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("[apply] requeueDeadJobs: requeued 47 dead memory job(s) and 3 dead ")
    assert second == "  total matching: 104 (memory 101, summary 3)"
    assert done.stdout.splitlines()[-1] == "  recorded as: requeueDeadJobs~1"


def test_prune_archives_and_restore_undoes(queue: Tacho, store_path: Path, clock: Clock) -> None:
    """Case 32."""
    ids = filled(store_path, clock, days=0, memory=3)["memory"]

    done = document(queue("prune", "--older-than", "1ms", "--json", *WHY))
    assert (done["affected"], done["message"]) == (3, "pruned 3 terminal job(s) (archived)")
    assert (store_path / "archive" / done["archives"][0]).is_file()
    assert seen(store_path, clock, *ids) == ["pruned"] * 3
    clock.pass_by(seconds=61)
    again = queue("prune", "--older-than", "1ms", *WHY)
    assert (again.returncode, again.stdout.splitlines()[1]) == (0, "  total matching: 0")

    back = queue("restore", "--repair", done["repair"], *WHY)
    assert back.stdout.startswith("[apply] restoreJobs: restored 3 job(s)")
    assert seen(store_path, clock, *ids) == ["dead"] * 3
    assert queue("restore", "--repair", done["repair"], *WHY).returncode == 2


def test_a_repair_that_breaks_off_changes_nothing_and_says_why(
    queue: Tacho, store_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 33: there is no status 500, but an exit code, and the reason is not lost."""
    ids = filled(store_path, clock, memory=2)["memory"]

    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("tachograph.infra.body_archive_writing.write", broken)
    done = queue("prune", *WHY)

    assert done.returncode not in (0, 2)
    assert "nput/output error" in done.stderr
    assert seen(store_path, clock, *ids) == ["dead"] * 2


@each_repair
@pytest.mark.parametrize(
    "words",
    [
        ("--queues", "bogus"),
        ("--tables", "bogus"),
        ("--queues", "memory,"),
        ("--queues", ",memory"),
        ("--queues", ""),
        ("--queues", "memory", "--tables", "memory"),
        ("--ids", ""),
        ("--ids", "a,,b"),
        ("--older-than", "soon"),
        ("--older-than", "-2h"),
        ("--older-than", "0s"),
        ("--older-than", "5 fortnights"),
        ("--older-than", ""),
        ("--max-batch", "0"),
        ("--max-batch", "-1"),
        ("--max-batch", "nan"),
        ("--max-batch", "abc"),
        ("--max-batch", "2.5"),
        ("--error-pattern", ""),
        ("--status", "gone"),
        ("--status", ""),
        ("--actor", "daemon"),
        ("--force", "--actor", "agent"),
        ("--config", "/nowhere/tachograph.toml"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_a_usage_error_that_changes_nothing(
    queue: Tacho, store_path: Path, clock: Clock, verb: str, words: tuple[str, ...]
) -> None:
    """Case 34. Traps: such values were dropped, and the repair took more than was asked for."""
    filled(store_path, clock, memory=1)
    before = head(store_path, clock)

    done = queue(verb, *words, *WHY)

    assert done.returncode == (3 if words[0] == "--config" else 2), done.stderr
    assert done.stderr
    assert head(store_path, clock) == before


@each_repair
def test_to_apply_a_reason_is_needed(
    queue: Tacho, store_path: Path, clock: Clock, verb: str
) -> None:
    filled(store_path, clock, memory=1)
    before = head(store_path, clock)

    assert queue(verb, "--apply").returncode == 2
    assert queue(verb, "--apply", "--reason", " ").returncode == 2
    assert head(store_path, clock) == before


@each_repair
def test_an_unknown_id_ends_with_3(queue: Tacho, store_path: Path, clock: Clock, verb: str) -> None:
    ids = filled(store_path, clock, memory=2)["memory"]
    before = head(store_path, clock)

    unknown = queue(verb, "--ids", f"{ids[0]},01890a5d-ac96-774b-bcce-b302099a8057", *WHY)
    ambiguous = queue(verb, "--ids", ids[0][:4], *WHY)

    assert (unknown.returncode, ambiguous.returncode) == (3, 3)
    assert "Nothing was changed" in unknown.stderr
    assert head(store_path, clock) == before


@pytest.mark.parametrize(
    ("span", "taken"),
    [("500ms", 1), ("90s", 1), ("1.5m", 1), ("2h", 0), ("1h", 0), ("0.5d", 0), ("3600", 0)],
)
def test_durations_in_every_unit(
    queue: Tacho, store_path: Path, clock: Clock, span: str, taken: int
) -> None:
    """Case 34: of a job that is dead for half an hour."""
    filled(store_path, clock, days=1 / 48, memory=1)

    assert document(queue("requeue", "--older-than", span, "--json"))["totalMatching"] == taken


def test_named_queues_are_all_that_is_taken(queue: Tacho, store_path: Path, clock: Clock) -> None:
    """Case 34: none named means all, both named means both."""
    filled(store_path, clock, memory=2, summary=1)

    for words, number in (
        ((), 3),
        (("--queues", "memory,summary"), 3),
        (("--tables", "memory, summary"), 3),
        (("--tables", "summary"), 1),
    ):
        assert document(queue("requeue", *words, "--json"))["totalMatching"] == number


def test_a_named_job_that_cannot_be_taken_is_told_and_ends_with_1(
    queue: Tacho, store_path: Path, clock: Clock
) -> None:
    """Case 34: never 0 when something was not done that was asked for by name."""
    with opened_bench(store_path, clock) as bench:
        done, dead = bench.make("completed")[0], bench.make("dead")[0]

    answer = queue("requeue", "--ids", f"{done},{dead[:36]}", *WHY)

    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-3:-1] == [
        "  skipped (1):",
        f"    {done}: it is completed; requeue was to take dead, cancelled",
    ]
    assert seen(store_path, clock, done, dead) == ["completed", "pending"]


def test_a_young_job_is_cancelled_by_its_id(queue: Tacho, store_path: Path, clock: Clock) -> None:
    """Trap: the default age counted for ids, too."""
    job_id = filled(store_path, clock, days=2, memory=1)["memory"][0]

    assert document(queue("cancel", "--json"))["totalMatching"] == 0
    done = queue("cancel", "--ids", job_id, *WHY)

    assert (done.returncode, seen(store_path, clock, job_id)) == (0, ["cancelled"])


def test_the_cooldown_ends_with_75_and_says_when(
    queue: Tacho, store_path: Path, clock: Clock
) -> None:
    filled(store_path, clock, memory=2)
    assert queue("requeue", "--max-batch", "1", *WHY).returncode == 0

    denied = queue("requeue", *WHY)
    shown = queue("requeue")
    as_json = queue("requeue", *WHY, "--json")
    forced = queue("requeue", *WHY, "--force")

    assert denied.returncode == 75
    assert denied.stdout.startswith("[denied] requeueDeadJobs: ")
    assert "Try again in 60 s" in denied.stdout
    assert "  total matching: 1" in denied.stdout
    assert shown.returncode == 0
    assert document(as_json)["denied"] == {"rule": "cooldown", "retryAfterSec": 60}
    assert document(as_json)["success"] is False
    assert (as_json.returncode, forced.returncode) == (75, 0)


@each_repair
def test_frozen_ends_with_8(
    queue: Tacho, store_path: Path, clock: Clock, tmp_path: Path, verb: str
) -> None:
    ids = filled(store_path, clock, memory=2)["memory"]
    with opened_bench(store_path, clock) as bench:
        bench.repairing().cancel(Selection(ids=ids[:1]), "retired")
    clock.pass_by(days=100)
    (tmp_path / "tachograph.toml").write_text("[repair]\nfrozen = true\n")

    done = queue(verb, *WHY, "--force")

    assert (done.returncode, done.stdout[:9]) == (8, "[denied] ")
    assert queue(verb).returncode == 0
    assert seen(store_path, clock, *ids) == ["cancelled", "dead"]


def test_a_store_that_is_not_there_is_not_made(queue: Tacho, store_path: Path) -> None:
    for verb in (*REPAIRS, "sweep"):
        assert queue(verb).returncode == 3
        assert queue(verb, *WHY).returncode == 3
    assert not store_path.exists()


def test_patterns_that_are_databases_wildcards_are_text(
    queue: Tacho, store_path: Path, clock: Clock
) -> None:
    with opened_bench(store_path, clock) as bench:
        bench.dead("memory", 1, "a_b failed")
        bench.dead("memory", 1, "axb failed")

    assert document(queue("requeue", "--error-pattern", "A_B", "--json"))["totalMatching"] == 1
    assert document(queue("requeue", "--error-pattern", "a*failed", "--json"))["totalMatching"] == 2


# Sweep.


def test_a_sweep_is_shown_and_then_done(queue: Tacho, store_path: Path, clock: Clock) -> None:
    """Case 45, its part about jobs."""
    filled(store_path, clock, days=20, memory=1)
    ids = filled(store_path, clock, days=20, memory=2)["memory"]

    shown, done = queue("sweep"), queue("sweep", *WHY)
    late = document(queue("sweep", "--json"))

    assert shown.stdout.splitlines() == [
        "[dry-run] would sweep 1 job(s): 0 completed, 1 dead, 0 cancelled",
        "  memory: 1 dead",
    ]
    assert done.stdout.splitlines()[0] == "[apply] swept 1 job(s): 0 completed, 1 dead, 0 cancelled"
    assert done.stdout.splitlines()[-1] == "  recorded as: triggerRetentionSweep~1"
    assert (late["deadJobsPurged"], late["applied"]) == (0, False)
    assert seen(store_path, clock, *ids) == ["dead"] * 2


def test_a_sweep_is_denied_like_any_repair(queue: Tacho, store_path: Path, clock: Clock) -> None:
    filled(store_path, clock, memory=1)
    assert queue("sweep", "--apply").returncode == 2
    assert queue("sweep", *WHY).returncode == 0

    denied = queue("sweep", *WHY)
    as_json = queue("sweep", *WHY, "--json")

    assert (denied.returncode, denied.stdout[:9]) == (75, "[denied] ")
    assert document(as_json)["denied"] == {"rule": "cooldown", "retryAfterSec": 60}
    assert queue("sweep").returncode == 0


def test_long_errors_are_cut_for_people_only(queue: Tacho, store_path: Path, clock: Clock) -> None:
    with opened_bench(store_path, clock) as bench:
        QueueBench.dead(bench, "memory", 1, "line one\n" + "x" * 200)

    line = queue("requeue").stdout.splitlines()[3]

    assert line.endswith("x…")
    assert "line one x" in line
    assert len(document(queue("requeue", "--json"))["jobs"][0]["error"]) == 209


def test_help_says_what_each_exit_code_means() -> None:
    assert "  75  denied by its cooldown" in queue_requeue.SPEC.details
