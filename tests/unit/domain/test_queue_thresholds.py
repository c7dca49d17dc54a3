"""Thresholds of queues: the general ones, and those that a queue has for itself."""

from __future__ import annotations

import pytest

from tachograph.domain.queue_thresholds import HealthThresholds, QueueThresholds


def test_a_queue_without_its_own_has_the_general_ones() -> None:
    own = QueueThresholds(dead_warn=5)
    thresholds = HealthThresholds(QueueThresholds(dead_warn=9), {"summary": own})

    assert thresholds.of("summary") is own
    assert thresholds.of("memory").dead_warn == 9


def test_the_names_in_a_report_are_flat_and_there_for_every_queue() -> None:
    """The original had the age of dead jobs for one queue only, and showed what it did not use."""
    assert HealthThresholds().as_document(["summary", "letters"]) == {
        "summaryDeadWarn": 50,
        "summaryDeadFail": 500,
        "summaryOldestPendingWarnSec": 300,
        "summaryOldestPendingFailSec": 1800,
        "summaryOldestDeadWarnSec": 86_400,
        "lettersDeadWarn": 50,
        "lettersDeadFail": 500,
        "lettersOldestPendingWarnSec": 300,
        "lettersOldestPendingFailSec": 1800,
        "lettersOldestDeadWarnSec": 86_400,
    }


def test_a_copy_can_have_other_values() -> None:
    general = QueueThresholds(dead_fail=9)

    assert general.changed(dead_warn=3) == QueueThresholds(dead_warn=3, dead_fail=9)
    assert general == QueueThresholds(dead_fail=9)
    with pytest.raises(TypeError):
        general.changed(colour=1)
