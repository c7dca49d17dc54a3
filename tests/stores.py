"""Stores on disk for tests of what reads and keeps them. Holds no test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tachograph.bootstrap import open_store
from tachograph.domain.owner import Owner
from tachograph.session import Session
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tachograph.bootstrap import Services

LARGE = "large output " * 3000
"""More than stays in an event: it goes to the blobs."""


@contextmanager
def opened(path: Path | str, **options: Any) -> Iterator[Services]:
    """Open a store, made where there is none, for the length of a block."""
    services = open_store(str(path), create=True, actor="test", **options)
    try:
        yield services
    finally:
        services.close()


def record_run(
    services: Services,
    run_id: str = "job-1",
    *,
    batches: int = 3,
    output: Any = "text",
    outcome: str | None = "success",
) -> Session:
    """Record a run with a phase of batches; without an `outcome` its attempt stays open."""
    session = begin(services, run_id)
    session.start_phase("parse")
    session.plan_batches("parse", batches, 1, "digest")
    for index in range(batches):
        session.complete_batch("parse", index, inputs=1, parsed=1, output=output)
    if outcome is not None:
        session.end_phase("parse")
        session.finish(outcome)
    return session


def begin(services: Services, run_id: str = "job-1") -> Session:
    """Start a run that a process of another time owns: it is gone."""
    return services.starter.start(Start("report", {"n": 1}, run_id=run_id), gone())


def gone() -> Owner:
    """Return an owner of this machine that does not run any more."""
    import os

    from tachograph.infra.processes import describe

    owner = describe(os.getpid())
    assert owner.started is not None
    owner.started -= 1
    return owner


def make_store(path: Path, runs: int = 2, *, output: Any = LARGE) -> Path:
    """Make a store with some runs, and return its path."""
    with opened(path) as services:
        for number in range(runs):
            record_run(services, f"job-{number}", output=output)
    return path


class Seen(list[tuple[int, int | None]]):
    """A progress that keeps what it was told."""

    def __call__(self, done: int, total: int | None) -> None:
        """Keep it."""
        self.append((done, total))


def files(path: Path) -> dict[str, bytes]:
    """Return the content of every file of a store that is no lock and no view."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not file.name.endswith(("lock", "lock.mdb"))
        and file.relative_to(path).parts[0] != "views"
    }
