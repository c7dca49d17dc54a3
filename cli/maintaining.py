"""The work of `tacho maintenance cycle|nightly|full|step`: choose the steps, go through them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.bootstrap import deadline_us, joined, refused_id
from tachograph.cli.artifact_following import at_end
from tachograph.cli.opening import open_store
from tachograph.cli.options import UsageError
from tachograph.cli.projects import project
from tachograph.domain.errors import StoreNotFoundError
from tachograph.domain.maintenance_plan import STEP
from tachograph.domain.orchestrator_summary import orchestrator_summary, step_lines
from tachograph.domain.recovery import Recovery
from tachograph.domain.roll_up import roll_up
from tachograph.infra import clock
from tachograph.maintenance_runs import digest_of, summary_json
from tachograph.orchestra import COMMAND, Orchestra, Stopping, identity
from tachograph.orchestrating import Maintenance
from tachograph.orders import Orders
from tachograph.starting import Start
from tachograph.summing_up import summary_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.maintenance_plan import MaintenancePlan, MaintenanceStep
    from tachograph.session import Session

STEP_SECONDS = 240.0
"""What `maintenance step` takes at most, unless it is told: supervisors often wait 300 s."""
MOST_MINUTES = 366 * 24 * 60


def maintain(tier: str, params: Params, out: Output, name: str | None = None) -> int:
    """Run the maintenance of a tier, or one step alone, and return the exit code."""
    declared = project(params, out)
    plan = declared.maintenance
    orders = _orders(params, plan, name)
    if name is None:
        chosen = plan.chosen(tier, include=orders.named, exclude=orders.exclude)
    else:
        chosen = [plan.step(name)]
    if not chosen and orders.exclude and plan.chosen(tier, include=orders.named):
        out.note("tacho: every step that there is to choose from is excluded.")
    elif not chosen:
        out.note(f"tacho: {declared.path} declares no step to choose from here.")
    refused = refused_id()
    if refused is not None:
        out.warn(
            f"tacho: {refused[0]} is {refused[1]!r}, which can be no id of a run: this run is part "
            "of none, and gets an id of its own."
        )
    if orders.dry_run:
        return _Call(params, out, plan, tier, chosen, orders).rehearse()
    with _stdout_for_data(out), Stopping() as stopping:
        call = _Call(params, out, plan, tier, chosen, orders)
        code = call.carry_out(declared.path, stopping)
    call.tell()
    return code


def names(texts: Sequence[str]) -> list[str]:
    """Return the names of lists with commas.

    >>> names(["prune, distill,", "reflect"])
    ['prune', 'distill', 'reflect']
    """
    return [each.strip() for text in texts for each in text.split(",") if each.strip()]


class _Call:
    """One call of the command."""

    def __init__(
        self,
        params: Params,
        out: Output,
        plan: MaintenancePlan,
        tier: str,
        chosen: Sequence[MaintenanceStep],
        orders: Orders,
    ) -> None:
        self._params = params
        self._out = out
        self._plan = plan
        self._tier = tier
        self._chosen = list(chosen)
        self._orders = orders
        self._redacted: Callable[[Any], Any] = lambda steps: steps
        """Takes out what the steps say of secrets (G13); a rehearsal runs none."""
        self._summary: dict[str, Any] = {}
        self._lines: list[str] = []

    def carry_out(self, config: str, stopping: Stopping) -> int:
        """Run the steps as an orchestrator run."""
        services = open_store(self._out, create=True)
        services.hide_secrets_of([step.environment for step in self._plan.steps])
        self._redacted = services.payloads.redacted
        session = self._session(services, config)
        self._out.note(f"tacho: run {session.run_id}, attempt {session.epoch}")
        around = Orchestra(services, session, stopping, self._out.note)
        maintenance = self._maintenance(around, session)
        code = maintenance.run(deadline_us())
        self._lines = step_lines(summary_steps(self._redacted(maintenance.steps)))
        run = session.reload()
        self._summary = summary_json(run, digest_of(services.repository, run))
        _write(self._params.summary_out or os.environ.get("HM_SUMMARY"), self._summary, self._out)
        nested = [run_id for step in maintenance.steps.values() for run_id in step["runs"]]
        at_end(services, [*nested, session.run_id], self._out)
        if maintenance.stopped is not None:
            return 128 + int(signal.Signals[maintenance.stopped])
        return code

    def rehearse(self) -> int:
        """Say what would be run. Nothing is recorded, in no case."""
        around = Orchestra(existing(self._out), None, Stopping(), self._out.note)
        maintenance = self._maintenance(around, None)
        begun = clock.now_us()
        code = maintenance.run(deadline_us())
        steps = summary_steps(maintenance.steps)
        self._lines = step_lines(steps)
        self._summary = orchestrator_summary(
            "dry-run",
            self._chosen[0].tier if self._tier == STEP else self._tier,
            started_us=begun,
            finished_us=clock.now_us(),
            exit_code=roll_up(maintenance.steps).exit_code,
            steps=steps,
            job=self._orders.said.get("job"),
        )
        # Not where HM_SUMMARY names it: a harness would take it for a run that went well.
        _write(self._params.summary_out, self._summary, self._out)
        self.tell()
        return code

    def tell(self) -> None:
        """Print what came of it."""
        if self._out.json:
            self._out.document(self._summary)
            return
        self._out.line(self._summary["summaryLine"])
        for line in self._lines:
            self._out.line(line)

    def _maintenance(self, around: Orchestra, session: Session | None) -> Maintenance:
        return Maintenance(
            around,
            self._plan,
            self._tier,
            self._chosen,
            self._orders,
            session,
            seen=self._show if self._params.verbose else None,
        )

    def _show(self, name: str, step: dict[str, Any]) -> None:
        for line in step_lines(summary_steps(self._redacted({name: step}))):
            self._out.note(line)

    def _session(self, services: Services, config: str) -> Session:
        inputs = {"tier": self._tier}
        label = self._tier
        if self._tier == STEP:
            inputs["step"] = self._chosen[0].name
            label = f"{STEP}-{self._chosen[0].name}"
        want = Start(
            f"{COMMAND}{self._tier}",
            inputs,
            title=f"Maintenance {label.replace('-', ' ', 1)}",
            recovery=self._recovery(services, config),
            joins=joined(),
        )
        found = identity(services, want, label)
        want.run_id, want.parent = found.run_id, found.parent
        return services.starter.start(want, services.owner())

    def _recovery(self, services: Services, config: str) -> Recovery:
        """Return how the run is continued: by this command, which knows what is left to do."""
        # -P: a file of the project's folder stands in for no module of ours.
        words = [sys.executable, "-P", "-m", "tachograph", "--store", services.folder]
        words += ["--quiet", "maintenance", self._tier]
        if self._tier == STEP:
            words.append(self._chosen[0].name)
        words += ["--config", config]
        words += ["--force"] if self._orders.force else []
        words += ["--allow-skip"] if self._orders.allow_skip else []
        given = self._params
        for flag, values in (
            ("--include", self._orders.named),
            ("--exclude", self._orders.exclude),
        ):
            if values and self._tier != STEP:
                words += [flag, ",".join(values)]
        if given.max_runtime_min is not None:
            words += ["--max-runtime-min", str(given.max_runtime_min)]
        return Recovery(
            command=words,
            working_folder=str(Path.cwd()),
            auto_resume=self._plan.auto_resume,
        )


def _orders(params: Params, plan: MaintenancePlan, name: str | None) -> Orders:
    minutes = params.max_runtime_min
    if minutes is not None and not 0 < minutes <= MOST_MINUTES:  # not a number fails this, too
        raise UsageError(
            f"--max-runtime-min is {minutes:g}: give a number above 0, at most {MOST_MINUTES}."
        )
    if name is None:
        for flag, given in (("--include", params.include), ("--exclude", params.exclude)):
            if given and not names(given):
                raise UsageError(f"{flag} names no step: give one, or leave it out.")
    seconds = plan.max_runtime_seconds if name is None else STEP_SECONDS
    if minutes is not None:
        seconds = minutes * 60.0
    return Orders(
        force=params.force or params.full,
        dry_run=params.dry_run,
        named=names(params.include) if name is None else [name],
        exclude=names(params.exclude) if name is None else [],
        allow_skip=params.allow_skip,
        max_runtime_seconds=seconds,
        said=_said(),
    )


def _said() -> dict[str, str]:
    """Return what the environment says of the run, for its options."""
    job, refused = os.environ.get("HM_JOB", "").strip(), refused_id()
    said = {"job": job} if job else {}
    return said if refused is None else {**said, "refused_id": refused[1]}


def existing(out: Output) -> Services | None:
    """Return the services of the store; None where there is none, which is made by nobody here."""
    try:
        return open_store(out, read_only=True)
    except StoreNotFoundError:
        return None


def _write(path: str | None, document: dict[str, Any], out: Output) -> None:
    """Write the summary, never half of it. The run has ended by now: that stays true without."""
    if not path:
        return
    from tachograph.cli.output import to_json
    from tachograph.infra.writing import write_atomically

    target = Path(path).expanduser()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, to_json(document, indent=2) + "\n")
    except OSError as error:
        out.warn(f"tacho: the summary could not be written to {target}: {error.strerror}")


@contextmanager
def _stdout_for_data(out: Output) -> Iterator[None]:
    """With `--json`, let what steps print go to stderr: stdout is for the summary alone."""
    if not out.json:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
