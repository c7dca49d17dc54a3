"""What models, parsers, filters and tools were asked within a phase, and what came back.

Facts only, folded from events: it decides nothing and refuses nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Fields = dict[str, Any]
    Span = list[int]

FAULTS = ("provider", "parser", "truncated", "filter", "tool")
"""What can go wrong when a model, parser, filter or tool is asked."""
COUNTS = ("asked", "answered", "parsed", "accepted", "filtered")
MOST_OPEN = 1_000
"""Unfinished batches that are told apart; what is said of further ones is counted together."""


class Open:
    """What the answers about one unfinished batch said so far."""

    __slots__ = ("answered", "asked", "faults", "faulty", "heard", "quiet")

    def __init__(self) -> None:
        self.faults: dict[str, int] = {}
        """By kind."""
        self.faulty: dict[str, int] = {}
        """Sums of COUNTS of the answers with a fault: they are asked again."""
        self.heard = False
        """Whether an answer without a fault came after the last one with a fault."""
        self.quiet = 0
        """Items for which it was declared that there is nothing to do."""
        self.asked = self.answered = 0
        """Items that answers were about, each as often as it was asked about."""

    def to_fields(self) -> Fields:
        """Return the stored form."""
        return {
            "faults": dict(self.faults),
            "faulty": dict(self.faulty),
            "heard": self.heard,
            "quiet": self.quiet,
            "asked": self.asked,
            "answered": self.answered,
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> Open:
        """Restore from the stored form."""
        found = cls()
        found.faults, found.faulty = dict(fields["faults"]), dict(fields["faulty"])
        for name in ("heard", "quiet", "asked", "answered"):
            setattr(found, name, fields[name])
        return found

    def mended(self, parsed: int | None) -> bool:
        """Say whether its completion makes its faults good.

        That a batch was finished says so, unless it says itself that nothing came out. What a
        filter could not read needs a better proof: with "keep nothing" a batch is finished, too.
        """
        if self.heard or parsed:
            return True
        return parsed is None and "filter" not in self.faults


class Answers:
    """What was asked within one phase (or outside any), and what came back."""

    __slots__ = ("counts", "faults", "open", "quiet", "reasons", "recovered", "spans", "tools")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Sums of COUNTS, as far as any answer said."""
        self.faults: dict[str, int] = {}
        """By kind, those that nothing made good and that no open batch holds."""
        self.open: dict[str, Open] = {}
        """By index (as text), the batches that answers were about and that are not finished."""
        self.tools: dict[str, int] = {}
        """By name, how often a tool failed outside a batch since it did its work the last time."""
        self.recovered = 0
        self.quiet = 0
        """Items for which it was declared that there is nothing to do, open batches left out."""
        self.reasons: list[str] = []
        """The first few reasons given for it."""
        self.spans: dict[str, Span] = {}
        """By fact: first and last version, and number, of the events it was counted from."""

    def to_fields(self) -> Fields:
        """Return the stored form."""
        return {
            "counts": dict(self.counts),
            "faults": dict(self.faults),
            "open": {batch: each.to_fields() for batch, each in self.open.items()},
            "tools": dict(self.tools),
            "recovered": self.recovered,
            "quiet": self.quiet,
            "reasons": list(self.reasons),
            "spans": {fact: list(span) for fact, span in self.spans.items()},
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> Answers:
        """Restore from the stored form."""
        answers = cls()
        answers.counts, answers.faults = dict(fields["counts"]), dict(fields["faults"])
        answers.open = {batch: Open.from_fields(each) for batch, each in fields["open"].items()}
        answers.tools = dict(fields["tools"])
        answers.recovered, answers.quiet = fields["recovered"], fields["quiet"]
        answers.reasons = list(fields["reasons"])
        answers.spans = {fact: list(span) for fact, span in fields["spans"].items()}
        return answers

    def seen(self, fact: str, version: int) -> None:
        """Note that an event says something about a fact."""
        span = self.spans.setdefault(fact, [version, version, 0])
        span[1] = version
        span[2] += 1

    def take(self, fields: Fields) -> None:
        """Count one answer."""
        version = fields["originator_version"]
        for name in COUNTS if is_about_items(fields) else ():
            if fields[name] is not None:
                self.counts[name] = self.counts.get(name, 0) + fields[name]
                self.seen(name, version)
        batch = self._batch(fields["batch"])
        if fields["declared"] is not None:
            self.seen("quiet", version)
            if batch is None:
                self.quiet += fields["asked"]
            else:
                batch.quiet += fields["asked"]
            if fields["declared"] not in self.reasons and len(self.reasons) < 5:
                self.reasons.append(fields["declared"])
        if batch is not None:
            batch.heard = fields["fault"] is None
            if fields["fault"] != "tool":
                batch.asked += fields["asked"]
                batch.answered += fields["answered"]
        if fields["fault"] is not None:
            self.seen("faults", version)
            self.seen(f"{fields['fault']}_faults", version)
            self._fault(fields, batch)
        self._tool(fields)

    def _batch(self, index: int | None) -> Open | None:
        """Return what is known of an unfinished batch; None when it cannot be told apart."""
        if index is None or (str(index) not in self.open and len(self.open) >= MOST_OPEN):
            return None
        return self.open.setdefault(str(index), Open())

    def _tool(self, fields: Fields) -> None:
        """Count a tool that failed outside a batch; one that then does its work made that good."""
        tool = fields["source"]
        if tool is None or fields["batch"] is not None:
            return
        if fields["fault"] == "tool":
            if tool in self.tools or len(self.tools) < MOST_OPEN:
                self.tools[tool] = self.tools.get(tool, 0) + 1
        elif fields["fault"] is None and tool in self.tools:
            mended = self.tools.pop(tool)
            self.recovered += mended
            self.faults["tool"] -= mended

    def _fault(self, fields: Fields, batch: Open | None) -> None:
        faults = self.faults if batch is None else batch.faults
        faults[fields["fault"]] = faults.get(fields["fault"], 0) + 1
        if fields["fault"] == "filter" and fields["filtered"] is None:
            self.counts.setdefault("filtered", 0)  # what could not be read took nothing out
            self.seen("filtered", fields["originator_version"])
        if batch is not None and fields["fault"] != "tool":
            for name in COUNTS:
                batch.faulty[name] = batch.faulty.get(name, 0) + (fields[name] or 0)

    def finish_batch(self, index: int, inputs: int | None, parsed: int | None) -> None:
        """Take in that a batch was finished: as a rule its faults were made good by that.

        What was asked in vain was asked again, so it counts once; and no batch holds more items
        that were asked about, or have nothing to do, than items.
        """
        batch = self.open.pop(str(index), None)
        if batch is None:
            return
        self.quiet += batch.quiet if inputs is None else min(batch.quiet, inputs)
        if batch.mended(parsed):
            self.recovered += sum(batch.faults.values())
        else:
            for kind, times in batch.faults.items():
                self.faults[kind] = self.faults.get(kind, 0) + times
        if batch.heard:
            self._take_back(batch)
        for name, count in (("asked", batch.asked), ("answered", batch.answered)):
            if inputs is not None and count > inputs:
                self.counts[name] -= count - inputs

    def _take_back(self, batch: Open) -> None:
        """Leave out what was asked in vain, since it was asked again."""
        for name, count in batch.faulty.items():
            if count:
                self.counts[name] -= count
        batch.asked -= batch.faulty.get("asked", 0)
        batch.answered -= batch.faulty.get("answered", 0)

    def all_quiet(self) -> int:
        """Return the number of items for which it was declared that there is nothing to do."""
        return self.quiet + sum(batch.quiet for batch in self.open.values())

    def unmended(self) -> dict[str, int]:
        """Return the number of faults by kind that nothing made good."""
        total = {kind: times for kind, times in self.faults.items() if times}
        for batch in self.open.values():
            for kind, count in batch.faults.items():
                total[kind] = total.get(kind, 0) + count
        return total


def is_about_items(fields: Fields) -> bool:
    """Say whether an answer tells of items that were put to a model, parser or filter.

    A tool that failed does not, nor does a call that was about no item at all.
    """
    return fields["fault"] != "tool" and any(fields[name] for name in COUNTS)
