"""What a resume would do, as data: the dry run and the resume itself go by the same plan (G11).

Pure: what was found out about processes, files and programs comes in as `Findings`.
"""

from __future__ import annotations

from tachograph.domain import attention, outcome
from tachograph.domain.records import _Fields
from tachograph.domain.recovery import ASK, RETRY, SKIP, Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from tachograph.domain.liveness import Liveness
    from tachograph.domain.run import Run
    from tachograph.domain.run_state import Phase

REUSE = "reuse"
GO_ON = "go on"
RUN_AGAIN = "run again"
DO_AGAIN = "do again"
COUNT_AS_DONE = "count as done"
ASK_PERSON = "ask a person"

FINISHED = "finished"
OWNED = "owned"
WAITING = "waiting"
STOPPED = "ended_by_itself"
RETRIES = attention.MAX_RETRIES
TOO_EARLY = "too_early"
NOT_BEGUN = "not_begun"
PERSON_ASKED = "person_asked"

GOOD = "good"
"""State of an artifact or trace; others say what is wrong with it."""


class Findings(_Fields):
    """What was found out about a run, besides its events.

    `liveness` of its open attempt, None without one. `artifacts` and `traces` say for each what
    was found: GOOD, or what is wrong. `waiting_for` are the runs that it depends on and that have
    not ended well yet, `never` those that can no more, `cycle` those that wait for it.
    `execute` is what would be run (kind, argv, folder, timeout_seconds), and `problem` why
    nothing can be. `now_us` is the wall time.
    """

    __slots__ = (
        "artifacts",
        "cycle",
        "execute",
        "liveness",
        "never",
        "now_us",
        "problem",
        "traces",
        "waiting_for",
    )

    def __init__(
        self,
        now_us: int,
        *,
        liveness: Liveness | None = None,
        artifacts: Mapping[str, str] | None = None,
        traces: Sequence[Mapping[str, Any]] = (),
        waiting_for: Sequence[str] = (),
        never: Sequence[str] = (),
        cycle: Sequence[str] = (),
        execute: Mapping[str, Any] | None = None,
        problem: str | None = None,
    ) -> None:
        self.now_us = now_us
        self.liveness = liveness
        self.artifacts = dict(artifacts or {})
        self.traces = [dict(trace) for trace in traces]
        self.waiting_for = list(waiting_for)
        self.never = list(never)
        self.cycle = list(cycle)
        self.execute = None if execute is None else dict(execute)
        self.problem = problem


class Obstacle(_Fields):
    """Why a run cannot be resumed now.

    `code` names the rule, `text` says it for people. `despite` tells that a person may resume
    all the same, with a reason.
    """

    __slots__ = ("code", "despite", "text")

    def __init__(self, code: str, text: str, *, despite: bool = False) -> None:
        self.code = code
        self.text = text
        self.despite = despite


class Plan:
    """What a resume does with every part of a run; `obstacles` are empty when it may begin.

    `version` is the run's version that it was made at: the resume is recorded at this version
    or not at all.
    """

    def __init__(self, run: Run, found: Findings, *, unattended: bool) -> None:
        declared = Recovery.from_fields(run.recovery)
        self.run_id = run.id
        self.version = run.version
        self.epoch = run.epoch + 1
        self.unattended = unattended
        self.from_version = run.progress_version
        self.checkpoint = _checkpoint(run)
        self.phases = [_phase(phase) for phase in run.phases.values()]
        self.steps = sorted(run.steps)
        self.effects = [
            {"key": key, **_effect(effect, declared)} for key, effect in run.effects.items()
        ]
        self.artifacts = [
            {"name": name, "path": each["path"], "state": found.artifacts.get(name, GOOD)}
            for name, each in run.artifacts.items()
        ]
        self.traces = found.traces
        self.approvals = {name: each["status"] for name, each in run.approvals.items()}
        self.waiting_for = found.waiting_for
        self.execute = found.execute
        self.retries = {"futile": run.futile, "max_retries": declared.max_retries}
        self.obstacles = _obstacles(run, declared, found, unattended=unattended)

    def without(self, codes: Collection[str]) -> list[Obstacle]:
        """Return the obstacles that are left when a person goes on despite some."""
        return [each for each in self.obstacles if not (each.despite and each.code in codes)]

    def to_fields(self) -> dict[str, Any]:
        """Return the plan as plain values: what is recorded with the resume."""
        fields = dict(vars(self))
        fields["obstacles"] = [
            {"code": each.code, "text": each.text, "despite": each.despite}
            for each in self.obstacles
        ]
        return fields

    def decided(self, action: str) -> list[str]:
        """Return the keys of effects that the plan decides about in one way."""
        return [effect["key"] for effect in self.effects if effect["action"] == action]


def _checkpoint(run: Run) -> dict[str, Any] | None:
    if run.checkpoint is None:
        return None
    return {name: run.checkpoint[name] for name in ("version", "phase", "kind")}


def _phase(phase: Phase) -> dict[str, Any]:
    planned = {
        "name": phase.name,
        "status": phase.status,
        "safe_to_retry": phase.safe_to_retry,
        "batches_reused": [list(pair) for pair in phase.done.ranges],
        "batches_to_run": phase.done.missing_ranges(phase.total or 0),
        "batches": phase.total,
    }
    if phase.status in ("completed", "skipped"):
        return {**planned, "action": REUSE}
    return {**planned, "action": GO_ON if phase.done.ranges else RUN_AGAIN}


_DOUBT = {ASK: ASK_PERSON, RETRY: DO_AGAIN, SKIP: COUNT_AS_DONE}


def _effect(effect: Mapping[str, Any], declared: Recovery) -> dict[str, str]:
    """Return what a resume does about an effect, and why."""
    if effect["status"] == "done":
        return {"action": REUSE, "why": "it is done"}
    if effect["status"] == "retry_allowed":
        return {"action": DO_AGAIN, "why": "a person allowed it"}
    if effect["idempotent"]:
        return {"action": DO_AGAIN, "why": "in doubt, and doing it twice does no harm"}
    why = f"in doubt, and the job says {declared.in_doubt!r}"
    return {"action": _DOUBT[declared.in_doubt], "why": why}


def _obstacles(
    run: Run, declared: Recovery, found: Findings, *, unattended: bool
) -> list[Obstacle]:
    """Return everything that stands in the way, what is final first."""
    if run.finished:
        return [Obstacle(FINISHED, f"it is finished ({run.ended or run.outcome})")]
    obstacles = [
        *_of_others(found),
        *_of_people(run),
        *_of_doubt(run, declared),
        *_of_safety(run, declared),
        *_of_files(found),
        *_of_adapter(found),
        *_of_window(run, declared, found.now_us),
    ]
    if unattended:
        obstacles += _of_retries(run, declared, found.now_us)
    return obstacles


def _of_others(found: Findings) -> list[Obstacle]:
    obstacles = []
    liveness = found.liveness
    if liveness is not None and liveness.state == "alive":
        obstacles.append(Obstacle(OWNED, f"it is at work: {liveness.reason}"))
    elif liveness is not None and liveness.state == "unknown":
        text = f"nobody can say whether it is at work: {liveness.reason}"
        obstacles.append(Obstacle(attention.NOT_JUDGED, text, despite=True))
    if found.cycle:
        text = f"it waits for {' → '.join(found.cycle)}"
        obstacles.append(Obstacle(attention.DEPENDENCY_CYCLE, text))
    if found.never:
        text = f"it waits for {', '.join(found.never)}, which ended without success"
        obstacles.append(Obstacle(attention.DEPENDENCY, text, despite=True))
    elif found.waiting_for and not found.cycle:
        text = f"it waits for {', '.join(found.waiting_for)}"
        obstacles.append(Obstacle(WAITING, text, despite=True))
    return obstacles


def _of_people(run: Run) -> list[Obstacle]:
    obstacles = [
        Obstacle(attention.APPROVAL + name, f"it waits for approval of {name!r}")
        for name in run.approvals_pending
    ]
    obstacles += [
        Obstacle(attention.REJECTED, f"approval of {name!r} was rejected", despite=True)
        for name in run.approvals_rejected
    ]
    if run.blocked is not None:
        obstacles.append(Obstacle("blocked", f"it is blocked: {run.blocked}", despite=True))
    return obstacles


def _of_doubt(run: Run, declared: Recovery) -> list[Obstacle]:
    if declared.in_doubt != ASK:
        return []
    if not run.effects_to_ask_about:
        return []
    keys = ", ".join(map(repr, run.effects_to_ask_about))
    return [Obstacle(attention.EFFECTS_IN_DOUBT, f"effects may have happened: {keys}")]


def _of_safety(run: Run, declared: Recovery) -> list[Obstacle]:
    unsafe = [
        phase.name
        for phase in run.phases.values()
        if phase.status in ("running", "failed") and not phase.safe_to_retry
    ]
    if unsafe:
        text = f"phase {unsafe[-1]!r} was cut off, and is not safe to repeat"
        return [Obstacle(attention.UNSAFE, text, despite=True)]
    if not declared.safe_to_retry:
        return [Obstacle(attention.UNSAFE, "the job says it is not safe to repeat", despite=True)]
    return []


def _of_files(found: Findings) -> list[Obstacle]:
    bad = [f"{name} {state}" for name, state in found.artifacts.items() if state != GOOD]
    if not bad:
        return []
    return [Obstacle(attention.ARTIFACT_DAMAGED, f"artifact {', '.join(bad)}", despite=True)]


def _of_adapter(found: Findings) -> list[Obstacle]:
    if found.execute is not None:
        return []
    return [Obstacle(attention.NO_ADAPTER, found.problem or "nothing says what would resume it")]


def _of_window(run: Run, declared: Recovery, now_us: int) -> list[Obstacle]:
    window = declared.resume_window_seconds
    if window is None or now_us - (run.worked_us or run.created_us) <= window * 1_000_000:
        return []
    text = f"it was left longer than its resume window of {window:g} s"
    return [Obstacle(attention.WINDOW, text, despite=True)]


def _of_retries(run: Run, declared: Recovery, now_us: int) -> list[Obstacle]:
    """Return what keeps a watchdog, and no person, from resuming."""
    obstacles = []
    if not declared.auto_resume:
        text = "the job does not let it be resumed unattended"
        obstacles.append(Obstacle("auto_resume_off", text))
    if not run.epoch and not run.depends_on:
        obstacles.append(Obstacle(NOT_BEGUN, "it was never started; a person may start it"))
    asked = [attention.text(reason) for reason in run.attention if attention.is_word(reason)]
    if asked:
        obstacles.append(Obstacle(PERSON_ASKED, f"a person is asked: {'; '.join(asked)}"))
    if run.outcome is not None and not _goes_on(run):
        text = f"it ended as {run.outcome} ({run.reason_code}); a person may resume it"
        obstacles.append(Obstacle(STOPPED, text))
    if run.futile >= declared.max_retries:
        text = f"{run.futile} of {declared.max_retries} resumes brought no progress"
        obstacles.append(Obstacle(RETRIES, text))
    since_us = run.returned_us or run.dispatched_us or 0
    left_us = since_us + declared.pause_us(run.futile) - now_us
    # Before the last try it can be only by a clock that was set back.
    if run.futile and left_us > 0 and now_us >= since_us:
        text = f"the next try is due in {left_us // 1_000_000 + 1} s"
        obstacles.append(Obstacle(TOO_EARLY, text))
    return obstacles


def _goes_on(run: Run) -> bool:
    waited = run.reason_code == outcome.WAITS_FOR_APPROVAL
    return waited or outcome.traits(run.outcome or "", run.reason_code).unattended
