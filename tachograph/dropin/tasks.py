"""The tasks of a workspace over its ledger: create, change, look at. One command, one commit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain import ids
from tachograph.domain.errors import VersionConflictError
from tachograph.domain.event import Cause
from tachograph.domain.run import Run
from tachograph.dropin.applying import Scene, apply
from tachograph.dropin.errors import TaskAlikeError, TaskExistsError, TaskNotFoundError
from tachograph.dropin.others import entries_of_others
from tachograph.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tachograph.bootstrap import Services
    from tachograph.domain.policy import Policy
    from tachograph.dropin.callers import Caller
    from tachograph.dropin.places import Workspace
    from tachograph.dropin.wishes import Past, Wish
    from tachograph.projections.views import ViewReader

    Card = dict[str, Any]

FOR_EVER_SECONDS = 100 * 365 * 86400.0
"""Lease of a task that never counts as stale."""


class Tasks:
    """Commands on the tasks of one workspace, given by one caller."""

    def __init__(self, services: Services, workspace: Workspace, caller: Caller) -> None:
        self.services = services
        self.workspace = workspace
        self.caller = caller

    # Reading.

    def task_id(self, given: str) -> str:
        """Return the task that an id means: as it was given, or that of a further execution.

        Raises InvalidIdError.
        """
        base, execution, number = given.strip().partition("~")
        if execution and number.isdecimal() and self.services.log.stream_version(given.strip()):
            return base
        return ids.task_id(given)

    def newest(self, task_id: str) -> Run | None:
        """Return the newest execution of a task, None when there is none."""
        last = last_execution(self.services, task_id)
        return self.services.repository.get(ids.execution_id(task_id, last)) if last else None

    def get(self, task_id: str) -> Run:
        """Return the newest execution of a task. Raises TaskNotFoundError."""
        run = self.newest(self.task_id(task_id))
        if run is None:
            raise TaskNotFoundError(task_id)
        return run

    def card(self, run: Run) -> Card:
        """Return the card of a run as of the version that is loaded."""
        return cards.render(
            run,
            cards.task_id_of(run.id),
            resume_runner=self.workspace.resume_runner,
            entries=entries_of_others(self.services, run),
        )

    def card_at(self, run_id: str, version: int) -> Card | None:
        """Return the card of a run as it was at a version."""
        run = self.services.repository.get(run_id, up_to=version)
        return None if run is None else self.card(run)

    def all(self, *, unfinished: bool = False) -> Iterator[Run]:
        """Yield the newest execution of every task, or of those that are not finished."""
        from tachograph import looking

        def question(view: ViewReader) -> list[str]:
            found = view.open_cards() if unfinished else view.cards()
            return [str(card["id"]) for card in found]

        found = looking.ask(self.services, question)
        seen: set[str] = set()
        for run_id in found:
            task_id = cards.task_id_of(run_id)
            if task_id in seen:
                continue
            seen.add(task_id)
            run = self.newest(task_id)
            if run is not None and is_task(run):
                yield run

    def result(self, card: Card) -> Card:
        """Return the short form of a card."""
        path = str(self.workspace.card_file(str(card["id"])))
        return cards.make_result(card, path, self.services.actor.now_us())

    # Writing.

    def create(self, task_type: str, wish: Wish, *, given_id: str | None = None) -> Run:
        """Begin a task, or the next execution of one that is finished; one commit.

        What an imported card tells happened then: its events have the times that it says, and
        only the last one that of the import. Their order is that of the log as ever. Raises
        TaskExistsError while an execution is not finished, TaskAlikeError when another id became
        the same task id.
        """
        if given_id is None:
            given_id = f"{task_type}-{self._stamp()}"
        task_id = ids.task_id(given_id)
        last = last_execution(self.services, task_id)
        if last:
            self._check_free(task_id, given_id, last)
        run_id = ids.check_run_id(ids.execution_id(task_id, last + 1))
        inputs = {"task": given_id}
        past, cause = wish.past, self.services.actor.cause()
        run = Run.create(
            _at(cause, past.created_us if past else None),
            run_id,
            command=task_type,
            fingerprint=ids.fingerprint(inputs),
            inputs=inputs,
            inputs_digest=self.services.payloads.digest(inputs, "inputs"),
            title=wish.title,
        )
        then = _at(cause, past.worked_us if past else None)
        run.change_card(then, {cards.TASK: task_id})
        apply(run, then, wish, self._scene(wish))
        if past is not None:
            said = {**past.said, "time_us": cause.time_us}
            run.change_card(cause, {cards.IMPORTED: said}, [past.entry])
        try:
            self.services.repository.save(run)
        except VersionConflictError:
            raise TaskExistsError(task_id, cards.RUNNING, run_id) from None
        self.beat(run, past)
        return run

    def change(self, task_id: str, wish: Wish) -> Run:
        """Change a task; one commit. Raises TaskNotFoundError, FencedError, RunOwnedError."""
        run = self.get(task_id)
        return self.change_run(run, wish)

    def change_run(self, run: Run, wish: Wish) -> Run:
        """Change a task whose run is loaded."""
        epoch = self.caller.epoch(run) if wish.works or wish.declares else self._epoch_to_note(run)
        session = self.services.session(run.id, epoch)
        scene = self._scene(wish)

        def command(run: Run, why: Cause) -> None:
            apply(run, why, wish, scene)

        session.execute(command)
        if wish.works:
            self.beat(session.run)
        return session.run

    def beat(self, run: Run, past: Past | None = None) -> None:
        """Renew the lease by which a task without a process of its own counts as alive.

        The last sign of life of an imported one is what its card says: its lease may have ended
        long ago. Where no time can end it, nobody knows, and there is none. A task that waits to
        be started, or has ended, has none either.
        """
        if not run.attempt_open:
            return
        seconds = (run.recovery or {}).get("stale_after_seconds")
        ago_us = 0
        if past is not None:
            if past.worked_us is None or not seconds:
                return
            ago_us = past.now_us - past.worked_us
        lease = float(seconds or FOR_EVER_SECONDS)
        self.services.presence.beat(run.id, run.epoch, lease_seconds=lease, ago_us=ago_us)

    def _epoch_to_note(self, run: Run) -> int:
        """Return the attempt for which a remark is made: anybody may make one, but the fenced."""
        from tachograph.domain.errors import RunOwnedError

        try:
            return self.caller.epoch(run)
        except RunOwnedError:
            return 0

    def _check_free(self, task_id: str, given_id: str, last: int) -> None:
        run = self.services.repository.get(ids.execution_id(task_id, last))
        if run is None:
            return
        former = run.inputs.get("task") if isinstance(run.inputs, dict) else None
        if former is not None and former != given_id:
            raise TaskAlikeError(given_id, former, task_id)
        if not run.finished:
            raise TaskExistsError(task_id, cards.status(run), run.id)

    def _stamp(self) -> str:
        from datetime import UTC, datetime

        now = datetime.fromtimestamp(self.services.actor.now_us() / 1_000_000, UTC)
        return now.astimezone().strftime("%Y%m%d-%H%M%S")

    def _scene(self, wish: Wish) -> Scene:
        return Scene(
            self.caller,
            working_folder=str(self.workspace.root),
            measured=self._measured(wish.artifacts),
            exists=self._exists,
            store=lambda state: self.services.payloads.store(state, "state"),
            policy=self._policy,
        )

    def _policy(self) -> Policy:
        """Return the gate policy in force, its rules stored where the log needs them."""
        from tachograph.judging import kept_policy

        return kept_policy(None, self.services.policy, self.services.payloads)

    def _measured(self, artifacts: Mapping[str, Any]) -> dict[str, tuple[str, int, str]]:
        """Return path, size and SHA-256 of the artifacts that are files."""
        found: dict[str, tuple[str, int, str]] = {}
        for name, text in cards.artifact_paths(artifacts).items():
            path = self.workspace.path(text)
            try:
                if path.is_file():
                    found[name] = (str(path), *measure(path))
            except OSError:  # it cannot be read: the card names it all the same
                continue
        return found

    def _exists(self, text: str) -> bool | None:
        """Say whether an artifact is there; None for a text that names no file."""
        try:
            if self.workspace.path(text).exists():
                return True
        except OSError:
            return None
        is_path = os.sep in text or text[:1] in ("~", "$")
        return False if is_path and "://" not in text and " " not in text else None


def _at(cause: Cause, time_us: int | None) -> Cause:
    """Return a cause with the time that an imported card says, where it says one."""
    moment_us = cause.time_us if time_us is None else time_us
    return Cause(moment_us, cause.actor, cause.host, cause.pid, cause.epoch)


def is_task(run: Run) -> bool:
    """Say whether a run is a task with a card."""
    return cards.TASK in run.card


def last_execution(services: Services, task_id: str) -> int:
    """Return how many executions a task has had; they are numbered without gaps."""

    def exists(execution: int) -> bool:
        return services.log.stream_version(ids.execution_id(task_id, execution)) > 0

    high = 1
    while exists(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exists(middle) else (low, middle)
    return low
