"""Queues, health and repair in tachograph.toml: what they become, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, get_args

import pytest

from tachograph import queue_plans
from tachograph.domain import repair_policy
from tachograph.domain.errors import ProjectFileError, ProjectFileNotFoundError
from tachograph.domain.queue_settings import Backoff, JobType, QueuePlan, QueueSettings, Rate
from tachograph.domain.queue_thresholds import HealthThresholds, QueueThresholds
from tachograph.domain.repair_policy import ActionLimits, RepairPolicy
from tachograph.infra import project_file, repair_models
from tachograph.infra.project_file import parse
from tachograph.queue_plans import QueuePlans, plan_in

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000
DAY = 86_400 * SECOND

WHOLE = """
[queues.mail]
max_attempts = 5
lease = "2m"
poll = "500ms"
concurrency = 4
per_key = 2
rate = "100/1m"
backoff = { base = "2s", cap = "1m", jitter = 0 }
keep_completed = "1d"
keep_dead = "7d"

[queues.mail.types.send]
model = "mail.models:Message"
handler = "mail.work:send"
timeout = "10m"
max_attempts = 2

[queues.mail.types.pack]
command = ["tar", "-c"]

[queues.plain]

[health]
dead_warn = 5
oldest_pending_fail = "90.5s"
oldest_pending_warn = "30s"

[health.queues.plain]
dead_warn = 7

[repair]
enabled = false
frozen = true
mode = "observe"
interval = "1h"
halt_after = 2

[repair.actions.requeueDeadJobs]
cooldown = "2m"

[repair.actions.checkViewConsistency]
hourly_budget = 9
"""


def said(text: str) -> Any:
    return parse("/srv/project/tachograph.toml", text.encode())


def test_queues_become_plain_objects() -> None:
    plan = said(WHOLE).queues

    assert list(plan.queues) == ["mail", "plain"]
    assert plan.get("plain") == QueueSettings("plain")
    assert plan.get("mail") == QueueSettings(
        "mail",
        max_attempts=5,
        lease_seconds=120,
        poll_seconds=0.5,
        concurrency=4,
        per_key=2,
        rate=Rate(100, 60 * SECOND),
        backoff=Backoff(2 * SECOND, 60 * SECOND, 0),
        completed_kept_us=DAY,
        dead_kept_us=7 * DAY,
        types={
            "send": JobType(
                "send",
                model="mail.models:Message",
                handler="mail.work:send",
                timeout_seconds=600,
                max_attempts=2,
            ),
            "pack": JobType("pack", command=["tar", "-c"]),
        },
    )


def test_health_becomes_thresholds_of_all_queues_and_of_single_ones() -> None:
    health = said(WHOLE).health

    general = QueueThresholds(
        dead_warn=5, oldest_pending_warn_seconds=30, oldest_pending_fail_seconds=90.5
    )
    assert health == HealthThresholds(general, {"plain": general.changed(dead_warn=7)})
    assert isinstance(health.general.oldest_pending_warn_seconds, int)


def test_repair_becomes_a_policy() -> None:
    assert said(WHOLE).repair == RepairPolicy(
        enabled=False,
        frozen=True,
        mode="observe",
        interval_us=3_600 * SECOND,
        limits={
            "requeueDeadJobs": ActionLimits(120 * SECOND, 50),
            "checkViewConsistency": ActionLimits(300 * SECOND, 9),
        },
        halt_after=2,
    )


def test_a_file_that_says_nothing_leaves_the_defaults() -> None:
    found = said("")

    assert found.queues == QueuePlan()
    assert list(found.queues.queues) == ["memory", "summary"]
    assert (found.health, found.repair) == (HealthThresholds(), RepairPolicy())


def test_declared_queues_stand_in_for_the_default_ones() -> None:
    assert list(said("[queues.mail]").queues.queues) == ["mail"]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10/s", Rate(10, SECOND)),
        ("5/h", Rate(5, 3_600 * SECOND)),
        ("1 / 2m30s", Rate(1, 150 * SECOND)),
        ("3/day", Rate(3, DAY)),
    ],
)
def test_rates(text: str, rate: Rate) -> None:
    assert said(f'[queues.q]\nrate = "{text}"').queues.get("q").rate == rate


@pytest.mark.parametrize("span", ["10s", "1d"])
def test_the_bounds_of_a_lease_are_allowed(span: str) -> None:
    assert said(f'[queues.q]\nlease = "{span}"').queues.get("q").lease_seconds in (10, 86_400)


QUEUE = "[queues.q]\n"
TYPE = "[queues.q.types.t]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[queues."a b"]', "queues.a b: 'a b' is no name: begin with a letter or digit;"),
        (f"[queues.{'a' * 61}]", "at most 60"),
        ("[queues]\nq = 3", "queues.q: Input should be a valid dictionary"),
        (QUEUE + "max_attempt = 3", "queues.q.max_attempt: there is no 'max_attempt'. Did you me"),
        ("[queues.rate]\nlese = 1", "queues.rate.lese: there is no 'lese'. Did you mean 'lease'?"),
        (QUEUE + "max_attempts = 0", "queues.q.max_attempts: Input should be greater than or equ"),
        (QUEUE + "max_attempts = 1001", "queues.q.max_attempts: Input should be less than or equ"),
        (QUEUE + 'max_attempts = "3"', "queues.q.max_attempts: Input should be a valid integer"),
        (QUEUE + 'lease = "9s"', "queues.q.lease: give a time from 10s to 1d"),
        (QUEUE + 'lease = "25h"', "queues.q.lease: give a time from 10s to 1d"),
        (QUEUE + 'lease = "soon"', "queues.q.lease: 'soon' is no length of time"),
        (QUEUE + 'poll = "99ms"', "queues.q.poll: give a time from 100ms to 60s"),
        (QUEUE + "concurrency = 0", "queues.q.concurrency: Input should be greater than"),
        (QUEUE + "per_key = 0", "queues.q.per_key: Input should be greater than"),
        (QUEUE + "rate = 5", "queues.q.rate: 5 is no rate such as"),
        (QUEUE + 'rate = "5"', "queues.q.rate: '5' is no rate such as"),
        (QUEUE + 'rate = "-1/s"', "queues.q.rate: '-1/s' is no rate such as"),
        (QUEUE + 'rate = "0/s"', "queues.q.rate: its number has to be from 1 to 1000000"),
        (QUEUE + 'rate = "5/q"', "queues.q.rate: 'q' is no length of time such as \"1m\""),
        (QUEUE + 'rate = "5/0s"', "queues.q.rate: its time has to be from 1ms to 31d"),
        (QUEUE + 'rate = "5/32d"', "queues.q.rate: its time has to be from 1ms to 31d"),
        (QUEUE + 'backoff = { base = "31s" }', "queues.q.backoff: its cap is less than its base"),
        (QUEUE + 'backoff = { base = "0s" }', "queues.q.backoff.base: Input should be greater"),
        (QUEUE + "backoff = { bass = 1 }", "queues.q.backoff.bass: there is no 'bass'. Did you m"),
        (QUEUE + 'keep_dead = "0s"', "queues.q.keep_dead: Input should be greater than 0"),
        (TYPE + 'model = "m"', "queues.q.types.t.model: 'm' names no code: write module:name"),
        (TYPE + 'handler = "a b:c"', "queues.q.types.t.handler: 'a b:c' names no code"),
        (TYPE + 'handler = "a:b"\ncommand = ["x"]', "queues.q.types.t: give either a handler or"),
        (TYPE + 'command = "x y"', "queues.q.types.t.command: Input should be a valid list"),
        (TYPE + 'timeout = "0s"', "queues.q.types.t.timeout: Input should be greater than 0"),
        (TYPE + "max_attempts = 4", "queues.q: types.t.max_attempts is 4, but its queue allows 3"),
        (TYPE + "modell = 1", "queues.q.types.t.modell: there is no 'modell'. Did you mean 'mode"),
        ("[health]\ndead_warn = 500", "health: dead_fail (500) has to be more than dead_warn (50"),
        ("[health]\ndead_warn = -1", "health.dead_warn: Input should be greater than or equal"),
        (
            '[health.queues.memory]\noldest_pending_fail = "5m"',
            "health: queues.memory.oldest_pending_fail (300s) has to be longer than",
        ),
        ("[health.queues.memry]", "health.queues: 'memry' is no queue. Did you mean 'memory'?"),
        (QUEUE + "[health.queues.memory]", "health.queues: 'memory' is no queue."),
        ("[health.queues.memory]\nded_warn = 1", "health.queues.memory.ded_warn: there is no"),
        ('[repair]\nmode = "off"', "repair.mode: Input should be 'execute' or 'observe'"),
        ('[repair]\ninterval = "59s"', "repair.interval: give a time from 60s to 24h"),
        ('[repair]\ninterval = "25h"', "repair.interval: give a time from 60s to 24h"),
        ('[repair]\nenabled = "no"', "repair.enabled: Input should be a valid boolean"),
        ("[repair]\nhalt_after = 0", "repair.halt_after: Input should be greater than"),
        (
            "[repair.actions.requeue]",
            "repair.actions.requeue: there is no action 'requeue'. Did you mean 'requeueDeadJobs'",
        ),
        (
            '[repair.actions.requeueDeadJobs]\ncooldown = "1s"',
            "repair.actions.requeueDeadJobs.cooldown: give a time from 5s to 1d",
        ),
        (
            "[repair.actions.requeueDeadJobs]\nhourly_budget = 0",
            "repair.actions.requeueDeadJobs.hourly_budget: Input should be greater than",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ProjectFileError) as caught:
        said(text)

    assert words in str(caught.value)
    assert str(caught.value).startswith("/srv/project/tachograph.toml: ")


def test_editors_get_a_schema_in_which_a_rate_is_a_text() -> None:
    queue = project_file.json_schema()["$defs"]["QueueModel"]["properties"]

    assert {"type": "string"} in queue["rate"]["anyOf"]


def test_the_modes_of_a_file_are_those_of_the_domain() -> None:
    assert get_args(repair_models.Mode) == repair_policy.MODES


# The plans of a store, and what is kept of them.


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "store" / "views").mkdir(parents=True)
    path = tmp_path / "tachograph.toml"
    path.write_text(WHOLE)
    monkeypatch.chdir(tmp_path)
    return path


def without_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: str, _content: bytes | None) -> QueuePlans:
        raise AssertionError("it was parsed again")

    monkeypatch.setattr(queue_plans, "_parsed", refuse)


def test_what_was_parsed_is_kept_as_it_was(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(project.parent / "store")
    first = plan_in(store)
    without_parsing(monkeypatch)
    again = plan_in(store)

    assert again == first == QueuePlans(*_parts(WHOLE), str(project))
    assert again.folder == str(project.parent)


def _parts(text: str) -> tuple[QueuePlan, HealthThresholds, RepairPolicy]:
    found = said(text)
    return found.queues, found.health, found.repair


def test_a_changed_file_counts_at_once_whatever_its_time_says(project: Path) -> None:
    store = str(project.parent / "store")
    before = project.stat()
    plan_in(store)
    project.write_text(WHOLE.replace("max_attempts = 5", "max_attempts = 6"))
    os.utime(project, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert plan_in(store).plan.get("mail").max_attempts == 6


@pytest.mark.parametrize("rubbish", [b"", b"\xc1", b"\x93\x01\x02\x03"])
def test_a_damaged_cache_counts_for_nothing(project: Path, rubbish: bytes) -> None:
    store = project.parent / "store"
    plan_in(str(store))
    (store / "views" / "queues.cache").write_bytes(rubbish)

    assert plan_in(str(store)) == QueuePlans(*_parts(WHOLE), str(project))


@pytest.mark.parametrize("kept", [{"": "Nobody"}, {"": 3}, {"": "Rate", "x": 1}, 7, None])
def test_what_another_release_has_kept_counts_for_nothing(kept: object) -> None:
    assert queue_plans._known(kept) is None


def test_a_broken_file_is_told_each_time(project: Path) -> None:
    project.write_text("[queues.q]\nlease = 1")
    for _ in range(2):
        with pytest.raises(ProjectFileError, match=r"queues\.q\.lease: give a time"):
            plan_in(str(project.parent / "store"))


def test_a_file_that_cannot_be_read_is_told(project: Path) -> None:
    project.unlink()
    os.mkfifo(project)  # no regular file: it is not taken for the project's
    other = project.parent / "large.toml"
    with other.open("wb") as file:
        file.truncate((16 << 20) + 1)

    assert plan_in(str(project.parent / "store")) == QueuePlans()
    with pytest.raises(ProjectFileError, match="it cannot be read: it is larger than"):
        plan_in(None, str(other))


def test_without_a_file_the_defaults_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = plan_in(str(tmp_path / "store"))

    assert found == QueuePlans()
    assert found.folder == str(tmp_path)


def test_one_that_is_named_has_to_be_there(project: Path) -> None:
    with pytest.raises(ProjectFileNotFoundError):
        plan_in(None, "other.toml")


def test_a_folder_that_is_gone_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert plan_in(str(tmp_path / "store")) == QueuePlans()
