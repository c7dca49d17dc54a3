"""`tacho store archive` and `tacho store erase`, as people use them."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from command_line import here
from stores import begin, opened, record_run

from tachograph import erasurekeeping, storekeeping
from tachograph.infra.body_archives import BodyArchives
from tachograph.infra.presence import Presence
from tachograph.infra.spool import spooled
from tachograph.infra.store_folder import presence_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    Capture = pytest.CaptureFixture[str]

CANARY = "canary-7b1e52"
LARGE = CANARY * 4_000


@pytest.fixture
def store(store_environment: Path) -> Path:
    """A store in which one run's canary went everywhere that a run's words can go."""
    with opened(store_environment, codec=None) as services:
        for number in range(6):
            record_run(services, f"job-{number}", output=f"{CANARY}-{number}" if number else LARGE)
        session = begin(services, "job-9")
        session.start_phase("parse")
        session.complete_batch("parse", 0, output=LARGE)  # a payload that it shares with job-0
        session.complete_batch("parse", 1, output=LARGE + "9")  # and one that it does not
        session.beat({"doing": f"{CANARY}-9"})
        session.execute(lambda run, why: run.add_note(why, f"{CANARY}-9"))
        session.end_phase("parse")
        session.finish("success")
        spool = spooled(services.folder, "job-9", 1)
        for path in (spool.stdout, spool.stderr, spool.checkpoint):
            Path(path).write_text(f"{CANARY}-9", encoding="utf-8")
        storekeeping.rebuild(services)
    return store_environment


def words(store: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of every file of a store, and what is in those that are compressed."""
    for path in sorted(store.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield str(path), data
        if path.suffix == ".zst":
            with zstandard.ZstdDecompressor().stream_reader(
                io.BytesIO(data), read_across_frames=True
            ) as reader:
                yield f"{path} unpacked", reader.read()


def traces(store: Path, canary: str) -> list[str]:
    return [name for name, data in words(store) if canary.encode() in data]


class TestArchive:
    def test_it_only_shows_what_would_be_moved(self, store: Path, capsys: Capture) -> None:
        done = here(capsys, "store", "archive", "--before", "0s")

        assert done.returncode == 0
        assert "job-3  success  9 " in done.stdout
        assert "Would move 62 bodies" in done.stderr
        assert not (store / "archive").exists()

    def test_it_moves_them_and_everything_answers_as_before(
        self, store: Path, capsys: Capture
    ) -> None:
        def asked() -> tuple[list[str], list[str], dict[str, Any]]:
            exported = here(capsys, "store", "export", "--run", "job-3").stdout.splitlines()[1:]
            events = here(capsys, "run", "events", "job-3", "--json").stdout.splitlines()
            explained = json.loads(here(capsys, "run", "explain", "job-3", "--json").stdout)
            return exported, events, explained

        lines, events, explained = asked()
        done = json.loads(
            here(capsys, "store", "archive", "--before", "0s", "--apply", "--json").stdout
        )
        lines_after, events_after, explained_after = asked()

        assert (done["applied"], done["movedEvents"], len(done["archives"])) == (True, 62, 1)
        assert lines_after[:-1] == lines
        assert events_after[:-1] == events
        for name in ("jobRunId", "command", "status", "verdict", "nextStep"):
            assert explained_after[name] == explained[name]
        assert here(capsys, "run", "replay", "job-3", "--strict").returncode == 0
        assert here(capsys, "store", "verify").returncode == 0
        assert here(capsys, "view", "check").returncode == 0
        assert "Would move 0 bodies" in here(capsys, "store", "archive", "--before", "0s").stderr

    def test_the_reason_is_said_wherever_the_run_is_shown(
        self, store: Path, capsys: Capture
    ) -> None:
        here(capsys, "store", "archive", "job-1", "--reason", "monthly", "--apply")
        shown = json.loads(here(capsys, "run", "status", "job-1", "--json").stdout)
        timeline = here(capsys, "run", "timeline", "job-1", "--json").stdout

        assert shown["bodies"]["reason"] == "monthly"
        assert "because: monthly" in here(capsys, "run", "status", "job-1").stdout
        assert "because: monthly" in here(capsys, "run", "explain", "job-1").stdout
        assert "monthly" in timeline
        assert here(capsys, "view", "check").returncode == 0

    def test_nothing_to_move_is_said_so(self, store: Path, capsys: Capture) -> None:
        here(capsys, "store", "archive", "--before", "0s", "--apply")
        done = here(capsys, "store", "archive", "--before", "0s", "--apply")

        assert done.stderr == "Nothing was moved.\n"

    def test_a_copy_with_the_bodies_in_its_log_names_no_archive(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        here(capsys, "store", "archive", "job-1", "--apply")
        out, other = tmp_path / "export.jsonl", tmp_path / "other"
        here(capsys, "store", "export", "--out", out)
        here(capsys, "store", "import", out, "--store", other)
        archived = json.loads(here(capsys, "run", "status", "job-1", "--json").stdout)
        copied = here(capsys, "run", "status", "job-1", "--json", "--store", other).stdout

        assert archived["bodies"]["state"] == "archived"
        assert json.loads(copied)["bodies"] is None
        assert (
            "in the archive" not in here(capsys, "run", "explain", "job-1", "--store", other).stdout
        )
        assert here(capsys, "store", "verify", "--store", other).returncode == 0

    def test_a_backup_names_its_own_files(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        here(capsys, "store", "archive", "job-1", "--apply")
        (archive,) = (store / "archive").glob("*.zst")
        os.truncate(archive, 40)
        done = here(capsys, "store", "backup", tmp_path / "copy")

        assert done.returncode == 4
        assert str(tmp_path / "copy" / "archive" / archive.name) in done.stderr
        assert "partial" not in done.stderr

    def test_named_runs_say_why_they_stay(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            begin(services, "job-8")
        done = here(capsys, "store", "archive", "job-1", "job-8")
        young = here(capsys, "store", "archive", "job-1", "--before", "1d")

        assert "job-8 stays: the run is unfinished" in done.stderr
        assert "job-1  success" in done.stdout
        assert "job-1 stays: it has not ended before 1d." in young.stderr
        assert "Would move 0 bodies" in young.stderr

    def test_it_wants_to_know_which(self, store: Path, capsys: Capture) -> None:
        assert here(capsys, "store", "archive").returncode == 2
        assert here(capsys, "store", "archive", "job").returncode == 3

    def test_the_log_gives_its_room_back(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            for number in range(20):
                record_run(services, f"large-{number}", output=f"{number}" * 15_000)
        before = (store / "log" / "data.mdb").stat().st_size
        here(capsys, "store", "archive", "--before", "0s", "--apply")
        compacted = here(capsys, "store", "compact", "--json")
        after = (store / "log" / "data.mdb").stat().st_size

        assert json.loads(compacted.stdout)["removedBlobs"] == 0
        assert after < before / 5
        assert here(capsys, "store", "verify").returncode == 0

    def test_an_export_of_an_archived_store_ends_at_the_same_digest(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        here(capsys, "store", "archive", "--before", "0s", "--apply")
        out = tmp_path / "export.jsonl"
        assert here(capsys, "store", "export", "--out", out).returncode == 0
        other = tmp_path / "other"
        assert here(capsys, "store", "import", out, "--store", other).returncode == 0
        with opened(store) as services, opened(other) as copy:
            assert copy.log.head() == services.log.head()
            assert copy.log.read(limit=None) == services.log.read(limit=None)

    def test_an_export_without_a_lost_archive_keeps_the_chain(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        here(capsys, "store", "archive", "job-1", "--apply")
        with opened(store) as services:
            (number,) = services.log.archives()
        (store / "archive" / f"{number:012d}.zst").unlink()
        out = tmp_path / "export.jsonl"
        done = here(capsys, "store", "export", "--out", out)
        shown = here(capsys, "run", "explain", "job-1")
        replayed = here(capsys, "run", "replay", "job-1")
        status = here(capsys, "run", "status", "job-1")
        other = here(capsys, "run", "explain", "job-2")
        doctor = here(capsys, "doctor")

        assert done.returncode == 4
        assert "9 bodies of events are lost with their archives" in done.stderr
        assert here(capsys, "store", "import", out, "--store", tmp_path / "x").returncode == 0
        assert other.returncode == 0
        assert status.returncode == 0  # the views had read it before
        assert f"{number:012d}.zst is missing" in shown.stdout + shown.stderr
        assert replayed.returncode == 4
        assert f"{number:012d}.zst is missing" in replayed.stderr
        assert "fail  archives" in doctor.stdout


class TestErase:
    def test_it_only_shows_what_would_be_destroyed(self, store: Path, capsys: Capture) -> None:
        before = traces(store, CANARY)
        done = here(capsys, "store", "erase", "job-9")

        assert "Would destroy 8 bodies and 1 payloads of job-9" in done.stdout
        assert "1 payloads stay: other runs refer to them." in done.stdout
        assert traces(store, CANARY) == before

    @pytest.mark.parametrize("archived", [False, True])
    def test_nothing_is_left_of_it(
        self, store: Path, capsys: Capture, tmp_path: Path, *, archived: bool
    ) -> None:
        """G13: the whole folder is searched, archives unpacked."""
        with opened(store) as services:
            head = services.log.head()
            others = [each for each in services.log.read(limit=None) if each.stream != "job-9"]
        if archived:
            here(capsys, "store", "archive", "job-9", "job-1", "--apply")
        done = here(capsys, "store", "erase", "job-9", "--reason", "it named a customer", "--apply")

        assert done.returncode == 0, done.stderr
        assert traces(store, f"{CANARY}-9") == []
        assert traces(store, f"{CANARY}9") == []  # the payload that nobody else has
        assert traces(store, f"{CANARY}-1") != []
        assert here(capsys, "store", "verify").returncode == 0
        assert here(capsys, "view", "check").returncode == 0
        with opened(store) as services:
            kept = [each for each in services.log.read(limit=None) if each.stream != "job-9"]
            assert kept[: len(others)] == others
            assert services.log.read(after=head.position - 1, limit=1)[0].digest == head.digest
            first, *_ = services.session("job-0", 1).batch_outputs("parse")
            assert first == (0, LARGE)
        assert erasurekeeping.pending(str(store)) == []

    def test_it_says_what_it_was(self, store: Path, capsys: Capture) -> None:
        here(capsys, "store", "erase", "job-9", "--reason", "it named a customer", "--apply")
        why = "by shell on "
        for words in (
            ("run", "list"),
            ("run", "status", "job-9"),
            ("run", "explain", "job-9"),
            ("run", "timeline", "job-9"),
            ("run", "events", "job-9"),
        ):
            done = here(capsys, *words)
            assert done.returncode == 0, (words, done.stderr)
            assert "it named a customer" in done.stdout, words
            assert "erased" in done.stdout, words
        assert why in here(capsys, "run", "status", "job-9").stdout
        for asked in (
            ("run", "list", "--status", "erased", "--json"),
            ("run", "status", "job-9", "--json"),
            ("run", "explain", "job-9", "--json"),
            ("run", "events", "job-9", "--json"),
            ("run", "replay", "job-9", "--strict", "--json"),
        ):
            done = here(capsys, *asked)
            assert done.returncode == 0, (asked, done.stderr)

    def test_a_store_with_an_erased_run_exports_to_the_same_digest(
        self, store: Path, capsys: Capture, tmp_path: Path
    ) -> None:
        here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")
        out, other = tmp_path / "export.jsonl", tmp_path / "other"
        assert here(capsys, "store", "export", "--out", out).returncode == 0
        assert here(capsys, "store", "import", out, "--store", other).returncode == 0
        backup = here(capsys, "store", "backup", tmp_path / "backup")
        with opened(store) as services, opened(other) as copy:
            assert copy.log.head() == services.log.head()
            run = copy.repository.get("job-9")
        assert run is not None
        assert (run.ended, run.finished) == ("erased", True)
        assert backup.returncode == 0
        assert here(capsys, "store", "verify", "--store", other).returncode == 0

    def test_archives_of_runs_lose_it_too(self, store: Path, capsys: Capture) -> None:
        assert here(capsys, "run", "archive", "job-9").returncode == 0
        assert here(capsys, "run", "archive", "job-1", "job-9", "job-2").returncode == 0
        both = next((store / "archives").glob("archive-*"))
        here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")
        checked = here(capsys, "run", "archive", "--check", both, "--json")

        assert sorted((store / "archives").iterdir()) == [both]
        assert json.loads(checked.stdout)["whole"]
        assert traces(store, f"{CANARY}-9") == []
        with zstandard.open(both) as file, tarfile.open(fileobj=file, mode="r|") as tar:
            names = [info.name for info in tar]
        assert any(name.startswith("runs/job-1/") for name in names)
        assert not any(name.startswith("runs/job-9/") for name in names)
        with opened(store) as services:
            from tachograph.infra.archives import sha256_of
            from tachograph.retiring import standing_archive

            found = standing_archive(services.repository, "job-1")
        assert found == (str(both), sha256_of(str(both)))

    def test_files_outside_are_named(self, store: Path, capsys: Capture, tmp_path: Path) -> None:
        report = tmp_path / "report.txt"
        report.write_text("made by it")
        with opened(store) as services:
            session = begin(services, "job-8")
            session.execute(
                lambda run, why: run.record_artifact(
                    why, "report", path=str(report), size=10, sha256="ab"
                )
            )
            session.finish("success")
        here(capsys, "run", "archive", "job-8", "--output", tmp_path / "elsewhere")
        shown = here(capsys, "store", "erase", "job-8")

        assert f"Recorded by it, left alone: {report}" in shown.stdout
        assert f"left alone: {tmp_path / 'elsewhere' / 'job-8.tar.zst'}" in shown.stdout

    def test_damaged_archives_are_named(self, store: Path, capsys: Capture) -> None:
        here(capsys, "run", "archive", "job-9")
        archive = store / "archives" / "job-9.tar.zst"
        os.truncate(archive, 100)
        (store / "archive").mkdir()
        odd = store / "archive" / "000000000003.zst"
        odd.write_bytes(b"half a file")
        done = here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply", "--json")

        assert json.loads(done.stdout)["unreadable"] == [str(odd), str(archive)]
        assert archive.exists()
        assert odd.exists()

    def test_a_damaged_archive_is_shown_to_people(self, store: Path, capsys: Capture) -> None:
        here(capsys, "run", "archive", "job-9")
        archive = store / "archives" / "job-9.tar.zst"
        os.truncate(archive, 100)

        assert f"may hold some of it: {archive}" in here(capsys, "store", "erase", "job-9").stdout

    def test_the_card_of_a_workspace_goes(
        self, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("TACHO_STORE", raising=False)
        (tmp_path / "AGENTS.md").touch()
        cards = tmp_path / "data" / "task-runs"
        cards.mkdir(parents=True)
        for name in ("job-1", "job-2"):
            (cards / f"{name}.json").write_text(CANARY)
        path = tmp_path / "data" / "tachograph"
        with opened(path) as services:
            record_run(services, "job-1")
        done = here(
            capsys, "store", "erase", "job-1", "--reason", "a test", "--apply", "--store", path
        )

        assert f"Removed its card: {cards / 'job-1.json'}" in done.stdout
        assert [each.name for each in cards.glob("*.json")] == ["job-2.json"]

    def test_leases_of_others_stay(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            session = begin(services, "job-8")
            session.beat({"doing": "something"})
        here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")
        presence = Presence(presence_folder(str(store)))

        assert presence.lease("job-8") is not None
        assert presence.lease("job-9") is None
        presence.close()

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (("job-7", "--reason", "r", "--apply"), 1, "it is unfinished; end it first"),
            (("job-7",), 1, "tacho run cancel job-7"),
            (("job-9", "--apply"), 2, "--reason"),
            (("job", "--reason", "r", "--apply"), 3, "job"),
        ],
    )
    def test_it_refuses(
        self, store: Path, capsys: Capture, words: tuple[str, ...], code: int, said: str
    ) -> None:
        with opened(store) as services:
            begin(services, "job-7")
        before = traces(store, CANARY)
        done = here(capsys, "store", "erase", *words)

        assert done.returncode == code
        assert said in done.stderr
        assert traces(store, CANARY) == before

    def test_a_second_time_it_says_what_went_the_first_time(
        self, store: Path, capsys: Capture
    ) -> None:
        first = here(capsys, "store", "erase", "job-9", "--reason", "first", "--apply", "--json")
        with opened(store) as services:
            head = services.log.head()
        again = here(capsys, "store", "erase", "job-9", "--reason", "again", "--apply", "--json")
        text = here(capsys, "store", "erase", "job-9")
        once, twice = json.loads(first.stdout), json.loads(again.stdout)

        assert again.returncode == 0
        assert (once["erasedBefore"], twice["erasedBefore"]) == (False, True)
        assert (twice["events"], twice["blobs"]) == (once["events"], once["blobs"])
        assert (twice["events"], len(twice["blobs"]), twice["bytes"]) == (8, 1, None)
        assert "job-9 was erased before: 8 bodies and 1 payloads" in text.stdout
        with opened(store) as services:
            assert services.log.head() == head

    def test_it_wants_the_store_alone(self, store: Path, capsys: Capture) -> None:
        with opened(store) as services:
            done = here(capsys, "store", "erase", "job-9", "--reason", "r", "--apply")

            assert done.returncode == 75
            assert services.repository.get("job-9").bodies is None  # type: ignore[union-attr]
        assert erasurekeeping.pending(str(store)) == []

    def test_what_was_begun_is_finished(
        self, store: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(erasurekeeping, "_finish", lambda *_: [])
            here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")
        doctor = here(capsys, "doctor")
        assert "fail  erasing" in doctor.stdout
        assert traces(store, f"{CANARY}-9") != []

        done = here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")

        assert done.returncode == 0
        assert "Finished what was begun: job-9." in done.stderr
        assert traces(store, f"{CANARY}-9") == []
        assert "ok    erasing" in here(capsys, "doctor").stdout

    def test_a_damaged_archive_of_others_hinders_nobody(self, store: Path, capsys: Capture) -> None:
        here(capsys, "store", "archive", "job-1", "--apply")
        with opened(store) as services:
            (number,) = services.log.archives()
        path = BodyArchives(str(store / "archive")).path(number)
        data = Path(path).read_bytes()
        os.truncate(path, 40)
        done = here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")

        assert done.returncode == 0
        assert "1 payloads stay, since nobody can tell whether others refer to them" in done.stdout
        assert "events of job-1 are lost or damaged" in done.stdout
        assert f"may hold some of it: {path}" in done.stdout
        left = [name for name in traces(store, f"{CANARY}9") if "/blobs/" not in name]
        assert left == traces(store, f"{CANARY}-9") == []

        Path(path).write_bytes(data)
        again = here(capsys, "store", "erase", "job-9", "--reason", "a test", "--apply")

        assert again.returncode == 0
        assert traces(store, f"{CANARY}9") == []
