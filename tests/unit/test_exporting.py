"""An export restores a log elsewhere to the same head, or the import writes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from stores import LARGE, Seen, files, make_store, opened, record_run

from tachograph import storekeeping
from tachograph.domain.errors import (
    ImportRefusedError,
    OtherEventsError,
    RunNotFoundError,
    StoreBusyError,
    StoreExistsError,
)
from tachograph.domain.records import Head, NewRecord
from tachograph.infra.layout import ABSENT, BODY, digest_body, pack_position
from tachograph.infra.store_records import StoreRecords

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tachograph.bootstrap import Services
    from tachograph.exporting import Exported

    Lines = list[dict[str, Any]]


def export(store: Path, file: Path, **options: Any) -> Exported:
    with opened(store) as services, storekeeping.new_file(str(file)) as out:
        return storekeeping.export(services, out.write, **options)


def load(store: Path, file: Path) -> tuple[int, int]:
    """Import a file; return how many events were new and how many known."""
    with opened(store) as services:
        done = storekeeping.import_file(services, str(file))
        assert done.head == services.log.head()
        return done.events, done.known


def head(store: Path) -> Head:
    with opened(store) as services:
        return services.log.head()


def read_lines(file: Path) -> Lines:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def write_lines(file: Path, lines: Lines) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file.write_text(text, encoding="utf-8")


def whole(store: Path) -> list[str]:
    return [problem.detail for problem in storekeeping.verify(str(store))]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A store with two runs whose outputs are one and the same blob."""
    return make_store(tmp_path / "source")


@pytest.fixture
def file(source: Path, tmp_path: Path) -> Path:
    """The export of that store."""
    export(source, tmp_path / "export.jsonl")
    return tmp_path / "export.jsonl"


def test_an_import_ends_at_the_same_head_with_everything(
    source: Path, file: Path, store_path: Path
) -> None:
    imported = load(store_path, file)

    assert imported == (head(source).position, 0)
    assert head(store_path) == head(source)
    assert whole(store_path) == []
    with opened(store_path) as services:
        session = services.session("job-1", 1)
        assert [output for _, output in session.batch_outputs("parse")] == [LARGE] * 3


def test_the_same_store_is_exported_to_the_same_bytes(
    file: Path, store_path: Path, tmp_path: Path
) -> None:
    load(store_path, file)
    export(store_path, tmp_path / "again.jsonl")

    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


def test_a_payload_stands_once_before_the_first_event_that_needs_it(file: Path) -> None:
    lines = read_lines(file)
    blobs = [number for number, line in enumerate(lines) if "blob" in line]
    needing = [n for n, line in enumerate(lines) if "$blob" in json.dumps(line.get("data"))]

    assert len(blobs) == 1
    assert len(needing) == 6
    assert blobs[0] == needing[0] - 1


def test_an_event_line_says_all_that_is_stored(source: Path, file: Path) -> None:
    line = next(line for line in read_lines(file) if line.get("position") == 1)
    with opened(source) as services:
        (record,) = services.log.read(limit=1)

    assert line["stream"] == "job-0"
    assert (line["version"], line["type"]) == (1, "run.created")
    assert line["timeUs"] == record.time_us
    assert line["digest"] == record.digest.hex()
    assert line["previousDigest"] == "0" * 64
    assert line["data"]["command"] == "report"
    assert "raw" not in line


def test_importing_again_writes_nothing(file: Path, store_path: Path) -> None:
    load(store_path, file)
    before = files(store_path)
    again = load(store_path, file)

    assert again == (0, head(store_path).position)
    assert files(store_path) == before


def test_a_later_export_brings_what_is_new(
    source: Path, file: Path, store_path: Path, tmp_path: Path
) -> None:
    load(store_path, file)
    known = head(store_path).position
    with opened(source) as services:
        record_run(services, "job-new", batches=1)
    export(source, tmp_path / "later.jsonl")

    assert load(store_path, tmp_path / "later.jsonl") == (7, known)
    assert load(store_path, file) == (0, known), "an earlier export is a beginning of the store"
    assert head(store_path) == head(source)
    assert whole(store_path) == []


def test_a_payload_that_the_store_has_lost_is_restored(file: Path, store_path: Path) -> None:
    load(store_path, file)
    for blob in (store_path / "blobs").glob("??/*"):
        blob.unlink()
    load(store_path, file)

    assert whole(store_path) == []


def test_a_store_with_other_events_takes_nothing(file: Path, store_path: Path) -> None:
    make_store(store_path, runs=1, output="other")
    before = files(store_path)
    with pytest.raises(OtherEventsError, match="differ at position 9"):
        load(store_path, file)

    assert files(store_path) == before


def test_a_longer_store_with_other_events_takes_nothing(file: Path, store_path: Path) -> None:
    make_store(store_path, runs=9)

    with pytest.raises(OtherEventsError):
        load(store_path, file)


def changed(number: int, **fields: Any) -> Callable[[Lines], object]:
    """Change the event at a position."""

    def change(lines: Lines) -> None:
        next(line for line in lines if line.get("position") == number).update(fields)

    return change


def without(key: str, number: int = 0) -> Callable[[Lines], object]:
    """Leave out a line with a key."""

    def change(lines: Lines) -> None:
        found = [line for line in lines if key in line]
        lines.remove(found[number])

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed(3, timeUs=1), "line 4 .position 3. was changed"),
        (changed(3, type="run.note-added"), "was changed"),
        (changed(3, data={}), "was changed"),
        (changed(3, stream="job-9"), "was changed"),
        (changed(3, data={"$datetime": "never"}), "cannot be read"),
        (changed(3, stream=7), "no text"),
        (changed(3, version="3"), "wrong 'version'"),
        (changed(3, digest="12"), "wrong 'digest'"),
        (changed(3, surprise=1), "wrong 'surprise'"),
        (changed(3, raw="///"), "line 4"),
        (without("position", 4), "does not follow position 4"),
        (without("position", -1), "is missing: the file should go on to position 18"),
        (lambda lines: lines.reverse(), "not the first line"),
        (lambda lines: lines.pop(0), "not the first line"),
        (lambda lines: lines.clear(), "line 1 is missing"),
        (lambda lines: lines.insert(4, lines[4]), "does not follow"),
        (lambda lines: lines.insert(4, lines[0]), "second first line"),
        (lambda lines: lines.insert(4, {"odd": 1}), "no line of an export"),
        (lambda lines: lines.insert(4, [1]), "no line of an export"),
        (lambda lines: lines[0].update(version=99), "update Tachograph"),
        (lambda lines: lines[0].update(format="zip"), "wrong 'format'"),
        (lambda lines: lines.append({"tracking": 1, "at": 1}), "names no log"),
    ],
)
def test_a_damaged_file_is_refused_and_nothing_written(
    change: Callable[[Lines], object], why: str, file: Path, store_path: Path
) -> None:
    lines = read_lines(file)
    change(lines)
    write_lines(file, lines)
    with opened(store_path):
        before = files(store_path)
    with pytest.raises(ImportRefusedError, match=why):
        load(store_path, file)

    assert files(store_path) == before


def test_a_line_that_is_not_json_is_refused(file: Path, store_path: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8") + "{", encoding="utf-8")

    with pytest.raises(ImportRefusedError, match="is not JSON"):
        load(store_path, file)


@pytest.mark.parametrize("change", [{"size": 1}, {"data": "AAAA"}, {"blob": "12"}])
def test_a_payload_that_was_changed_is_refused(
    change: dict[str, Any], file: Path, store_path: Path
) -> None:
    lines = read_lines(file)
    next(line for line in lines if "blob" in line).update(change)
    write_lines(file, lines)

    with pytest.raises(ImportRefusedError):
        load(store_path, file)
    assert not list((store_path / "blobs").glob("??/*"))


def test_the_export_of_one_run_cannot_be_imported(
    source: Path, store_path: Path, tmp_path: Path
) -> None:
    done = export(source, tmp_path / "one.jsonl", run_id="job-1")
    lines = read_lines(tmp_path / "one.jsonl")

    assert done.events == 9
    assert {line["stream"] for line in lines if "stream" in line} == {"job-1"}
    with pytest.raises(ImportRefusedError, match="run job-1 only"):
        load(store_path, tmp_path / "one.jsonl")


def test_an_unknown_run_exports_nothing(source: Path, tmp_path: Path) -> None:
    with pytest.raises(RunNotFoundError):
        export(source, tmp_path / "none.jsonl", run_id="nobody")

    assert not (tmp_path / "none.jsonl").exists()


def test_an_export_never_replaces_a_file(source: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(StoreExistsError):
        export(source, tmp_path / "mine")

    assert (tmp_path / "mine").read_text() == "mine"


def test_lost_payloads_are_exported_as_lost(source: Path, store_path: Path, tmp_path: Path) -> None:
    for blob in (source / "blobs").glob("??/*"):
        blob.unlink()
    done = export(source, tmp_path / "export.jsonl")
    with opened(store_path) as services:
        imported = storekeeping.import_file(services, str(tmp_path / "export.jsonl"))

    assert (done.blobs, done.missing) == (1, 1)
    assert (imported.blobs, imported.missing) == (1, 1)
    assert head(store_path) == head(source)


def test_an_empty_log_is_exported_and_imported(store_path: Path, tmp_path: Path) -> None:
    export(tmp_path / "empty", tmp_path / "export.jsonl")

    assert load(store_path, tmp_path / "export.jsonl") == (0, 0)


def test_events_and_positions_of_other_applications_go_with_the_log(
    source: Path, store_path: Path, tmp_path: Path
) -> None:
    """Whatever their bodies are, and whatever names they use."""
    stream = uuid4()
    with opened(source) as services:
        services.log.append(
            [
                NewRecord(stream, 1, "other:\udc80", -5, b"\xc1 not a value"),
                NewRecord("caf\udce9", 7, "other", 2**62, b"\xa1a trailing"),
                NewRecord("long", 1, "other", 0, b"\xd9\x01a"),  # a longer form of "a"
            ],
            tracking=("upstream \udc80", 41),
        )
    export(source, tmp_path / "export.jsonl")
    load(store_path, tmp_path / "export.jsonl")

    assert head(store_path) == head(source)
    with opened(store_path) as services:
        assert services.log.max_tracking("upstream \udc80") == 41
        (record,) = services.log.read_stream(stream)
        assert (record.body, record.time_us) == (b"\xc1 not a value", -5)
        assert services.log.read_stream("long")[0].body == b"\xd9\x01a"
        assert services.log.read_stream("caf\udce9")[0].version == 7


def erase(services: Services, position: int) -> None:
    """Put the digest of a body in its place, as an erasure does."""
    key = pack_position(position)
    database = services.environment.databases[b"events.records"]
    with services.environment.write() as txn:
        value = bytearray(txn.get(key, db=database) or b"")
        value[1] |= ABSENT
        value[BODY:] = digest_body(bytes(value[BODY:]))
        txn.put(key, bytes(value), db=database)


def test_an_erased_body_stays_erased_and_the_chain_whole(
    source: Path, store_path: Path, tmp_path: Path
) -> None:
    with opened(source) as services:
        erase(services, 3)
        services.log.append([NewRecord("last", 1, "other", 0, b"\xc0")])
        erase(services, services.log.head().position)
    export(source, tmp_path / "export.jsonl")
    load(store_path, tmp_path / "export.jsonl")
    line = next(x for x in read_lines(tmp_path / "export.jsonl") if x.get("position") == 3)

    assert line["data"] is None
    assert len(line["bodyDigest"]) == 64
    assert head(store_path) == head(source)
    assert whole(store_path) == whole(source) != []  # no event says that they were erased
    with opened(store_path) as services:
        assert services.log.read(after=2, limit=1)[0].absent


def test_a_store_that_another_process_writes_to_meanwhile_takes_nothing(
    file: Path, store_path: Path
) -> None:
    with opened(store_path) as services:
        copies = StoreRecords(services.environment)
        before = services.log.head()
        services.log.append([NewRecord("other", 1, "other", 0, b"\xc0")])

        with pytest.raises(StoreBusyError, match="another process writes"):
            copies.restore(before, before, list)
        assert services.log.head().position == 1


def test_a_file_that_changes_between_check_and_write_leaves_no_event(
    source: Path, store_path: Path
) -> None:
    with opened(source) as services:
        records = services.log.read(limit=2)
        copied = [StoreRecords(services.environment).copied(record) for record in records]
    with opened(store_path) as services:
        start = services.log.head()
        end = Head(2, bytes(32))

        with pytest.raises(StoreBusyError, match="changed while it was read"):
            StoreRecords(services.environment).restore(start, end, lambda: copied)
        assert services.log.head() == start


def test_progress_is_told_in_positions(source: Path, tmp_path: Path, store_path: Path) -> None:
    with opened(source) as services:
        services.log.append(
            [NewRecord("many", version, "other", 0, b"\xc0") for version in range(1, 2001)]
        )
    seen = Seen()
    export(source, tmp_path / "export.jsonl", progress=seen)
    with opened(store_path) as services:
        path = str(tmp_path / "export.jsonl")
        storekeeping.import_file(services, path, seen)

    assert seen[:2] == [(1000, 2018), (2000, 2018)]
    assert len(seen) == 4
