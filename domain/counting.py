"""The facts of a run as its events have them, and where each was counted. Judges nothing."""

from __future__ import annotations

from tachograph.domain.answers import Answers
from tachograph.domain.expectations import Expectations
from tachograph.domain.facts import KINDS_OF_FAULT, Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.domain.run_state import Phase, RunState

    Evidence = dict[str, list[int]]

SECOND = 1_000_000


class Counted:
    """The facts that a run's events hold, and the evidence for each.

    `evidence` gives by fact the first and last version, and the number, of the events that say
    it. A fact without evidence says that something did not happen.
    """

    __slots__ = ("evidence", "facts", "phase")

    def __init__(self, facts: Facts, evidence: Evidence, phase: str | None) -> None:
        self.facts = facts
        self.evidence = evidence
        self.phase = phase
        """Name of the phase that speaks for the run; None when none counted anything."""


def count(run: RunState, now_us: int | None = None) -> Counted:
    """Return what a run's events say; `now_us` is the time to which a deadline is compared.

    The last phase that counted speaks for the run, unless nothing came out of an earlier one:
    what follows that cannot make it good. A phase that filters speaks only where no other does.
    Faults count wherever they happened; what was declared about items, where they were.
    """
    found: dict[str, Any] = {}
    evidence: Evidence = {}
    spoken = _spoken(run)
    if spoken is not None:
        _count_phase(run, spoken, found, evidence)
    _count_filters(run, found, evidence)
    _count_faults(run, found, evidence)
    _count_quiet(run, spoken, found, evidence)
    _count_phases(run, found, evidence)
    _count_effects(run, found, evidence)
    _count_expectations(run, now_us, found, evidence)
    return Counted(Facts(**found), evidence, spoken)


def _spoken(run: RunState) -> str | None:
    counted = [name for name in _names(run) if _speaks(run, name)]
    counted = [name for name in counted if not _filters(run, name)] or counted
    fruitless = [name for name in counted if _fruitless(run, name)]
    return next(iter(fruitless[:1] or counted[-1:]), None)


def _names(run: RunState) -> list[str]:
    outside = [name for name in run.answers if name not in run.phases]
    return [*run.phases, *outside]


def _speaks(run: RunState, name: str) -> bool:
    phase, answers = run.phases.get(name), run.answers.get(name)
    if phase is not None and (phase.inputs is not None or phase.parsed is not None):
        return True
    return answers is not None and bool(answers.counts) and not _filters(run, name)


def _filters(run: RunState, name: str) -> bool:
    """Say whether the phase decided what there is to do: its output is no output."""
    return name in run.answers and "filtered" in run.answers[name].counts


def _fruitless(run: RunState, name: str) -> bool:
    phase, answers = run.phases.get(name), run.answers.get(name) or Answers()
    inputs = None if phase is None else phase.inputs
    parsed = None if phase is None else phase.parsed
    if inputs is None:
        inputs = answers.counts.get("asked")
    if parsed is None:
        parsed = answers.counts.get("accepted", answers.counts.get("parsed"))
    return bool(inputs) and parsed == 0 and answers.all_quiet() < (inputs or 0)


def _count_phase(run: RunState, name: str, found: dict[str, Any], evidence: Evidence) -> None:
    phase, answers = run.phases.get(name), run.answers.get(name) or Answers()
    for fact in ("asked", "answered", "parsed", "accepted"):
        if fact in answers.counts:
            found[fact] = answers.counts[fact]
            evidence[fact] = list(answers.spans[fact])
    span = None if phase is None else _batches(phase)
    if phase is not None and span is not None:
        for fact, value in (("inputs", phase.inputs), ("outputs", phase.parsed)):
            if value is not None:
                found[fact] = value
                evidence[fact] = span
    if "inputs" not in found and "asked" in answers.counts:
        found["inputs"] = answers.counts["asked"]
        evidence["inputs"] = list(answers.spans["asked"])


def _batches(phase: Phase) -> list[int] | None:
    """Return where the batches of a phase were recorded."""
    finished = len(phase.done)
    return [phase.batch_version, phase.last_batch_version, finished] if finished else None


def _count_filters(run: RunState, found: dict[str, Any], evidence: Evidence) -> None:
    filters = [run.answers[name] for name in run.answers if _filters(run, name)]
    if filters:
        found["filtered"] = sum(each.counts["filtered"] for each in filters)
        found["extracted"] = sum(each.counts["asked"] for each in filters)
        _join(evidence, "filtered", filters, "filtered")
        _join(evidence, "extracted", filters, "asked")


def _count_faults(run: RunState, found: dict[str, Any], evidence: Evidence) -> None:
    every = list(run.answers.values())
    faults: dict[str, int] = {}
    for answers in every:
        for kind, times in answers.unmended().items():
            faults[kind] = faults.get(kind, 0) + times
    for kind in KINDS_OF_FAULT:
        if kind in faults:
            found[f"{kind}_faults"] = faults[kind]
            _join(evidence, f"{kind}_faults", every, f"{kind}_faults")
    recovered = sum(answers.recovered for answers in every)
    if recovered:
        found["recovered"] = recovered
        _join(evidence, "recovered", [each for each in every if each.recovered], "faults")


def _count_quiet(
    run: RunState, spoken: str | None, found: dict[str, Any], evidence: Evidence
) -> None:
    every = list(run.answers.values())
    speaking = every if spoken is None else [run.answers.get(spoken) or Answers()]
    quiet = sum(answers.all_quiet() for answers in speaking)
    if quiet:
        found["quiet"] = quiet
        _join(evidence, "quiet", speaking, "quiet")


def _join(evidence: Evidence, fact: str, answers: list[Answers], span: str) -> None:
    """Put the spans of several phases together; what was counted has one in one of them."""
    spans = [each.spans[span] for each in answers if span in each.spans]
    first, last = min(each[0] for each in spans), max(each[1] for each in spans)
    evidence[fact] = [first, last, sum(each[2] for each in spans)]


def _count_phases(run: RunState, found: dict[str, Any], evidence: Evidence) -> None:
    failed = [phase for phase in run.phases.values() if phase.status == "failed"]
    if failed:
        versions = [phase.last_version for phase in failed]
        found["failed_phases"] = len(failed)
        evidence["failed_phases"] = [min(versions), max(versions), len(failed)]
    _count_batches(run, found, evidence)
    blank = [phase for phase in run.phases.values() if phase.blank]
    if blank:
        found["blank"] = sum(phase.blank for phase in blank)
        spans = [span for phase in blank if (span := _batches(phase)) is not None]
        first, last = min(span[0] for span in spans), max(span[1] for span in spans)
        evidence["blank"] = [first, last, sum(span[2] for span in spans)]


def _count_batches(run: RunState, found: dict[str, Any], evidence: Evidence) -> None:
    cut = [phase for phase in run.phases.values() if phase.done or phase.total is not None]
    if not cut:
        return
    found["batches_done"] = sum(len(phase.done) for phase in cut)
    spans = [span for phase in cut if (span := _batches(phase)) is not None]
    if spans:
        first, last = min(span[0] for span in spans), max(span[1] for span in spans)
        evidence["batches_done"] = [first, last, found["batches_done"]]
    missing = sum(phase.count_missing() for phase in cut)
    if missing:
        found["batches_missing"] = missing


def _count_effects(run: RunState, found: dict[str, Any], evidence: Evidence) -> None:
    done = [effect for effect in run.effects.values() if effect["status"] == "done"]
    if done:
        versions = [effect["version"] for effect in done]
        found["effects"] = len(done)
        evidence["effects"] = [min(versions), max(versions), len(done)]


def _count_expectations(
    run: RunState, now_us: int | None, found: dict[str, Any], evidence: Evidence
) -> None:
    expected = Expectations.from_fields(run.expectations)
    span = [run.expectations_version, run.expectations_version, 1]
    for fact in ("extracted", "minimum_fraction"):
        if getattr(expected, fact) is not None:
            found[fact] = getattr(expected, fact)
            evidence[fact] = span
    # What was declared counts where more was declared than was counted: the rest is missing.
    if expected.inputs is not None and expected.inputs >= (found.get("inputs") or 0):
        found["inputs"] = expected.inputs
        evidence["inputs"] = span
    if expected.files:
        found["files_expected"] = len(expected.files)
        evidence["files_expected"] = span
    if expected.deadline_us is not None and now_us is not None:
        found["deadline_left_seconds"] = round((expected.deadline_us - now_us) / SECOND, 3)
        evidence["deadline_left_seconds"] = span
