"""`tacho maintenance steps`: list the steps that are declared, and when each is due."""

from __future__ import annotations

from tachograph.cli.maintenance_options import CONFIG
from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.maintenance_plan import MaintenanceStep
    from tachograph.projections.maintenance_guards import Standing

SPEC = Spec(
    "List the maintenance steps, when each did its work, and when it is due.",
    CONFIG,
)


def run(params: Params, out: Output) -> None:
    """Print a row for each step."""
    from tachograph.cli.maintaining import existing
    from tachograph.cli.projects import project
    from tachograph.infra.clock import now_us
    from tachograph.orchestra import standings

    steps = project(params, out).maintenance.steps
    now = now_us()
    known = standings(existing(out), steps)
    rows = [_row(step, each, now) for step, each in zip(steps, known, strict=True)]
    if out.json:
        out.document([_as_json(row) for row in rows])
        return
    columns = ("STEP", "TIER", "CADENCE", "LLM", "AFTER", "LAST RUN", "DUE")
    out.table(columns, [_shown(row, out) for row in rows])


def _row(step: MaintenanceStep, known: Standing, now_us: int) -> dict[str, Any]:
    from tachograph.domain.step_rules import guard_holds

    done_us = known.done_us
    held = done_us is not None and guard_holds(step.guard_us, now_us - done_us)
    done = step.once and known.once_done
    by_guard = done_us is not None and not done and (held or done_us <= now_us)
    return {
        "name": step.name,
        "tier": step.tier,
        "guardIntervalMs": step.guard_us // 1_000,
        "cadence": step.cadence,
        "llmTier": step.llm,
        "dependsOn": step.depends_on,
        "featureGate": step.gate.conditional,
        "lastRunAt": done_us,
        "nextEligibleAt": (done_us or 0) + step.guard_us if by_guard else None,
        "eligibleNow": not held and not done,
    }


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    from tachograph.infra.clock import iso

    moments = {
        name: None if row[name] is None else iso(row[name])
        for name in ("lastRunAt", "nextEligibleAt")
    }
    return {**row, **moments}


def _shown(row: dict[str, Any], out: Output) -> list[str]:
    due = "now" if row["eligibleNow"] else out.when(row["nextEligibleAt"])
    return [
        row["name"],
        row["tier"],
        row["cadence"],
        row["llmTier"],
        ", ".join(row["dependsOn"]) or "-",
        out.when(row["lastRunAt"]),
        due,
    ]
