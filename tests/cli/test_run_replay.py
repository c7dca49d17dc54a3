"""`run replay`, `run timeline` and `run artifacts` answer from what was recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from stores import begin, gone, opened, record_run

from tachograph.infra.clock import iso
from tachograph.measuring import measure
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tachograph.bootstrap import Services

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def services(store_environment: Path) -> Iterator[Services]:
    """A store with a finished run; every third event has a snapshot."""
    (store_environment).mkdir()
    (store_environment / "config").write_text("snapshot_every = 3\n")
    with opened(store_environment) as services:
        record_run(services, batches=2)
        yield services


def document(capsys: Capture, *arguments: str) -> Any:
    done = here(capsys, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# Replay


@pytest.mark.parametrize(
    ("arguments", "version", "done"),
    [((), 8, [[0, 1]]), (("--to", "5"), 5, [[0, 0]]), (("--to", "99"), 8, [[0, 1]])],
)
def test_the_state_at_a_version_is_shown(
    services: Services, capsys: Capture, arguments: tuple[str, ...], version: int, done: Any
) -> None:
    found = document(capsys, "run", "replay", "job-1", *arguments)

    assert (found["version"], found["state"]["version"]) == (version, version)
    assert found["state"]["phases"][0]["done"] == done


def test_the_state_at_a_time_is_shown(services: Services, capsys: Capture) -> None:
    at = services.log.read_stream("job-1")[4].time_us

    found = document(capsys, "run", "replay", "job-1", "--at", iso(at, digits=6))
    assert found["timeUs"] <= at
    assert found["version"] >= 5


def test_a_state_for_people_leaves_out_what_is_nothing(services: Services, capsys: Capture) -> None:
    text = here(capsys, "run", "replay", "job-1", "--to", "5").stdout
    rows = dict(line.split(maxsplit=1) for line in text.splitlines())

    assert rows["phases.parse.done"] == "[[0, 0]]"
    assert rows["command"] == "report"
    assert "outcome" not in rows


def test_each_event_is_shown_with_its_changes(services: Services, capsys: Capture) -> None:
    text = here(capsys, "run", "replay", "job-1", "--diff").stdout
    done = here(capsys, "run", "replay", "job-1", "--diff", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert "    phases.parse.done: [[0, 0]] → [[0, 1]]" in text.splitlines()
    assert "    outcome: null → success" in text.splitlines()
    assert [line["version"] for line in lines] == list(range(1, 9))
    assert {
        "path": "phases.parse.status",
        "kind": "changed",
        "old": "running",
        "new": "completed",
    } in lines[6]["changes"]


def test_what_an_event_takes_away_is_shown_too(services: Services, capsys: Capture) -> None:
    session = begin(services, "moody")
    session.execute(lambda run, why: run.block(why, "waits"))
    session = services.starter.start(Start("report", {"n": 1}, run_id="moody"), gone())
    session.save_checkpoint({"row": 1})
    session.save_checkpoint({"page": 2})
    lines = here(capsys, "run", "replay", "moody", "--diff").stdout.splitlines()

    assert "    blocked: waits → null" in lines
    assert "    checkpoint.state.row: 1 → gone" in lines
    assert "    checkpoint.state.page: 2" in lines


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--to", "3", "--at", "1h"), 2, "not both"),
        (("--strict", "--to", "3"), 2, "leave out --to"),
        (("--strict", "--diff"), 2, "leave out --to"),
        (("--at", "soon"), 2, "is not a time"),
        (("--at", "2001-01-01"), 3, "no event by then"),
        (("--to", "0"), 3, "no event by then"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(
    services: Services, capsys: Capture, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = here(capsys, "run", "replay", "job-1", *arguments)

    assert done.returncode == code
    assert said in done.stderr


def test_a_strict_replay_agrees_with_what_is_stored(services: Services, capsys: Capture) -> None:
    found = document(capsys, "run", "replay", "job-1", "--strict")
    text = here(capsys, "run", "replay", "job-1", "--strict").stdout

    assert (found["agrees"], found["events"], found["snapshots"]) == (True, 8, 2)
    assert "8 events agree with 2 snapshots and 2 views" in text


def damage_view(services: Services) -> None:
    services.views().update(
        lambda rows: rows.put_summary({**(rows.summary("job-1") or {}), "outcome": "failed"})
    )


def damage_snapshot(services: Services) -> None:
    from tachograph.domain.records import SnapshotRecord

    snapshot = services.log.snapshot("job-1", up_to=3)
    assert snapshot is not None
    state = services.codec.unpack(snapshot.body)
    state["phases"][0]["status"] = "completed"
    body = services.codec.pack(state)
    services.log.append([], snapshot=SnapshotRecord("job-1", 3, body))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (damage_view, "from version 8 on, outcome in its summary is 'failed'"),
        (damage_snapshot, "from version 3 on, phases.parse.status in its snapshot"),
    ],
)
def test_a_strict_replay_names_the_first_event_that_differs_and_a_rebuild_mends_it(
    services: Services, capsys: Capture, damage: Callable[[Services], None], said: str
) -> None:
    here(capsys, "run", "list")  # lets the views catch up
    damage(services)
    diverged = here(capsys, "run", "replay", "job-1", "--strict")
    mended = here(capsys, "view", "rebuild")
    again = here(capsys, "run", "replay", "job-1", "--strict")

    assert diverged.returncode == 5
    assert said in diverged.stderr
    assert (mended.returncode, again.returncode) == (0, 0)
    assert ("1 snapshots were not" in mended.stdout) == (damage is damage_snapshot)


# Timeline


def test_a_timeline_has_an_entry_for_what_a_person_wants_to_see(
    services: Services, capsys: Capture
) -> None:
    session = services.session("job-1", 1)
    session.execute(lambda run, why: run.add_note(why, "odd", level="warning"))
    found = document(capsys, "run", "timeline", "job-1")
    text = here(capsys, "run", "timeline", "job-1").stdout

    kinds = [entry["kind"] for entry in found["entries"]]
    assert kinds == ["created", "attempt", "phase", "end", "note"]
    assert "phase       parse completed, 2 of 2 batches" in text
    assert "end         success" in text
    assert "note        warning: odd" in text


def test_only_the_newest_entries_are_shown_when_asked(services: Services, capsys: Capture) -> None:
    found = document(capsys, "run", "timeline", "job-1", "--limit", "1")

    assert [entry["kind"] for entry in found["entries"]] == ["end"]


def test_every_kind_of_entry_has_a_line(store_environment: Path, capsys: Capture) -> None:
    with opened(store_environment) as services:
        session = begin(services)
        do = session.execute
        do(lambda run, why: run.schedule_retry(why, "parse", 2, delay_seconds=1.5, error="bad"))
        do(lambda run, why: run.take_fallback(why, "large", "small", reason="slow"))
        do(lambda run, why: run.record_artifact(why, "out", path="/o", size=3, sha256="ab"))
        session.intend_effect("mail", description="to Ada")
        session.save_checkpoint(1)
        session.complete_step("load", 1)
        session.complete_effect("mail")
        session.finish()
    text = here(capsys, "run", "timeline", "job-1").stdout

    for part in (
        "retry       parse, try 2, after 1.5s: bad",
        "fallback    from large to small: slow",
        "artifact    out: /o, 3 bytes",
        "effect      mail done: to Ada",
        "checkpoints 1",
        "steps       1",
        "gate        ",
        "end         ",
    ):
        assert part in text


# Artifacts


@pytest.mark.parametrize(
    ("change", "state", "code"),
    [
        (lambda _path: None, "ok", 0),
        (lambda path: path.unlink(), "missing", 1),
        (lambda path: path.write_text("longer than before"), "changed", 1),
        (lambda path: path.write_text("odd"), "changed", 1),
        (lambda path: (path.unlink(), path.mkdir()), "changed", 1),
    ],
)
def test_a_file_is_compared_with_what_it_was(
    services: Services,
    capsys: Capture,
    tmp_path: Path,
    change: Callable[[Path], object],
    state: str,
    code: int,
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    size, sha256 = measure(path)
    with opened(services.folder):
        begin(services, "files").execute(
            lambda run, why: run.record_artifact(
                why, "out", path=str(path), size=size, sha256=sha256
            )
        )
    change(path)
    done = here(capsys, "run", "artifacts", "files", "--json")
    (found,) = json.loads(done.stdout)["artifacts"]
    text = here(capsys, "run", "artifacts", "files").stdout

    assert (found["state"], found["size"], done.returncode) == (state, 3, code)
    assert state in text.splitlines()[1].split()


def test_a_run_without_files_is_said_so(services: Services, capsys: Capture) -> None:
    done = here(capsys, "run", "artifacts", "job-1")

    assert (done.returncode, done.stdout) == (0, "")
    assert "recorded no files" in done.stderr
