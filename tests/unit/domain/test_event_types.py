"""Events are found by their topics, whatever kind they are of, and only as far as they are met."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tachograph.domain import event_types

LOADED = """
import sys
from tachograph.domain import event_types
event_types.is_ours({topic!r}), event_types.find({topic!r})
print(*sorted(name for name in sys.modules if name.endswith("events")))
"""


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("run.created", "tachograph.domain.events"),
        ("queue.job-died", "tachograph.domain.queue_events"),
        ("repair.ended", "tachograph.domain.repair_events"),
        ("billing.paid", ""),
    ],
)
def test_only_the_events_of_that_kind_are_loaded(topic: str, expected: str) -> None:
    """A command over a store without queues does not pay for them."""
    script = LOADED.format(topic=topic)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.stdout.strip() == expected, done.stderr


def test_a_topic_of_another_application_is_not_ours() -> None:
    assert not event_types.is_ours("billing.paid")
    assert event_types.find("billing.paid") is None


@pytest.mark.parametrize("prefix", event_types.PREFIXES)
def test_a_topic_of_tomorrow_is_ours_and_not_known(prefix: str) -> None:
    assert event_types.is_ours(f"{prefix}of-tomorrow")
    assert event_types.find(f"{prefix}of-tomorrow") is None


def test_all_types_come_by_kind() -> None:
    kinds = [topic.partition(".")[0] for topic in event_types.all_types()]

    assert list(dict.fromkeys(kinds)) == ["run", "queue", "repair"]
    assert kinds == sorted(kinds, key=["run", "queue", "repair"].index)
