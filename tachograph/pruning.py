"""Which artifact files and leftovers may go by the rules of retention, and letting them go.

Nothing goes that no rule names, nor what is not of this log; and nothing goes unrecorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import retention
from tachograph.domain.artifact_places import (
    JOB_FILES,
    ORCHESTRATOR_ENDINGS,
    SEGMENT,
    SEGMENT_ALONE,
    SUMMARY,
    cron_files_of,
    place_of,
)
from tachograph.domain.records import _Fields
from tachograph.tree_marks import Marks
from tachograph.tree_owners import Owners, fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Protocol

    from tachograph.artifact_ports import Folder, Stamp
    from tachograph.domain.run import Run
    from tachograph.laying_out import Layout
    from tachograph.payloads import Payloads
    from tachograph.ports import Progress
    from tachograph.runs import RunRepository

    class Walked(Folder, Protocol):
        """A folder whose files can be listed."""

        def walk(self) -> Iterator[str]:
            """Yield the name of every regular file below the root, in order."""
            ...


OTHER_PLACE = "it is not where the files of its run are"
OTHER_LOG = "its run is not in this store"
_KINDS = {name: kind for kind, name in JOB_FILES.items()}


class Removal(_Fields):
    """Files of one run that may go by one rule: (kind, name), and their size in bytes.

    `run_id` is None for what belongs to no run: temporary files of the marks of a tree.
    """

    __slots__ = ("names", "paths", "root", "rule", "run_id", "size")

    def __init__(self, run_id: str | None, rule: retention.Rule, root: str) -> None:
        self.run_id = run_id
        self.rule = rule
        self.root = root
        self.names: list[tuple[str, str]] = []
        self.paths: list[str] = []
        self.size = 0

    @property
    def kinds(self) -> list[str]:
        """What the files are."""
        return sorted({kind for kind, _ in self.names})


class Left(_Fields):
    """A file that looks like one of ours, and stays."""

    __slots__ = ("path", "why")

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why


class Plan:
    """What pruning would remove, and what it leaves although it looks like ours."""

    def __init__(self) -> None:
        self._removals: dict[tuple[str | None, str, str], Removal] = {}
        self.left: list[Left] = []

    @property
    def removals(self) -> list[Removal]:
        """What may go, by run and rule."""
        return list(self._removals.values())

    @property
    def files(self) -> int:
        """Number of files that may go."""
        return sum(len(each.names) for each in self._removals.values())

    @property
    def size(self) -> int:
        """Bytes of the files that may go."""
        return sum(each.size for each in self._removals.values())

    def add(
        self,
        run_id: str | None,
        rule: retention.Rule,
        folder: Folder,
        named: tuple[str, str],
        stamp: Stamp,
    ) -> None:
        """Take up a file (kind, name) that may go."""
        key = (run_id, rule.id, folder.root)
        removal = self._removals.setdefault(key, Removal(run_id, rule, folder.root))
        removal.names.append(named)
        removal.paths.append(folder.path(named[1]))
        removal.size += stamp.size


class Pruner:
    """Says what may go, and lets it go."""

    def __init__(
        self,
        repository: RunRepository,
        payloads: Payloads,
        is_temporary: Callable[[str], bool],
        now_us: int,
        older_than_us: int | None = None,
    ) -> None:
        self._repository = repository
        self._payloads = payloads
        self._is_temporary = is_temporary
        self._now_us = now_us
        self._older_than_us = older_than_us
        self._runs: dict[str, Run | None] = {}

    def look_at_tree(self, plan: Plan, folder: Walked, only: str | None = None) -> None:
        """Add what may go of a tree of artifact files; of one run alone when it is named."""
        owners = Owners(self._repository, self._payloads, folder)
        faults: dict[tuple[str, str], str | None] = {}
        mark = Marks(self._repository.log, folder).name
        for name in folder.walk():
            if only is None and self._is_left_of(mark, name):
                self._consider(plan, folder, None, retention.TEMPORARY, name)
            if only is not None and only not in name:
                continue
            found = self._run_of(name)
            if found is None:
                continue
            run, kind = found
            if run is None:
                plan.left.append(Left(folder.path(name), OTHER_LOG))
            elif only not in (None, run.id):
                continue
            else:
                key = (run.id, name if name.count("/") == 1 else name.rpartition("/")[0])
                if key not in faults:
                    faults[key] = self._fault(owners, run, name)
                if (why := faults[key]) is not None:
                    plan.left.append(Left(folder.path(name), why))
                else:
                    self._consider(plan, folder, run, kind, name)

    def _is_left_of(self, mark: str, name: str) -> bool:
        """Say whether a file is what a writer of our marks has left, who was killed."""
        last = name.rpartition("/")[2]
        return self._is_temporary(last) and last.startswith(f".{mark}")

    def _fault(self, owners: Owners, run: Run, name: str) -> str | None:
        parent = name.rpartition("/")[0]
        moved = name.count("/") == 3 and run.bodies != retention.ERASED
        if moved and place_of(run).folder != parent:
            return OTHER_PLACE
        return fault(owners, run, name)

    def look_at_spool(self, plan: Plan, folder: Walked, run_of: Mapping[str, str]) -> None:
        """Add what adapters of finished runs have left; `run_of` maps the keys in names to ids."""
        for name in folder.walk():
            run_id = run_of.get(name.partition("-")[0])
            run = None if run_id is None else self._run(run_id)
            if run is not None and run.finished:
                self._consider(plan, folder, run, retention.SPOOL, name)

    def apply(
        self, plan: Plan, layouts: Iterable[Layout], progress: Progress | None = None
    ) -> None:
        """Record what goes, and remove it. A run that has gone on meanwhile keeps everything."""
        by_root = {layout.folder.root: layout for layout in layouts}
        for number, removal in enumerate(plan.removals, 1):
            layout = by_root[removal.root]
            with layout.folder.locked():
                self._let_go(layout, removal)
            if progress is not None:
                progress(number, len(plan.removals))

    def _let_go(self, layout: Layout, removal: Removal) -> None:
        if removal.run_id is None:
            for _, name in removal.names:
                layout.folder.remove(name)
            return
        run = self._repository.get(removal.run_id)
        if run is not None and self._still_goes(run, removal):
            layout.retire(run, removal.names, removal.rule)

    def _still_goes(self, run: Run, removal: Removal) -> bool:
        if removal.rule.standing == retention.LEFT:
            return run.finished or removal.kinds == [retention.TEMPORARY]
        return removal.rule.standing == retention.standing(run)

    def _consider(self, plan: Plan, folder: Folder, run: Run | None, kind: str, name: str) -> None:
        stamp = folder.stamp(name)
        if stamp is None:
            return
        if run is None or kind in (retention.SPOOL, retention.TEMPORARY):
            rule = retention.is_left(kind, stamp.changed_ns // 1_000, self._now_us)
        else:
            rule = retention.rule_for(run, kind, self._now_us, older_than_us=self._older_than_us)
        if rule is not None:
            plan.add(None if run is None else run.id, rule, folder, (kind, name), stamp)

    # Whose a file is.

    def _run_of(self, name: str) -> tuple[Run | None, str] | None:
        """Return the run (None: no run of this log) and kind of a file; None for no file of ours.

        A log of a cron job, for one, is none of ours: nothing could make it again.
        """
        parts = name.split("/")
        last, is_temporary = parts[-1], self._is_temporary(parts[-1])
        if len(parts) == 4 and parts[1] in (SEGMENT, SEGMENT_ALONE):
            kind = retention.TEMPORARY if is_temporary else _KINDS.get(last)
            return None if kind is None else (self._run(parts[2]), kind)
        if len(parts) == 2 and is_temporary:
            last = last[1:].partition(".tmp-")[0]
        if len(parts) == 2:
            for kind, ending in ORCHESTRATOR_ENDINGS.items():
                if last.endswith(ending):
                    run = self._orchestrator(parts[0], last.removesuffix(ending))
                    found = retention.TEMPORARY if is_temporary else kind
                    return None if run is None else (run, found)
        return None

    def _orchestrator(self, day: str, stem: str) -> Run | None:
        """Return the run whose files begin with `{job}-{runId}`: jobs have dashes in them, too."""
        candidates = [stem, *(stem[at + 1 :] for at, letter in enumerate(stem) if letter == "-")]
        for candidate in candidates:
            run = self._run(candidate)
            if run is None:
                continue
            if run.bodies == retention.ERASED:
                return run
            place = place_of(run)
            names = place.files if place.is_orchestrator else cron_files_of(run)
            if names.get(SUMMARY) == f"{day}/{stem}{ORCHESTRATOR_ENDINGS[SUMMARY]}":
                return run
        return None

    def _run(self, run_id: str) -> Run | None:
        if run_id not in self._runs:
            self._runs[run_id] = self._repository.get(run_id)
        return self._runs[run_id]
