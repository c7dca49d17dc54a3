"""Go through maintenance steps: which are due, what became of each, what the run comes to.

It decides by structured outcomes alone, never by what a step has printed. What time it is, what
the guards say, and how a step is run, comes in from outside.
"""

from __future__ import annotations

from tachograph.domain import errors, outcome
from tachograph.domain.maintenance_plan import LONGEST_SECONDS, STEP
from tachograph.domain.outcome import STILL_AT_WORK
from tachograph.domain.roll_up import NAMED_DID_NOT_RUN, OK, RollUp, did_not_run, roll_up
from tachograph.domain.step_rules import Decision, StepFacts, cools_down, evaluate
from tachograph.orders import Bounds, Worked, status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.maintenance_plan import MaintenancePlan, MaintenanceStep
    from tachograph.domain.run import Run
    from tachograph.orders import Orders, Surroundings
    from tachograph.session import Session

    Steps = dict[str, dict[str, Any]]

DEADLINE_GRACE_SECONDS = 30.0
"""What a step that is at work when the time is up may take to stop by itself."""
MOST_TOGETHER = 200
"""Steps that were passed over, recorded together at most."""


class Maintenance:
    """One orchestrator run: goes through its steps. Without a session nothing is run or recorded.

    A run that was cut off goes on with the steps that have not done their work yet.
    """

    def __init__(
        self,
        around: Surroundings,
        plan: MaintenancePlan,
        tier: str,
        steps: Sequence[MaintenanceStep],
        orders: Orders,
        session: Session | None,
        *,
        seen: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        self.steps: Steps = {}
        """What became of each step, in order: status, summary, duration_us, runs, outcome,
        reason_code."""
        self.stopped: str | None = None
        """Name of the signal that ended it."""
        self._around = around
        self._plan = plan
        self._tier = tier
        self._chosen = list(steps)
        self._orders = orders
        self._session = session
        self._seen = seen
        """Told what became of each step, at once."""
        self._before: MaintenanceStep | None = None
        self._limited = 0
        self._ends: float | None = None
        self._deadline_us: int | None = None
        self._unrecorded: list[tuple[MaintenanceStep, dict[str, Any]]] = []

    def run(self, inherited_deadline_us: int | None = None) -> int:
        """Go through the steps, end the run, and return the exit code: 0, 1, 2 or 3."""
        self._set_deadline(inherited_deadline_us)
        if self._session is not None:
            self._take_up(self._session)
        for step in self._chosen:
            if self._is_done(step.name):
                continue
            self.stopped = self.stopped or self._around.interrupted()
            if self.stopped is not None:
                self._keep(step, self._not_begun())
            else:
                self._go(step)
        rolled = self._rolled()
        if self._session is not None:
            self._record()
            self._session.finish(
                rolled.outcome, reason=rolled.reason, reason_code=rolled.reason_code
            )
        return self._exit_code(rolled)

    # Before the first step.

    def _set_deadline(self, inherited_us: int | None) -> None:
        """Set when no further step is begun: by what was asked for, or by whoever started us."""
        now_us, limits = self._around.now_us(), []
        if self._orders.max_runtime_seconds is not None:
            limits.append(self._orders.max_runtime_seconds)
        if inherited_us is not None:
            limits.append((inherited_us - now_us) / 1_000_000)
        if limits:
            seconds = min(*limits, LONGEST_SECONDS)
            self._ends = self._around.monotonic() + seconds
            self._deadline_us = now_us + round(seconds * 1_000_000)

    def _take_up(self, session: Session) -> None:
        names = [step.name for step in self._chosen]
        # Whoever takes a run up knows less about it than whoever began it.
        known = (session.run.maintenance or {}).get("options") or {}
        said = {name: known[name] for name in ("job", "refused_id") if name in known}
        options, deadline_us = {**said, **self._orders.options()}, self._deadline_us
        if self._tier == STEP:
            options["tier"] = self._chosen[0].tier
        session.execute(
            lambda run, why: run.plan_maintenance(
                why, self._tier, names, options=options, deadline_us=deadline_us
            )
        )
        for name, step in session.run.maintenance_steps.items():
            if step["status"] == "ok" and name in names:
                self.steps[name] = step

    def _is_done(self, name: str) -> bool:
        return name in self.steps and self.steps[name]["status"] == "ok"

    # One step.

    def _go(self, step: MaintenanceStep) -> None:
        decision = self._decide(step)
        if decision.runs and cools_down(self._before, step):
            self._around.sleep(self._within(self._plan.cooldown_seconds))
            decision = self._decide(step)  # others may have run it meanwhile
        if decision.runs:
            decision = self._locked(step, None) or decision
        if not decision.runs or self._session is None:
            self._keep(step, _passed_over(decision))
            return
        self._record()
        started = self._session.execute(lambda run, why: _start(run, why, step.name))
        # Of two who start a step at once the log says who was first: the other one leaves it.
        decision = self._locked(step, started) or self._decide(step)
        if decision.runs:
            self._run(step)
        else:
            self._keep(step, _passed_over(decision))
        self._record()  # at once: others see us at the step until its end is recorded

    def _decide(self, step: MaintenanceStep) -> Decision:
        if self._around.interrupted() is not None:
            return Decision("deferred", "signal", "stopped", "the run was asked to stop")
        return evaluate(step, self._facts(step))

    def _facts(self, step: MaintenanceStep) -> StepFacts:
        known = self._around.standing(step.name, once=step.once)
        age_us = None if known.done_us is None else self._around.now_us() - known.done_us
        return StepFacts(
            deadline_reached=self._ends is not None and self._around.monotonic() >= self._ends,
            gate_open=self._around.gate_open(step),
            once_done=known.once_done,
            unmet=[name for name in step.depends_on if not self._was_done(name)],
            guard_age_us=age_us,
            force=self._orders.force,
            breaker_open=self._limited >= self._plan.rate_limit_max_retries,
            dry_run=self._orders.dry_run,
        )

    def _was_done(self, name: str) -> bool:
        """Say whether a step did its work: in this run, or ever."""
        return self._is_done(name) or self._around.standing(name, once=False).done_us is not None

    def _locked(self, step: MaintenanceStep, started: int | None) -> Decision | None:
        holder = self._around.holder(step.name, started)
        if holder is None:
            return None
        words = f"locked by a concurrent maintenance run ({holder})"
        return Decision("skipped_guard", "lock", "locked", words)

    def _run(self, step: MaintenanceStep) -> None:
        begun = self._around.monotonic()
        self._around.say(step.name, "start")
        try:
            worked = self._around.work(step, self._bounds(step))
        except errors.RunOwnedError as error:
            # Nobody will record what it comes to: the step is still to be done (G12).
            words = f"still at work from an attempt that was cut off. {error}"
            self._keep(step, _passed_over(Decision("deferred", "lock", STILL_AT_WORK, words)))
            return
        except errors.StoreError:
            raise  # nothing can be recorded: that is no fault of the step
        except Exception as error:  # noqa: BLE001  # whatever it is, the run goes on
            worked = Worked(outcome.FAILED, "not_run", f"{type(error).__name__}: {error}")
        took = self._around.monotonic() - begun
        self._around.say(step.name, f"complete in {round(took)}s")
        self._before = step
        status = status_of(worked.outcome, worked.reason_code)
        self._count(status)
        self._keep(
            step,
            {
                "status": status,
                "summary": worked.summary,
                "duration_us": round(took * 1_000_000),
                "runs": worked.runs,
                "outcome": worked.outcome,
                "reason_code": worked.reason_code,
            },
        )
        self.stopped = next(iter(worked.asked), None)

    def _bounds(self, step: MaintenanceStep) -> Bounds:
        own = step.timeout_seconds
        if self._ends is None:
            return Bounds(own, None, by_deadline=False)
        left = max(0.0, self._ends - self._around.monotonic()) + DEADLINE_GRACE_SECONDS
        if own is not None and own <= left:
            return Bounds(own, self._deadline_us, by_deadline=False)
        return Bounds(left, self._deadline_us, by_deadline=True)

    def _within(self, seconds: float) -> float:
        """Return a pause, no longer than the time that is left."""
        if self._ends is None:
            return seconds
        return max(0.0, min(seconds, self._ends - self._around.monotonic()))

    def _count(self, status: str) -> None:
        """Count rate limits in a row; a step that did well ends the row."""
        if status == "rate_limited":
            self._limited += 1
        elif status == "ok":
            self._limited = 0

    def _keep(self, step: MaintenanceStep, result: dict[str, Any]) -> None:
        """Record what became of a step; its guard only when it did its work.

        Steps that were passed over are recorded together, before the next one that is run: had
        the run been killed in between, they would be asked about anew.
        """
        self.steps.pop(step.name, None)
        self.steps[step.name] = result
        if self._seen is not None:
            self._seen(step.name, result)
        if self._session is None:
            return
        self._unrecorded.append((step, result))
        if len(self._unrecorded) >= MOST_TOGETHER:
            self._record()

    def _record(self) -> None:
        """Record what is not recorded yet, all or nothing."""
        if self._session is None or not self._unrecorded:
            return
        ended, self._unrecorded = self._unrecorded, []

        def record(run: Run, why: Cause) -> None:
            for step, result in ended:
                _end(run, why, step, result)

        self._session.execute(record)

    def _not_begun(self) -> dict[str, Any]:
        words = f"not begun: the run was stopped by {self.stopped}"
        return _passed_over(Decision("deferred", "signal", "stopped", words))

    # After the last step.

    def _rolled(self) -> RollUp:
        rolled = roll_up(self.steps)
        if self.stopped is None:
            return rolled
        by_person = self.stopped == "SIGINT"
        code = outcome.STOPPED_BY_PERSON if by_person else "interrupted"
        return RollUp(outcome.PARTIAL, code, f"stopped by {self.stopped}", rolled.exit_code)

    def _exit_code(self, rolled: RollUp) -> int:
        forced = self._orders.force and not self._orders.allow_skip
        if rolled.exit_code == OK and forced and did_not_run(self.steps, self._orders.named):
            return NAMED_DID_NOT_RUN
        return rolled.exit_code


def _start(run: Run, cause: Cause, step: str) -> int:
    run.start_maintenance_step(cause, step)
    return run.version


def _end(run: Run, cause: Cause, step: MaintenanceStep, result: Mapping[str, Any]) -> None:
    done = result["status"] == "ok"
    run.end_maintenance_step(
        cause,
        step.name,
        result["status"],
        result["summary"],
        duration_us=result["duration_us"],
        runs=result["runs"],
        result=result["outcome"],
        reason_code=result["reason_code"],
        guard=done,
        once=done and step.once,
    )


def _passed_over(decision: Decision) -> dict[str, Any]:
    return {
        "status": decision.status,
        "summary": decision.words,
        "duration_us": 0,
        "runs": [],
        "outcome": None,
        "reason_code": decision.code,
    }
