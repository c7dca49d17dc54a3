"""The JSON of the three checkpoint stores of job runs, to and from a run. Reads no file.

`checkpoint_json(run, outputs, fingerprint=…, updated_us=…, state=…)` is what `checkpoint.json`
holds; `checkpoint_phase(run)` names the phase whose outputs it wants.
"""

from __future__ import annotations

from tachograph.domain.iso_time import iso_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from tachograph.domain.run_state import Phase, RunState

    Fields = dict[str, Any]

BATCH_VERSION = 1
"""Of the batch shape; a reader takes no other."""
BATCH = "batch"
"""Kind of a saved checkpoint that holds what a batch checkpoint says and no batch of a run does."""
OFFSET_FIELDS = ("offset", "total", "migrated", "skipped")
MOST_BATCHES = 1_000_000
"""More are no plan of a job that saves a file after each of them."""
MOST_UNITS = 2**53 - 1
"""Beyond this, the numbers of JSON are no longer exact everywhere."""


# From a run.


def checkpoint_phase(run: RunState) -> str | None:
    """Return the phase whose batches a resume goes on with; None when that is no batch phase.

    It is the phase with a batch plan that was at work last, unless the job has saved a
    checkpoint of its own after that.
    """
    planned = [phase for phase in run.phases.values() if phase.total is not None]
    if not planned:
        return None
    last = max(planned, key=lambda phase: phase.last_version)
    saved = run.checkpoint
    if saved is None or saved["kind"] == BATCH or saved["version"] <= last.last_version:
        return last.name
    return None


def checkpoint_json(
    run: RunState,
    outputs: Iterable[tuple[int, Any]] = (),
    *,
    fingerprint: str | None = None,
    updated_us: int | None = None,
    state: Any = None,
) -> Any:
    """Return what the run's `checkpoint.json` holds; None when a resume would start anew.

    `outputs` are (index, output) of the finished batches of `checkpoint_phase(run)`, in any
    order, with each output loaded; `state` is the loaded state of `run.checkpoint`.
    `fingerprint` and `updated_us` (microseconds) default to those of the run.
    """
    moment = run.updated_us if updated_us is None else updated_us
    name = checkpoint_phase(run)
    if name is not None:
        is_rest = run.checkpoint is not None and run.checkpoint["kind"] == BATCH
        rest = state if is_rest and isinstance(state, dict) else {}
        return batch_json(
            run.phases[name],
            outputs,
            incidents_hash=str(rest.get("incidents_hash") or fingerprint or run.fingerprint),
            diagnostics={**_counters(run), **rest.get("diagnostics", {})},
            unattributed=rest.get("unattributed", ()),
            updated_us=moment,
        )
    if run.checkpoint is None:
        return None
    if run.checkpoint["kind"] == "offset":
        return offset_json(state, moment)
    return state


def batch_json(
    phase: Phase,
    outputs: Iterable[tuple[int, Any]],
    *,
    incidents_hash: str,
    diagnostics: Mapping[str, float],
    unattributed: Sequence[Any] = (),
    updated_us: int,
) -> Fields:
    """Return a batch checkpoint: every finished batch with what came out of it, in batch order."""
    analysed: list[Any] = []
    for _index, output in sorted(outputs, key=lambda pair: pair[0]):
        analysed.extend(items_of(output))
    return {
        "version": BATCH_VERSION,
        "incidentsHash": incidents_hash,
        "batchSize": phase.size,
        "totalBatches": phase.total or 0,
        "completedBatchIndexes": indexes_of(phase.done.ranges),
        "analysed": [*analysed, *unattributed],
        "diagnostics": dict(diagnostics),
        "updatedAt": iso_stamp(updated_us),
    }


def offset_json(state: Mapping[str, Any], updated_us: int) -> Fields:
    """Return an offset checkpoint; counters of the job's own follow the four of the shape."""
    shape = {name: state.get(name, 0) for name in OFFSET_FIELDS}
    more = {name: value for name, value in state.items() if name not in (*OFFSET_FIELDS, "ts")}
    return {**shape, **more, "ts": updated_us // 1000}


def items_of(output: Any) -> list[Any]:
    """Return the items of a batch's output: those of a list, else the output as one item."""
    if isinstance(output, list | tuple):
        return list(output)
    return [] if output is None else [output]


def indexes_of(ranges: Iterable[Sequence[int]]) -> list[int]:
    """Return the members of ranges in order.

    >>> indexes_of([[0, 2], [5, 5]])
    [0, 1, 2, 5]
    """
    return [index for first, last in ranges for index in range(first, last + 1)]


# From JSON.


def batch_fault(value: Any) -> str | None:
    """Say why JSON is no batch checkpoint that could be loaded; None when it is one.

    >>> batch_fault({"version": 2})
    'its version is 2, not 1'
    """
    if not isinstance(value, dict):
        return "it is no JSON object"
    version = value.get("version")
    if type(version) is not int or version != BATCH_VERSION:
        return f"its version is {version!r}, not {BATCH_VERSION}"
    if not isinstance(value.get("incidentsHash"), str):
        return "incidentsHash is no text"
    for name in ("completedBatchIndexes", "analysed"):
        if not isinstance(value.get(name), list):
            return f"{name} is no list"
    return None


def batch_size_fault(value: Mapping[str, Any]) -> str | None:
    """Say which of the sizes of a batch checkpoint cannot be; None when all of them can.

    Stricter than loading: what goes into the log has to hold for ever.
    """
    for name, bound, most in (("batchSize", 1, MOST_UNITS), ("totalBatches", 0, MOST_BATCHES)):
        if not _whole(value.get(name)) or value[name] < bound:
            return f"{name} is {value.get(name)!r}, not a whole number of {bound} or more"
        if value[name] > most:
            return f"{name} is {value[name]}, and no more than {most} can be"
    done, total = value["completedBatchIndexes"], value["totalBatches"]
    for index in done:
        if not _whole(index) or not 0 <= index < total:
            return f"completedBatchIndexes holds {index!r}, and there are {total} batches"
    if len(set(done)) != len(done):
        return "completedBatchIndexes holds an index twice"
    if len(value["analysed"]) > value["batchSize"] * total:
        return f"analysed holds {len(value['analysed'])} items, more than all batches together"
    diagnostics = value.get("diagnostics", {})
    if not isinstance(diagnostics, dict) or not all(map(_number, diagnostics.values())):
        return "diagnostics are no numbers by name"
    return None


def batch_mismatch(
    value: Mapping[str, Any], fingerprint: str, batch_size: int, total_batches: int
) -> str | None:
    """Say why a resume must not go on from a batch checkpoint; None when it may.

    >>> batch_mismatch({"incidentsHash": "0dc845e1"}, "9d1a7bde", 25, 4)
    "incidentsHash is '0dc845e1', and the run's is '9d1a7bde'"
    """
    wanted = {
        "incidentsHash": fingerprint,
        "batchSize": batch_size,
        "totalBatches": total_batches,
    }
    for name, expected in wanted.items():
        if value.get(name) != expected:
            return f"{name} is {value.get(name)!r}, and the run's is {expected!r}"
    return None


def offset_fault(value: Any) -> str | None:
    """Say why JSON is no offset checkpoint that could be loaded; None when it is one."""
    if not isinstance(value, dict):
        return "it is no JSON object"
    for name in ("offset", "total"):
        if not _number(value.get(name)):
            return f"{name} is {value.get(name)!r}, not a number"
    return None


def offset_size_fault(value: Mapping[str, Any]) -> str | None:
    """Say which number of an offset checkpoint cannot be; None when all of them can."""
    for name in OFFSET_FIELDS:
        number = value.get(name, 0)
        if not _number(number) or number != int(number) or number < 0:
            return f"{name} is {number!r}, not a whole number of 0 or more"
        if number > MOST_UNITS:
            return f"{name} is {number!r}, and no more than {MOST_UNITS} can be"
    if value["offset"] > value["total"]:
        return f"offset is {value['offset']}, beyond the total of {value['total']}"
    return None


def offset_mismatch(value: Mapping[str, Any], total: int) -> str | None:
    """Say why a resume must not go on from an offset checkpoint; None when it may."""
    if value.get("total") != total:
        return f"total is {value.get('total')!r}, and there are {total} now"
    return None


def offset_state(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that a run's offset checkpoint holds, as whole numbers where it can."""
    return {
        name: int(number) if _number(number) and number == int(number) else number
        for name, number in value.items()
        if name != "ts"
    }


def rest_state(
    *, incidents_hash: str | None, diagnostics: Mapping[str, float], unattributed: Sequence[Any]
) -> Fields:
    """Return the state of a BATCH checkpoint."""
    rest: Fields = {"diagnostics": dict(diagnostics), "unattributed": list(unattributed)}
    if incidents_hash is not None:
        rest["incidents_hash"] = incidents_hash
    return rest


def _counters(run: RunState) -> dict[str, int]:
    return {
        name: count
        for name, count in (("retries", run.retries), ("fallbacks", run.fallbacks))
        if count
    }


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    """Say whether a value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value - value == 0
