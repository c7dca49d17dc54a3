"""Cleaning removes the files of old finished runs, and nothing that somebody may still need."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history, topics
from stores import begin, opened

from tachograph import lifecycle
from tachograph.continuing import record_artifact
from tachograph.infra import clock, removing
from tachograph.looking import ask, judge_of
from tachograph.retiring import FINISHED, ended_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.bootstrap import Services

Capture = pytest.CaptureFixture[str]
DAY_US = 86_400_000_000
OLD = ("--older-than", "30d")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder that jobs write to."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def store(store_environment: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store: `old` and `bad` ended 40 days ago, `new` today, each with a file."""
    today = clock.now_us()
    with opened(store_environment) as services:
        monkeypatch.setattr(services.actor, "now_us", lambda: today - 40 * DAY_US)
        with_file(services, "old", work / "old.txt")
        with_file(services, "bad", work / "bad.txt", outcome="failed")
        monkeypatch.setattr(services.actor, "now_us", lambda: today)
        with_file(services, "new", work / "new.txt")
    return store_environment


def with_file(
    services: Services, run_id: str, *paths: Path, outcome: str | None = "success"
) -> None:
    """Record a run with files."""
    session = begin(services, run_id)
    for path in paths:
        if not path.exists():
            path.write_text(run_id)
        record_artifact(session, path.stem, str(path))
    if outcome is not None:
        session.finish(outcome)


def archive(capsys: Capture, *run_ids: str) -> Path:
    done = here(capsys, "run", "archive", *run_ids, "--json")
    return Path(json.loads(done.stdout)["archive"])


def cleaned(capsys: Capture, *arguments: str, code: int = 0) -> Any:
    done = here(capsys, "run", "clean", *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def going(found: Any) -> list[str]:
    return [Path(file["path"]).name for run in found["runs"] for file in run["files"]]


def staying(found: Any) -> dict[str, str]:
    return {
        Path(file["path"]).name: file["why"] for run in found["runs"] for file in run["staying"]
    }


def test_without_apply_it_is_only_shown(store: Path, capsys: Capture, work: Path) -> None:
    archive(capsys, "old")
    before = topics("old")
    found = cleaned(capsys, *OLD)
    text = here(capsys, "run", "clean", *OLD)

    assert (found["applied"], found["files"], found["bytes"]) == (False, 1, 3)
    assert going(found) == ["old.txt"]
    assert [line.split()[:2] for line in text.stdout.splitlines()] == [
        ["RUN", "STATUS"],
        ["old", "success"],
    ]
    assert text.stderr == "Would remove 1 files (3 B). Add --apply to remove them.\n"
    assert sorted(each.name for each in work.iterdir()) == ["bad.txt", "new.txt", "old.txt"]
    assert topics("old") == before


def test_what_was_shown_is_removed_and_noted_in_the_run(
    store: Path, capsys: Capture, work: Path
) -> None:
    archive(capsys, "old")
    events = topics("old")
    found = cleaned(capsys, *OLD, "--apply", "--reason", "disk full")
    topic, note = history("old")[-1]
    noted = topics("old")
    again = cleaned(capsys, *OLD, "--apply")

    assert going(found) == ["old.txt"]
    assert sorted(each.name for each in work.iterdir()) == ["bad.txt", "new.txt"]
    assert topics("old") == noted == [*events, "note-added"]
    assert (topic, note["level"], note["source"]) == ("run.note-added", "note", "clean")
    assert note["text"].splitlines()[0] == "Removing 1 files (disk full):"
    assert f"old  {work}/old.txt  3 bytes  " in note["text"]
    assert again["runs"] == []


def test_the_archive_still_holds_what_was_removed(store: Path, capsys: Capture) -> None:
    path = archive(capsys, "old")
    cleaned(capsys, *OLD, "--apply")
    listed = json.loads(here(capsys, "run", "archive", "--list", path, "--json").stdout)

    assert here(capsys, "run", "archive", "--check", path).returncode == 0
    assert listed["runs"][0]["artifacts"][0]["state"] == "ok"


def test_people_are_told_what_was_removed(store: Path, capsys: Capture) -> None:
    archive(capsys, "old")
    done = here(capsys, "run", "clean", *OLD, "--apply")

    assert done.stderr == "Removed 1 files (3 B).\n"


# What stays.


def test_a_run_that_was_not_archived_stays_as_it_is(
    store: Path, capsys: Capture, work: Path
) -> None:
    found = cleaned(capsys, *OLD, "--apply")
    text = here(capsys, "run", "clean", *OLD)

    assert found["runs"][0]["why"] == "it was not archived since it ended"
    assert "old stays as it is: it was not archived since it ended." in text.stderr
    assert (work / "old.txt").exists()


def test_without_archive_it_goes_all_the_same(store: Path, capsys: Capture, work: Path) -> None:
    assert going(cleaned(capsys, *OLD, "--apply", "--without-archive")) == ["old.txt"]
    assert not (work / "old.txt").exists()


def gone(path: Path) -> None:
    path.unlink()


def changed(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])


@pytest.mark.parametrize(
    ("damage", "why"),
    [(gone, "cannot be read: No such file"), (changed, "is not what was written")],
)
def test_an_archive_that_is_not_whole_is_none(
    store: Path, capsys: Capture, work: Path, damage: Callable[[Path], None], why: str
) -> None:
    damage(archive(capsys, "old"))
    found = cleaned(capsys, *OLD, "--apply")

    assert why in found["runs"][0]["why"]
    assert (work / "old.txt").exists()


def test_an_archive_that_was_recorded_damaged_is_none(
    store: Path, capsys: Capture, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "odd").write_text("odd")
    sha256 = hashlib.sha256(b"odd").hexdigest()
    with opened(store) as services:
        services.session("old", 0).execute(
            lambda run, why: run.archive(why, str(tmp_path / "odd"), sha256)
        )
    found = cleaned(capsys, *OLD, "--apply")

    assert found["runs"][0]["why"] == f"its archive {tmp_path}/odd is damaged"
    assert (work / "old.txt").exists()


def test_a_file_that_its_archive_does_not_hold_stays(
    store: Path, capsys: Capture, work: Path
) -> None:
    """It was missing when the run was archived, and came back."""
    (work / "old.txt").rename(work / "away")
    path = archive(capsys, "old")
    (work / "away").rename(work / "old.txt")
    found = cleaned(capsys, *OLD, "--apply")

    assert staying(found) == {"old.txt": f"its archive {path} does not hold it"}
    assert (work / "old.txt").exists()


def test_a_file_that_is_not_the_recorded_one_any_more_stays(
    store: Path, capsys: Capture, work: Path
) -> None:
    archive(capsys, "old")
    (work / "old.txt").write_text("OLD")
    found = cleaned(capsys, *OLD, "--apply")
    text = here(capsys, "run", "clean", *OLD)

    assert (going(found), staying(found)) == ([], {"old.txt": "changed"})
    assert f"old: {work}/old.txt stays: changed." in text.stderr
    assert (work / "old.txt").read_text() == "OLD"


@pytest.mark.parametrize("outcome", [None, "failed", "success"])
def test_a_file_that_another_run_has_recorded_as_well_stays(
    store: Path, capsys: Capture, work: Path, outcome: str | None
) -> None:
    archive(capsys, "old")
    (work / "link").symlink_to(work)
    with opened(store) as services:
        with_file(services, "other", work / "link" / "old.txt", outcome=outcome)
    found = cleaned(capsys, *OLD, "--apply")

    assert staying(found) == {"old.txt": "run other has recorded it too"}
    assert (work / "old.txt").exists()


def test_a_finished_run_has_no_claim_on_a_file_that_is_not_the_one_it_recorded(
    store: Path, capsys: Capture, work: Path
) -> None:
    (work / "old.txt").write_text("other")
    with opened(store) as services:
        with_file(services, "other", work / "old.txt")
    (work / "old.txt").write_text("old")
    archive(capsys, "old")

    assert going(cleaned(capsys, *OLD, "--apply")) == ["old.txt"]


def test_a_file_that_several_old_runs_recorded_is_counted_once(
    store: Path, capsys: Capture, work: Path
) -> None:
    with opened(store) as services:
        with_file(services, "twin", work / "old.txt")
    found = cleaned(capsys, "--older-than", "0s", "--without-archive", "--apply")

    assert sorted(going(found)) == ["new.txt", "old.txt"]
    assert found["files"] == 2


def test_a_link_stays(store: Path, capsys: Capture, work: Path) -> None:
    archive(capsys, "old")
    (work / "old.txt").rename(work / "real")
    (work / "old.txt").symlink_to("real")

    assert staying(cleaned(capsys, *OLD, "--apply")) == {"old.txt": "it is a symbolic link"}


def test_a_file_that_cannot_be_removed_is_said_and_noted(
    store: Path, capsys: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(capsys, "old")
    monkeypatch.setattr(removing, "remove", lambda *_: "Permission denied")
    found = cleaned(capsys, *OLD, "--apply", code=1)
    topic, note = history("old")[-1]

    assert (going(found), staying(found)) == ([], {"old.txt": "Permission denied"})
    assert (topic, note["level"]) == ("run.note-added", "warning")
    assert note["text"] == f"1 files were not removed:\n{work}/old.txt: Permission denied"


# Which runs.


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--older-than", "0s"), ["old.txt", "new.txt"]),
        (("--older-than", "30d"), ["old.txt"]),
        (("--older-than", "50d"), []),
        (("--older-than", "0s", "--status", "done"), ["old.txt", "new.txt"]),
        (("--older-than", "0s", "--status", "empty"), []),
    ],
)
def test_finished_runs_are_chosen_by_the_age_of_their_end_and_by_status(
    store: Path, capsys: Capture, options: tuple[str, ...], names: list[str]
) -> None:
    assert going(cleaned(capsys, *options, "--without-archive")) == names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "How long ago"),
        (("--older-than", "a while"), "is not a time"),
        (("--older-than", "30"), "no unit"),
        ((*OLD, "--status", "failed"), "failed"),
        ((*OLD, "--status", "running"), "running"),
        ((*OLD, "--status", "fine"), "fine"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    store: Path, capsys: Capture, work: Path, arguments: tuple[str, ...], said: str
) -> None:
    archive(capsys, "old")
    events = topics("old")
    done = here(capsys, "run", "clean", "--apply", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert (work / "old.txt").exists()
    assert topics("old") == events


# Killed in the middle, and other files.


def test_killed_in_the_middle_nothing_has_gone_without_a_trace(
    store: Path, capsys: Capture, work: Path
) -> None:
    archive(capsys, "old")
    code = (
        "import os, signal; from tachograph.infra import removing\n"
        "def killed(path, *_): os.unlink(path); os.kill(os.getpid(), signal.SIGKILL)\n"
        "removing.remove = killed\n"
        "from tachograph.cli.main import execute\n"
        "execute(['run', 'clean', '--older-than', '30d', '--apply'])"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True)
    _, note = history("old")[-1]

    assert killed.returncode == -9, killed.stderr
    assert not (work / "old.txt").exists()
    assert f"{work}/old.txt" in note["text"]


def test_other_files_of_a_run_go_with_it(store: Path, capsys: Capture, work: Path) -> None:
    """Such as the card that a workspace keeps of it, whose content nobody recorded."""
    (work / "old.json").write_text("{}")
    with opened(store) as services:
        judge = judge_of(services)
        plans = ask(
            services,
            lambda view: lifecycle.plan_cleaning(
                services,
                view,
                ended_before(view, judge, clock.now_us() - DAY_US, FINISHED),
                without_archive=True,
                other_files=lambda run: [str(work / f"{run.id}.json"), str(work / "none")],
            ),
        )
        failed = lifecycle.apply_cleaning(services, plans)
    (plan,) = plans

    assert failed == 0
    assert [(file.name, Path(file.path).name) for file in plan.going()] == [
        ("old", "old.txt"),
        (None, "old.json"),
    ]
    assert sorted(each.name for each in work.iterdir()) == ["bad.txt", "new.txt"]
    assert plan.bytes() == 5


def test_files_without_end_are_noted_in_several_events(
    store: Path, capsys: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.cleaning.FILES_PER_NOTE", 2)
    with opened(store) as services:
        with_file(services, "many", *(work / f"{number}.dat" for number in range(5)))
    cleaned(capsys, "--older-than", "0s", "--without-archive", "--apply")

    assert topics("many")[-4:] == ["finished", "note-added", "note-added", "note-added"]
