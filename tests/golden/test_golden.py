"""Every event schema that was ever stored is still read, as what it meant (G9).

Files are only ever added: `make_golden.py` writes those that are missing and changes none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from golden.make_golden import golden, main

from tachograph.domain.event_types import QUEUE, REPAIR, all_types, upcast
from tachograph.domain.queued_job import QueuedJob
from tachograph.domain.repairs import Repairs, stream_of
from tachograph.domain.run import Run
from tachograph.infra.codec import Codec

FOLDER = Path(__file__).parent
EVENT_TYPES = all_types()
VERSIONS = [
    (topic, version)
    for topic, kind in EVENT_TYPES.items()
    for version in range(1, kind.class_version + 1)
]
EVERY_VERSION = pytest.mark.parametrize(("topic", "version"), VERSIONS)
CODEC = Codec()

# What a run, a job or an action must have been through before the samples can happen to it.
BEFORE = {
    "run.created": (),
    "run.attempt-started": ("run.created",),
    "run.effect-done": ("run.created", "run.effect-intended"),
    "run.effect-retry-allowed": ("run.created", "run.effect-intended"),
    "run.approval-granted": ("run.created", "run.approval-requested"),
    "run.approval-rejected": ("run.created", "run.approval-requested"),
    "queue.job-enqueued": (),
    "queue.job-leased": ("queue.job-enqueued",),
    "queue.job-pruned": ("queue.job-enqueued", "queue.job-cancelled"),
    "queue.job-restored": ("queue.job-enqueued", "queue.job-cancelled", "queue.job-pruned"),
    "repair.allowed": (),
}
USUALLY_BEFORE = {
    "run": ("run.created", "run.attempt-started", "run.phase-started"),
    "queue": ("queue.job-enqueued", "queue.job-leased"),
    "repair": ("repair.allowed",),
}
STREAMS = {
    "run": "job-code-report-0dc845e1",
    "queue": "01890a5d-ac96-774b-bcce-b302099a8057",
    "repair": stream_of("requeueDeadJobs"),
}


def read(topic: str, version: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / topic / f"v{version}.json").read_text("utf-8"))
    return content


def loaded(topic: str, version: int, at: int) -> dict[str, Any]:
    """Return a golden event as what it happened to is given it."""
    fields: dict[str, Any] = CODEC.unpack(bytes.fromhex(read(topic, version)["body"]))
    place = {"originator_id": STREAMS[kind_of(topic)], "originator_version": at}
    return upcast(topic, fields | place)


def kind_of(topic: str) -> str:
    return topic.partition(".")[0]


def lived(topic: str, version: int) -> Any:
    """Return what a stored event happened to, after it."""
    made: Any = Run()
    if topic.startswith(QUEUE):
        made = QueuedJob()
    elif topic.startswith(REPAIR):
        made = Repairs("requeueDeadJobs")
    before = BEFORE.get(topic, USUALLY_BEFORE[kind_of(topic)])
    for at, earlier in enumerate(before, 1):
        made.evolve(earlier, loaded(earlier, 1, at))
    made.evolve(topic, loaded(topic, version, len(before) + 1))

    assert made.version == len(before) + 1
    return made


@EVERY_VERSION
def test_a_stored_event_says_what_it_said(topic: str, version: int) -> None:
    """G9."""
    content = read(topic, version)

    assert (content["topic"], content["version"]) == (topic, version)
    assert CODEC.unpack(bytes.fromhex(content["body"])) == content["fields"]


@EVERY_VERSION
def test_a_stored_event_becomes_one_of_today(topic: str, version: int) -> None:
    """G9."""
    today = EVENT_TYPES[topic].class_version
    newest = read(topic, today)
    expected = newest["fields"] if version == today else newest["upcast"][str(version)]
    event = EVENT_TYPES[topic](**loaded(topic, version, 5))

    stored = dict(vars(event))
    assert (stored.pop("originator_id"), stored.pop("originator_version")) == (
        STREAMS[kind_of(topic)],
        5,
    )
    assert stored == {name: item for name, item in expected.items() if name != "class_version"}


@EVERY_VERSION
def test_what_it_happened_to_can_live_through_a_stored_event(topic: str, version: int) -> None:
    """G9."""
    made = lived(topic, version)
    if isinstance(made, Run):
        assert Run().restore(made.to_snapshot())
    elif isinstance(made, QueuedJob):
        assert QueuedJob.from_row(made.to_row()).to_row() == made.to_row()
    else:
        assert Repairs("requeueDeadJobs").restore(made.to_snapshot())


@EVERY_VERSION
def test_a_sample_is_stored_as_the_same_bytes(topic: str, version: int) -> None:
    """Other bytes are another stored format: that is a decision, and a line in the changelog."""
    assert golden(topic, version) == read(topic, version)


def test_no_version_is_taken_away() -> None:
    """G9: every golden file belongs to a schema that is still read."""
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/v*.json")}

    assert files == {f"{topic}/v{version}.json" for topic, version in VERSIONS}


def test_the_generator_changes_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in FOLDER.glob("*/v*.json")}
    main()

    assert {path: path.read_bytes() for path in FOLDER.glob("*/v*.json")} == before
    assert capsys.readouterr().out == ""


def test_an_owner_of_the_first_version_is_a_process_judged_by_its_lease() -> None:
    """G9: it had neither the boot nor the start time of its process."""
    fields = loaded("run.attempt-started", 1, 2)

    assert fields["owner"] == {"kind": "process", "host": "ada", "pid": 17}
    assert fields["reason"] is None
    assert not {"host", "pid", "class_version"} & fields.keys()
