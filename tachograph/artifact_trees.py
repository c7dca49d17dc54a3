"""Build what writes the artifact files of a store, and follow a run with it while it goes on.

Like bootstrap it knows both sides.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from tachograph.catching_up import catch_up
from tachograph.domain.errors import TachographError
from tachograph.infra import cron_files
from tachograph.infra.artifact_files import ArtifactFolder, is_temporary
from tachograph.infra.layout import name_key
from tachograph.infra.store_folder import cron_folder, spool_folder
from tachograph.laying_out import SPARING, Layout
from tachograph.pruning import Plan, Pruner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.ports import Progress

SECONDS = 1.0
"""Least time between two looks at a run that goes on."""


def layout(services: Services, root: str) -> Layout:
    """Return what writes the files of a store's runs below a root."""

    def execute(run_id: str, command: Callable[[Run, Cause], None]) -> None:
        services.session(run_id, 0).execute(command)

    return Layout(
        services.repository, services.payloads, ArtifactFolder(root), execute, time.monotonic
    )


def roots(services: Services, run: Run | None = None) -> list[str]:
    """Return the folders in which the artifact files of a store are, of one run or of all.

    That of the setting `artifacts`; the one that the run's cron line was told; and those that
    cron lines take that were told none.
    """
    parent = None if run is None or run.parent is None else services.repository.get(run.parent)
    home = os.path.expanduser("~")  # noqa: PTH111
    # All but the last, which is in the folder for temporary files: nobody keeps those.
    choices = cron_files.roots(None, os.environ, home, services.folder, tempfile.gettempdir())
    cron = [root for root, _guards in choices[:-1]]
    found = [
        services.settings.artifacts_folder,
        *(told_root(each) for each in (run, parent) if each is not None),
        *cron,
        cron_folder(services.folder),
    ]
    named = [os.path.abspath(root) for root in found if root is not None]  # noqa: PTH100
    return [root for root in dict.fromkeys(named) if os.path.isdir(root)]  # noqa: PTH112


def told_root(run: Run) -> str | None:
    """Return the folder that a cron line leaves its files in, as it is to be taken up again."""
    words = _options((run.recovery or {}).get("command") or ())
    return str(words[words.index("--root") + 1]) if "--root" in words[:-1] else None


def _options(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a cron line before those of its command; none of any other."""
    is_line = any(pair == ("cron", "exec") for pair in pairwise(words[:8]))
    return words[: words.index("--")] if is_line and "--" in words else ()


def configured(services: Services) -> Layout | None:
    """Return what writes to the root that the setting `artifacts` names; None without one."""
    root = services.settings.artifacts_folder
    return None if root is None else layout(services, root)


def follower(services: Services, run_id: str, tell: Callable[[str], None]) -> Follower | None:
    """Return what keeps the files of a run up to date; None where the setting names no root."""
    found = configured(services)
    if found is None:
        return None
    return Follower(found, run_id, lambda: services.log.stream_version(run_id), tell, SECONDS)


def look_after(found: Layout, services: Services) -> list[str]:
    """Bring all files below a root up to the log, and return what is wrong, in words.

    What was wrong at the last look already is not told again.
    """
    try:
        wrong = catch_up(found, services.actor.now_us())
    except TachographError as error:
        return [str(error)]
    return [f"the artifact files of run {run_id}: {text}" for run_id, text in wrong]


class Pruning:
    """What `store prune` does: a plan over some roots and the spool, and its execution."""

    def __init__(
        self, services: Services, roots: Sequence[str], older_than_us: int | None = None
    ) -> None:
        self._services = services
        self._pruner = Pruner(
            services.repository,
            services.payloads,
            is_temporary,
            services.actor.now_us(),
            older_than_us,
        )
        self._trees = [layout(services, root) for root in dict.fromkeys(roots)]
        self._spool = layout(services, spool_folder(services.folder))
        self.plan = Plan()

    def look(self, run_ids: Iterable[str], only: str | None = None) -> Plan:
        """Return what may go. `run_ids` are those of all runs; `only` looks at one alone."""
        for tree in self._trees:
            self._pruner.look_at_tree(self.plan, ArtifactFolder(tree.folder.root), only)
        spool = ArtifactFolder(self._spool.folder.root)
        if only is None and next(spool.walk(), None) is not None:
            keys = {name_key(run_id).hex(): run_id for run_id in run_ids}
            self._pruner.look_at_spool(self.plan, spool, keys)
        return self.plan

    def apply(self, progress: Progress | None = None) -> None:
        """Let go what may go."""
        self._pruner.apply(self.plan, [*self._trees, self._spool], progress)


def forget(services: Services, run_id: str) -> Plan:
    """Remove the files of a run that was erased, wherever those of this store are."""
    pruning = Pruning(services, roots(services))
    pruning.look((), only=run_id)
    pruning.apply()
    return pruning.plan


class Follower:
    """Keeps the files of one run up to date from a daemon thread.

    It looks every so many `seconds`, less often where a look takes long. A folder that cannot be
    written ends no job: it is told once.
    """

    def __init__(
        self,
        found: Layout,
        run_id: str,
        version: Callable[[], int],
        tell: Callable[[str], None],
        seconds: float,
    ) -> None:
        self._layout = found
        self._run_id = run_id
        self._version = version
        self._tell = tell
        self._seconds = seconds
        self._seen = 0
        self._failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tachograph-artifacts", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following, and bring the files up to what is recorded now."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._look(last=True)

    def _run(self) -> None:
        pause = self._seconds
        while not self._stop.wait(pause):
            began = time.monotonic()
            self._look(last=False)
            # Whatever it costs, it stays a small part of what the job takes.
            pause = max(self._seconds, SPARING * (time.monotonic() - began))

    def _look(self, *, last: bool) -> None:
        try:
            version = self._version()
            if (version != self._seen or last) and self._layout.refresh(
                self._run_id, whole=last, wait=last
            ):
                self._seen = version
        except (TachographError, OSError) as error:
            if not self._failed:
                self._tell(str(error))
            self._failed = True
