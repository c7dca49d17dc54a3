"""Which items of a batch checkpoint came out of which batch: its file does not say. Pure."""

from __future__ import annotations

from tachograph.domain.ids import compact_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from typing import Any

    from tachograph.domain.index_set import IndexSet

_INDEX_NAMES = ("incidentIndex", "incident_index", "_batchIndex")

BY_INDEX = "index"
BY_PLACE = "place"
NOT_ATTRIBUTED = "none"
"""How the items of a batch checkpoint were given to its batches."""


class Attribution:
    """The items of a batch checkpoint by the batches they came out of.

    `outputs` holds a list for every finished batch; `unattributed` the items that belong to
    none of them as far as anybody can tell; `how` is BY_INDEX, BY_PLACE or NOT_ATTRIBUTED.
    """

    __slots__ = ("how", "outputs", "unattributed")

    def __init__(self, outputs: dict[int, list[Any]], unattributed: list[Any], how: str) -> None:
        self.outputs = outputs
        self.unattributed = unattributed
        self.how = how


def attribute(
    value: Mapping[str, Any], *, known: IndexSet | Container[int] = (), recorded: Iterable[Any] = ()
) -> Attribution:
    """Give the items of a batch checkpoint to its finished batches.

    By the global index that each item names; where none names one, by place when the finished
    batches explain their number; else to no batch. Batches that are `known` have their `recorded`
    items already and get no others. No item is lost or counted twice.
    """
    done = [index for index in sorted(value["completedBatchIndexes"]) if index not in known]
    size, items = value["batchSize"], _without(value["analysed"], recorded)
    named = [item_index(item) for item in items]
    if any(index is not None for index in named):
        shared = _by_index(done, size, items, named)
        # More items than a batch has: the indexes count within each batch, and say nothing here.
        if all(len(share) <= size for share in shared.outputs.values()):
            return shared
    if done and _explains(done, size, value["totalBatches"], len(items)):
        shares = {index: items[at * size : (at + 1) * size] for at, index in enumerate(done)}
        return Attribution(shares, [], BY_PLACE)
    return Attribution({index: [] for index in done}, items, NOT_ATTRIBUTED)


def _without(items: Iterable[Any], recorded: Iterable[Any]) -> list[Any]:
    """Return the items but those recorded; of equal ones, as many stay as were not."""
    counts: dict[str, int] = {}
    for item in recorded:
        text = compact_json(item, sort_keys=True)
        counts[text] = counts.get(text, 0) + 1
    left = []
    for item in items:
        text = compact_json(item, sort_keys=True) if counts else ""
        if counts.get(text):
            counts[text] -= 1
        else:
            left.append(item)
    return left


def item_index(item: Any) -> int | None:
    """Return the global index that an item names, as a number or the text of one.

    >>> item_index({"incidentIndex": "7"}), item_index({"incident_index": 2}), item_index({})
    (7, 2, None)
    """
    if not isinstance(item, dict):
        return None
    for name in _INDEX_NAMES:
        index = item.get(name)
        if isinstance(index, str) and index.isascii() and index.isdecimal() and len(index) < 16:
            return int(index)
        if isinstance(index, float) and index.is_integer():
            index = int(index)
        if isinstance(index, int) and not isinstance(index, bool) and index >= 0:
            return index
    return None


def _by_index(done: list[int], size: int, items: list[Any], named: list[int | None]) -> Attribution:
    outputs: dict[int, list[Any]] = {index: [] for index in done}
    unattributed: list[Any] = []
    for item, index in zip(items, named, strict=True):
        batch = outputs.get(index // size) if index is not None else None
        (unattributed if batch is None else batch).append(item)
    return Attribution(outputs, unattributed, BY_INDEX)


def _explains(done: list[int], size: int, total: int, count: int) -> bool:
    """Say whether whole batches hold exactly so many items; the very last may be short."""
    whole = len(done) * size
    return count == whole or (done[-1] == total - 1 and whole - size < count < whole)
