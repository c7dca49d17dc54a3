"""The JSON of the commands that end, archive and clean runs, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Moment, RecordedFile, Shape

Pids = list[int]


class Cancelled(Shape):
    """`run cancel`."""

    job_run_id: str
    ended: Literal["cancelled"]
    reason: str
    asked: Pids = Field(description="Processes that were sent SIGTERM.")
    killed: Pids = Field(description="Processes that were sent SIGKILL.")
    still_running: Pids = Field(description="Processes that still live; the run refuses them.")
    not_stopped: str | None = Field(description="Why a process was left alone.")


class Expired(Shape):
    """`run expire`."""

    job_run_id: str
    ended: Literal["expired"]
    reason: str


class Blocked(Shape):
    """`run block`."""

    job_run_id: str
    blocked: str = Field(description="What it waits for.")


class ArchivedFile(RecordedFile):
    """A file that a run recorded, and where it is in the archive."""

    state: Literal["ok", "missing", "changed", "unreadable"]
    member: str | None = Field(description="Its name in the archive; null when it was left out.")


class ArchivedRun(Shape):
    """A run in an archive."""

    job_run_id: str
    status: str
    version: int = Field(description="Of its last event in the archive.")
    members: int
    bytes: int
    artifacts: list[ArchivedFile]
    missing_blobs: list[str] = Field(description="Digests of payloads that the store has lost.")


class Archived(Shape):
    """`run archive`."""

    archive: str | None = Field(description="Absolute path; null when nothing was written.")
    sha256: str | None
    dry_run: bool
    runs: list[ArchivedRun]


class Listed(Shape):
    """`run archive --list`."""

    archive: str
    runs: list[ArchivedRun]


class Checked(Shape):
    """`run archive --check`."""

    archive: str
    whole: bool
    problems: list[str]


class OldFile(Shape):
    """A file of a run."""

    name: str | None = Field(description="Of the artifact; null for another file.")
    path: str
    size: int | None
    sha256: str | None


class KeptFile(OldFile):
    """A file that stays, and why."""

    why: str


class CleanedRun(Shape):
    """What cleaning does to a run."""

    job_run_id: str
    status: str
    ended_at: Moment
    why: str | None = Field(description="Why the run is left as it is.")
    files: list[OldFile] = Field(description="Files that were removed, or would be.")
    staying: list[KeptFile]


class Cleaned(Shape):
    """`run clean`."""

    applied: bool
    files: int
    bytes: int
    runs: list[CleanedRun]


LIFECYCLE: dict[str, TypeAdapter[Any]] = {
    "run-cancel": TypeAdapter(Cancelled),
    "run-expire": TypeAdapter(Expired),
    "run-block": TypeAdapter(Blocked),
    "run-archive": TypeAdapter(Archived | Listed | Checked),
    "run-clean": TypeAdapter(Cleaned),
}
