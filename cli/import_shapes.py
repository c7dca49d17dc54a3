"""The JSON of the commands that import, as models; see `shapes`. Never imported to print."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Shape

State = Literal["imported", "continued", "known", "left-alone", "unreadable"]


class Problem(Shape):
    """What is wrong with a file."""

    path: str
    text: str


class Entry(Shape):
    """A folder or file, and what came of it."""

    kind: Literal["job", "orchestrator", "checkpoint", "folder"]
    path: str
    state: State = Field(
        description="`continued` has grown since it was imported; `known` has not, or was "
        "recorded here in the first place; `left-alone` cannot be told on."
    )
    job_run_ids: list[str] = Field(description="Runs that it went into.")
    status: str | None = Field(description="Of the last of them, as far as the log says.")
    attempts: int = Field(description="Attempts that are new.")
    problems: list[Problem]


class Counts(Shape):
    """Entries by state."""

    imported: int
    continued: int
    known: int
    left_alone: int
    unreadable: int


class Imported(Shape):
    """`run import` and `checkpoint import`."""

    applied: bool
    counts: Counts
    entries: list[Entry]


class StaleFile(Shape):
    """A legacy checkpoint file that nothing goes on from any more."""

    path: str
    size: int = Field(description="Bytes.")
    sha256: str
    fingerprint: str
    modified_at: str | None
    job_run_id: str | None = Field(description="The run that notes its removal; null for none.")
    why: str | None = Field(description="Why it stays; null when it goes.")


class Pruned(Shape):
    """`checkpoint prune`."""

    applied: bool
    files: int
    bytes: int
    stale: list[StaleFile]


IMPORTS: dict[str, TypeAdapter[Any]] = {
    "run-import": TypeAdapter(Imported),
    "checkpoint-import": TypeAdapter(Imported),
    "checkpoint-prune": TypeAdapter(Pruned),
}
"""By the words of the command."""
