"""Whether the archive of a finished run still holds all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from workbench import Workbench

from tachograph import retiring
from tachograph.domain.events import EVENT_TYPES
from tachograph.retiring import standing_archive

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[[Any, Any], Any]

ARCHIVED = ("archives/job-1.tar.zst", "ab" * 32)
REMARKS: dict[str, Command] = {
    "note": lambda run, why: run.add_note(why, "looked at"),
    "card": lambda run, why: run.change_card(why, {"title": "other"}),
    "attention": lambda run, why: run.raise_attention(why, "stalled"),
}


@pytest.fixture
def bench() -> Workbench:
    made = Workbench()
    session = made.start(run_id="job-1")
    session.finish("failed", reason="boom", reason_code="exit_code")
    session.execute(lambda run, why: run.archive(why, *ARCHIVED))
    return made


@pytest.mark.parametrize("remark", REMARKS)
def test_what_is_said_of_a_run_later_lets_its_archive_stand(bench: Workbench, remark: str) -> None:
    bench.start(run_id="job-2").execute(REMARKS[remark])
    assert standing_archive(bench.repository, "job-2") is None
    session = bench.start(run_id="job-1")
    assert standing_archive(bench.repository, "job-1") is None, "it goes on"
    session.finish("failed", reason="boom", reason_code="exit_code")
    session.execute(lambda run, why: run.archive(why, *ARCHIVED))
    session.execute(REMARKS[remark])

    assert standing_archive(bench.repository, "job-1") == ARCHIVED


def test_an_archive_of_all_stands(bench: Workbench) -> None:
    assert standing_archive(bench.repository, "job-1") == ARCHIVED


def test_every_remark_is_an_event_that_there_is() -> None:
    assert EVENT_TYPES.keys() >= retiring._REMARKS
