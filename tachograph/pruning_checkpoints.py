"""Which legacy checkpoint files are stale, and recording that they go. Removes none itself.

A file goes into the record of its run. Where the log knows no run of its fingerprint, the pruning
is recorded as a run of its own, so that no file goes without an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import ids, outcome
from tachograph.domain.records import _Fields
from tachograph.domain.run import Run
from tachograph.telling import NOBODY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.import_desk import Desk
    from tachograph.runs import RunRepository
    from tachograph.session import Session

COMMAND = "checkpoint-prune"
"""Command of the run that notes the removal of files of no run."""
WHAT = "legacy-checkpoint"
RULE = "stale-legacy-checkpoint"
"""Id of the rule by which such files go: another fingerprint is current, or they are old."""


class Stale(_Fields):
    """A legacy checkpoint file that nothing goes on from any more.

    `run_id` is the run that notes its removal, None before it has one; `why` says why it stays,
    None when it may go, or is gone.
    """

    __slots__ = ("fingerprint", "modified_us", "path", "run_id", "sha256", "size", "why")

    def __init__(
        self,
        path: str,
        size: int,
        sha256: str,
        fingerprint: str,
        modified_us: int,
        run_id: str | None,
        why: str | None,
    ) -> None:
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.fingerprint = fingerprint
        self.modified_us = modified_us
        self.run_id = run_id
        self.why = why


def newest(repository: RunRepository, command: str, fingerprint: str) -> str | None:
    """Return the last run of a command over the inputs of a fingerprint; None for none."""
    base, found, number = ids.job_run_id(command, fingerprint), None, 1
    while (run := repository.get(ids.execution_id(base, number))) is not None:
        number += 1
        if (run.command, run.fingerprint) == (command, fingerprint):
            found = run.id
    return found


def is_fingerprint(text: str) -> bool:
    """Say whether the name of a file says a fingerprint there: the digits of a hash.

    >>> is_fingerprint("0dc845e1"), is_fingerprint("a b$(x)"), is_fingerprint("copy")
    (True, False, False)
    """
    return 8 <= len(text) <= 64 and not set(text) - _DIGITS


_DIGITS = set("0123456789abcdef")


def note_removal(session: Session, file: Stale, reason: str | None) -> None:
    """Record in its run that a file is about to go."""

    def note(run: Run, why: Cause) -> None:
        run.record_files_removed(why, WHAT, [file.path], file.size, RULE, reason=reason)

    session.execute(note)


def note_without_run(desk: Desk, folder: str, files: Sequence[Stale], reason: str | None) -> str:
    """Record in a run of its own that files of no run are about to go, and return its id.

    Durable on return. Raises VersionConflictError when another pruning of the folder was first.
    """
    inputs: dict[str, Any] = {"folder": folder}
    fingerprint = ids.fingerprint(inputs)
    base, number = ids.job_run_id(COMMAND, fingerprint), 1
    while desk.repository.get(ids.execution_id(base, number)) is not None:
        number += 1
    run = Run.create(
        desk.by,
        ids.execution_id(base, number),
        command=COMMAND,
        fingerprint=fingerprint,
        inputs=desk.store(inputs, "inputs"),
        inputs_digest=desk.digest(inputs, "inputs"),
    )
    voice = desk.voice(run)
    run.start_attempt(voice.at(), NOBODY, live_owner=None)
    paths, size = [file.path for file in files], sum(file.size for file in files)
    run.record_files_removed(voice.at(), WHAT, paths, size, RULE, reason=reason)
    told = f"{len(files)} checkpoint files of no run were let go"
    run.finish(voice.at(), outcome.SUCCESS, reason=told, reason_code=RULE.replace("-", "_"))
    desk.save(run)
    return run.id
