"""The difference between two plain values, as paths a person can read. No I/O."""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

ADDED = "added"
REMOVED = "removed"
CHANGED = "changed"

_EQUAL = (bool, int, str, bytes)
"""Types whose equal values are the same in every way."""


class Change(_Fields):
    """One place that differs.

    `path` names it (`phases.analyse.done`), `kind` is "added", "removed" or "changed"; `old` is
    None where something was added, `new` where it was removed.
    """

    __slots__ = ("kind", "new", "old", "path")

    def __init__(self, path: str, kind: str, old: Any, new: Any) -> None:
        self.path = path
        self.kind = kind
        self.old = old
        self.new = new


def changes(
    old: Mapping[Any, Any],
    new: Mapping[Any, Any],
    *,
    path: str = "",
    without: Collection[str] = (),
) -> Iterator[Change]:
    """Yield every place where `new` differs from `old`, removals first, else in `new`'s order.

    Mappings are compared key by key, everything else as a whole. `without` names keys of the
    outermost level that do not count.

    >>> [c.path for c in changes({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3, "d e": 4}})]
    ['b.c', "b.'d e'"]
    >>> [c.kind for c in changes({"a": 1, "b": 2}, {"b": True, "c": 3})]
    ['removed', 'changed', 'added']
    """
    for key in old:
        if key not in new and key not in without:
            yield Change(path_of(path, key), REMOVED, old[key], None)
    for key, value in new.items():
        if key in without or (key in old and old[key] is value):
            continue
        place = path_of(path, key)
        if key not in old:
            yield Change(place, ADDED, None, value)
        elif isinstance(value, dict) and isinstance(old[key], dict):
            yield from changes(old[key], value, path=place)
        elif not same(old[key], value):
            yield Change(place, CHANGED, old[key], value)


def same(old: Any, new: Any) -> bool:
    """Say whether two values are the same to a log, which tells 1 from True and from 1.0.

    >>> same([1, {"a": 2}], [1, {"a": 2}]), same([1], [True]), same(float("nan"), float("nan"))
    (True, False, True)
    """
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list | tuple):
        return len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, set | frozenset):
        return sorted(map(repr, old)) == sorted(map(repr, new))
    # Equality overlooks the sign of zero and the fold of a time, and fails for some decimals.
    return bool(old == new) if isinstance(old, _EQUAL) else repr(old) == repr(new)


def path_of(path: str, key: Any) -> str:
    """Return the path of a key; one that could be read in two ways is quoted.

    >>> path_of("phases", "a.b"), path_of("", 3), path_of("p", "ok-1")
    ("phases.'a.b'", '3', 'p.ok-1')
    """
    plain = isinstance(key, str) and key.replace("-", "a").replace("_", "a").isalnum()
    text = key if plain else repr(key)
    return f"{path}.{text}" if path else text
