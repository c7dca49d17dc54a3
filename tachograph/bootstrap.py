"""Build what the use cases need from what infra offers: the only place that knows both.

Nothing here runs at import. A light command calls `open_store`, so what it builds is light.
"""

from __future__ import annotations

import os

from tachograph.domain.errors import StoreNotFoundError
from tachograph.domain.liveness import ALIVE, judge
from tachograph.domain.owner import Owner
from tachograph.infra import clock, processes, secrets, settings, store_folder
from tachograph.infra.blobs import Blobs
from tachograph.infra.codec import Codec
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.infra.presence import Presence
from tachograph.packing import Packing
from tachograph.payloads import Payloads
from tachograph.runs import RunRepository
from tachograph.session import Actor, Session
from tachograph.starting import Starter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.liveness import Liveness
    from tachograph.domain.run import Run
    from tachograph.infra.lmdb_views import LMDBViews


class Services:
    """One open store, and the use cases on it."""

    def __init__(self, folder: str, origin: str, *, read_only: bool, actor: str) -> None:
        self.folder = folder
        self.origin = origin
        """By which rule the store was found."""
        self.read_only = read_only
        self.settings = settings.resolve(folder, os.environ)
        self.environment = open_environment(store_folder.log_folder(folder), readonly=read_only)
        self.log = LMDBLog(self.environment)
        self.codec = Codec()
        self.blobs = Blobs(store_folder.blob_folder(folder))
        self.presence = Presence(
            store_folder.presence_folder(folder),
            lease_seconds=self.settings.lease_seconds,
            read_only=read_only,
        )
        self.redactor = secrets.redactor(os.environ, self.settings.redact)
        packing = Packing(self.codec, self.redactor or None)
        self.repository = RunRepository(
            self.log, packing, snapshot_every=self.settings.snapshot_every
        )
        self.payloads = Payloads(
            packing, self.blobs, inline_bytes=self.settings.blob_threshold_bytes
        )
        self.observer = processes.observer()
        self.actor = Actor(actor, self.observer.host, os.getpid(), clock.now_us)
        self.starter = Starter(
            self.repository, self.payloads, self.presence, self.actor, self.live_owner
        )
        self._views: LMDBViews | None = None

    def session(self, run_id: str, epoch: int) -> Session:
        """Return a session of an attempt that was started earlier, perhaps by another process."""
        return Session(self.repository, self.payloads, self.presence, self.actor, run_id, epoch)

    def views(self) -> LMDBViews:
        """Return the view store, opened on first use and not caught up."""
        if self._views is None:
            from tachograph.infra.lmdb_views import LMDBViews

            self._views = LMDBViews(store_folder.view_folder(self.folder), self.codec)
        return self._views

    def owner(self, pid: int | None = None) -> Owner:
        """Describe a process as an owner, this one by default."""
        return processes.describe(os.getpid() if pid is None else pid)

    def liveness(self, run: Run) -> Liveness:
        """Judge the owner of a run's current attempt, at this moment (G7)."""
        return judge(
            Owner.from_fields(run.owner or {}),
            here=self.observer,
            process_start=processes.process_start,
            lease=self.presence.lease(run.id),
            boottime_us=clock.boottime_us(),
            epoch=run.epoch,
        )

    def live_owner(self, run: Run) -> str | None:
        """Describe the owner of an open attempt when it is alive, else None (G5)."""
        if run.attempt_open and self.liveness(run).state == ALIVE:
            return str(Owner.from_fields(run.owner or {}))
        return None

    def close(self) -> None:
        """Close what is open. A later use of the same store opens it again."""
        if self._views is not None:
            self._views.close()
            self._views = None
        self.presence.close()
        self.environment.close()


def open_store(
    store: str | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    actor: str = "python",
) -> Services:
    """Open a store and return its services.

    `store` is a folder; None finds one by the rules of `store_folder.find_store`. A missing
    store is made with `create`, otherwise StoreNotFoundError is raised. Raises the other errors
    of the store: StoreFormatError, StoreCorruptError, StoreReadOnlyError, NetworkFileSystemError.
    """
    folder, origin = find(store)
    if create:
        store_folder.create_store(folder)
    elif not store_folder.is_store(folder):
        raise StoreNotFoundError(folder)
    store_folder.check_format(folder)
    return Services(folder, origin, read_only=read_only, actor=actor)


def find(store: str | None = None) -> tuple[str, str]:
    """Return the folder of the store to use, and by which rule it was found."""
    return store_folder.find_store(store, os.environ, os.getcwd(), os.path.expanduser("~"))
