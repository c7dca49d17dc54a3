"""Fixtures of what is promised on LMDB and in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bare_queues import BareQueues

from tachograph.domain.queue_settings import QueueSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Make = Callable[..., BareQueues]


@pytest.fixture(params=["lmdb", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes empty queues of each kind."""
    made: list[BareQueues] = []

    def build(*settings: QueueSettings) -> BareQueues:
        folder = tmp_path / f"log{len(made)}" if request.param == "lmdb" else None
        made.append(BareQueues(*settings, folder=folder))
        return made[-1]

    yield build
    for bench in made:
        bench.close()


@pytest.fixture
def bench(make: Make) -> BareQueues:
    """Queues with what holds where nothing is declared."""
    return make(QueueSettings("memory"), QueueSettings("summary"))
