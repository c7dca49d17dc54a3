"""The facts that a run is judged by, and what follows from them. Judges nothing.

A fact that nobody stated and nothing counted is unsaid: it stays None, and no rule that asks
for it holds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Value = int | float | str | None

COUNT = "count"
NUMBER = "number"
TEXT = "text"

MEANINGS: dict[str, tuple[str, str]] = {
    "inputs": (COUNT, "items there were to work on"),
    "outputs": (COUNT, "usable items that came out, as the job counts them"),
    "declared": (TEXT, "the job's reason for having had nothing to do"),
    "stopped": (TEXT, "why it stopped early, such as `deadline` or `budget`"),
    "faults": (COUNT, "faults of any kind that nothing made good"),
    "extracted": (COUNT, "items found before any filter or classifier had its say"),
    "filtered": (COUNT, "items that a filter took out with an answer that could be read"),
    "asked": (COUNT, "items that were put to a model or parser"),
    "answered": (COUNT, "items that it answered at all"),
    "parsed": (COUNT, "items of the answers that could be read"),
    "accepted": (COUNT, "items that passed validation"),
    "quiet": (COUNT, "items for which the job declared that there is nothing to do"),
    "blank": (COUNT, "outputs that are whitespace or a placeholder, and so no output"),
    "provider_faults": (COUNT, "faults of a provider: no answer, an error, a refusal"),
    "parser_faults": (COUNT, "answers that could not be read"),
    "truncated_faults": (COUNT, "answers that were cut off"),
    "filter_faults": (COUNT, "answers of a filter or classifier that could not be read"),
    "tool_faults": (COUNT, "tools that failed"),
    "failed_phases": (COUNT, "phases that ended as failed"),
    "recovered": (COUNT, "faults that a later try made good: they decide nothing"),
    "effects": (COUNT, "side effects that were done"),
    "batches_done": (COUNT, "batches that are finished"),
    "batches_missing": (COUNT, "planned batches that are not finished"),
    "deadline_left_seconds": (NUMBER, "seconds to the declared deadline; negative once it passed"),
    "files_expected": (COUNT, "files that the run was to make"),
    "files_present": (COUNT, "of these, files that are there, written anew and not blank"),
    "minimum_fraction": (NUMBER, "share of the work that has to come out, from 0 to 1"),
}
"""Kind and meaning of every fact that can be stated or counted."""

DERIVED: dict[str, tuple[str, str]] = {
    "work": (COUNT, "the larger of inputs and extracted, less filtered"),
    "done": (COUNT, "outputs, or else accepted, or else parsed, or 0 before any batch is finished"),
    "produced": (COUNT, "done, or 0 where nothing counted it"),
    "made": (COUNT, "files_present, or 0 where no file was expected"),
    "accounted": (COUNT, "produced and quiet together"),
    "unaccounted": (COUNT, "work less what is accounted for"),
    "deadline_left": (TEXT, "deadline_left_seconds in words"),
}
"""Kind and meaning of every fact that follows from others."""

NAMES = frozenset(MEANINGS) | frozenset(DERIVED)
KINDS_OF_FAULT = ("provider", "parser", "truncated", "filter", "tool")
_ZERO = frozenset(
    {"faults", "effects", "quiet", "recovered", "batches_missing", "failed_phases", "blank"}
    | {f"{kind}_faults" for kind in KINDS_OF_FAULT}
)
"""Facts that are 0 when nothing happened: nobody has to say so."""


class Facts:
    """What is known of a run's work; see MEANINGS. Frozen by use: `with_` makes another one."""

    __slots__ = tuple(MEANINGS)

    if TYPE_CHECKING:
        inputs: int | None
        outputs: int | None
        declared: str | None
        stopped: str | None
        faults: int | None

    def __init__(
        self,
        inputs: int | None = None,
        outputs: int | None = None,
        declared: str | None = None,
        stopped: str | None = None,
        faults: int | None = None,
        **others: Any,
    ) -> None:
        """Take the facts that are known. Raises TypeError for one that does not exist."""
        odd = others.keys() - MEANINGS.keys()
        if odd:
            raise TypeError(f"there are no facts {sorted(odd)}: there are {', '.join(MEANINGS)}")
        for name in MEANINGS:
            setattr(self, name, others.get(name))
        self.inputs = inputs
        self.outputs = outputs
        self.declared = declared
        self.stopped = stopped
        self.faults = faults

    def value(self, name: str) -> Value:
        """Return a fact, stated or derived; None when it is unsaid. Raises KeyError."""
        derive = _DERIVE.get(name)
        if derive is not None:
            return derive(self)
        if name not in MEANINGS:
            raise KeyError(name)
        known: Value = getattr(self, name)
        if known is None and name in _ZERO:
            return self._all_faults() if name == "faults" else 0
        return known

    def number(self, name: str) -> float | None:
        """Return a fact that is a number; None when it is unsaid."""
        value = self.value(name)
        return value if isinstance(value, int | float) else None

    def _all_faults(self) -> int:
        kinds = [getattr(self, f"{kind}_faults") or 0 for kind in KINDS_OF_FAULT]
        return sum(kinds) + (getattr(self, "failed_phases") or 0)  # noqa: B009  # a table's name

    def said(self) -> dict[str, Any]:
        """Return the facts that were stated or counted."""
        found = {name: getattr(self, name) for name in MEANINGS}
        return {name: value for name, value in found.items() if value is not None}

    def to_fields(self) -> dict[str, Any]:
        """Return the stored form; `from_fields` is its inverse."""
        return self.said()

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Facts:
        """Return the facts of a stored form; what this version does not know is left out."""
        return cls(**{name: value for name, value in fields.items() if name in MEANINGS})

    def with_(self, **changes: Any) -> Facts:
        """Return these facts with some of them changed."""
        return Facts(**{**self.said(), **changes})

    def over(self, counted: Facts) -> Facts:
        """Return what these facts state, and for the rest what was counted."""
        return Facts(**{**counted.said(), **self.said()})

    def words(self) -> dict[str, object]:
        """Return every fact for a text: `?` for what is unsaid."""
        found = {name: self.value(name) for name in (*MEANINGS, *DERIVED)}
        return {name: "?" if value is None else value for name, value in found.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self.said() == other.said()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Facts({', '.join(f'{name}={value!r}' for name, value in self.said().items())})"


def span_words(seconds: float) -> str:
    """Return a span of time in words, rounded down.

    >>> span_words(2475), span_words(86_400), span_words(-5)
    ('41 min', '24 h 0 min', '0 s')
    """
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _work(facts: Facts) -> int | None:
    found: list[int] = [
        value for name in ("inputs", "extracted") if (value := getattr(facts, name)) is not None
    ]
    if not found:
        return None
    filtered: int = facts.filtered or 0  # type: ignore[attr-defined]
    return max(0, max(found) - filtered)


def _done(facts: Facts) -> int | None:
    for name in ("outputs", "accepted", "parsed"):
        value: int | None = getattr(facts, name)
        if value is not None:
            return value
    return 0 if facts.batches_done == 0 else None  # type: ignore[attr-defined]


def _made(facts: Facts) -> int:
    made: int = facts.files_present or 0  # type: ignore[attr-defined]
    return made


def _accounted(facts: Facts) -> int:
    quiet: int = facts.quiet or 0  # type: ignore[attr-defined]
    return (_done(facts) or 0) + quiet


def _unaccounted(facts: Facts) -> int | None:
    work = _work(facts)
    return None if work is None or _done(facts) is None else max(0, work - _accounted(facts))


def _deadline_left(facts: Facts) -> str | None:
    left = facts.number("deadline_left_seconds")
    return None if left is None else span_words(left)


_DERIVE: dict[str, Callable[[Facts], Value]] = {
    "work": _work,
    "done": _done,
    "produced": lambda facts: _done(facts) or 0,
    "made": _made,
    "accounted": _accounted,
    "unaccounted": _unaccounted,
    "deadline_left": _deadline_left,
}
