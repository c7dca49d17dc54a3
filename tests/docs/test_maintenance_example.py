"""The example of maintenance is the matrix of the contract, and every step of it can be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import here

from tachograph.domain.maintenance_plan import HOUR_US, MaintenanceStep
from tachograph.domain.step_rules import StepFacts, evaluate
from tachograph.infra.project_file import load

if TYPE_CHECKING:
    from tachograph.infra.project_file import ProjectFile

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "maintenance" / "tachograph.toml"

# name, guard, language model, and what it depends on; a guard of - is a one-time step.
CYCLE = """
prune 1h none
compact 20h none
link-decay 20h none
auto-classify 20h nano
sensor-sweep 3h none
record-storage-sample 20h none
analyze-maintenance-logs 20h none
lifecycle-sync 20h none
passive-observer 20h none
proposals-prune 20h none
build-languages 5d nano
credentials-prune 5d none
active-tasks-maintain 20h none
evolution-pass 20h none
per-folder-context 5d none
"""
NIGHTLY = """
extract-daily 20h nano
distill 20h default
resolve-contradictions 44h local
enrich-entities 44h nano
extract-implicit 44h local
entity-mentions-cleanup 68h none
dream-cycle-core 68h default
continuous-verification 44h local
closed-loop-analysis 68h local
cross-agent-learning 68h local
tool-effectiveness 68h local
crystallization-proposals 68h local
cost-log-prune 68h none
self-correction-run 44h heavy
reflect 5d maintenance
reflect-rules 5d none reflect
reflect-meta 5d none reflect
reflect-identity 5d none reflect-rules reflect-meta
extract-procedures 5d none
extract-directives 5d embed
extract-reinforcement 5d maintenance
generate-auto-skills 5d none extract-procedures
repair-vectors 5d embed
vectordb-optimize 5d none
scope-promote 5d none
decay-reclassify 25d none
implicit-feedback-collapse 5d none
audit-health 5d none
crystallization-rescan 5d none
generate-proposals 5d heavy reflect
pending-digest 5d none
digest-autopilot 5d none pending-digest
consolidate 25d none
backfill-decay - none
reembed-vectorless 25d embed
enrich-entities-deep 25d nano
"""
HOURS = {"h": 1, "d": 24}


@pytest.fixture(scope="module")
def example() -> ProjectFile:
    return load(str(EXAMPLE))


def row(step: MaintenanceStep) -> tuple[str, str, int, bool, str, list[str]]:
    return step.name, step.tier, step.guard_us, step.once, step.llm, step.depends_on


def wanted(table: str, tier: str) -> list[tuple[str, str, int, bool, str, list[str]]]:
    rows = []
    for line in table.split("\n")[1:-1]:
        name, guard, llm, *deps = line.split()
        hours = 0 if guard == "-" else int(guard[:-1]) * HOURS[guard[-1]]
        rows.append((name, tier, hours * HOUR_US, guard == "-", llm, deps))
    return rows


def test_the_steps_are_those_of_the_matrix(example: ProjectFile) -> None:
    expected = wanted(CYCLE, "cycle") + wanted(NIGHTLY, "nightly")

    assert [row(step) for step in example.maintenance.steps] == expected
    assert len(expected) == 51


def test_every_step_would_be_run(example: ProjectFile) -> None:
    for step in example.maintenance.steps:
        assert evaluate(step, StepFacts()).runs, step.name
        assert evaluate(step, StepFacts(dry_run=True)).status == "ok"


def test_its_schedules_are_never_touched_by_the_clocks(example: ProjectFile) -> None:
    from tachograph.infra import cron_times

    for schedule in example.schedules.values():
        cron_times.check(schedule)
        if schedule.timezone is not None:
            assert cron_times.clock_changes(schedule, 1_800_000_000_000_000) == []


@pytest.mark.parametrize(("tier", "number"), [("cycle", 15), ("nightly", 36), ("full", 51)])
def test_it_can_be_rehearsed(
    tier: str,
    number: int,
    store_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(EXAMPLE.parent)
    done = here(capsys, "maintenance", tier, "--dry-run", "--json")
    document = json.loads(done.stdout)

    assert done.returncode == 0
    assert document["counts"]["ok"] == len(document["steps"]) == number
    assert {step["summary"] for step in document["steps"]} == {"dry-run (would execute)"}
    assert not store_environment.exists()
