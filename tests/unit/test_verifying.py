"""Every damage of a store is reported; none kills the process that looks for it (G4)."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stores import Seen, files, make_store, opened, record_run

from tachograph import bodykeeping, erasurekeeping, offloading, storekeeping
from tachograph.domain.errors import (
    InvalidAnchorError,
    StoreCorruptError,
    StoreFormatError,
    StoreNotFoundError,
)
from tachograph.domain.records import Head, NewRecord, SnapshotRecord
from tachograph.infra.codec import Codec
from tachograph.infra.layout import pack_position, without_body
from tachograph.verifying import parse_anchor, references

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.domain.records import Problem

PAGE = 4096


def problems(store: Path, anchor: Head | None = None) -> list[Problem]:
    return list(storekeeping.verify(str(store), anchor=anchor))


def kinds(store: Path, anchor: Head | None = None) -> list[str]:
    return [problem.kind for problem in problems(store, anchor)]


@pytest.fixture
def store(store_path: Path) -> Path:
    """A store with two runs and one payload."""
    return make_store(store_path)


def blob(store: Path) -> Path:
    (path,) = (store / "blobs").glob("??/*")
    return path


def test_a_whole_store_has_no_problem_and_is_left_as_it_was(store: Path) -> None:
    before = files(store)

    assert problems(store) == []
    assert files(store) == before


def test_an_empty_store_has_no_problem(store_path: Path) -> None:
    with opened(store_path):
        pass

    assert problems(store_path) == []


# Payloads


def test_a_missing_payload_is_reported_with_the_event_that_needs_it(store: Path) -> None:
    blob(store).unlink()
    (problem,) = problems(store)

    assert (problem.kind, problem.position) == ("payload", 5)
    assert "missing" in problem.detail


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 5000])
def test_a_damaged_payload_is_reported(store: Path, data: bytes) -> None:
    blob(store).write_bytes(data)

    assert kinds(store) == ["payload"]


def test_a_payload_with_one_changed_bit_is_reported(store: Path) -> None:
    data = bytearray(blob(store).read_bytes())
    data[7] ^= 1
    blob(store).write_bytes(data)
    (problem,) = problems(store)

    assert "damaged" in problem.detail


def test_a_damaged_payload_that_nobody_needs_is_no_problem(store: Path) -> None:
    with opened(store) as services:
        ref = services.blobs.put(b"unneeded")
    (store / "blobs" / ref.digest[:2] / ref.digest).write_bytes(b"odd")

    assert problems(store) == []


def test_references_are_found_at_any_depth(store: Path) -> None:
    with opened(store) as services:
        ref = services.blobs.put(b"x")
        value = {"a": [({"b": {ref: None}},)], "c": (1, [ref])}

        assert references(services.codec, services.codec.pack(value)) == [ref, ref]
    assert references(Codec(), b"\xc1") is None


# Events


def append(store: Path, topic: str, body: Any, *, version: int = 1) -> None:
    with opened(store) as services:
        packed = body if isinstance(body, bytes) else services.codec.pack(body)
        services.log.append([NewRecord("odd", version, topic, 0, packed)])


CREATED = {
    "time_us": 1,
    "by": ["a", "b", 1, 0],
    "command": "c",
    "fingerprint": "",
    "inputs": None,
    "inputs_digest": "",
    "title": None,
    "parent": None,
    "model_policy": None,
}


def test_an_event_made_by_hand_is_no_problem_when_it_is_in_order(store: Path) -> None:
    append(store, "run.created", CREATED)

    assert problems(store) == []


@pytest.mark.parametrize(
    ("topic", "body", "kind"),
    [
        ("run.invented", CREATED, "type"),
        ("run.created", {**CREATED, "class_version": 99}, "unreadable"),
        ("run.created", {**CREATED, "surprise": 1}, "unreadable"),
        ("run.created", {"time_us": 1, "by": []}, "unreadable"),
        ("run.created", [], "unreadable"),
        ("run.created", b"", "unreadable"),
        ("run.created", b"\xc1", "unreadable"),
        ("run.attempt-started", {"time_us": 1, "by": [], "epoch": 1}, "unreadable"),
    ],
)
def test_an_event_that_cannot_be_read_is_reported(
    store: Path, topic: str, body: Any, kind: str
) -> None:
    append(store, topic, body)
    (problem,) = problems(store)

    assert (problem.kind, problem.position) == (kind, 19)
    assert topic in problem.detail


def test_events_of_other_applications_may_hold_anything(store: Path) -> None:
    append(store, "other.made", b"\xc1")

    assert problems(store) == []


def test_a_gap_in_the_versions_of_a_run_is_reported(store: Path) -> None:
    append(store, "run.created", CREATED, version=3)

    assert kinds(store) == ["gap"]


# Snapshots


@pytest.mark.parametrize(("version", "body"), [(3, b"\xc1"), (3, b"\xc0"), (77, b"\x80")])
def test_a_snapshot_that_cannot_be_read_is_reported(store: Path, version: int, body: bytes) -> None:
    with opened(store) as services:
        services.log.append([], snapshot=SnapshotRecord("job-1", version, body))

    assert kinds(store) == ["snapshot"]


def test_a_snapshot_of_another_format_is_no_problem(store: Path) -> None:
    """It is older or newer; a load goes without it."""
    with opened(store) as services:
        body = services.codec.pack({"snapshot_format": 0})
        services.log.append([], snapshot=SnapshotRecord("job-1", 3, body))

    assert problems(store) == []


# Anchors


def anchor_of(store: Path) -> Head:
    with opened(store) as services:
        return services.log.head()


def test_an_anchor_holds_while_the_log_grows(store: Path) -> None:
    anchor = anchor_of(store)
    with opened(store) as services:
        record_run(services, "later")

    assert problems(store, anchor) == []


def test_a_tail_that_was_cut_off_is_found_with_an_anchor(store: Path, tmp_path: Path) -> None:
    with opened(store):
        shutil.copytree(store, tmp_path / "earlier")
    with opened(store) as services:
        record_run(services, "later")
    anchor = anchor_of(store)

    assert kinds(tmp_path / "earlier") == []
    assert kinds(tmp_path / "earlier", anchor) == ["cut-off"]


def test_a_log_made_anew_is_found_with_an_anchor(store: Path, tmp_path: Path) -> None:
    make_store(tmp_path / "other", output="other")

    assert kinds(tmp_path / "other", anchor_of(store)) == ["anchor"]


@pytest.mark.parametrize(
    "text", ["", "3", "3:", f":{'ab' * 32}", f"-1:{'ab' * 32}", "3:abcd", f"x:{'ab' * 32}"]
)
def test_a_text_that_is_no_anchor_is_refused(text: str) -> None:
    with pytest.raises(InvalidAnchorError):
        parse_anchor(text)


# The files


def test_a_missing_store_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        problems(tmp_path)
    with pytest.raises(StoreNotFoundError):
        storekeeping.find_existing(str(tmp_path))


def test_a_store_of_a_newer_format_is_refused(store: Path) -> None:
    (store / "format").write_text("99\n")

    with pytest.raises(StoreFormatError):
        storekeeping.find_existing(str(store))


@pytest.fixture
def dense(store: Path) -> Path:
    """A store in whose log every page is in use."""
    storekeeping.compact(str(store))
    return store


@pytest.mark.parametrize("size", [0, 1, PAGE, 2 * PAGE, 5 * PAGE, -PAGE, -1])
def test_a_truncated_file_is_reported(dense: Path, size: int) -> None:
    store = dense
    data = store / "log" / "data.mdb"
    whole = data.read_bytes()
    data.write_bytes(whole[:size])

    assert set(kinds(store)) == {"page"}


@pytest.mark.parametrize("kept", [0, PAGE, 3 * PAGE])
def test_a_file_of_zeros_is_reported(store: Path, kept: int) -> None:
    """What a power cut may leave."""
    data = store / "log" / "data.mdb"
    whole = data.read_bytes()
    data.write_bytes(whole[:kept] + bytes(len(whole) - kept))

    assert set(kinds(store)) == {"page"}


@pytest.mark.parametrize("name", [b"events.types", b"events.records", b"events.head"])
def test_a_database_whose_name_was_damaged_is_reported(dense: Path, name: bytes) -> None:
    """It looks as if it had never been made."""
    data = dense / "log" / "data.mdb"
    data.write_bytes(data.read_bytes().replace(name, name[:-1] + b"t"))

    assert kinds(dense) != []


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("change", [1, 4, 256, 2**40])
def test_a_commit_that_was_taken_back_is_reported(store: Path, page: int, change: int) -> None:
    """One changed bit in a meta page can do that, and all other pages still fit."""
    data = store / "log" / "data.mdb"
    whole = bytearray(data.read_bytes())
    place = slice(page * PAGE + 144, page * PAGE + 152)
    number = int.from_bytes(whole[place], sys.byteorder)
    whole[place] = (number ^ change).to_bytes(8, sys.byteorder)
    data.write_bytes(whole)

    assert set(kinds(store)) == {"page"}


def flips(size: int) -> Iterator[int]:
    """Yield places in every page of a file: in its head, among its pointers, in its data."""
    rng = random.Random(7)
    for page in range(0, size, PAGE):
        yield from (page + rng.randrange(16) for _ in range(2))
        yield from (page + 16 + rng.randrange(120) for _ in range(2))
        yield from (page + PAGE - 1 - rng.randrange(800) for _ in range(4))


def test_no_changed_bit_kills_the_process_or_loses_an_event_unnoticed(dense: Path) -> None:
    """In a child for each: were one killed by a signal, this test would say at which byte."""
    store = dense
    with opened(store) as services:
        expected = [record.body for record in services.log.read()]
    data = store / "log" / "data.mdb"
    whole = data.read_bytes()
    wrong = {}
    reported = 0
    for place in flips(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        data.write_bytes(changed)
        verdict = in_a_child(store, expected)
        reported += verdict == REPORTED
        if verdict not in (CLEAN, REPORTED):
            wrong[place] = verdict

    assert wrong == {}
    assert reported > 20


CLEAN, REPORTED, UNNOTICED, RAISED = 0, 1, 2, 3


def in_a_child(store: Path, expected: list[bytes]) -> int:
    """Verify in a child and return its verdict, negative for the signal that killed it."""
    child = os.fork()
    if not child:
        try:
            verdict = verdict_on(store, expected)
        except BaseException:
            verdict = RAISED
        os._exit(verdict)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def verdict_on(store: Path, expected: list[bytes]) -> int:
    if problems(store):
        return REPORTED
    with opened(store) as services:
        return CLEAN if [each.body for each in services.log.read()] == expected else UNNOTICED


def test_damage_is_looked_for_again_when_others_were_writing(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file read while it is written looks damaged: the second look happens while nobody can."""
    import lmdb.verify

    looks: list[bool] = []

    def look(path: str) -> list[str]:
        looks.append(True)
        return ["page 7 is torn"] if len(looks) == 1 else []

    monkeypatch.setattr(lmdb.verify, "verify", look)

    assert problems(store) == []
    assert len(looks) >= 2


def test_damage_that_keeps_the_log_from_being_opened_is_reported(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.infra.store_files import StoreFiles

    def refuse(_files: StoreFiles) -> list[str]:
        raise StoreCorruptError("here", "no meta page")

    monkeypatch.setattr(StoreFiles, "damage", refuse)

    assert [(each.kind, each.detail) for each in problems(store)] == [
        ("page", "the log cannot be opened: no meta page")
    ]


def test_a_log_that_cannot_be_read_on_is_reported(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tachograph.infra.lmdb_log import LMDBLog

    def refuse(*_args: object, **_options: object) -> None:
        raise StoreCorruptError("here", "a page is gone")

    monkeypatch.setattr(LMDBLog, "read", refuse)

    assert {each.kind for each in problems(store)} == {"unreadable"}


def test_progress_is_told_up_to_the_head(store: Path) -> None:
    seen = Seen()
    list(storekeeping.verify(str(store), progress=seen))

    assert seen == [(18, 18), (18, 18)]


# Bodies that are not there


def drop_bodies(store: Path, *positions: int) -> None:
    """Put digests in the place of bodies as somebody would who can write to the file."""
    with opened(store) as services:
        records = services.environment.databases[b"events.records"]
        with services.environment.write() as txn:
            for position in positions:
                key = pack_position(position)
                changed = without_body(txn.get(key, db=records) or b"", None)
                if changed is not None:
                    txn.put(key, changed, db=records)


def archive(store: Path, *run_ids: str) -> str:
    """Archive runs, and return the path of the archive."""
    with opened(store) as services:
        plans = offloading.plan(services.repository, [(each, "success") for each in run_ids])
        (name,) = bodykeeping.offload(services, plans).archives
    return str(store / "archive" / name)


def found(store: Path) -> list[tuple[str, int, str]]:
    return [(each.kind, each.position, each.detail) for each in problems(store)]


def test_bodies_that_vanished_without_an_erasure_are_reported(store: Path) -> None:
    """G4: the chain of digests is whole without them, so only an event may take them away."""
    drop_bodies(store, 2, 3, 5)
    why = "were erased without record: no event says by whom, when and why"

    assert found(store) == [
        ("erased", 2, f"2 bodies of job-0 (versions 2 to 3) {why}"),
        ("erased", 5, f"1 bodies of job-0 (versions 5 to 5) {why}"),
    ]


def test_what_was_erased_on_a_persons_word_is_no_problem(store: Path) -> None:
    erasurekeeping.erase(str(store), "job-0", "it names a customer", actor="test")

    assert problems(store) == []


def test_an_erasure_covers_nothing_that_comes_after_it(store: Path) -> None:
    """G4."""
    erasurekeeping.erase(str(store), "job-0", "it names a customer", actor="test")
    with opened(store) as services:
        services.session("job-0", 0).execute(lambda run, why: run.add_note(why, "gone"))
        last = services.log.head().position
    drop_bodies(store, last)

    assert [(kind, position) for kind, position, _ in found(store)] == [("erased", last)]


def test_an_erasure_that_is_gone_itself_covers_nothing(store: Path) -> None:
    """G4."""
    erasurekeeping.erase(str(store), "job-0", "it names a customer", actor="test")
    with opened(store) as services:
        last = services.log.head().position
    drop_bodies(store, last)
    (problem,) = problems(store)

    assert problem.kind == "erased"
    assert "10 bodies of job-0 (versions 1 to 10)" in problem.detail


def test_archived_bodies_whose_records_say_nothing_of_the_archive_are_lost(store: Path) -> None:
    """G4: that they were archived does not say that they were erased."""
    archive(store, "job-0")
    drop_bodies(store, 1, 2, 19)
    kinds = [(kind, position) for kind, position, _ in found(store)]

    assert kinds == [("lost", 1), ("erased", 19), ("surplus", 0)]


@pytest.mark.parametrize("twice", [False, True])
def test_bodies_that_an_export_could_not_give_stay_known_as_lost(
    tmp_path: Path, *, twice: bool
) -> None:
    """G4: in the copy as in the store, and good again with the file."""
    store = make_store(tmp_path / "store", output="text")
    path = archive(store, "job-0", "job-1")
    archive_file = tmp_path / "kept"
    shutil.move(path, archive_file)
    before = found(store)
    copies = [store, *(tmp_path / f"copy-{number}" for number in range(1 + twice))]
    for source, target in itertools.pairwise(copies):
        lines: list[str] = []
        with opened(source) as services:
            assert storekeeping.export(services, lines.append).lost == 18
            head = services.log.head()
        (tmp_path / "export").write_text("".join(lines), encoding="utf-8")
        with opened(target) as services:
            assert storekeeping.import_file(services, str(tmp_path / "export")).lost == 18
            assert services.log.head() == head

    copy = copies[-1]
    assert [(kind, at) for kind, at, _ in found(copy)] == [(kind, at) for kind, at, _ in before]
    assert {kind for kind, _, _ in found(copy)} == {"archive"}
    (copy / "archive").mkdir(exist_ok=True)
    shutil.copy(archive_file, copy / "archive" / Path(path).name)
    assert problems(copy) == []


def test_a_lost_body_is_found_where_the_event_that_archived_it_is_lost_too(store: Path) -> None:
    """It was archived later, with the same end."""
    archive(store, "job-0")
    with opened(store) as services:
        services.session("job-0", 0).execute(lambda run, why: run.add_note(why, "a remark"))
    second = archive(store, "job-0")
    drop_bodies(store, 1)
    Path(second).unlink()

    assert [kind for kind, _, _ in found(store)][:2] == ["archive", "lost"]
