"""Which recorded files of runs that ended long ago may go, and recording that they went.

Removes nothing itself, and never says that a file may go which is not the recorded one, which
another run has recorded as well, or of which no archive holds a copy (unless told otherwise).
The log is never shortened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain.records import _Fields
from tachograph.retiring import ended_us, standing_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from tachograph.domain.run import Run
    from tachograph.ports import Progress
    from tachograph.projections.views import ViewReader
    from tachograph.runs import RunRepository

    Fields = dict[str, Any]
    Kept = Collection[tuple[str, str, str]]
    """(run id, artifact name, SHA-256) of each file that an archive holds."""
    Claims = dict[str, list[tuple[str, str, bool]]]
    """By real path: id of a run, the SHA-256 that it recorded, whether the run is finished."""
    Contents = Callable[[str, str], Kept | str]
    """What the archive at a place, of a SHA-256, holds; a text when it is not whole there."""
    Check = Callable[[str, int | None, str | None], str | None]
    """Says why a file of a path, size and SHA-256 must stay, None when it may go."""
    OtherFiles = Callable[[Run], Iterable[str]]
    Execute = Callable[[str, Callable[[Run, Any], None]], None]

SOURCE = "clean"
"""Source of the notes that say what was removed."""
MISSING = "missing"
FILES_PER_NOTE = 200
"""So that no event grows without bound."""


class Doomed(_Fields):
    """A file of a run: `why` says why it stays, None when it may go.

    `name` is that of the artifact, None for another file; `size` and `sha256` are as recorded.
    """

    __slots__ = ("name", "path", "sha256", "size", "why")

    def __init__(
        self, name: str | None, path: str, size: int | None, sha256: str | None, why: str | None
    ) -> None:
        self.name = name
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.why = why


class Cleaning(_Fields):
    """What cleaning does to one run; `why` says why the whole run is left as it is."""

    __slots__ = ("ended_us", "files", "run_id", "status", "why")

    def __init__(
        self, run_id: str, status: str, ended_us: int, files: Sequence[Doomed], why: str | None
    ) -> None:
        self.run_id = run_id
        self.status = status
        self.ended_us = ended_us
        self.files = list(files)
        self.why = why

    def going(self) -> list[Doomed]:
        """Return the files that may go."""
        return [file for file in self.files if file.why is None]

    def staying(self) -> list[Doomed]:
        """Return the files that are there and have to stay."""
        return [file for file in self.files if file.why not in (None, MISSING)]

    def bytes(self) -> int:
        """Return how much room the files that may go take."""
        return sum(file.size or 0 for file in self.going())


class Cleaner:
    """Says what may go. Removes and records nothing.

    `check` looks at a file, `contents` at an archive; `other_files` names files of a run besides
    its artifacts, whose content nobody recorded.
    """

    def __init__(
        self,
        repository: RunRepository,
        *,
        check: Check,
        contents: Contents | None,
        other_files: OtherFiles = lambda _run: (),
    ) -> None:
        self._repository = repository
        self._check = check
        self._contents = contents
        """None: files may go that are in no archive."""
        self._other_files = other_files
        self._seen: set[str] = set()
        """Real paths that a run has had its say on: two may have recorded one file."""

    def plan(
        self, view: ViewReader, cards: Sequence[Fields], progress: Progress | None = None
    ) -> list[Cleaning]:
        """Return what cleaning would do to these runs, those left out that have no files."""
        chosen = {card["id"] for card in cards}
        claimed = claims(view, self._repository, without=chosen)
        found = []
        for number, card in enumerate(cards, 1):
            run = self._repository.get(card["id"])
            if run is not None and run.finished:
                cleaning = self._of(run, card, claimed)
                if cleaning.going() or cleaning.staying() or cleaning.why:
                    found.append(cleaning)
            if progress is not None:
                progress(number, len(cards))
        return found

    def _of(self, run: Run, card: Fields, claimed: Claims) -> Cleaning:
        files = list(self._files(run, claimed))
        why = None
        if self._contents is not None and any(file.why is None for file in files):
            why = self._keep_what_is_in_no_archive(run, files, self._contents)
        return Cleaning(run.id, card["status"], ended_us(card), [] if why else files, why)

    def _files(self, run: Run, claimed: Claims) -> Iterator[Doomed]:
        for name, fields in run.artifacts.items():
            path, size, sha256 = fields["path"], fields["size"], fields["sha256"]
            why = self._check(path, size, sha256)
            if why is None:
                real = os.path.realpath(path)
                if real in self._seen:
                    continue
                self._seen.add(real)
                why = _claim(claimed.get(real, ()), sha256)
            yield Doomed(name, path, size, sha256, why)
        for path in self._other_files(run):
            yield Doomed(None, path, _size(path), None, self._check(path, None, None))

    def _keep_what_is_in_no_archive(
        self, run: Run, files: Sequence[Doomed], contents: Contents
    ) -> str | None:
        """Keep the files that an archive does not hold; return why the run stays as it is."""
        archived = standing_archive(self._repository, run.id)
        if archived is None:
            return "it was not archived since it ended"
        kept = contents(*archived)
        if isinstance(kept, str):
            return f"its archive {archived[0]} {kept}"
        for file in files:
            named = file.why is None and file.name is not None
            if named and (run.id, file.name, file.sha256) not in kept:
                file.why = f"its archive {archived[0]} does not hold it"
        return None


def claims(view: ViewReader, repository: RunRepository, *, without: Collection[str]) -> Claims:
    """Return which runs have recorded which files, of all runs but some."""
    claimed: Claims = {}
    for card in view.cards():
        summary = None if card["id"] in without else view.summary(card["id"])
        if summary is None or not summary["counters"].get("artifacts"):
            continue
        run = repository.get(card["id"])  # a summary names the newest files only
        for fields in {} if run is None else run.artifacts.values():
            claim = (card["id"], fields["sha256"], run is not None and run.finished)
            claimed.setdefault(os.path.realpath(fields["path"]), []).append(claim)
    return claimed


def _claim(claimed: Iterable[tuple[str, str, bool]], sha256: str) -> str | None:
    """Return why a file stays: an unfinished run has recorded it, or a finished one just so."""
    for run_id, recorded, finished in claimed:
        if not finished or recorded == sha256:
            return f"run {run_id} has recorded it too"
    return None


def clean(
    plans: Sequence[Cleaning],
    *,
    remove: Check,
    execute: Execute,
    reason: str | None = None,
    progress: Progress | None = None,
) -> int:
    """Remove the files that may go, run by run, and return how many could not be removed.

    What is about to go is recorded before it goes: killed in between, the log names a file that
    is still there, and the next cleaning removes it. Nothing goes without a trace.
    """
    failed = 0
    for number, plan in enumerate(plans, 1):
        going = plan.going()
        for first in range(0, len(going), FILES_PER_NOTE):
            _note(plan.run_id, _removing(going[first : first + FILES_PER_NOTE], reason), execute)
        for file in going:
            file.why = remove(file.path, file.size if file.sha256 else None, file.sha256)
        stayed = [file for file in going if file.why not in (None, MISSING)]
        if stayed:
            _note(plan.run_id, _not_removed(stayed), execute, level="warning")
        failed += len(stayed)
        if progress is not None:
            progress(number, len(plans))
    return failed


def _note(run_id: str, text: str, execute: Execute, *, level: str = "note") -> None:
    execute(run_id, lambda run, why: run.add_note(why, text, level=level, source=SOURCE))


def _removing(files: Sequence[Doomed], reason: str | None) -> str:
    because = f" ({reason})" if reason else ""
    lines = [f"Removing {len(files)} files{because}:"]
    lines += [
        f"{file.name or '-'}  {file.path}  {file.size} bytes  {file.sha256 or '-'}"
        for file in files
    ]
    return "\n".join(lines)


def _not_removed(files: Sequence[Doomed]) -> str:
    lines = [f"{len(files)} files were not removed:"]
    lines += [f"{file.path}: {file.why}" for file in files]
    return "\n".join(lines)


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None
