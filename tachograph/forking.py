"""Start a new run that shares what another one has done, up to a point of its history.

The source is read and never written. The fork is one append, all or nothing (G2); payloads are
shared by reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.domain import errors, ids
from tachograph.domain.audit_state import FORK
from tachograph.domain.event import Cause
from tachograph.domain.forking import SHARED, check_source, repeated_effects
from tachograph.domain.records import _Fields
from tachograph.domain.recovery import Recovery
from tachograph.domain.run import Run
from tachograph.relatives import fork_family

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tachograph.domain.records import Record
    from tachograph.ports import Progress
    from tachograph.runs import RunRepository
    from tachograph.session import Actor

    Fields = dict[str, Any]

LATEST = "latest"
PHASE = "phase:"
"""Says that a name is one of a phase, where it could be read otherwise."""
PAGE = 500
"""Events read at a time."""
MOST_EVENTS = 200_000
MOST_BYTES = 256 * 2**20
"""What one append may hold: a fork is all or nothing, so all of it is in memory at once."""


class Forked(_Fields):
    """A fork that was made.

    `version` is the last event of the source that it shares, `shared` the number of events that
    it recorded anew, `in_doubt` the effects that may have happened, `repeated` those that were
    begun elsewhere, later, and that may be done once more. `source_goes_on` says that the source
    has not ended: what it begins from now on, the fork does not know of. `unknown` are runs of
    the same family of which nobody can tell what they have begun.
    """

    __slots__ = (
        "in_doubt",
        "repeated",
        "run_id",
        "shared",
        "source",
        "source_goes_on",
        "unknown",
        "version",
    )

    def __init__(
        self,
        run: Run,
        source: Run,
        version: int,
        *,
        shared: int,
        repeated: Sequence[str],
        unknown: Sequence[str] = (),
    ) -> None:
        self.run_id = run.id
        self.source = source.id
        self.version = version
        self.shared = shared
        self.in_doubt = run.effects_in_doubt
        self.repeated = list(repeated)
        self.source_goes_on = not source.finished
        self.unknown = list(unknown)


def fork(
    repository: RunRepository,
    actor: Actor,
    source_id: str,
    point: str = LATEST,
    *,
    run_id: str | None = None,
    title: str | None = None,
    reason: str | None = None,
    repeat_effects: bool = False,
    progress: Progress | None = None,
) -> Forked:
    """Start a run that shares the work of another one up to a point, durable on return.

    `point` is a version, `latest` (its last checkpoint), or a phase (up to its start). Without a
    `run_id` it becomes the next execution of the source's id. Nobody owns it yet: whoever starts
    it goes on from there.

    Raises:
        RunNotFoundError: there is no such run.
        ForkPointError: it has no such point.
        ForkRefusedError: its events are erased, or too many for one append.
        EffectsRepeatedError: effects would be done again, and `repeat_effects` is not given.
        RunExistsError: the `run_id` is taken.
        BodyLostError: an archive has lost what is to be shared.

    """
    source = repository.get(source_id)
    if source is None:
        raise errors.RunNotFoundError(source_id, "")
    check_source(source)
    last = find_point(repository, source, point)
    at = repository.get(source_id, up_to=last.version) or source
    begun, unknown = _begun_elsewhere(repository, source, at)
    if begun and not repeat_effects:
        named = [
            repr(key) if run_id == source_id else f"{key!r} (in {run_id})"
            for key, run_id in begun.items()
        ]
        raise errors.EffectsRepeatedError(source_id, last.version, ", ".join(named))
    repeated = list(begun)
    origin = {
        "kind": FORK,
        "run": source_id,
        "version": last.version,
        "position": last.position,
        "digest": last.digest.hex(),
        "reason": reason,
        "repeats": repeated,
    }
    while True:
        new_id = _free_id(repository, source_id, run_id)
        run, shared = _made(repository, actor, at, new_id, title, origin, progress)
        try:
            repository.save(run)
        except errors.VersionConflictError:
            continue  # somebody else took the id just now
        return Forked(run, source, last.version, shared=shared, repeated=repeated, unknown=unknown)


def _begun_elsewhere(
    repository: RunRepository, source: Run, at: Run
) -> tuple[dict[str, str], list[str]]:
    """Return the effects that the fork would repeat, each with the run that has begun it.

    The source is one fork among others, perhaps: what its own source, and forks of that, have
    begun is done in the world too. Also returns the runs of which nobody can tell.
    """
    begun = dict.fromkeys(repeated_effects(source, at), source.id)
    unknown: list[str] = []
    for run_id in fork_family(repository, source.id):
        try:
            other = repository.get(run_id)
        except errors.BodyLostError:
            other = None
        if other is None or other.bodies in ("erased", "gone"):
            unknown.append(run_id)
            continue
        for key in repeated_effects(other, at):
            begun.setdefault(key, run_id)
    return begun, unknown


def find_point(repository: RunRepository, source: Run, text: str) -> Record:
    """Return the last event of a run that a fork from a point shares. Raises ForkPointError."""
    if text.isdecimal():
        version = int(text)
    elif text == LATEST:
        version = _latest(repository, source)
    else:
        version = _before_phase(source, text)
    if not 1 <= version <= source.version:
        raise errors.ForkPointError(source.id, text, f"its versions go from 1 to {source.version}")
    (record,) = repository.log.read_stream(source.id, after=version - 1, up_to=version)
    return record


def _latest(repository: RunRepository, source: Run) -> int:
    """Return the version of the last checkpoint; where none was saved, of all that was done."""
    if source.checkpoint is not None:
        version: int = source.checkpoint["version"]
        return version
    up_to: int | None = None
    while records := repository.log.read_stream(source.id, up_to=up_to, limit=PAGE, reverse=True):
        for record in records:
            if record.topic in SHARED:
                return record.version
        up_to = records[-1].version - 1
        if not up_to:
            break
    why = "it has saved no checkpoint, and done nothing that could be shared"
    raise errors.ForkPointError(source.id, LATEST, why)


def _before_phase(source: Run, text: str) -> int:
    """Return the version right before a phase was begun the first time."""
    phase = source.phases.get(text) or source.phases.get(text.removeprefix(PHASE))
    if phase is None:
        known = ", ".join(map(repr, source.phases)) or "none"
        raise errors.ForkPointError(source.id, text, f"it has no such phase, but {known}")
    return phase.version - 1


def _free_id(repository: RunRepository, source_id: str, wanted: str | None) -> str:
    exists = repository.log.stream_version
    if wanted is not None:
        if exists(ids.check_run_id(wanted)):
            raise errors.RunExistsError(wanted)
        return wanted
    base, mark, number = source_id.rpartition("~")
    is_execution = mark and number.isdecimal()
    base, execution = (base, int(number)) if is_execution else (source_id, 1)
    while exists(ids.execution_id(base, execution)):
        execution += 1
    return ids.check_run_id(ids.execution_id(base, execution))


def _made(
    repository: RunRepository,
    actor: Actor,
    at: Run,
    run_id: str,
    title: str | None,
    origin: Fields,
    progress: Progress | None,
) -> tuple[Run, int]:
    """Return a new run with the work of another one, and how many events it inherits."""
    now = actor.cause()
    run = Run.create(
        now,
        run_id,
        command=at.command,
        fingerprint=at.fingerprint,
        inputs=at.inputs,
        inputs_digest=at.inputs_digest,
        title=at.title if title is None else title,
        model_policy=at.model_policy,
    )
    shared = epoch = size = 0
    for record in _records(repository, at.id, at.version):
        if record.absent:
            raise errors.ForkRefusedError(at.id, f"its event {record.version} is erased")
        if record.topic == "run.attempt-started":
            epoch = repository.fields(record)["epoch"]
        elif record.topic in SHARED:
            then = Cause(record.time_us, now.actor, now.host, now.pid)
            shared += run.inherit(then, record.topic, repository.fields(record), epoch=epoch)
            size += len(record.body)
            _check_size(at, shared, size)
        if progress is not None:
            progress(record.version, at.version)
    if at.recovery is not None:
        run.declare_recovery(now, Recovery.from_fields(at.recovery))
    run.record_origin(now, origin)
    return run, shared


def _check_size(at: Run, events: int, size: int) -> None:
    if events > MOST_EVENTS or size > MOST_BYTES:
        why = (
            f"what it has done is more than {MOST_EVENTS} events or {MOST_BYTES >> 20} MiB, and a "
            "fork is recorded at once. Fork from an earlier version"
        )
        raise errors.ForkRefusedError(at.id, why)


def _records(repository: RunRepository, run_id: str, up_to: int) -> Iterator[Record]:
    after = 0
    while records := repository.log.read_stream(run_id, after=after, up_to=up_to, limit=PAGE):
        yield from records
        after = records[-1].version
