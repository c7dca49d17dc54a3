"""`tacho queue enqueue`: one job, those of a file, and nothing at all when anything is wrong."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tachograph.bootstrap import open_store
from tachograph.cli import bars, queue_enqueue
from tachograph.cli.enqueue_lines import NAMES, of_lines
from tachograph.cli.options import UsageError
from tachograph.domain.queue_events import JobEnqueued
from tachograph.domain.queue_settings import QueuePlan
from tachograph.queuekeeping import queues_of
from tachograph.queues.wanting import check

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.queued_job import QueuedJob
    from tachograph.queues.enqueueing import Enqueue

NOW = 1_700_000_000_000_000
SECOND = 1_000_000
HOUR = 3_600 * SECOND
QUEUE = ("queue", "enqueue", "memory")
DECLARED = """
[queues.memory]

[queues.memory.types.mail]
model = "enqueue_models:Mail"
"""


@pytest.fixture(autouse=True)
def stores(store_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tachograph.infra.clock.now_us", lambda: NOW)
    return store_environment


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose type `mail` has a model."""
    (tmp_path / "enqueue_models.py").write_text(
        "from pydantic import BaseModel\n\nclass Mail(BaseModel):\n    to: str\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "enqueue_models", raising=False)
    path = tmp_path / "tachograph.toml"
    path.write_text(DECLARED)
    return path


def jobs() -> list[tuple[QueuedJob, Any]]:
    """Return the jobs that were enqueued, in that order, and the payload of each."""
    services = open_store()
    try:
        queues = queues_of(services)
        records = services.log.read(topics=[JobEnqueued.TOPIC])
        found = [queues.get(str(record.stream)) for record in records]
        return [(job, services.payloads.load(queues.repository.payload(job))) for job in found]
    finally:
        services.close()


def lines(*said: object) -> str:
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in said)


# One job.


def test_a_job_is_recorded_and_its_id_printed(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(
        capsys, *QUEUE, "--type", "mail", "--payload", '{"to": "ada"}', "--key", "k",
        "--key-window", "1h", "--priority", "7", "--in", "10m", "--max-attempts", "2",
        "--concurrency-key", "host",
    )  # fmt: skip
    [(job, payload)] = jobs()

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{job.id}\n", "")
    assert (job.queue, job.type, payload) == ("memory", "mail", {"to": "ada"})
    assert (job.key, job.key_window_us, job.concurrency_key) == ("k", HOUR, "host")
    assert (job.priority, job.max_attempts, job.available_us) == (7, 2, NOW + 600 * SECOND)


def test_what_is_not_said_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, *QUEUE, "--type", "mail", "--json")
    [(job, payload)] = jobs()

    assert json.loads(done.stdout) == {
        "jobId": job.id,
        "queue": "memory",
        "type": "mail",
        "created": True,
    }
    assert (payload, job.key, job.priority, job.max_attempts) == (None, None, 0, 3)
    assert (job.available_us, job.concurrency_key) == (None, None)


def test_a_low_priority_is_a_number_too(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, *QUEUE, "--type", "mail", "--priority", "-3")

    assert done.returncode == 0
    assert jobs()[0][0].priority == -3


def test_spec_10_case_1_a_key_that_is_taken_gives_the_id_of_its_job(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = here(capsys, *QUEUE, "--type", "mail", "--key", "k")
    second = here(capsys, *QUEUE, "--type", "mail", "--key", "k")
    third = here(capsys, *QUEUE, "--type", "mail", "--key", "k", "--json")

    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert second.stderr == f"Not enqueued: job {first.stdout.strip()} has the key 'k'.\n"
    assert json.loads(third.stdout)["created"] is False
    assert len(jobs()) == 1


@pytest.mark.parametrize(
    ("at", "time_us"),
    [
        ("2030-05-17T12:30:00Z", datetime(2030, 5, 17, 12, 30, tzinfo=UTC)),
        ("2030-05-17T12:30:00+02:00", datetime(2030, 5, 17, 10, 30, tzinfo=UTC)),
        ("2030-05-17T12:30", datetime(2030, 5, 17, 12, 30)),  # noqa: DTZ001  # local
        ("@1900000000", datetime.fromtimestamp(1_900_000_000, UTC)),
        ("now", datetime.fromtimestamp(NOW / SECOND, UTC)),
    ],
)
def test_times_are_those_that_people_write(
    at: str, time_us: datetime, capsys: pytest.CaptureFixture[str]
) -> None:
    here(capsys, *QUEUE, "--type", "mail", "--at", at)

    assert jobs()[0][0].available_us == round(time_us.timestamp() * SECOND)


def test_a_payload_may_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "payload.json").write_text('["from", "a file"]')
    here(capsys, *QUEUE, "--type", "mail", "--payload", "@payload.json")

    assert jobs()[0][1] == ["from", "a file"]


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--type", "mail", "--payload", "{"), "--payload is not JSON"),
    (("--type", "mail", "--payload", "NaN"), "NaN is no JSON number"),
    (("--type", "mail", "--payload", "@nowhere"), "nowhere cannot be read"),
    ((), "Which type of job? Give --type, or a file of jobs with --jsonl."),
    (("--type", "a b"), "type is 'a b'"),
    (("--type", ""), "type is ''"),
    (("--type", "mail", "--key", " "), "key is ' '"),
    (("--type", "mail", "--key-window", "1h"), "name a key too"),
    (("--type", "mail", "--key", "k", "--key-window", "soon"), "'soon' is no length of time"),
    (("--type", "mail", "--priority", "high"), "'high' is not a valid integer"),
    (("--type", "mail", "--priority", "1000001"), "priority is 1000001"),
    (("--type", "mail", "--max-attempts", "0"), "max attempts is 0"),
    (("--type", "mail", "--max-attempts", "-1"), "max attempts is -1"),
    (("--type", "mail", "--max-attempts", "4"), "queue 'memory' allows 3"),
    (("--type", "mail", "--at", "3d"), "that is a length of time"),
    (("--type", "mail", "--at", "3d ago"), "that is a length of time"),
    (("--type", "mail", "--at", "2026-02-30"), "'2026-02-30' is not a time"),
    (("--type", "mail", "--in", "later"), "'later' is no length of time"),
    (("--type", "mail", "--in", "-5m"), "'-5m' is no length of time"),
    (("--type", "mail", "--in", "5m", "--at", "now"), "at and in exclude each other"),
    (("--type", "mail", "--config", "nowhere.toml"), "There is no"),
    (("--jsonl", "nowhere"), "nowhere cannot be read"),
    (("--jsonl", "@-", "--key", "k"), "--key is of a single job"),
    (("--jsonl", "@-", "--priority", "0"), "--priority is of a single job"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(each) for each, _ in WRONG])
def test_what_is_wrong_is_a_usage_error_and_makes_no_store(
    words: tuple[str, ...], message: str, stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, *QUEUE, *words)

    assert message in done.stderr
    assert done.returncode == (3 if "--config" in words else 2)
    assert done.stdout == ""
    assert not stores.exists()


def test_an_unknown_queue_is_a_usage_error(
    stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, "queue", "enqueue", "memry", "--type", "mail")

    assert done.returncode == 2
    assert "There is no queue 'memry'. Did you mean 'memory'?" in done.stderr
    assert not stores.exists()


def test_a_broken_project_file_is_told(
    tmp_path: Path, stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tachograph.toml").write_text("[queues.memory]\nlease = 1\n")
    done = here(capsys, *QUEUE, "--type", "mail")

    assert done.returncode == 1
    assert "queues.memory.lease: give a time from 10s to 1d" in done.stderr
    assert not stores.exists()


def test_a_payload_that_its_model_refuses_is_not_recorded(
    declared: Path, stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = here(capsys, *QUEUE, "--type", "mail", "--payload", '{"too": "ada"}')

    assert done.returncode == 2
    assert "is refused by enqueue_models:Mail: to: Field required." in done.stderr
    assert not stores.exists()


# Those of a file.


def test_the_jobs_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.jsonl").write_text(
        lines(
            {"type": "a", "payload": {"n": 1}, "priority": 2, "maxAttempts": 1},
            "",
            {"key": "k", "keyWindow": "1h", "in": "10m", "concurrencyKey": "host"},
            {"key": "k"},
            {"at": "2030-05-17T12:30:00Z", "keyWindow": None},
        )
    )
    done = here(capsys, *QUEUE, "--type", "usual", "--jsonl", "jobs.jsonl")
    found = jobs()

    assert (done.returncode, done.stdout, done.stderr) == (0, "enqueued 3, 1 already there\n", "")
    assert [(job.type, payload) for job, payload in found] == [
        ("a", {"n": 1}),
        ("usual", None),
        ("usual", None),
    ]
    assert (found[0][0].priority, found[0][0].max_attempts) == (2, 1)
    assert (found[1][0].key, found[1][0].key_window_us) == ("k", HOUR)
    assert (found[1][0].available_us, found[1][0].concurrency_key) == (NOW + HOUR // 6, "host")
    assert found[2][0].available_us == 1_905_251_400 * SECOND


def test_lines_may_come_by_standard_input_and_ids_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(monkeypatch, lines({"type": "a", "key": "k"}, {"type": "a", "key": "k"}))
    done = here(capsys, *QUEUE, "--jsonl", "@-", "--json")
    [(job, _)] = jobs()

    assert json.loads(done.stdout) == {
        "queue": "memory",
        "enqueued": 1,
        "existing": 1,
        "jobs": [{"jobId": job.id, "created": True}, {"jobId": job.id, "created": False}],
    }


def feed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_no_line_is_no_job_and_makes_no_store(
    monkeypatch: pytest.MonkeyPatch, stores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(monkeypatch, "\n\n")
    done = here(capsys, *QUEUE, "--jsonl", "-")

    assert (done.returncode, done.stdout) == (0, "enqueued 0, 0 already there\n")
    assert not stores.exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "it is not JSON: "),
        ('{"type": "a", "payload": NaN}', "NaN is no JSON number"),
        ("[" * 100_000, "it is not JSON: "),
        ("[1]", "it is no JSON object."),
        ({}, "Which type of job? It has none."),
        ({"type": None}, "Which type of job? It has none."),
        ({"type": "a", "kye": "k"}, "there is no 'kye'. Did you mean 'key'?"),
        ({"type": 3}, "type is 3"),
        ({"type": "a", "key": 3}, "key is 3"),
        ({"type": "a", "priority": "1"}, "priority is '1'"),
        ({"type": "a", "priority": True}, "priority is True"),
        ({"type": "a", "maxAttempts": 1.5}, "max attempts is 1.5"),
        ({"type": "a", "maxAttempts": 9}, "queue 'memory' allows 3"),
        ({"type": "a", "at": 1_900_000_000}, "write a time such as"),
        ({"type": "a", "at": "10m"}, "that is a length of time"),
        ({"type": "a", "in": -1}, "write a length of time"),
        ({"type": "a", "in": "10m", "at": "now"}, "at and in exclude each other"),
        ({"type": "a", "key": "k", "keyWindow": "x"}, "'x' is no length of time"),
        ({"type": "a", "key": "k", "keyWindow": True}, "write a length of time"),
        ({"type": "mail", "payload": 3}, "is refused by enqueue_models:Mail"),
        ('{"type": "a", "payload": ' + "[" * 100 + "]" * 100 + "}", "more than 64 levels deep"),
    ],
    ids=str,
)
def test_one_wrong_line_is_named_and_nothing_is_recorded(
    line: object, message: str, declared: Path, tmp_path: Path, stores: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    good = [{"type": "a"} for _ in range(600)]
    (tmp_path / "jobs.jsonl").write_text(lines(*good, line))
    done = here(capsys, *QUEUE, "--jsonl", "jobs.jsonl")

    assert done.returncode == 2
    assert done.stderr.startswith("tacho: Line 601 of jobs.jsonl: ")
    assert message in done.stderr
    assert done.stderr.endswith("Nothing was enqueued.\n")
    assert not stores.exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
VALUES = JSON | st.sampled_from(["a", "1h", "10m", "now", "2030-05-17", "3d", 3, 0, -1, 10**30])


@given(st.dictionaries(st.sampled_from([*NAMES, "other"]), VALUES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_line_is_a_job_that_its_queue_takes_or_an_error_that_names_it(
    said: dict[str, Any],
) -> None:
    plan = QueuePlan()

    def right(want: Enqueue) -> None:
        check(plan, want, lambda _queue, _kind, _payload: None)

    try:
        [want] = of_lines("memory", [json.dumps(said)], "jobs", None, NOW, right)
    except UsageError as error:
        assert str(error).startswith("Line 1 of jobs: ")
    else:
        assert (want.type, want.payload) == (said["type"], said.get("payload"))
        assert want.available_us is None or want.available_us >= 0


def test_a_file_that_is_no_text_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.jsonl").write_bytes(b"\xff\n")
    done = here(capsys, *QUEUE, "--jsonl", "jobs.jsonl")

    assert (done.returncode, "jobs.jsonl is no UTF-8 text" in done.stderr) == (2, True)


def test_a_bar_shows_how_far_a_long_file_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[tuple[int, int | None]] = []
    monkeypatch.setattr(bars.Bar, "__call__", lambda _bar, done, total: told.append((done, total)))
    feed(monkeypatch, lines(*({"type": "a"} for _ in range(1_200))))
    here(capsys, *QUEUE, "--jsonl", "@-")

    assert told == [(500, 1_200), (1_000, 1_200), (1_200, 1_200)]


def test_every_option_of_a_single_job_is_told_with_a_file() -> None:
    flags = {option.flag for option in queue_enqueue.SPEC.options}

    assert flags - {each for each, _, _ in queue_enqueue._SINGLE} == {
        "--type",
        "--jsonl",
        "--config",
    }
