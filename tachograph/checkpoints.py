"""Checkpoint stores with the interface of job-run scripts, kept in the log of a recording.

For a job that is ported from `FileCheckpointStore`, `BatchCheckpointStore` or
`OffsetCheckpointStore`: `load()` returns a state or None, `save(state)` records it, durable on
return, `clear()` says that nothing is to be gone on from. `path` is the file that an artifact tree
shows it in, None where there is none; nobody reads it. A job that is written new needs none of
them: `run.phase(…).batches(…)` and `run.save_offset(…)` do the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tachograph.domain import checkpoint_shapes as shapes
from tachograph.domain.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.recording import Recording
    from tachograph.session import Session

    State = dict[str, Any]

FILE_NAME = "checkpoint.json"


class _Store:
    """What the three stores share; `folder` is that of the run in an artifact tree."""

    def __init__(
        self,
        recording: Recording,
        *,
        phase: str | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self._recording = recording
        self._phase = phase
        self._folder = folder

    @property
    def path(self) -> str | None:
        """The file that shows the checkpoint, where one has been written."""
        if self._folder is None:
            return None
        path = os.path.join(self._folder, FILE_NAME)  # noqa: PTH118
        return path if os.path.isfile(path) else None  # noqa: PTH113

    @property
    def _session(self) -> Session:
        return self._recording.session


class FileCheckpointStore(_Store):
    """Keeps a state of any shape; the job decides whether a resume may go on from it."""

    def load(self) -> Any:
        """Return the state that was saved last, None when there is none."""
        found = self._session.saved_checkpoint("state", self._phase)
        return None if found is None else found[0]

    def save(self, state: Any) -> None:
        """Record a state."""
        self._session.save_checkpoint(state, phase=self._phase)

    def clear(self) -> None:
        """Record that there is nothing to go on from."""
        if self.load() is not None:
            self._session.save_checkpoint(None, phase=self._phase)


class OffsetCheckpointStore(_Store):
    """Keeps how far a job is: `offset`, `total`, `migrated` and `skipped`."""

    def load(self, total: int | None = None) -> State | None:
        """Return the state that was saved last, None when there is none.

        With the present `total`, None for a state of another one: a resume must not go on from
        it. `ts` is when it was saved, in milliseconds since 1970.
        """
        found = self._session.saved_checkpoint("offset", self._phase)
        if found is None or found[0].get("cleared"):
            return None
        state = shapes.offset_json(*found)
        return None if total is not None and shapes.offset_mismatch(state, total) else state

    def save(self, state: Mapping[str, Any]) -> None:
        """Record a state. Raises InvalidValueError for numbers that cannot be."""
        fault = shapes.offset_fault(state) or shapes.offset_size_fault(state)
        if fault is not None:
            raise InvalidValueError("offset checkpoint", dict(state), fault)
        self._save(shapes.offset_state(state))

    def clear(self) -> None:
        """Record that there is nothing to go on from."""
        if self.load() is not None:
            self._save({"offset": 0, "total": 0, "cleared": 1})

    def _save(self, state: State) -> None:
        self._session.save_checkpoint(state, kind="offset", phase=self._phase)


class BatchCheckpointStore(_Store):
    """Keeps which batches are finished and what came out of them, as batches of a phase.

    Each batch is recorded once, with its items, when a saved state names it for the first time;
    what it gave then stays. The phase is begun by the first `save` that finds it not begun.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        phase: str = "analyze",
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(recording, phase=phase, folder=folder)
        self._name = phase
        self._recorded: list[Any] = []
        self._known = -1

    def load(
        self,
        fingerprint: str | None = None,
        batch_size: int | None = None,
        total_batches: int | None = None,
    ) -> State | None:
        """Return the state as the log holds it, None when there is none or it was cleared.

        With the present fingerprint, batch size and total, None for a state of others: a resume
        must not go on from it. Items stand in the order of their batches.
        """
        phase = self._session.run.phases.get(self._name)
        if phase is None or phase.total is None:
            return None
        found = self._session.saved_checkpoint(shapes.BATCH, self._name)
        rest, saved_us = (None, 0) if found is None else found
        if found is not None and rest is None:
            return None
        state = shapes.batch_json(
            phase,
            self._session.batch_outputs(self._name),
            incidents_hash=(rest or {}).get("incidents_hash") or self._session.run.fingerprint,
            diagnostics=(rest or {}).get("diagnostics", {}),
            unattributed=(rest or {}).get("unattributed", ()),
            updated_us=max(saved_us, self._session.run.updated_us),
        )
        wanted = {
            "incidentsHash": fingerprint,
            "batchSize": batch_size,
            "totalBatches": total_batches,
        }
        fits = all(value is None or state[name] == value for name, value in wanted.items())
        return state if fits else None

    def save(self, state: Mapping[str, Any]) -> None:
        """Record what is new in a state, all or nothing; `version` and `updatedAt` are its own.

        Raises InvalidValueError for sizes that cannot be, InputsChangedError for another plan
        than the phase has, PhaseEndedError once the phase is over.
        """
        value = {**state, "version": shapes.BATCH_VERSION}
        fault = shapes.batch_fault(value) or shapes.batch_size_fault(value)
        if fault is not None:
            raise InvalidValueError("batch checkpoint", dict(state), fault)
        from tachograph.telling import Voice, tell_batches

        store = self._session.payloads.store

        def tell(run: Run, why: Cause) -> None:
            phase = run.phases.get(self._name)
            if phase is None or phase.status != "running" or phase.epoch != run.epoch:
                run.start_phase(why, self._name)
            voice = Voice(run, why, store, lambda _phase: self._items())
            tell_batches(voice, self._name, value, why.time_us)

        self._session.execute(tell)

    def _items(self) -> list[Any]:
        """Return the items of all finished batches; what was read once is not read again."""
        done = self._session.run.phases[self._name].done
        if self._known != len(done):
            outputs = self._session.batch_outputs(self._name)
            self._recorded = [item for _, output in outputs for item in shapes.items_of(output)]
            self._known = len(done)
        return self._recorded

    def clear(self) -> None:
        """Record that there is nothing to go on from, and end the phase when it is complete.

        Finished batches stay in the log: they happened.
        """
        phase = self._session.run.phases.get(self._name)
        if phase is None or phase.status != "running":
            return

        def end(run: Run, why: Cause) -> None:
            run.save_checkpoint(why, phase=self._name, kind=shapes.BATCH, state=None)
            phase = run.phases[self._name]
            if phase.total is not None and not phase.count_missing():
                run.end_phase(why, self._name)

        self._session.execute(end)
