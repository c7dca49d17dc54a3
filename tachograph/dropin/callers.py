"""For which attempt a command acts that no variable names: judged by the processes above it.

An agent or a person may give every command from another process; a job gives all from one. A
process that was superseded is known by its pid and start time, and stays fenced (G5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph import cards
from tachograph.domain.errors import RunOwnedError
from tachograph.domain.owner import PROCESS, UNOWNED, Owner
from tachograph.infra import ancestry, processes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.domain.run_state import RunState
    from tachograph.infra.ancestry import Process

RUN = "TACHO_RUN_ID"
EPOCH = "TACHO_EPOCH"


class Caller:
    """Who gives a command: the processes above it, the nearest that works, and its variables."""

    def __init__(
        self,
        above: list[Process],
        worker: Process | None,
        nobody: Owner,
        environment: Mapping[str, str],
    ) -> None:
        self.above = above
        self.worker = worker
        self._nobody = nobody
        self._environment = environment

    @classmethod
    def of_this_process(cls, environment: Mapping[str, str]) -> Caller:
        """Return who called this process."""
        above = ancestry.ancestors()
        worker = ancestry.worker(above, ancestry.this_process())
        return cls(above, worker, processes.nobody(), environment)

    @classmethod
    def outside(cls) -> Caller:
        """Return a caller that belongs to no attempt, such as whoever keeps the files."""
        return cls([], None, processes.nobody(), {})

    @property
    def owner(self) -> dict[str, Any]:
        """Return the owner of an attempt that this caller begins.

        It is nobody in particular, since commands may come from many processes; the process
        that may turn out to do the work is noted in it all the same.
        """
        fields = self._nobody.to_fields()
        if self.worker is not None:
            fields = {**self._as_owner(self.worker).to_fields(), "kind": UNOWNED}
        return fields

    def epoch(self, run: RunState) -> int:
        """Return the attempt that this caller acts for.

        That is the newest that it is known to belong to, which may have been superseded; where
        it belongs to none, the current one. Raises RunOwnedError when another process is at
        work in that one.
        """
        known = [epoch for epoch, _ in self._known(run)]
        named = self._named(run)
        if named is not None:
            known.append(named)
        if known:
            return max(known)
        at_work = self._at_work(run)
        if at_work is not None:
            raise RunOwnedError(run.id, str(at_work))
        return run.epoch

    def evident_worker(self, run: RunState) -> dict[str, Any] | None:
        """Return the process that evidently does the work of the current attempt, if it is new.

        That is the nearest process above which has begun the attempt, or given a command of it
        before.
        """
        found = self._of_current(run)
        if found is None and self.worker is not None:
            remembered = run.card.get(cards.CALLER) == self.mark
            found = self.worker if remembered and not self._is_host(run, self.worker) else None
        if found is None or self._is_recorded(run, found):
            return None
        return dict(self._as_owner(found).to_fields())

    def hands_over(self, run: RunState) -> dict[str, Any] | None:
        """Return the process of the current attempt that asks for this itself, if one does."""
        found = self._of_current(run)
        return None if found is None else dict(self._as_owner(found).to_fields())

    def hosts(self, run: RunState) -> list[list[Any]]:
        """Return the processes above that have worked on the run, as they are remembered."""
        return [self._marked(each) for _, each in self._known(run)]

    @property
    def mark(self) -> list[Any] | None:
        """What to remember of the caller, to know it again at its next command."""
        return None if self.worker is None else self._marked(self.worker)

    def _marked(self, process: Process) -> list[Any]:
        return [self._nobody.boot_id, process.pid, process.started]

    def _is_host(self, run: RunState, process: Process) -> bool:
        return self._marked(process) in run.card.get(cards.HOSTS, ())

    def _of_current(self, run: RunState) -> Process | None:
        return next((each for epoch, each in self._known(run) if epoch == run.epoch), None)

    def _named(self, run: RunState) -> int | None:
        """Return the attempt that the environment names, when it speaks of this run."""
        text = self._environment.get(EPOCH, "")
        about = self._environment.get(RUN)
        return int(text) if text.isdecimal() and about in (None, "", run.id) else None

    def _known(self, run: RunState) -> list[tuple[int, Process]]:
        """Return the processes above that have worked on the run, and in which attempt."""
        boot = self._nobody.boot_id
        recorded: dict[tuple[Any, Any], int] = {}
        for epoch, boot_id, pid, started in run.processes:
            if boot_id == boot:
                recorded[pid, started] = max(epoch, recorded.get((pid, started), 0))
        above = [each for each in self.above if not self._is_host(run, each)]
        found = ((recorded.get((each.pid, each.started)), each) for each in above)
        return [(epoch, each) for epoch, each in found if epoch is not None]

    def _at_work(self, run: RunState) -> Owner | None:
        """Return the process that is alive and at work in the current attempt, if any."""
        if not run.attempt_open:
            return None
        for fields in (run.worker, run.owner):
            owner = Owner.from_fields(fields or {})
            if owner.kind == PROCESS and self._lives(owner):
                return owner
        return None

    def _lives(self, owner: Owner) -> bool:
        return (
            owner.pid is not None
            and owner.started is not None
            and owner.boot_id == self._nobody.boot_id
            and owner.pid_namespace == processes.pid_namespace()
            and processes.process_start(owner.pid) == owner.started
        )

    def _is_recorded(self, run: RunState, process: Process) -> bool:
        """Whether it counts already: as the worker, or as an owner that is a process."""
        for fields in (run.worker, run.owner):
            owner = Owner.from_fields(fields or {})
            if owner.kind == PROCESS and (owner.pid, owner.started) == (
                process.pid,
                process.started,
            ):
                return True
        return False

    def _as_owner(self, process: Process) -> Owner:
        return Owner(
            self._nobody.host,
            self._nobody.boot_id,
            process.pid,
            process.started,
            processes.pid_namespace(),
        )
