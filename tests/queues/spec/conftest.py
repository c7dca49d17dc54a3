"""Fixtures of the acceptance tests of queues: a clock by hand, a store with the two queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queue_bench import Clock, QueueBench, benches

from tachograph.healthkeeping import HealthKeeping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tachograph.health.caring import CareReport


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of everything in this process, also of what a clock since boot shows."""
    made = Clock(monkeypatch)
    monkeypatch.setattr("tachograph.infra.clock.boottime_us", lambda: made.now_us)
    return made


@pytest.fixture
def bench(store_environment: Path, clock: Clock) -> Iterator[QueueBench]:
    """A store with the queues memory and summary, which TACHO_STORE names."""
    yield from benches(store_environment, clock)


@pytest.fixture
def keeping(bench: QueueBench) -> HealthKeeping:
    """The health of that store."""
    return HealthKeeping(bench.services, bench.plans)


@pytest.fixture
def cycle(bench: QueueBench, clock: Clock) -> Callable[..., CareReport]:
    """Do a maintenance cycle, half an hour after what was before it."""

    def care(mode: str = "execute") -> CareReport:
        clock.pass_by(seconds=1800)
        return HealthKeeping(bench.services, bench.plans).care(mode)

    return care
