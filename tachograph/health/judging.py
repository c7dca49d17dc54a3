"""Whether a repair helped: judged for each action by itself, and only once it can be seen.

A requeue is seen when its jobs have ended again, which may be cycles later; what another action
did in the same cycle, or the score of the whole, says nothing about it.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields
from tachograph.domain.repair_policy import ACTIONS, RELEASE, REQUEUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.repairs import Repairs
    from tachograph.queues.gatekeeping import Gatekeeper

    Fields = dict[str, Any]
    Fate = Callable[[str, str, Fields], str]
    """Says by action, job id, and what is kept of the repair, what became of the job since."""

DONE = "done"
"""The job went on: it was completed, or (after a release) taken by a holder that is not lost."""
AGAIN = "again"
"""It is where it was: dead again, or its holder is lost again."""
WAITS = "waits"
GONE = "gone"
"""Somebody cancelled or pruned it: it says nothing about the repair."""

PATIENCE_US = 24 * 3600 * 1_000_000
"""How long the effect of a repair is waited for."""
HELPED_SHARE = 0.1
"""Jobs, of those that show it, which have to go on for the repair to have helped.

Not a single one: one good job among many that cannot succeed would keep these going for ever.
"""


class Judged(_Fields):
    """A repair whose effect was seen."""

    __slots__ = ("action", "evidence", "improved", "repair")

    def __init__(
        self, action: str, repair: str, evidence: Fields, *, improved: bool | None
    ) -> None:
        self.action = action
        self.repair = repair
        self.improved = improved
        self.evidence = evidence

    def to_fields(self) -> Fields:
        """Return it as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


class Judging:
    """Judges repairs by what the log says became of their jobs."""

    def __init__(self, gatekeeper: Gatekeeper, fate: Fate, now_us: Callable[[], int]) -> None:
        self._gatekeeper = gatekeeper
        self._fate = fate
        self._now_us = now_us

    def judge_all(self) -> list[Judged]:
        """Judge every repair whose effect can be seen now, and record it; return these."""
        return [judged for action in ACTIONS for judged in self.judge(action)]

    def judge(self, action: str, *, wanted: bool = True) -> list[Judged]:
        """Do so for the repairs of one action, earliest first.

        `wanted` says whether the action would still be recommended: one that found nothing to do
        any more, since another action of the cycle had done it, is not to blame.
        """
        found = []
        for repair, kept in self._gatekeeper.get(action).unjudged.items():
            seen = self.seen(action, {**kept, "repair": repair}, wanted=wanted)
            if seen is not None:
                improved, evidence = seen
                judged = Judged(action, repair, evidence, improved=improved)
                self._record(judged)
                found.append(judged)
        return found

    def _record(self, judged: Judged) -> None:
        def command(repairs: Repairs, cause: Cause) -> None:
            policy = self._gatekeeper.policy
            repairs.judge(cause, policy, judged.repair, judged.evidence, improved=judged.improved)

        self._gatekeeper.decide(judged.action, command)

    def seen(
        self, action: str, kept: Fields, *, wanted: bool = True
    ) -> tuple[bool | None, Fields] | None:
        """Return whether a repair helped, and what says so; None while it cannot be seen."""
        if not kept["success"]:
            return False, {"text": f"it failed: {kept['message']}"}
        if kept["watched"] and action in (REQUEUE, RELEASE):
            return self._by_jobs(action, kept)
        return by_what_went(kept, wanted=wanted)

    def _by_jobs(self, action: str, kept: Fields) -> tuple[bool | None, Fields] | None:
        fates = [self._fate(action, job_id, kept) for job_id in kept["watched"]]
        counts = {name: fates.count(name) for name in (DONE, AGAIN, WAITS, GONE)}
        waited_out = self._now_us() - kept["ended_us"] > PATIENCE_US
        helped = decided(counts, waited_out=waited_out)
        if helped is None and counts[WAITS] and not waited_out:
            return None
        return helped, {"text": in_words(action, counts), **counts}


def decided(counts: Fields, *, waited_out: bool = False) -> bool | None:
    """Return whether a repair helped, by the fates of its jobs; None while that is open.

    It is decided as soon as those that still wait can change nothing.

    >>> open_ones = {"done": 0, "again": 40, "waits": 2, "gone": 0}
    >>> decided(open_ones), decided(open_ones | {"waits": 9}), decided(open_ones | {"done": 6})
    (False, None, True)
    """
    done, waits = counts[DONE], 0 if waited_out else counts[WAITS]
    needed = HELPED_SHARE * (done + counts[AGAIN] + waits)
    if done and done >= needed:
        return True
    return False if done + waits < needed else None


def by_what_went(kept: Fields, *, wanted: bool = True) -> tuple[bool | None, Fields]:
    """Judge a repair by what it affected: nothing at all, where there is something to do, is bad.

    >>> by_what_went({"affected": 0, "baseline": {"expected": 7}})
    (False, {'text': '0 of 7 affected', 'affected': 0, 'expected': 7})
    """
    affected = kept["affected"]
    expected = (kept["baseline"] or {}).get("expected", 0)
    evidence = {"text": f"{affected} affected", "affected": affected}
    if expected:
        evidence.update(text=f"{affected} of {expected} affected", expected=expected)
    if affected:
        return True, evidence
    return (False if expected and wanted else None), evidence


def in_words(action: str, counts: Fields) -> str:
    """Return what became of the jobs of a repair."""
    again = "died again" if action == REQUEUE else "lost their holder again"
    done = "were completed" if action == REQUEUE else "went on"
    words = [
        f"{counts[name]} {said}"
        for name, said in ((DONE, done), (AGAIN, again), (WAITS, "still wait"), (GONE, "are gone"))
        if counts[name]
    ]
    return f"of its jobs {', '.join(words)}"
