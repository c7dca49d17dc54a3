"""Where the artifact files of a run belong, below whatever root. Touches no file."""

from __future__ import annotations

from time import gmtime, strftime

from tachograph.domain import ids
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tachograph.domain.run_state import RunState

SUMMARY, EVENTS, CHECKPOINT, REPORT = "summary", "events", "checkpoint", "report"
VALIDATION = "validation"
"""Kinds of files."""
JOB_FILES = {
    SUMMARY: "summary.json",
    EVENTS: "events.jsonl",
    CHECKPOINT: "checkpoint.json",
    REPORT: "report.md",
}
"""What is in the folder of a job run."""
ORCHESTRATOR_ENDINGS = {
    SUMMARY: ".summary.json",
    VALIDATION: ".validation.json",
    REPORT: ".report.md",
}
"""What the names of an orchestrator run's files end with."""
SEGMENT = "job-runs"
SEGMENT_ALONE = "job-runs-standalone"
"""Folders of the runs that belong to an orchestrator run, and of those that belong to none."""

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Place(_Fields):
    """Where the files of a run are below a root: by its creation alone, so for all its attempts.

    `files` are names by kind, with `/` between folders. No part of them leads out of the root.
    """

    __slots__ = ("files", "is_orchestrator")

    def __init__(self, files: Mapping[str, str], *, is_orchestrator: bool) -> None:
        self.files = dict(files)
        self.is_orchestrator = is_orchestrator

    @property
    def folder(self) -> str:
        """The folder that all the files are in."""
        return self.files[SUMMARY].rpartition("/")[0]


def place_of(run: RunState) -> Place:
    """Return where the files of a run belong.

    The day is that of its creation in UTC. Raises InvalidIdError for an id that would name
    another folder.
    """
    day = day_of(run.created_us)
    run_id = ids.check_run_id(run.id)
    if run.maintenance is not None:
        stem = f"{day}/{orchestrator_stem(run)}"
        files = {kind: stem + ending for kind, ending in ORCHESTRATOR_ENDINGS.items()}
        return Place(files, is_orchestrator=True)
    segment = SEGMENT_ALONE if run.parent is None else SEGMENT
    folder = f"{day}/{segment}/{run_id}"
    files = {kind: f"{folder}/{name}" for kind, name in JOB_FILES.items()}
    return Place(files, is_orchestrator=False)


def cron_files_of(run: RunState) -> dict[str, str]:
    """Return the names, by kind, of what the validation of a cron line leaves beside its run.

    Empty for a run that is no cron line. The day is that in the id, where it has one.
    """
    if run.validation is None or run.maintenance is not None:
        return {}
    day = run.id[:8] if run.id[:8].isdecimal() and run.id[8:9] == "T" else day_of(run.created_us)
    stem = f"{day}/{orchestrator_stem(run)}"
    return {kind: stem + ORCHESTRATOR_ENDINGS[kind] for kind in (SUMMARY, VALIDATION)}


def day_of(time_us: int) -> str:
    """Return the folder of a day in UTC.

    >>> day_of(1_715_134_530_250_999)
    '20240508'
    """
    return strftime("%Y%m%d", gmtime(max(0, time_us) // 1_000_000))


def orchestrator_stem(run: RunState) -> str:
    """Return the name that the files of an orchestrator run begin with: `{job}-{runId}`."""
    job = job_of(run)
    run_id = ids.check_run_id(run.id)
    return run_id if run_id.startswith(f"{job}-") else f"{job}-{run_id}"


def job_of(run: RunState) -> str:
    """Return the cron job that an orchestrator run is of, fit for the name of a file."""
    text = named_job(run) or run.command
    safe = "".join(letter if letter in _LETTERS else "-" for letter in text)
    return safe.strip(".-")[: ids.MAX_ID_LENGTH // 4] or "job"


def named_job(run: RunState) -> str | None:
    """Return the cron job that HM_JOB named for an orchestrator run; None when it named none."""
    options = (run.maintenance or {}).get("options")
    named = options.get("job") if isinstance(options, dict) else None
    return named if isinstance(named, str) and named else None
