"""A store in memory whose artifact files are written to a folder. Holds no test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench import Workbench

from tachograph.catching_up import catch_up
from tachograph.infra.artifact_files import ArtifactFolder
from tachograph.laying_out import Layout
from tachograph.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tachograph.domain.run import Run

DAY_US = 86_400_000_000


class Treed(Workbench):
    """A workbench, and what writes the artifact files of its runs."""

    def __init__(self, root: Path, snapshot_every: int = 500) -> None:
        super().__init__(snapshot_every)
        self.now = 1_715_134_530_250_000
        self.seconds = 0.0
        self.root = root
        self.layout = self.writer(root)

    def tick(self) -> int:
        """Return one millisecond more than the last time."""
        self.now += 1_000
        return self.now

    def writer(self, root: Path) -> Layout:
        """Return another writer, as another process has one."""
        return Layout(
            self.repository, self.payloads, ArtifactFolder(str(root)), self.execute, self.timer
        )

    def catch_up(self, *, thorough: bool = False) -> list[tuple[str, str]]:
        """Bring the whole tree up to the log."""
        return catch_up(self.layout, self.now, thorough=thorough)

    def timer(self) -> float:
        """Return seconds that a test can let pass."""
        return self.seconds

    def execute(self, run_id: str, command: Callable[[Run, Any], None]) -> None:
        """Give a run a command, outside any attempt."""
        beat = self.presence.beat
        Session(self.repository, self.payloads, beat, self.actor, run_id, 0).execute(command)

    def session(self, run_id: str) -> Session:
        """Return a session of the present attempt of a run."""
        run = self.repository.get(run_id)
        epoch = 0 if run is None else run.epoch
        beat = self.presence.beat
        return Session(self.repository, self.payloads, beat, self.actor, run_id, epoch)

    def folder(self, run_id: str, segment: str = "job-runs-standalone") -> Path:
        """Return the folder of a run of today."""
        return self.root / "20240508" / segment / run_id

    def written(self, root: Path | None = None) -> dict[str, bytes]:
        """Return the content of every file by its name, our own marks and locks left out."""
        base = self.root if root is None else root
        return {
            path.relative_to(base).as_posix(): path.read_bytes()
            for path in sorted(base.rglob("*"))
            if path.is_file() and not path.name.startswith(".tachograph")
        }


def fill(bench: Treed) -> None:
    """Record runs that have come to every kind of end, and one that has come to none."""
    _success(bench)
    session = bench.start("distill", {"days": 1}, run_id="job-partial", parent="orch-1")
    session.start_phase("analyze")
    session.plan_batches("analyze", 4, 25, None)
    session.complete_batch("analyze", 0, inputs=25, parsed=24, output=[{"incidentIndex": 0}])
    session.execute(lambda run, why: run.schedule_retry(why, "transient", 1, model="m3"))
    session.execute(lambda run, why: run.take_fallback(why, "m3", "m2"))
    session.intend_effect("mail", description="to the team")
    session.finish("partial", reason="batch 1 failed: 503", reason_code="batch_failed")
    session = bench.start("distill", {"days": 2}, run_id="job-running", title="Two days")
    session.start_phase("analyze")
    session.save_checkpoint({"offset": 10, "total": 40, "migrated": 9, "skipped": 1}, kind="offset")
    session = bench.start("distill", {"days": 3}, run_id="job-cancelled")
    session.execute(lambda run, why: run.cancel(why, "not wanted"))


def _success(bench: Treed) -> None:
    policy = {"model": "m3", "fallbacks": ["m2"]}
    session = bench.start("self-correction-run", {"n": 1}, run_id="job-ok", model_policy=policy)
    session.start_phase("extract")
    session.end_phase("extract", summary="incidents=2")
    session.start_phase("analyze")
    session.plan_batches("analyze", 1, 2, None)
    session.complete_batch("analyze", 0, inputs=2, parsed=2, output=["a", "b"])
    session.end_phase("analyze")
    session.finish()
