"""The public entry of the Python API: find the store, build what a recording needs."""

from __future__ import annotations

import atexit
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from tachograph.bootstrap import find, joined, open_store, orchestrator
from tachograph.declaring import by_this_command
from tachograph.domain.errors import TachographError
from tachograph.infra.codec import Codec
from tachograph.recording import Recording
from tachograph.starting import Start

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.recovery import Recovery
    from tachograph.keeping import Keeper
    from tachograph.session import Session

T = TypeVar("T")

_open: dict[str, Services] = {}
_codec = Codec(plain_bytes=0)  # a job lives long enough to load the C extension
"""One codec for all stores of the process, so that a type is registered once."""
_lock = threading.Lock()


def record(
    command: str,
    inputs: Mapping[str, Any] | None = None,
    *,
    run_id: str | None = None,
    title: str | None = None,
    parent: str | None = None,
    model_policy: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    takeover: str | None = None,
    log_warnings: bool = True,
    auto_resume: bool = False,
    recovery: Recovery | None = None,
    depends_on: Sequence[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> Recording:
    """Return a recording of a run of `command` over `inputs`, for a `with` block.

    The block starts a new run, or resumes the unfinished run of the same command and inputs at
    its last checkpoint. `run_id` gives the run an id of your own, `parent` names the run it is
    part of: without it the orchestrator run that started this process, if any. `store` names
    the store's folder; otherwise TACHO_STORE, the nearest `.tachograph` folder upwards, or the
    user's own store is used, and made where it is missing. `takeover` is the reason why a live
    owner is to be robbed. With `log_warnings` what the job logs at WARNING and above is noted in
    the run.

    With `auto_resume` the watchdog starts this program once more, as it was started, when its
    process is gone (InvalidValueError where it could not be started again, as a program read
    from stdin); `recovery` says more exactly how the run may be continued. Both count when the
    run is created. `depends_on` names runs that have to end well before this one starts.

    `policy` is a file with the gate policy that judges the run, instead of the one that the
    setting `policy` names. It is read when the block is entered (PolicyError where it cannot be
    used), so that a change meanwhile does not count.

    Entering the block raises RunOwnedError while another live process owns the run,
    InputsChangedError when `run_id` was used for other inputs, DependenciesWaitingError when
    the run has to wait, and the errors of the store.
    """
    where = None if store is None else str(store)
    if recovery is None and auto_resume:
        recovery = by_this_command(auto_resume=True)
    want = Start(
        command,
        inputs,
        run_id=run_id,
        title=title,
        parent=parent or orchestrator(),
        model_policy=model_policy,
        takeover_reason=takeover,
        recovery=recovery,
        depends_on=depends_on,
        joins=joined(),
    )

    def start() -> Session:
        services = _services(where)
        by = services.policy() if policy is None else services.policy_in(str(policy))
        session = services.starter.start(want, services.owner())
        session.judge_by(by)
        return session

    return Recording(
        start,
        lambda: _services(where).settings.heartbeat_seconds,
        log_warnings,
        lambda recording: _follower(_services(where), recording),
    )


def register_type(
    kind: type[T], name: str, encode: Callable[[T], Any], decode: Callable[[Any], T]
) -> None:
    """Let values of a type of your own be recorded, and restored on resume.

    `encode` returns plain values, `decode` takes them back. `name` is stored with each value and
    must stay the same for ever. Raises ValueError when the type or the name is taken.
    """
    _codec.register(kind, name, encode, decode)


def _follower(services: Services, recording: Recording) -> Keeper | None:
    """Return what keeps the artifact files of a run up to date, where the settings want that."""
    if services.settings.artifacts_folder is None:
        return None
    from tachograph.artifact_trees import follower

    def tell(text: str) -> None:
        with contextlib.suppress(TachographError):
            recording.note(text, level="warning", source="artifacts")

    return follower(services, recording.id, tell)


def _services(store: str | None) -> Services:
    """Return the process's services for a store: one environment serves all its recordings."""
    folder, _origin = find(store)
    with _lock:
        services = _open.get(folder)
        if services is None:
            services = _open[folder] = open_store(folder, create=True, codec=_codec)
            if len(_open) == 1:
                atexit.register(_close_all)
        return services


def _close_all() -> None:
    while _open:
        _open.popitem()[1].close()
