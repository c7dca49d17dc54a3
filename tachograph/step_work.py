"""Run one maintenance step, as a run of its own, and say what it came to.

Like bootstrap it knows both sides. The environment of this process is never changed: what the
orchestrator tells a step dies with it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.bootstrap import DEADLINE, ORCHESTRATOR_VARIABLES
from tachograph.continuing import record_worker, start_phase
from tachograph.domain import outcome
from tachograph.domain.errors import RefusalError, StoreError, TachographError
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import judge
from tachograph.domain.liveness import GONE
from tachograph.executing import PHASE, Expected, conclude, described
from tachograph.expecting import facts_of_files
from tachograph.infra.child import run_child
from tachograph.keeping import Heartbeat
from tachograph.nesting import NESTED_RUN, came_to, runs_within, worst_within
from tachograph.orders import Worked
from tachograph.starting import Start
from tachograph.step_calling import returned_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tachograph.bootstrap import Services
    from tachograph.domain.ended import Ended
    from tachograph.domain.maintenance_plan import MaintenanceStep
    from tachograph.domain.run import Run
    from tachograph.orders import Bounds
    from tachograph.session import Session

    Ending = tuple[str, str, str]

RETURNED = "returned"
"""Reason code of a step whose Python function has returned an outcome by its name."""
PULSE_SECONDS = 60.0
"""Time between the lines that say that a step is still at work."""
TAIL_BYTES = 16_384


class StepWork:
    """One step that is run; `say` is told what it is doing."""

    def __init__(
        self,
        services: Services,
        session: Session,
        step: MaintenanceStep,
        bounds: Bounds,
        say: Callable[[str, str], None],
    ) -> None:
        self._services = services
        self._orchestrator = session
        self._step = step
        self._bounds = bounds
        self._say = say
        self._argv = argv_of(step)
        self._after = services.log.head().position

    def run(self) -> Worked:
        """Run it to its end. Raises RunOwnedError when it is still at work from before."""
        with contextlib.ExitStack() as back:
            folder = self._step.working_folder
            if folder is not None:
                try:
                    back.enter_context(contextlib.chdir(folder))
                except OSError as error:
                    words = f"its working folder {folder} cannot be used: {error.strerror}"
                    return Worked(outcome.FAILED, "not_run", words)
            return self._in_its_folder()

    def _in_its_folder(self) -> Worked:
        own = self._orchestrator.run_id
        session = self._services.starter.start(
            Start(
                self._step.name,
                {"argv": self._argv, "orchestrator": own},
                title=f"Maintenance step {self._step.name}",
                parent=own,
            ),
            self._services.owner(),
        )
        try:
            return self._carried_out(session)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, only this step has failed
            return self._broke(session, f"{type(error).__name__}: {error}")

    def _carried_out(self, session: Session) -> Worked:
        start_phase(session, PHASE)
        if self._step.expect_output:
            session.expect(Expectations(), files=self._step.expect_output)
        try:
            ended = self._run_child(session)
        except OSError as error:
            return self._broke(session, f"{self._argv[0]} cannot be run: {error.strerror}")
        inner = runs_within(self._services.repository, self._orchestrator.run_id, self._after)
        inner = [run for run in inner if run.id != session.run_id]
        said = self._said(session, ended, inner)
        expected = Expected(session.reload(), self._step.expect_output)
        try:
            missing = conclude(session, ended, expected, said=said).missing
        except RefusalError as refusal:
            return self._refused(session, refusal)
        return self._worked(session.reload(), inner, ended, missing)

    def _broke(self, session: Session, reason: str) -> Worked:
        """End the run of a step that could not be run."""
        with contextlib.suppress(TachographError):
            session.finish(outcome.FAILED, reason=reason, reason_code="not_run")
        return Worked(outcome.FAILED, "not_run", reason, runs=[session.run_id])

    def _run_child(self, session: Session) -> Ended:
        sys.stdout.flush()
        with contextlib.ExitStack() as until_it_ended:
            return run_child(
                self._argv,
                self._variables(session),
                tail_bytes=TAIL_BYTES,
                timeout_seconds=self._bounds.seconds,
                on_started=lambda pid: self._begin(session, pid, until_it_ended),
            )

    def _begin(self, session: Session, pid: int, until_it_ended: contextlib.ExitStack) -> None:
        """Record who does the work, and show signs of life from now on."""
        record_worker(session, self._services.owner, pid)
        begun = time.monotonic()

        def beat() -> None:
            session.beat()
            self._orchestrator.beat()

        def pulse() -> None:
            self._say(self._step.name, f"still running after {round(time.monotonic() - begun)}s")

        # Not earlier: the child is forked while there is no other thread.
        for work, seconds in (
            (beat, self._services.settings.heartbeat_seconds),
            (pulse, PULSE_SECONDS),
        ):
            thread = Heartbeat(work, seconds)
            thread.start()
            until_it_ended.callback(thread.stop)

    def _variables(self, session: Session) -> dict[str, str]:
        """Return the environment of the step: by it its runs know whose part they are."""
        own = self._orchestrator.run_id
        found = {**os.environ, **self._step.environment}
        found.pop("HM_SUMMARY", None)  # a step that is an orchestrator would write over ours
        found.update(
            TACHO_STORE=self._services.folder,
            TACHO_RUN_ID=session.run_id,
            TACHO_EPOCH=str(session.epoch),
            HM_ORCHESTRATOR_RUN_ID=own,
        )
        if found.get(ORCHESTRATOR_VARIABLES[0], "").strip():  # it would win
            found[ORCHESTRATOR_VARIABLES[0]] = own
        if self._bounds.deadline_us is not None:
            found[DEADLINE] = str(self._bounds.deadline_us // 1_000)
        return found

    # What came of it.

    def _said(self, session: Session, ended: Ended, inner: list[Run]) -> Ending | None:
        """Return what the step's own run came to, by better signs than its exit code.

        None leaves it to the exit code, and to the files that were expected.
        """
        if ended.timed_out:
            return self._timed_out(ended)
        if ended.asked or ended.exit_code is None:
            return None
        run, returned = session.reload(), self._returned(session)
        if ended.exit_code == 0 and _is_to_be_judged(run):
            return returned if returned is not None and _is_worse(returned, session) else None
        # Where it ended as our own commands do after such a verdict, there is nothing more to it.
        for how, code, reason in self._signs(run, returned, inner):
            if outcome.traits(how, code).exit_code == ended.exit_code:
                return how, reason, code or NESTED_RUN
        how, exit_reason = outcome.for_exit_code(ended.exit_code)
        return how, described(ended), exit_reason

    def _returned(self, session: Session) -> Ending | None:
        """Return the outcome that the step's Python function returned, None when it named none."""
        run = session.run
        version = run.steps.get(returned_key(session.epoch))
        if version is None:
            return None
        how = str(session.recorded_result(version))
        return (how, f"it returned {how!r}", RETURNED) if outcome.is_outcome(how) else None

    def _signs(
        self, run: Run, returned: Ending | None, inner: list[Run]
    ) -> Iterator[tuple[str, str | None, str]]:
        """Yield outcome, reason code and reason of what says more than an exit code."""
        if run.verdict is not None:
            yield run.verdict["outcome"], run.verdict["reason_code"], run.verdict["reason"]
        for said in (returned, worst_within(inner, self._is_at_work)):
            if said is not None:
                yield said[0], said[2], said[1]

    def _refused(self, session: Session, refusal: RefusalError) -> Worked:
        """Return what a step came to that cannot end as it did, with an effect in doubt for one."""
        with contextlib.suppress(RefusalError):  # another attempt may own it by now
            session.finish(outcome.FAILED, reason=str(refusal), reason_code="refused")
        return Worked(outcome.FAILED, "refused", str(refusal), runs=[session.run_id])

    def _timed_out(self, ended: Ended) -> Ending | None:
        if not self._bounds.by_deadline:
            return None  # its own time limit: that is a failure
        words = f"stopped at the deadline of the run, {described(ended)}"
        return outcome.PARTIAL, words, outcome.STOPPED_BEFORE_OUTPUT

    def _worked(
        self, own: Run, inner: list[Run], ended: Ended, missing: Mapping[str, str]
    ) -> Worked:
        """Return the step's outcome: the worst of its runs, its own included."""
        runs = sorted(
            [*inner, own], key=lambda run: outcome.severity(*self._came_to(run)[:2]), reverse=True
        )
        how, code, reason = self._came_to(runs[0])
        if runs[0].id != own.id:
            reason = f"run {runs[0].id}: {reason}"
        elif missing and outcome.traits(how, code).fails_step:
            reason += f" ({'; '.join(f'{path}: {what}' for path, what in missing.items())})"
        words = " ".join(reason.split())  # a step has one line in every list
        return Worked(how, code, words, runs=[run.id for run in runs], asked=ended.asked)

    def _came_to(self, run: Run) -> tuple[str, str | None, str]:
        return came_to(run, self._is_at_work)

    def _is_at_work(self, run: Run) -> bool:
        return self._services.liveness(run).state != GONE


def argv_of(step: MaintenanceStep) -> list[str]:
    """Return the words that run a step."""
    if step.command is not None:
        return [str(Path(step.command[0]).expanduser()), *step.command[1:]]
    # -P: a file of the step's folder stands in for no module of ours.
    return [sys.executable, "-P", "-m", "tachograph.step_main", str(step.job)]


def _is_worse(said: Ending, session: Session) -> bool:
    """Say whether a step says worse of itself than the gate will (G12: it cannot say better)."""
    run = session.run
    if run.verdict is not None:
        judged = run.verdict["outcome"], run.verdict["reason_code"]
    else:
        seen = facts_of_files(run.expectations).over(run.stated_facts()).over(run.counted_facts())
        judgement = judge(seen, session.policy())
        judged = judgement.outcome, judgement.reason_code
    return outcome.severity(said[0], said[2]) > outcome.severity(*judged)


def _is_to_be_judged(run: Run) -> bool:
    """Say whether a step has left more than its exit code: files to look at, or counts."""
    if run.verdict is not None or Expectations.from_fields(run.expectations).files:
        return True
    return judge(run.counted_facts()).reason_code != outcome.NOT_JUDGED
