"""Why a run needs a person: every reason has a text, and says whether a watchdog waits for it."""

from __future__ import annotations

import pytest

from tachograph.domain import attention

REASONS = sorted(
    value
    for name, value in vars(attention).items()
    if name.isupper() and isinstance(value, str) and name != "APPROVAL"
)


def test_every_reason_has_a_text() -> None:
    assert sorted(attention.TEXTS) == REASONS


def test_no_two_reasons_are_alike() -> None:
    assert len(set(REASONS)) == len(REASONS)
    assert len(set(attention.TEXTS.values())) == len(REASONS)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (attention.MAX_RETRIES, "max retries reached"),
        (attention.UNSAFE, "task marked unsafe to auto-retry"),
        (attention.NO_ADAPTER, "stale but no resume command or adapter configured"),
        (attention.RESUME_FAILED, "auto-resume failed and retries are exhausted"),
    ],
)
def test_the_texts_that_tools_know_stay(reason: str, text: str) -> None:
    assert attention.text(reason) == text


def test_an_approval_is_named() -> None:
    assert attention.text(attention.APPROVAL + "deploy") == "waits for approval of deploy"


def test_a_reason_of_a_jobs_own_is_its_text() -> None:
    assert attention.text("the disk is on fire") == "the disk is on fire"


@pytest.mark.parametrize(
    "reason",
    [
        attention.NOT_JUDGED,
        attention.NOT_STOPPED,
        attention.CARD_EDITED,
        attention.STATUS_UNKNOWN,
        attention.APPROVAL + "deploy",
    ],
)
def test_what_only_tells_something_holds_no_run(reason: str) -> None:
    assert not attention.holds(reason)
    assert not attention.is_word(reason)


@pytest.mark.parametrize("reason", [attention.ADAPTER_ASKS, "a reason of a job's own"])
def test_a_word_holds_a_run_where_no_plan_would(reason: str) -> None:
    assert attention.holds(reason)
    assert attention.is_word(reason)


@pytest.mark.parametrize(
    "reason",
    [
        *sorted(attention.RETRIED),
        *sorted(attention.OF_DEPENDENCIES),
        attention.EFFECTS_IN_DOUBT,
        attention.REJECTED,
        attention.WINDOW,
    ],
)
def test_what_a_plan_finds_out_is_no_mere_word(reason: str) -> None:
    assert attention.holds(reason)
    assert not attention.is_word(reason)
