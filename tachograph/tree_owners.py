"""Say whether artifact files were written from this log. Changes none, and trusts none.

A file tells it by the digest of its run's first event, which no run of another log has.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tachograph.domain import retention
from tachograph.domain.artifact_places import (
    EVENTS,
    JOB_FILES,
    ORCHESTRATOR_ENDINGS,
    REPORT,
    SUMMARY,
    VALIDATION,
)
from tachograph.domain.errors import ArtifactFolderError
from tachograph.event_files import EventFiles
from tachograph.json_files import parsed, to_text
from tachograph.maintenance_runs import digest_of, validation_of
from tachograph.reporting_runs import digest_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tachograph.artifact_ports import Folder
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads
    from tachograph.runs import RunRepository

    Names = Mapping[str, str]

ANOTHER = "another store has recorded it"
NOT_OURS = "it was not written from this log"
UNPROVEN = "nothing in it says that it was written from this log"


class Owners:
    """Knows the files of this log below one root."""

    def __init__(self, repository: RunRepository, payloads: Payloads, folder: Folder) -> None:
        self._repository = repository
        self._payloads = payloads
        self._folder = folder

    def fault_of_job(self, run: Run, folder: str) -> str | None:
        """Say why the files in the folder of a job run are not of this run; None when they are.

        They are as well where there are none yet.
        """
        names = {kind: f"{folder}/{name}" for kind, name in JOB_FILES.items()}
        digest = digest_of(self._repository, run)
        said = self._said(names, digest)
        if said is not UNPROVEN:
            return said
        first = (self._folder.read(names[EVENTS]) or b"").partition(b"\n")[0]
        ours = EventFiles(self._repository, self._folder).first_line(run)
        return None if first and first == ours else UNPROVEN

    def fault_of_orchestrator(self, run: Run, stem: str) -> str | None:
        """Say why the files with this stem are not of an orchestrator run; None when they are."""
        names = {kind: stem + ending for kind, ending in ORCHESTRATOR_ENDINGS.items()}
        telling = {kind: names[kind] for kind in (SUMMARY, REPORT)}
        said = self._said(telling, digest_of(self._repository, run))
        if said is None and any(map(self._folder.stamp, telling.values())):
            return None
        if said not in (None, UNPROVEN):
            return said
        # Where the log has no validation, one that lies here alone is of whoever started the run.
        is_alone = self._folder.stamp(names[VALIDATION]) is not None and run.validation is not None
        if said is UNPROVEN or is_alone:
            return None if self._is_validation(run, names) else UNPROVEN
        return None

    def fault_of_line(self, run: Run, stem: str) -> str | None:
        """Say why the files with this stem are not of a cron line; None when they are.

        Its harness writes them itself, the validation as it is recorded. It has one line alone
        with this id in its folder, so that of a summary without more the id will do.
        """
        names = {kind: stem + ORCHESTRATOR_ENDINGS[kind] for kind in (SUMMARY, VALIDATION)}
        is_erased = run.bodies == retention.ERASED
        if not is_erased and self._folder.stamp(names[VALIDATION]) is not None:
            return None if self._is_validation(run, names) else NOT_OURS
        if self._folder.stamp(names[SUMMARY]) is None:
            return None
        record = parsed(self._folder.read(names[SUMMARY]))
        if not isinstance(record, dict):
            return UNPROVEN
        said = str(record.get("runId"))
        if said.startswith(f"{run.id}-"):  # the orchestrator that the line had started
            return None
        if said == run.id and "runDigest" not in record:
            return None
        return _compared(record.get("runDigest"), digest_of(self._repository, run))

    def _said(self, names: Names, digest: str) -> str | None:
        """Return what summary or report say: None for ours, and where there is no file at all."""
        record = parsed(self._folder.read(names[SUMMARY]))
        if isinstance(record, dict):
            return _compared(record.get("runDigest"), digest)
        report = self._folder.read(names[REPORT])
        if report is not None:
            return _compared(digest_in(report), digest)
        return UNPROVEN if any(self._folder.stamp(name) for name in names.values()) else None

    def _is_validation(self, run: Run, names: Names) -> bool:
        recorded = validation_of(self._repository, self._payloads, run)
        if recorded is None:
            return False
        found = parsed(self._folder.read(names[VALIDATION]))
        return bool(found == json.loads(to_text(recorded)))


def fault(owners: Owners, run: Run, name: str) -> str | None:
    """Say why a file of a tree is not of this run, whose place it is in; None when it is."""
    folder, _, last = name.rpartition("/")
    try:
        if name.count("/") == 3:
            return owners.fault_of_job(run, folder)
        stem = f"{folder}/{_stem(last)}"
        if run.maintenance is not None:
            if last.endswith(ORCHESTRATOR_ENDINGS[VALIDATION]) and run.validation is None:
                return NOT_OURS
            return owners.fault_of_orchestrator(run, stem)
        if run.bodies == retention.ERASED:  # which it was, nobody knows any more
            return owners.fault_of_orchestrator(run, stem) and owners.fault_of_line(run, stem)
        return owners.fault_of_line(run, stem)
    except ArtifactFolderError as error:
        return str(error)


def _stem(last: str) -> str:
    """Return what a file's name begins with, of a temporary one as well.

    >>> _stem("a-1.summary.json"), _stem(".a-1.report.md.tmp-x")
    ('a-1', 'a-1')
    """
    last = last[1:].partition(".tmp-")[0] if last.startswith(".") else last
    for ending in ORCHESTRATOR_ENDINGS.values():
        if last.endswith(ending):
            return last.removesuffix(ending)
    return last


def _compared(found: Any, digest: str) -> str | None:
    if found == digest:
        return None
    return ANOTHER if found else NOT_OURS
