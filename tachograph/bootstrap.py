"""Build what the use cases need from what infra offers: the only place that knows both.

Nothing here runs at import, and each part of a store is imported and built when it is first
used: a shell command pays for what it needs and nothing else.
"""

from __future__ import annotations

import os

from tachograph.domain.errors import InvalidValueError, StoreCorruptError, StoreNotFoundError
from tachograph.infra import clock, settings, store_folder
from tachograph.infra.codec import Codec
from tachograph.infra.host import this_host
from tachograph.infra.lmdb_environment import open_environment
from tachograph.infra.lmdb_log import LMDBLog
from tachograph.packing import Packing
from tachograph.payloads import Payloads
from tachograph.runs import RunRepository
from tachograph.session import Actor, Session

ORCHESTRATOR_VARIABLES = ("HM_RUN_ID", "HM_ORCHESTRATOR_RUN_ID")
"""Environment variables that name the orchestrator run, the first set one counts."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tachograph.domain.liveness import Liveness, Observer
    from tachograph.domain.owner import Owner
    from tachograph.domain.policy import Policy
    from tachograph.domain.redaction import Redactor
    from tachograph.domain.run import Run
    from tachograph.infra.blobs import Blobs
    from tachograph.infra.lmdb_views import LMDBViews
    from tachograph.infra.presence import Presence
    from tachograph.infra.processes import Leftovers
    from tachograph.planning import Planner
    from tachograph.resuming import Dispatcher
    from tachograph.starting import Starter


class Services:
    """One open store, and the use cases on it. `views()` are not caught up."""

    if TYPE_CHECKING:
        blobs: Blobs
        presence: Presence
        observer: Observer
        leftovers: Leftovers
        starter: Starter
        planner: Planner
        dispatcher: Dispatcher
        _views: LMDBViews

    def __init__(
        self, folder: str, origin: str, *, read_only: bool, actor: str, codec: Codec
    ) -> None:
        self.folder = folder
        self.origin = origin
        """By which rule the store was found."""
        self.read_only = read_only
        self.settings = settings.resolve(folder, os.environ)
        self.environment = open_environment(store_folder.log_folder(folder), readonly=read_only)
        self.log = LMDBLog(self.environment)
        self.codec = codec
        self.packing = packing = Packing(self.codec, _redactor(self.settings.redact))
        self.repository = RunRepository(
            self.log, packing, snapshot_every=self.settings.snapshot_every
        )
        self.payloads = Payloads(
            packing, lambda: self.blobs, inline_bytes=self.settings.blob_threshold_bytes
        )
        self.actor = Actor(actor, this_host(), os.getpid(), clock.now_us)

    def __getattr__(self, name: str) -> Any:
        """Build a part on its first use, and keep it."""
        if name not in _PARTS:
            raise AttributeError(f"a store has no {name!r}")
        part = _PARTS[name](self)
        setattr(self, name, part)
        return part

    def session(self, run_id: str, epoch: int) -> Session:
        """Return a session of an attempt that was started earlier, perhaps by another process."""
        return Session(
            self.repository,
            self.payloads,
            self.beat,
            self.actor,
            run_id,
            epoch,
            policy=self.policy,
        )

    def policy(self) -> Policy:
        """Return the gate policy in force. Raises PolicyError."""
        return self.policy_in(self.settings.policy_file)

    def policy_in(self, path: str | None) -> Policy:
        """Return the gate policy of a file; the one of Tachograph for None. Raises PolicyError."""
        from tachograph.infra.policies import policy_of

        return policy_of(path, self.folder)

    def hide_secrets_of(self, environments: Sequence[Mapping[str, str]]) -> None:
        """Store no secret of these environments either, which processes of ours will get (G13)."""
        self.packing.hide(_redactor(self.settings.redact, environments))

    def beat(self, run_id: str, epoch: int, note: dict[str, Any] | None = None) -> None:
        """Renew the lease of an attempt."""
        self.presence.beat(run_id, epoch, self.payloads.redacted(note))

    def views(self) -> LMDBViews:
        """Return the view store."""
        return self._views

    def owner(self, pid: int | None = None) -> Owner:
        """Describe a process as an owner, this one by default."""
        from tachograph.infra import processes

        return processes.describe(os.getpid() if pid is None else pid)

    def liveness(self, run: Run) -> Liveness:
        """Judge the owner of a run's current attempt, at this moment (G7)."""
        return self._judge(run.id, run.epoch, run.owner or {}, run.worker, None)

    def judge(
        self, run_id: str, epoch: int, owner: dict[str, Any], worker: dict[str, Any] | None
    ) -> Liveness:
        """Judge one of many attempts by the stored fields of its owner and worker, now (G7)."""
        return self._judge(run_id, epoch, owner, worker, self.leftovers)

    def _judge(
        self,
        run_id: str,
        epoch: int,
        owner: dict[str, Any],
        worker: dict[str, Any] | None,
        leaves: Leftovers | None,
    ) -> Liveness:
        from tachograph.domain.liveness import judge_attempt
        from tachograph.domain.owner import Owner
        from tachograph.infra import processes

        return judge_attempt(
            Owner.from_fields(owner),
            None if worker is None else Owner.from_fields(worker),
            here=self.observer,
            process_start=processes.process_start,
            worker_start=lambda worker: processes.worker_start(worker, leaves=leaves),
            lease=self.presence.lease(run_id),
            boottime_us=clock.boottime_us(),
            epoch=epoch,
        )

    def live_owner(self, run: Run) -> str | None:
        """Describe the owner of an open attempt when it is alive, else None (G5)."""
        from tachograph.domain.liveness import ALIVE
        from tachograph.domain.owner import Owner

        if run.attempt_open and self.liveness(run).state == ALIVE:
            return str(Owner.from_fields(self.at_work(run)))
        return None

    def at_work(self, run: Run) -> dict[str, Any]:
        """Return the fields of the process that a live attempt lives by: its owner, or its worker.

        An owner that was killed may have left its worker behind: stopping that is what helps.
        """
        from tachograph.domain.liveness import ALIVE, GONE

        owner, worker = run.owner or {}, run.worker
        if worker is None:
            return owner
        state = self.process_state(owner)
        left = state == GONE or (state != ALIVE and self.process_state(worker) == ALIVE)
        return worker if left else owner

    def process_state(self, process: dict[str, Any]) -> str:
        """Say whether a process, given by its stored fields, is alive, gone or unknown."""
        from tachograph.domain.liveness import judge
        from tachograph.domain.owner import Owner
        from tachograph.infra import processes

        return judge(
            Owner.from_fields(process),
            here=self.observer,
            process_start=processes.process_start,
            lease=None,
            boottime_us=clock.boottime_us(),
        ).state

    def in_the_way(self, process: dict[str, Any], owner: Owner) -> str | None:
        """Describe a process that lives, and that `owner` neither is nor descends from."""
        from tachograph.domain.liveness import ALIVE
        from tachograph.domain.owner import Owner
        from tachograph.infra import ancestry

        other = Owner.from_fields(process)
        if self.process_state(process) != ALIVE or other.pid == owner.pid:
            return None
        above = [each.pid for each in ancestry.ancestors(owner.pid)]
        return None if other.pid in above else str(other)

    def close(self) -> None:
        """Close what is open. A later use of the same store opens it again."""
        for name in ("_views", "presence"):
            part = self.__dict__.pop(name, None)
            if part is not None:
                part.close()
        self.environment.close()


def open_store(
    store: str | None = None,
    *,
    create: bool = False,
    read_only: bool = False,
    actor: str = "python",
    codec: Codec | None = None,
) -> Services:
    """Open a store and return its services.

    `codec` knows the custom types of a job; without one, a value of a type that is not
    registered is carried along as it is stored, so that every reader can read every store.

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
    if store_folder.has_lost_its_log(folder):
        raise StoreCorruptError(folder, "its log, log/data.mdb, is missing")
    return Services(
        folder,
        origin,
        read_only=read_only,
        actor=actor,
        codec=Codec(keep_custom=True) if codec is None else codec,
    )


def find(store: str | None = None) -> tuple[str, str]:
    """Return the folder of the store to use, and by which rule it was found."""
    named = os.environ.get("TACHO_STORE", "") if store is None else store
    # A path that does not count from the current folder is found when that was deleted, too.
    here = os.sep if os.path.isabs(named) else os.getcwd()
    return store_folder.find_store(store, os.environ, here, os.path.expanduser("~"))


def policy_in_force(store: str | None = None) -> tuple[Policy, str]:
    """Return the gate policy by which runs are judged, and its file or `package`.

    Needs no store: where there is none, the environment and the user's settings count. Raises
    PolicyError and SettingError.
    """
    from tachograph.infra.policies import policy_of

    folder, _origin = find(store)
    kept = folder if store_folder.is_store(folder) else None
    path = settings.resolve(kept, os.environ).policy_file
    return policy_of(path, kept), path or "package"


def joined() -> tuple[str, int] | None:
    """Return the run and epoch that this process was started for; None when it was for none."""
    run_id, epoch = os.environ.get("TACHO_RUN_ID"), os.environ.get("TACHO_EPOCH", "")
    return (run_id, int(epoch)) if run_id and epoch.isdecimal() else None


def orchestrator() -> str | None:
    """Return the orchestrator run that this process works for; None when it works for none.

    Only what the environment says counts, and it says so to the processes that a run has started:
    nothing is kept in this process (a later run in it is no part of an earlier one).
    """
    found = _named_orchestrator()
    return found[1] if found is not None and _is_run_id(found[1]) else None


def refused_id() -> tuple[str, str] | None:
    """Return the variable that names an orchestrator run by what can be no id, and that text."""
    found = _named_orchestrator()
    return None if found is None or _is_run_id(found[1]) else found


def _is_run_id(text: str) -> bool:
    from tachograph.domain.ids import is_run_id  # most commands are called by no orchestrator

    return is_run_id(text)


def _named_orchestrator() -> tuple[str, str] | None:
    for name in ORCHESTRATOR_VARIABLES:
        named = os.environ.get(name, "").strip()
        if named:
            return name, named
    return None


DEADLINE = "HM_MAINTENANCE_RUN_DEADLINE_MS"
"""Environment variable by which an orchestrator says when the work of its jobs has to stop."""


def deadline_us() -> int | None:
    """Return the deadline that the environment gives to the runs started in it.

    Raises InvalidValueError for what is no time: a job that does not know that it has to stop is
    worse than one that does not start.
    """
    text = os.environ.get(DEADLINE, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise InvalidValueError(DEADLINE, text, "it must be milliseconds since 1970")
    return int(text) * 1_000


def _redactor(named: list[str], environments: Sequence[Mapping[str, str]] = ()) -> Redactor | None:
    from tachograph.infra import secrets

    return secrets.redactor(os.environ, named, *environments)


def _blobs(services: Services) -> Blobs:
    from tachograph.infra.blobs import Blobs

    return Blobs(store_folder.blob_folder(services.folder))


def _presence(services: Services) -> Presence:
    from tachograph.infra.presence import Presence

    return Presence(
        store_folder.presence_folder(services.folder),
        lease_seconds=services.settings.lease_seconds,
        read_only=services.read_only,
    )


def _observer(_services: Services) -> Observer:
    from tachograph.infra import processes

    return processes.observer()


def _leftovers(_services: Services) -> Leftovers:
    from tachograph.infra import processes

    return processes.Leftovers()


def _starter(services: Services) -> Starter:
    from tachograph.starting import Starter

    return Starter(
        services.repository,
        services.payloads,
        services.beat,
        services.actor,
        services.live_owner,
        services.in_the_way,
        services.policy,
        deadline_us,
    )


def _planner(services: Services) -> Planner:
    from tachograph.dispatching import planner_of

    return planner_of(services)


def _dispatcher(services: Services) -> Dispatcher:
    from tachograph.dispatching import dispatcher_of

    return dispatcher_of(services)


def _view_store(services: Services) -> LMDBViews:
    from tachograph.infra.lmdb_views import LMDBViews

    return LMDBViews(store_folder.view_folder(services.folder), services.codec)


_PARTS: dict[str, Callable[[Services], Any]] = {
    "blobs": _blobs,
    "presence": _presence,
    "observer": _observer,
    "leftovers": _leftovers,
    "starter": _starter,
    "planner": _planner,
    "dispatcher": _dispatcher,
    "_views": _view_store,
}
