"""Find out what a resume would do, and do nothing of it (G11)."""

from __future__ import annotations

from tachograph import depending
from tachograph.domain.errors import RunNotFoundError, TachographError
from tachograph.domain.liveness import GONE
from tachograph.domain.plan import GOOD, Findings, Plan
from tachograph.domain.recovery import Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tachograph.domain.liveness import Liveness
    from tachograph.domain.run import Run
    from tachograph.runs import RunRepository

    Locate = Callable[[str, Recovery], dict[str, Any]]
    """Returns what would be executed for a run (kind, name, argv, folder, code_path), or raises."""
    CheckFile = Callable[[list[str], str, str | None], str | None]
    """Runs a check of a file in a folder, and returns what is wrong with it, or None."""

MISSING = "is missing"
UNREADABLE = "cannot be read"


class Planner:
    """Makes plans of resumes."""

    def __init__(
        self,
        repository: RunRepository,
        liveness: Callable[[Run], Liveness],
        now_us: Callable[[], int],
        locate: Locate,
        check_file: CheckFile,
    ) -> None:
        self._repository = repository
        self._liveness = liveness
        self._now_us = now_us
        self._locate = locate
        self._check_file = check_file

    def plan(
        self, run_id: str, *, unattended: bool = False, timeout_seconds: float | None = None
    ) -> Plan:
        """Return what a resume would do now. Raises RunNotFoundError.

        `unattended` is for a watchdog, for which more stands in the way than for a person.
        `timeout_seconds` is how long the adapter may take, where not what the job declared.
        """
        run = self._as_resumed(self.load(run_id))
        return self.plan_of(run, unattended=unattended, timeout_seconds=timeout_seconds)

    def _as_resumed(self, run: Run) -> Run:
        """Return a run as a resume finds it: the return of a killed dispatcher's resume recorded.

        Nothing is recorded: that is done to a copy.
        """
        if run.dispatch is None or self.is_alive(run):
            return run
        from tachograph.domain.event import Cause

        found = type(run)()
        found.restore(run.to_snapshot())
        found.return_resume(Cause(self._now_us(), "plan", "", 0, 0), {})
        return found

    def load(self, run_id: str) -> Run:
        """Return a run as it is now. Raises RunNotFoundError."""
        run = self._repository.get(run_id)
        if run is None:
            raise RunNotFoundError(run_id, "")
        return run

    def plan_of(
        self, run: Run, *, unattended: bool = False, timeout_seconds: float | None = None
    ) -> Plan:
        """Return what a resume of a run would do, given as it is now."""
        return Plan(run, self._findings(run, timeout_seconds), unattended=unattended)

    def is_alive(self, run: Run) -> bool:
        """Say whether the current attempt is at work, or nobody can say that it is not.

        While its resume has not returned, whoever waits for that counts, even when the run said
        already how it ended.
        """
        return _is_somebodys(run) and self._liveness(run).state != GONE

    def waiting(self, run: Run) -> depending.Waiting:
        """Return the runs that a run waits for."""
        return depending.waiting(self._repository.get, run)

    def _findings(self, run: Run, timeout_seconds: float | None) -> Findings:
        if run.finished:
            return Findings(self._now_us())
        declared = Recovery.from_fields(run.recovery)
        if timeout_seconds is not None:
            declared = declared.changed(timeout_seconds=timeout_seconds)
        waiting = self.waiting(run)
        execute, problem = self._execute(run.id, declared)
        return Findings(
            self._now_us(),
            liveness=self._liveness(run) if _is_somebodys(run) else None,
            artifacts={
                name: self._artifact(each, declared) for name, each in run.artifacts.items()
            },
            traces=[_traced(trace) for trace in declared.traces],
            waiting_for=waiting.runs,
            never=waiting.never,
            cycle=waiting.cycle,
            execute=execute,
            problem=problem,
        )

    def _execute(self, run_id: str, declared: Recovery) -> tuple[dict[str, Any] | None, str | None]:
        if not declared.can_be_dispatched:
            return None, None
        try:
            return self._locate(run_id, declared), None
        except (TachographError, OSError) as error:
            return None, str(error)

    def _artifact(self, artifact: Mapping[str, Any], declared: Recovery) -> str:
        state = file_state(artifact["path"], artifact["size"], artifact["sha256"])
        if state == GOOD and declared.artifact_check is not None:
            wrong = self._check_file(
                declared.artifact_check, artifact["path"], declared.working_folder
            )
            if wrong is not None:
                return f"does not pass its check: {wrong}"
        return state


def _is_somebodys(run: Run) -> bool:
    return run.attempt_open or run.dispatch is not None


def file_state(path: str, size: int, sha256: str) -> str:
    """Say whether a file is as it was recorded: GOOD, or what is wrong with it."""
    from pathlib import Path

    from tachograph.measuring import measure

    try:
        if Path(path).stat().st_size != size:
            return f"has another size than the recorded {size} bytes"
        now = measure(Path(path))
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return f"{UNREADABLE}: {error.strerror}"
    return GOOD if now == (size, sha256) else "has another checksum than the recorded one"


def trace(path: str, what: str) -> dict[str, Any]:
    """Return a file as it is now, so that a plan can say later whether it has changed.

    Raises OSError when it cannot be read.
    """
    from pathlib import Path

    from tachograph.measuring import measure

    size, sha256 = measure(Path(path))
    return {"path": str(Path(path).absolute()), "size": size, "sha256": sha256, "what": what}


def _traced(trace: Mapping[str, Any]) -> dict[str, Any]:
    state = file_state(trace["path"], trace["size"], trace["sha256"])
    return {"path": trace["path"], "what": trace["what"], "state": state}
