"""Where in a value the part stands that cannot be stored. Runs only after a refusal."""

from __future__ import annotations

from tachograph.infra.msgpack_plain import MAX_DEPTH, NATIVE_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_STEPS = 6
_LAST_STEPS = 2
_SHOWN_CHARACTERS = 60
_SHOWN_BITS = 128


def place_of(root: str, steps: list[str]) -> str:
    """Return the place that `steps`, the innermost first, lead to: `inputs.files[3].mtime`."""
    ordered = steps[::-1]
    if len(ordered) > _FIRST_STEPS + _LAST_STEPS + 1:
        ordered[_FIRST_STEPS:-_LAST_STEPS] = ["…"]
    place = root + "".join(ordered)
    return place if root else place.removeprefix(".") or "value"


def step_of(key: object) -> str:
    """Return how a place goes on at this key of a dict: `.name` or `['a key']`."""
    if type(key) is str and key.isidentifier():
        return f".{key}"
    if type(key) not in NATIVE_TYPES or (type(key) is int and key.bit_length() > _SHOWN_BITS):
        return f"[<{type(key).__name__}>]"
    return f"[{repr(key)[:_SHOWN_CHARACTERS]}]"


def find_cycle(value: object) -> tuple[list[str], str] | None:
    """Return the steps, the innermost first, to a container inside itself, and its type's name."""
    return _find_cycle(value, [], set())


def _find_cycle(value: object, above: list[int], seen: set[int]) -> tuple[list[str], str] | None:
    if id(value) in above:
        return [], type(value).__name__
    if id(value) in seen or len(above) > MAX_DEPTH:
        return None
    seen.add(id(value))
    above.append(id(value))
    for step, part in _parts(value):
        found = _find_cycle(part, above, seen)
        if found is not None:
            found[0].append(step)
            return found
    above.pop()
    return None


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if type(value) is dict:
        for key, part in value.items():
            yield step_of(key), part
    elif type(value) is list or type(value) is tuple:
        for index, part in enumerate(value):
            yield f"[{index}]", part
