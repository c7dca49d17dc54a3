"""The explicit word of a job that there is nothing to do about some items. Never an absence."""

from __future__ import annotations

from tachograph.domain import checks


class Nothing:
    """There is nothing to do about these items, and why: an answer, not the lack of one.

    Handed over as the output of a batch, it says that the batch is done and has no output, as
    None and an empty list do not. Equal when the reason is; it can be pickled.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        """Take the reason. Raises InvalidValueError for one that says nothing."""
        checks.text("reason for nothing to do", reason)
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nothing) and self.reason == other.reason

    def __hash__(self) -> int:
        return hash((Nothing, self.reason))

    def __repr__(self) -> str:
        return f"Nothing({self.reason!r})"

    def __bool__(self) -> bool:
        return False


class Spoken:
    """An output without what declares that there is nothing to do, and what it declared.

    `quiet` items were declared so, None when it is all of them; `reason` is None when it is none.

    >>> spoken = Spoken(["fix", Nothing("it is well")])
    >>> spoken.output, spoken.quiet, spoken.reason
    (['fix'], 1, 'it is well')
    """

    __slots__ = ("output", "quiet", "reason")

    def __init__(self, output: object) -> None:
        self.output = output
        self.quiet: int | None = None
        self.reason: str | None = None
        if isinstance(output, Nothing):
            self.output, self.reason = None, output.reason
        elif isinstance(output, list | tuple):
            reasons = [each.reason for each in output if isinstance(each, Nothing)]
            if reasons:
                self.output = [each for each in output if not isinstance(each, Nothing)]
                self.quiet = len(reasons)
                self.reason = "; ".join(dict.fromkeys(reasons))
