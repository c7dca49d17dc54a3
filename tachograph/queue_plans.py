"""What a project has declared of queues, health and repair. Changes no file of the project.

Commands called in loops ask for it too, so `tachograph.toml` is parsed and validated (TOML,
pydantic) only when its content has changed; the outcome is kept in the store's `views` folder.
"""

from __future__ import annotations

import os

from tachograph.domain.queue_settings import Backoff, JobType, QueuePlan, QueueSettings, Rate
from tachograph.domain.queue_thresholds import HealthThresholds, QueueThresholds
from tachograph.domain.records import _Fields
from tachograph.domain.repair_policy import ActionLimits, RepairPolicy
from tachograph.infra import project_place, settings_cache

try:
    from _blake2 import blake2b  # hashlib costs a short command 2 ms and is the same function
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services

_CACHE = "queues.cache"
_MOST_KEPT = 16
"""Contents whose outcome is kept: of projects that share a store."""
_MOST_READ = 16 << 20


class QueuePlans(_Fields):
    """What is declared. `path` is the project's file, None where there is none."""

    __slots__ = ("path", "plan", "repair", "thresholds")

    def __init__(
        self,
        plan: QueuePlan | None = None,
        thresholds: HealthThresholds | None = None,
        repair: RepairPolicy | None = None,
        path: str | None = None,
    ) -> None:
        self.plan = QueuePlan() if plan is None else plan
        self.thresholds = HealthThresholds() if thresholds is None else thresholds
        self.repair = RepairPolicy() if repair is None else repair
        self.path = path

    @property
    def folder(self) -> str:
        """Where the project's modules and commands are: the file's folder, or the current one."""
        return _here() if self.path is None else os.path.dirname(self.path)  # noqa: PTH120


def plan_of(services: Services, named: str | None = None) -> QueuePlans:
    """Return what counts for a store; `named` is the path of a project's file.

    Without one it is found by the rules of `infra.project_place.find`; where there is none, the
    defaults count. Raises ProjectFileError, and ProjectFileNotFoundError for one that is named.
    """
    return plan_in(services.folder, named)


def plan_in(store: str | None, named: str | None = None) -> QueuePlans:
    """Return what counts for the store in a folder, which need not exist yet; see `plan_of`."""
    path = project_place.find_any(named, os.environ, _here(), store)
    if path is None:
        return QueuePlans()
    content = _content(path)
    if content is None:
        return _parsed(path, None)
    cache = None if store is None else settings_cache.path(store, _CACHE)
    known = settings_cache.load(cache)
    key = blake2b(_layout() + content, digest_size=32).digest()
    found = _known(known.get(key))
    if found is None:
        found = _parsed(path, content)
        kept = {} if len(known) >= _MOST_KEPT else known
        settings_cache.keep(cache, {**kept, key: _frozen(found)})
    found.path = path
    return found


def _known(kept: object) -> QueuePlans | None:
    """Return what was kept of an outcome; None where nothing was, or other things than ours."""
    try:
        found = _thawed(kept)
    except (KeyError, TypeError, AttributeError):
        return None
    return found if isinstance(found, QueuePlans) else None


def _content(path: str) -> bytes | None:
    """Return what is in the file; None where it cannot be read, which `_parsed` tells."""
    from tachograph.infra.guarded_reading import read_guarded

    try:
        return read_guarded(path, _MOST_READ, follow_links=True)
    except OSError:
        return None


def _parsed(path: str, content: bytes | None) -> QueuePlans:
    from tachograph.infra import project_file

    said = project_file.load(path) if content is None else project_file.parse(path, content)
    return QueuePlans(said.queues, said.health, said.repair, path)


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # pathlib costs 10 ms at the start of a command
    except FileNotFoundError:  # it was deleted
        return os.sep


# What is kept of an outcome: plain values, an object as a dict with the name of its class at "".

_KINDS: dict[str, type[_Fields]] = {
    kind.__name__: kind
    for kind in (
        ActionLimits,
        Backoff,
        HealthThresholds,
        JobType,
        QueuePlan,
        QueuePlans,
        QueueSettings,
        QueueThresholds,
        Rate,
        RepairPolicy,
    )
}


def _layout() -> bytes:
    """Return what the outcome depends on besides the content: the defaults, and all names."""
    kinds = [f"{name}{kind.__slots__}" for name, kind in _KINDS.items()]
    defaults = [QueuePlans(), QueueSettings(""), JobType("")]
    return "\n".join([*kinds, *map(repr, defaults)]).encode()


def _frozen(value: Any) -> Any:
    if isinstance(value, _Fields):
        names = {name: _frozen(getattr(value, name)) for name in value.__slots__}
        return {"": type(value).__name__, **names}
    if isinstance(value, dict):
        return {name: _frozen(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(each) for each in value]
    return value


def _thawed(value: Any) -> Any:
    """Return what `_frozen` was made of; None for what is not of this kind."""
    if isinstance(value, list):
        return [_thawed(each) for each in value]
    if not isinstance(value, dict):
        return value
    fields = {name: _thawed(each) for name, each in value.items() if name}
    if "" not in value:
        return fields
    kind = _KINDS[value[""]]
    made = kind.__new__(kind)
    for name, each in fields.items():
        setattr(made, name, each)
    return made
