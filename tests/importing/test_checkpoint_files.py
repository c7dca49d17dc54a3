"""Checkpoint files of jobs are checked, taken into the run of theirs, and pruned when stale."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history, topics
from imports import run_of
from job_run_trees import at, at_us, cut_off, opening, put

from tachograph import record
from tachograph.checkpoints import BatchCheckpointStore, OffsetCheckpointStore
from tachograph.cli.import_shapes import IMPORTS
from tachograph.domain.errors import VersionConflictError
from tachograph.domain.ids import fingerprint
from tachograph.import_desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    Fields = dict[str, Any]

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("store_environment")

INPUTS: Fields = {
    "incidents": [{"userMessage": f"no, number {number}"} for number in range(7)],
    "model": "large",
    "batchSize": 3,
    "dryRun": False,
    "applyTools": True,
}
HASH = fingerprint(INPUTS)
RUN = f"job-self-correction-run-{HASH}"


def checkpoint(done: list[int], **changes: Any) -> Fields:
    items = [
        {"incidentIndex": index * 3 + place, "remediationType": "NO_ACTION"}
        for index in done
        for place in range(1 if index == 2 else 3)
    ]
    return {
        "version": 1,
        "incidentsHash": HASH,
        "batchSize": 3,
        "totalBatches": 3,
        "completedBatchIndexes": done,
        "analysed": items,
        "diagnostics": {"retryCount": 2},
        "updatedAt": at(40),
        **changes,
    }


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "self-correction"
    folder.mkdir()
    return folder


def write(folder: Path, value: Any, name: str = f"m3-batches-{HASH}.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def reindex(folder: Path, **changes: Any) -> Path:
    ts = at_us(40) // 1000
    said = {"offset": 40, "total": 100, "migrated": 38, "skipped": 2, "ts": ts, **changes}
    return write(folder, said, ".reindex_checkpoint.json")


def importing(
    capsys: Capture, *arguments: str | Path, code: int = 0, apply: bool = True
) -> list[Fields]:
    asked = ["--apply"] if apply else []
    done = here(capsys, "checkpoint", "import", "--json", *asked, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    IMPORTS["checkpoint-import"].validate_json(done.stdout)
    entries: list[Fields] = json.loads(done.stdout)["entries"]
    return entries


def pruning(capsys: Capture, *arguments: str | Path, code: int = 0) -> Fields:
    done = here(capsys, "checkpoint", "prune", "--json", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    IMPORTS["checkpoint-prune"].validate_json(done.stdout)
    found: Fields = json.loads(done.stdout)
    return found


# Batches.


def test_a_batch_file_makes_the_unfinished_run_of_its_fingerprint(
    files: Path, capsys: Capture
) -> None:
    path = write(files, checkpoint([0, 2]))
    (entry,) = importing(capsys, path, "--reason", "moving over")
    run = run_of(RUN)

    assert (entry["state"], entry["jobRunIds"], entry["status"]) == ("imported", [RUN], "partial")
    assert (run.command, run.fingerprint, run.created_us) == (
        "self-correction-run",
        HASH,
        at_us(40),
    )
    assert (run.outcome, run.reason_code, run.finished) == ("partial", "imported_checkpoint", False)
    assert run.phases["analyze"].missing() == [1]
    assert run.phases["analyze"].parsed == 4
    assert run.recovery is None
    (taken,) = run.origin["checkpoints"]
    assert run.origin["kind"] == "checkpoint-file"
    assert (taken["path"], taken["reason"], len(taken["sha256"])) == (
        str(path),
        "moving over",
        64,
    )
    assert path.exists()


def test_the_store_of_a_ported_job_gives_back_what_was_in_the_file(
    files: Path, capsys: Capture
) -> None:
    """Our run → the shape of the seed → an import → the same."""
    said = checkpoint([0, 2])
    importing(capsys, write(files, said))
    again = files / f"m3-batches-{HASH}.json"
    with pytest.raises(KeyboardInterrupt), record("self-correction-run", run_id=RUN) as run:
        loaded = BatchCheckpointStore(run).load(HASH, 3, 3)
        assert loaded is not None
        assert {**loaded, "updatedAt": said["updatedAt"]} == said
        again.write_text(json.dumps(loaded), encoding="utf-8")
        raise KeyboardInterrupt
    (entry,) = importing(capsys, again)

    assert (entry["state"], entry["jobRunIds"]) == ("known", [RUN])


def test_with_its_inputs_a_run_goes_on_as_if_it_had_been_recorded_here(
    files: Path, capsys: Capture
) -> None:
    given = write(files, INPUTS, "inputs.json")
    importing(capsys, write(files, checkpoint([0, 2])), "--inputs", f"@{given}")
    asked = []
    with record("self-correction-run", INPUTS, run_id=RUN) as run, run.phase("analyze") as phase:
        for batch in phase.batches(INPUTS["incidents"], size=3):
            asked.append(batch.index)
            batch.complete([{"incidentIndex": 3 + place} for place in range(3)])

        assert [item["incidentIndex"] for item in run.outputs("analyze")] == list(range(7))
    assert asked == [1]
    assert run_of(RUN).outcome == "success"


def test_a_second_time_records_nothing(files: Path, capsys: Capture) -> None:
    path = write(files, checkpoint([0]))
    importing(capsys, path)
    before = topics(RUN)
    (entry,) = importing(capsys, path)

    assert (entry["state"], topics(RUN)) == ("known", before)


def test_a_file_that_has_grown_brings_what_is_new(files: Path, capsys: Capture) -> None:
    importing(capsys, write(files, checkpoint([0])))
    (entry,) = importing(capsys, write(files, checkpoint([0, 1, 2])))
    run = run_of(RUN)

    assert (entry["state"], run.epoch) == ("imported", 2)
    assert run.phases["analyze"].parsed == 7
    assert len(run.origin["checkpoints"]) == 2


def test_a_file_is_taken_into_a_run_from_a_tree(
    files: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The checkpoint that its job-run folder has lost, and the legacy file has not."""
    said = cut_off(jobRunId=RUN, command="self-correction-run", inputFingerprint=HASH)
    put(tmp_path / "tree", said, opening(), name=RUN)
    assert here(capsys, "run", "import", tmp_path / "tree", "--apply").returncode == 0
    (entry,) = importing(capsys, write(files, checkpoint([0, 1])))
    run = run_of(RUN)

    assert (entry["jobRunIds"], run.epoch) == ([RUN], 2)
    assert run.phases["analyze"].done.ranges == [[0, 1]]
    assert (run.origin["kind"], len(run.origin["checkpoints"])) == ("job-runs", 1)
    assert here(capsys, "run", "import", tmp_path / "tree", "--apply").returncode == 0
    assert run_of(RUN).version == run.version


def test_without_apply_nothing_is_written(files: Path, store_path: Path, capsys: Capture) -> None:
    (entry,) = importing(capsys, write(files, checkpoint([0])), apply=False)

    assert (entry["state"], entry["status"]) == ("imported", "partial")
    assert not store_path.exists()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (checkpoint([0], version=2), "its version is 2, not 1"),
        (checkpoint([0], batchSize=0), "batchSize is 0"),
        (checkpoint([5]), "completedBatchIndexes holds 5, and there are 3 batches"),
        (checkpoint([0], incidentsHash="ffffffff"), "its name says"),
        ('{"version": 1, "incid', "it is torn, or no JSON"),
        ("", "it is empty"),
        ([], "it is no JSON object"),
    ],
)
def test_a_file_that_does_not_hold_is_named_and_left_alone(
    files: Path, capsys: Capture, value: Any, problem: str
) -> None:
    path = write(files, value)
    before = path.read_bytes()
    (entry,) = importing(capsys, path, code=1)

    assert entry["state"] == "unreadable"
    assert entry["problems"][0]["path"] == str(path)
    assert problem in entry["problems"][0]["text"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--fingerprint", "0dc845e1"], "and the run's is '0dc845e1'"),
        (["--batch-size", "25"], "batchSize is 3, and the run's is 25"),
        (["--total", "4"], "totalBatches is 3, and the run's is 4"),
        (["--inputs", '{"incidents": []}'], "and that of the inputs is"),
    ],
)
def test_a_file_of_another_job_than_the_present_one_is_refused(
    files: Path, capsys: Capture, arguments: list[str], problem: str
) -> None:
    (entry,) = importing(capsys, write(files, checkpoint([0])), *arguments, code=1)

    assert problem in entry["problems"][0]["text"]


def test_inputs_that_make_another_number_of_batches_are_refused(
    files: Path, capsys: Capture
) -> None:
    given = write(files, INPUTS, "inputs.json")
    path = write(files, checkpoint([0], totalBatches=4))
    (entry,) = importing(capsys, path, "--inputs", f"@{given}", code=1)

    assert "the inputs hold 7 incidents for batches of 3" in entry["problems"][0]["text"]


def test_other_files_need_a_command(files: Path, capsys: Capture) -> None:
    path = write(files, checkpoint([0]), "mine.json")
    (refused,) = importing(capsys, path, code=1)
    (taken,) = importing(capsys, path, "--command", "mine", "--run", "job-mine")

    assert "give --command" in refused["problems"][0]["text"]
    assert taken["jobRunIds"] == ["job-mine"]


def test_a_run_that_somebody_works_on_is_left_alone(files: Path, capsys: Capture) -> None:
    importing(capsys, write(files, checkpoint([0])))
    with pytest.raises(KeyboardInterrupt), record("self-correction-run", run_id=RUN):
        (entry,) = importing(capsys, write(files, checkpoint([0, 1])), code=1)

        assert f"process {os.getpid()}" in entry["problems"][0]["text"]
        assert topics(RUN).count("batch-completed") == 1
        raise KeyboardInterrupt


def test_a_file_that_is_not_there_is_named(files: Path, capsys: Capture) -> None:
    (entry,) = importing(capsys, files / "m3-batches-none.json", code=1)

    assert entry["problems"][0]["text"] == "there is no such file"


def test_inputs_that_are_no_object_are_refused(files: Path, capsys: Capture) -> None:
    path = write(files, checkpoint([0]))
    done = here(capsys, "checkpoint", "import", path, "--inputs", "[1]")

    assert done.returncode == 2
    assert "--inputs holds no JSON object" in done.stderr


# Offsets.


def test_a_reindex_file_makes_an_offset_checkpoint(files: Path, capsys: Capture) -> None:
    (entry,) = importing(capsys, reindex(files), "--fingerprint", "100-50-0.95", "--total", "100")
    run_id = "job-storage-re-index-100-50-0"

    assert entry["jobRunIds"] == [run_id]
    assert history(run_id)[3][1] == {
        "phase": "embed",
        "kind": "offset",
        "state": {"offset": 40, "total": 100, "migrated": 38, "skipped": 2},
    }
    with pytest.raises(KeyboardInterrupt), record("storage-re-index", run_id=run_id) as run:
        loaded = OffsetCheckpointStore(run, phase="embed").load(total=100)
        assert loaded is not None
        assert (loaded["offset"], loaded["ts"]) == (40, at_us(40) // 1000)
        raise KeyboardInterrupt
    assert (
        importing(capsys, files / ".reindex_checkpoint.json", "--fingerprint", "100-50-0.95")[0][
            "state"
        ]
        == "known"
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"total": 90}, "total is 90, and there are 100 now"),
        ({"offset": 101, "total": 100}, "offset is 101, beyond the total of 100"),
        ({"offset": None}, "offset is None, not a number"),
        ({"migrated": -3}, "migrated is -3"),
    ],
)
def test_a_reindex_file_that_does_not_hold_is_named(
    files: Path, capsys: Capture, changes: Fields, problem: str
) -> None:
    (entry,) = importing(capsys, reindex(files, **changes), "--total", "100", code=1)

    assert problem in entry["problems"][0]["text"]


# Pruning.


def test_stale_files_are_shown_first_and_then_removed(files: Path, capsys: Capture) -> None:
    """Each removal is recorded before the file goes: in the run of its fingerprint, if any."""
    kept = write(files, checkpoint([0]))
    stale = write(files, checkpoint([0], incidentsHash="aaaaaaaa"), "m3-batches-aaaaaaaa.json")
    other = write(files, "{", "reinforcement-batches-bbbbbbbb.json")
    mine = write(files, {}, "notes.json")
    legacy = reindex(files)
    importing(capsys, stale)
    seen = pruning(capsys, files, "--keep", HASH)
    assert (seen["applied"], seen["files"], stale.exists()) == (False, 2, True)
    done = pruning(capsys, files, "--keep", HASH, "--reason", "moved", "--apply")
    run_id = "job-self-correction-run-aaaaaaaa"
    alone = done["stale"][1]["jobRunId"]

    assert [file["jobRunId"] for file in seen["stale"]] == [run_id, None]
    assert [file["jobRunId"] for file in done["stale"]] == [run_id, alone]
    assert [path.exists() for path in (kept, stale, other, mine, legacy)] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert history(run_id)[-1] == (
        "run.files-removed",
        {
            "what": "legacy-checkpoint",
            "paths": [str(stale)],
            "size": seen["stale"][0]["size"],
            "rule": "stale-legacy-checkpoint",
            "reason": "moved",
        },
    )
    assert dict(history(alone))["run.files-removed"] == {
        "what": "legacy-checkpoint",
        "paths": [str(other)],
        "size": 1,
        "rule": "stale-legacy-checkpoint",
        "reason": "moved",
    }
    assert pruning(capsys, files, "--keep", HASH, "--apply")["files"] == 0


def test_files_of_no_run_are_recorded_in_a_run_of_each_pruning(
    files: Path, capsys: Capture
) -> None:
    """Without a store as well: then one is made."""
    runs = []
    for name in ("aaaaaaaa", "bbbbbbbb"):
        write(files, "{", f"m3-batches-{name}.json")
        done = pruning(capsys, files, "--keep", HASH, "--apply")
        runs.append(run_of(done["stale"][0]["jobRunId"]))

    assert runs[1].id == f"{runs[0].id}~2"
    assert [(run.command, run.outcome) for run in runs] == [("checkpoint-prune", "success")] * 2
    assert runs[0].inputs == {"folder": str(files)}
    assert runs[0].reason == "1 checkpoint files of no run were let go"
    assert list(files.iterdir()) == []


def test_a_file_whose_removal_cannot_be_recorded_stays(
    files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(files, "{", "m3-batches-aaaaaaaa.json")

    def overtaken(_desk: Desk, run: Any) -> None:
        raise VersionConflictError(run.id, 0, 1)

    monkeypatch.setattr(Desk, "save", overtaken)
    done = pruning(capsys, files, "--keep", HASH, "--apply", code=1)

    assert (path.exists(), done["files"], done["stale"][0]["jobRunId"]) == (True, 0, None)
    assert done["stale"][0]["why"] == "others record its run just now: try again"


@pytest.mark.parametrize(
    "name",
    [
        "m3-batches-a b$(x).json",
        "m3-batches-copy.json",
        "m3-batches-aaaaaaa.json",
        "m3-batches-AAAAAAAA.json",
        "reinforcement-batches-aaaaaaaa.old.json",
    ],
)
def test_a_file_without_a_fingerprint_in_its_name_is_none_of_ours(
    files: Path, capsys: Capture, name: str
) -> None:
    path = write(files, "{", name)

    assert pruning(capsys, files, "--keep", HASH, "--apply")["stale"] == []
    assert path.exists()


def test_only_files_that_are_old_enough_go(files: Path, capsys: Capture) -> None:
    old = write(files, checkpoint([0]), "m3-batches-aaaaaaaa.json")
    write(files, checkpoint([0]), "m3-batches-bbbbbbbb.json")
    os.utime(old, (at_us() / 1e6, at_us() / 1e6))
    seen = pruning(capsys, files, "--older-than", "7d")

    assert [file["fingerprint"] for file in seen["stale"]] == ["aaaaaaaa"]
    assert seen["stale"][0]["modifiedAt"] == at()


def test_a_link_is_never_followed_nor_removed(files: Path, tmp_path: Path, capsys: Capture) -> None:
    target = write(tmp_path, checkpoint([0]), "elsewhere.json")
    (files / "m3-batches-aaaaaaaa.json").symlink_to(target)

    assert pruning(capsys, files, "--keep", HASH, "--apply")["stale"] == []
    assert target.exists()


def test_what_is_to_stay_has_to_be_said(files: Path, capsys: Capture) -> None:
    done = here(capsys, "checkpoint", "prune", files)
    nowhere = here(capsys, "checkpoint", "prune", files / "x", "--keep", HASH)

    assert (done.returncode, nowhere.returncode) == (2, 2)
    assert "--keep" in done.stderr
    assert "There is no folder" in nowhere.stderr
