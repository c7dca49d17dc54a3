"""Archiving and erasing, killed at any of their steps (SIGKILL): all is there or all gone."""

from __future__ import annotations

import io
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
import zstandard
from dying import in_a_child
from stores import LARGE, begin, opened, record_run

from tachograph import bodykeeping, erasurekeeping, offloading, storekeeping

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.records import Record

MOST_STEPS = 900
CANARY = "canary-3f9a1c"


def make(path: Path) -> Path:
    """Make a store: two finished runs, of which the first holds canaries, and an unfinished one."""
    with opened(path) as services:
        record_run(services, "job-0", output=CANARY)
        record_run(services, "job-1", output=LARGE)
        session = begin(services, "job-2")
        session.start_phase("parse")
        session.save_checkpoint({"large": CANARY * 2_000 + "2"})
        session = services.session("job-0", 0)
        session.execute(lambda run, why: run.add_note(why, f"seen: {CANARY}"))
        storekeeping.rebuild(services)
    return path


def archive(store: Path) -> None:
    with opened(store) as services:
        runs = [(run_id, "success") for run_id in ("job-0", "job-1", "job-2")]
        bodykeeping.offload(services, offloading.plan(services.repository, runs))


def erase(store: Path) -> None:
    finished = erasurekeeping.finish_erasing(str(store), actor="test")
    if "job-0" not in finished:
        erasurekeeping.erase(str(store), "job-0", "it names a customer", actor="test")


def read(store: Path) -> list[Record]:
    with opened(store) as services:
        return services.log.read(limit=None)


def wrong_with(store: Path, before: list[Record]) -> list[str]:
    """Return what an interrupted archiving has spoilt."""
    wrong = [problem.detail for problem in storekeeping.verify(str(store))]
    with opened(store) as services:
        if services.log.read(limit=len(before)) != before:
            wrong.append("an event reads as another one")
        outputs = [text for _, text in services.session("job-1", 1).batch_outputs("parse")]
        if outputs != [LARGE] * 3:
            wrong.append("an output is lost")
        if storekeeping.check_views(services):
            wrong.append("a view is wrong")
    return wrong


def test_an_archiving_killed_at_any_step_loses_nothing(tmp_path: Path) -> None:
    original = make(tmp_path / "original")
    before = read(original)
    in_a_child(lambda: archive(shutil.copytree(original, tmp_path / "warm")), 0)
    archive(tmp_path / "warm")  # imports done once
    wrong: dict[int, list[str]] = {}
    killed = 0
    for step in range(1, MOST_STEPS):
        store = shutil.copytree(original, tmp_path / "store")
        ended = in_a_child(lambda store=store: archive(store), step)  # type: ignore[misc]
        found = wrong_with(store, before)
        archive(store)  # takes up what was begun
        found += wrong_with(store, before)
        with opened(store) as services:
            held = services.log.archives()
            if sum(held.values()) < 19 or services.repository.get("job-2").bodies is not None:  # type: ignore[union-attr]
                found.append(f"not all was moved: {held}")
            if set(bodykeeping.Shelf(str(store)).files.numbers()) != set(held):
                found.append("an archive is there that nobody needs")
        if list((store / "archive").glob("tmp-*")):
            found.append("a leftover stays")
        if found:
            wrong[step] = found
        shutil.rmtree(store)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1

    assert wrong == {}
    assert 20 < killed < MOST_STEPS - 1, "every step was tried, up to the end"


def traces(store: Path) -> list[str]:
    """Return the files of a store that hold the canary, compressed or not."""
    return [
        str(path.relative_to(store))
        for path in sorted(store.rglob("*"))
        if path.is_file() and CANARY.encode() in unpacked(path)
    ]


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".zst" and not path.name.startswith("tmp-"):
        return data
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
    try:
        return reader.read()
    except zstandard.ZstdError:  # half a file of another run: its frames are looked at one by one
        return b""


@pytest.mark.parametrize("archived", ["job-1", "job-0 job-1"])
def test_an_erasing_killed_at_any_step_can_be_finished(tmp_path: Path, archived: str) -> None:
    original = make(tmp_path / "original")
    with opened(original) as services:
        services.session("job-2", 1).execute(lambda run, why: run.cancel(why, "no longer wanted"))
    erasurekeeping.erase(str(original), "job-2", "it has the same canary", actor="test")
    with opened(original) as services:
        runs = [(run_id, "success") for run_id in archived.split()]
        plans = offloading.plan(services.repository, runs)
        bodykeeping.offload(services, plans)
        storekeeping.rebuild(services)
    before = read(original)
    assert traces(original) != []
    in_a_child(lambda: erase(shutil.copytree(original, tmp_path / "warm")), 0)
    wrong: dict[int, list[str]] = {}
    killed = 0
    for step in range(1, MOST_STEPS):
        store = shutil.copytree(original, tmp_path / "store")
        ended = in_a_child(lambda store=store: erase(store), step)  # type: ignore[misc]
        found = [problem.detail for problem in storekeeping.verify(str(store))]
        records = read(store)
        gone = [each.absent for each in records if each.stream == "job-0"]
        if any(gone) and not (all(gone[:-1]) and not gone[-1]):
            found.append("half of it is gone")
        erased = any(gone)
        if erased and traces(store) and not erasurekeeping.pending(str(store)):
            found.append("what is left is not known to be left")
        if not erased or erasurekeeping.pending(str(store)):
            erase(store)
        found += [problem.detail for problem in storekeeping.verify(str(store))]
        if traces(store):
            found.append(f"traces in {traces(store)}")
        if erasurekeeping.pending(str(store)):
            found.append("it is still under way")
        after = read(store)
        if [each.digest for each in after[: len(before)]] != [each.digest for each in before]:
            found.append("a digest is another one")
        if [e for e in after if e.stream == "job-1"] != [e for e in before if e.stream == "job-1"]:
            found.append("another run has lost something")
        if [each.topic for each in after if each.stream == "job-0"][-1] != "run.bodies-erased":
            found.append("it does not say that it was erased")
        if found:
            wrong[step] = found
        shutil.rmtree(store)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1

    assert wrong == {}
    assert 40 < killed < MOST_STEPS - 1, "every step was tried, up to the end"
