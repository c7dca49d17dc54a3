"""An archive holds all there is of its runs, reads without Tachograph, and is recorded in them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from command_line import here, history, topics
from stores import LARGE, begin, opened, record_run

from tachograph.continuing import record_artifact
from tachograph.infra import archive_writing, clock
from tachograph.infra.archives import read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.session import Session

Capture = pytest.CaptureFixture[str]
DAY_US = 86_400_000_000


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The folder that jobs write to."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def store(store_environment: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store: `old` and `odd` ended 40 days ago, `new` today; `lost` is unfinished."""
    today = clock.now_us()
    with opened(store_environment) as services:
        monkeypatch.setattr(services.actor, "now_us", lambda: today - 40 * DAY_US)
        with_file(services, "old", work / "report.html", b"<old>")
        with_file(services, "odd", work / "a b\n\x7fä", b"odd", outcome="empty")
        begin(services, "lost").finish("failed", reason="disk")
        monkeypatch.setattr(services.actor, "now_us", lambda: today)
        record_run(services, "new", output=LARGE)
    return store_environment


def with_file(
    services: Any, run_id: str, path: Path, content: bytes, *, outcome: str = "success"
) -> Session:
    """Record a run with a payload and a file."""
    path.write_bytes(content)
    session = record_run(services, run_id, output=f"{run_id} {LARGE}", outcome=None)
    record_artifact(session, "the/file", str(path))
    session.end_phase("parse")
    session.finish(outcome)
    return session


def archived(capsys: Capture, *arguments: str | Path, code: int = 0) -> Any:
    done = here(capsys, "run", "archive", *arguments, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def unpacked(path: str, folder: Path) -> dict[str, bytes]:
    """Unpack an archive without Tachograph, and return each file by its name."""
    with Path(path).open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }


# What is in it.


def test_an_archive_of_one_run_holds_all_there_is_of_it(
    store: Path, capsys: Capture, tmp_path: Path
) -> None:
    card = json.loads(here(capsys, "run", "status", "old", "--json").stdout)
    done = archived(capsys, "old")
    files = unpacked(done["archive"], tmp_path / "out")
    manifest = json.loads(files.pop("manifest.json"))
    blobs = [name for name in files if name.startswith("runs/old/blobs/")]
    lines = files["runs/old/events.jsonl"].decode().splitlines()

    assert done["archive"] == str(store / "archives" / "old.tar.zst")
    assert sorted(set(files) - set(blobs)) == [
        "runs/old/artifacts/the%2Ffile/report.html",
        "runs/old/card.json",
        "runs/old/events.jsonl",
    ]
    assert json.loads(files["runs/old/card.json"]) == card
    assert files["runs/old/artifacts/the%2Ffile/report.html"] == b"<old>"
    assert [json.loads(line).get("type") for line in lines] == [
        None,
        *(f"run.{topic}" for topic in topics("old")[:-1]),
    ]
    assert len(blobs) == 1
    assert {each["name"]: (each["size"], each["sha256"]) for each in manifest["members"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()
    }
    assert manifest["runs"] == done["runs"]


def test_the_run_records_where_it_is(store: Path, capsys: Capture) -> None:
    done = archived(capsys, "old")
    sha256 = hashlib.sha256(Path(done["archive"]).read_bytes()).hexdigest()
    status = json.loads(here(capsys, "run", "status", "old", "--json").stdout)
    listed = json.loads(here(capsys, "run", "list", "--json").stdout)

    assert history("old")[-1] == (
        "run.archived",
        {"location": done["archive"], "sha256": sha256},
    )
    assert (done["sha256"], status["archived"]) == (sha256, done["archive"])
    assert "old" in [each["jobRunId"] for each in listed]


def test_one_archive_holds_several_runs(store: Path, capsys: Capture) -> None:
    done = archived(capsys, "old", "new", "old")

    assert Path(done["archive"]).name.startswith("archive-2")
    assert done["archive"].endswith("Z-2-runs.tar.zst")
    assert [run["jobRunId"] for run in done["runs"]] == ["old", "new"]
    assert topics("old")[-1] == topics("new")[-1] == "archived"


def test_a_file_name_with_odd_characters_survives(
    store: Path, capsys: Capture, work: Path, tmp_path: Path
) -> None:
    done = archived(capsys, "odd")
    (file,) = done["runs"][0]["artifacts"]
    path = json.loads(read_manifest(done["archive"]))["runs"][0]["artifacts"][0]["path"]

    assert file["member"] == "runs/odd/artifacts/the%2Ffile/a b%0A%7Fä"
    assert unpacked(done["archive"], tmp_path / "out")[file["member"]] == b"odd"
    assert path == str(work / "a b\n\x7fä")


def test_files_that_are_missing_or_changed_are_named_and_left_out(
    store: Path, capsys: Capture, work: Path
) -> None:
    (work / "report.html").unlink()
    (work / "a b\n\x7fä").write_bytes(b"ODD")
    done = here(capsys, "run", "archive", "old", "odd", "--output", work)
    (archive,) = work.glob("archive-*")
    runs = json.loads(read_manifest(str(archive)))["runs"]

    assert done.returncode == 0
    assert f"old: the/file ({work}/report.html) is missing: left out." in done.stderr
    assert "is changed: left out." in done.stderr
    assert [(run["artifacts"][0]["state"], run["artifacts"][0]["member"]) for run in runs] == [
        ("missing", None),
        ("changed", None),
    ]


def test_a_payload_that_the_store_has_lost_is_named_with_code_4(
    store: Path, capsys: Capture
) -> None:
    done = archived(capsys, "new", "--dry-run")
    for blob in (store / "blobs").glob("??/*"):
        blob.unlink()
    lost = archived(capsys, "new", code=4)

    assert done["runs"][0]["missingBlobs"] == []
    assert len(lost["runs"][0]["missingBlobs"]) == 1
    assert here(capsys, "run", "archive", "--check", lost["archive"]).returncode == 0


# What is archived.


def ids(done: Any) -> list[str]:
    return [run["jobRunId"] for run in done["runs"]]


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (("--older-than", "30d"), ["old", "odd"]),
        (("--older-than", "0s"), ["old", "odd", "new"]),
        (("--older-than", "50d"), []),
        (("--older-than", "30d", "--status", "done"), ["old", "odd"]),
        (("--older-than", "30d", "--status", "empty"), ["odd"]),
        (("--older-than", "30d", "--status", "cancelled"), []),
        (("--older-than", "30d", "--status", "failed", "--force"), ["lost"]),
    ],
)
def test_runs_are_chosen_by_the_age_of_their_end_and_by_status(
    store: Path, capsys: Capture, options: tuple[str, ...], runs: list[str]
) -> None:
    assert ids(archived(capsys, *options, "--dry-run")) == runs


def test_a_dry_run_writes_nothing(store: Path, capsys: Capture) -> None:
    done = archived(capsys, "--older-than", "30d", "--dry-run")

    assert (done["archive"], done["sha256"], done["dryRun"]) == (None, None, True)
    assert not (store / "archives").exists()
    assert "archived" not in topics("old")


def test_people_see_a_table(store: Path, capsys: Capture) -> None:
    preview = here(capsys, "run", "archive", "--older-than", "30d", "--dry-run")
    done = here(capsys, "run", "archive", "--older-than", "30d")
    nothing = here(capsys, "run", "archive", "--older-than", "30d")

    assert preview.stdout.splitlines()[0].split() == [
        *("RUN", "STATUS", "MEMBERS", "SIZE", "FILES", "LEFT", "OUT")
    ]
    assert [line.split()[0] for line in preview.stdout.splitlines()[1:]] == ["old", "odd"]
    assert "Would archive 2 runs; nothing was written." in preview.stderr
    assert f"Archived 2 runs in {store}/archives/archive-" in done.stderr
    assert (nothing.stdout, nothing.stderr) == ("", "There is nothing to archive.\n")


def test_a_run_is_archived_again_only_when_it_went_on(store: Path, capsys: Capture) -> None:
    """Remarks are no reason; an unfinished run that was archived by force and then ended is."""
    force = ("--older-than", "30d", "--status", "failed", "--force")
    first = ids(archived(capsys, *force))
    for text in ["remark"] * 60:
        here(capsys, "run", "note", text, "--run", "lost")
    again = ids(archived(capsys, *force))
    here(capsys, "run", "expire", "lost", "--reason", "old")
    ended = archived(capsys, "--older-than", "0s", "--status", "expired")

    assert (first, again, ids(ended)) == (["lost"], [], ["lost"])
    assert Path(ended["archive"]).name == f"lost-{ended['runs'][0]['version']}.tar.zst"


def test_a_run_at_work_is_not_archived(store: Path, capsys: Capture) -> None:
    here(capsys, "run", "start", "demo", "--id", "busy")
    done = here(capsys, "run", "archive", "busy", "--force")

    assert done.returncode == 6
    assert "is at work: " in done.stderr
    assert not (store / "archives").exists()


def test_an_unfinished_run_is_archived_by_force_only(store: Path, capsys: Capture) -> None:
    refused = here(capsys, "run", "archive", "old", "lost")
    done = archived(capsys, "lost", "--force")

    assert refused.returncode == 1
    assert "Run lost is unfinished (failed): it may go on" in refused.stderr
    assert "archived" not in topics("old")
    assert done["runs"][0]["status"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Which runs?"),
        (("old", "--older-than", "3d"), 2, "not both"),
        (("old", "--status", "done"), 2, "--status goes with --older-than"),
        (("--older-than", "a while"), 2, "is not a time"),
        (("--older-than", "3"), 2, "no unit"),
        (("--older-than", "3d", "--status", "fine"), 2, "fine"),
        (("--older-than", "3d", "--status", "running"), 2, "running"),
        (("--older-than", "3d", "--status", "failed"), 2, "--force"),
        (("ol",), 3, "old begins so: write the whole id"),
        (("nothing",), 3, "no run 'nothing'"),
        (("--list", "a", "--check", "a"), 2, "one FILE"),
        (("old", "--list", "a"), 2, "one FILE"),
        (("--list", "nowhere"), 1, "No such file"),
        (("--check", "nowhere"), 1, "No such file"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    store: Path, capsys: Capture, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = here(capsys, "run", "archive", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert not (store / "archives").exists()


# Writing it.


def test_an_archive_is_never_written_over(store: Path, capsys: Capture, work: Path) -> None:
    with opened(store) as services:
        version = services.log.stream_version("old")
    names = ["old.tar.zst", f"old-{version}.tar.zst"]
    (work / names[0]).write_text("mine")
    second = archived(capsys, "old", "--output", work, "--dry-run")
    (work / names[1]).write_text("mine, too")
    done = here(capsys, "run", "archive", "old", "--output", work)

    assert second["archive"] is None
    assert done.returncode == 1
    assert "already exists" in done.stderr
    assert [(work / name).read_text() for name in names] == ["mine", "mine, too"]
    assert "archived" not in topics("old")


def test_where_the_name_is_taken_the_version_is_added(
    store: Path, capsys: Capture, work: Path
) -> None:
    (work / "old.tar.zst").write_text("mine")
    done = archived(capsys, "old", "--output", work)

    assert Path(done["archive"]).name == f"old-{done['runs'][0]['version']}.tar.zst"


KILLED = """
import os, signal, sys
from tachograph.infra import archive_writing
from tachograph.cli.main import execute

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

setattr({module}, {name!r}, killed)
execute(["run", "archive", "old"])
"""


def kill_at(module: str, name: str) -> None:
    """Kill an archiving process when it comes to a function."""
    code = KILLED.format(module=module, name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode == -9, done.stderr


def test_killed_before_it_is_whole_it_is_not_there(store: Path, capsys: Capture) -> None:
    kill_at("archive_writing", "_place")
    left = [path.name for path in (store / "archives").iterdir()]
    done = archived(capsys, "old")

    assert [name.startswith(".archive-") for name in left] == [True]
    assert Path(done["archive"]).name == "old.tar.zst"


def test_killed_before_it_is_recorded_it_is_taken_as_it_is(store: Path, capsys: Capture) -> None:
    kill_at("archive_writing", "sync_folder")
    archive = store / "archives" / "old.tar.zst"
    before = archive.stat()
    recorded = topics("old")
    done = archived(capsys, "old")

    assert "archived" not in recorded
    assert topics("old") == [*recorded, "archived"]
    assert done["archive"] == str(archive)
    assert done["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert archive.stat().st_ino == before.st_ino
    assert here(capsys, "run", "archive", "--check", archive).returncode == 0


def test_a_file_that_changes_while_it_is_copied_leaves_nothing(
    store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_writing, "read_file", lambda path: [b"<new>"])
    done = here(capsys, "run", "archive", "old")

    assert done.returncode == 1
    assert "report.html changed while it was copied" in done.stderr
    assert list((store / "archives").iterdir()) == []
    assert "archived" not in topics("old")


# Looking into it.


def test_a_list_shows_the_runs_of_an_archive(store: Path, capsys: Capture, work: Path) -> None:
    (work / "report.html").unlink()
    done = archived(capsys, "old", "new")
    found = archived(capsys, "--list", done["archive"])
    text = here(capsys, "run", "archive", "--list", done["archive"])

    assert found == {"archive": done["archive"], "runs": done["runs"]}
    assert [line.split()[:3] for line in text.stdout.splitlines()] == [
        ["RUN", "STATUS", "MEMBERS"],
        ["old", "success", "3"],
        ["new", "success", "3"],
    ]
    assert "report.html) is missing: left out" in text.stderr


def test_a_check_compares_all_of_it(store: Path, capsys: Capture) -> None:
    path = archived(capsys, "old")["archive"]
    text = here(capsys, "run", "archive", "--check", path)

    assert archived(capsys, "--check", path) == {"archive": path, "whole": True, "problems": []}
    assert text.stdout == f"{path} is whole.\n"


def cut_off(data: bytes) -> bytes:
    return data[:-1]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [cut_off, flipped, lambda data: b"", lambda data: b"hello"])
def test_damage_is_reported_with_code_4_and_without_a_traceback(
    store: Path, capsys: Capture, damage: Callable[[bytes], bytes]
) -> None:
    path = Path(archived(capsys, "old")["archive"])
    path.write_bytes(damage(path.read_bytes()))
    checked = here(capsys, "run", "archive", "--check", path)
    listed = here(capsys, "run", "archive", "--list", path)

    assert checked.returncode == 4, checked.stderr
    assert checked.stdout.splitlines() != []
    assert checked.stderr == f"{path} is damaged. Use another copy of it.\n"
    assert listed.returncode in (0, 4)
    assert "unexpected" not in listed.stderr


def test_a_list_sees_at_once_that_it_was_cut_off(store: Path, capsys: Capture) -> None:
    path = Path(archived(capsys, "old")["archive"])
    path.write_bytes(cut_off(path.read_bytes()))
    done = here(capsys, "run", "archive", "--list", path)

    assert (done.returncode, done.stdout) == (4, "")
    assert "it was cut off" in done.stderr


def test_a_check_says_what_is_damaged(store: Path, capsys: Capture) -> None:
    path = Path(archived(capsys, "old")["archive"])
    path.write_bytes(cut_off(path.read_bytes()))
    end = archived(capsys, "--check", path, code=4)
    path.write_bytes(b"")
    everything = archived(capsys, "--check", path, code=4)

    assert (end["whole"], end["problems"]) == (False, ["it was cut off: its end is missing"])
    assert everything["problems"] == ["its list of members: empty file"]
