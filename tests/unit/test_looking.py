"""Questions about runs are answered in any store that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from stores import begin, opened, record_run

from tachograph import looking
from tachograph.domain.errors import RunNotFoundError, StoreReadOnlyError
from tachograph.domain.records import NewRecord
from tachograph.infra.lmdb_views import LMDBViews
from tachograph.portions import ProjectionStoppedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.bootstrap import Services


@pytest.fixture
def services(store_path: Path) -> Iterator[Services]:
    """A store with a run that has lost its process."""
    with opened(store_path) as services:
        begin(services).start_phase("parse")
        yield services


def test_a_run_is_judged_when_it_is_looked_at(services: Services) -> None:
    assert looking.summary_of(services, "job-1")["status"] == "interrupted"


def test_a_run_is_found_by_the_beginning_of_its_id(services: Services) -> None:
    assert looking.find_run(services, "job-1") == "job-1"
    assert looking.find_run(services, "jo") == "job-1"
    with pytest.raises(RunNotFoundError):
        looking.find_run(services, "")


def test_views_that_cannot_be_written_are_made_in_memory(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise StoreReadOnlyError("here", "read-only file system")

    monkeypatch.setattr(LMDBViews, "read", refuse)

    assert looking.summary_of(services, "job-1")["status"] == "interrupted"


def test_an_answer_comes_with_a_warning_where_a_view_cannot_go_on(services: Services) -> None:
    services.log.append([NewRecord("new", 1, "run.invented", 0, b"\x80")])
    record_run(services, "job-2")
    stopped: list[ProjectionStoppedError] = []
    found = looking.summary_of(services, "job-1", report=stopped.append)

    assert found["status"] == "interrupted"
    assert stopped
    with pytest.raises(ProjectionStoppedError):
        looking.summary_of(services, "job-1")
