"""What a cron job has left is judged by the rules of the original's validator, on real files.

Each case is named after its rule: the number is that of the rule in the description of the
validator, a word says what the rest is about.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tachograph.domain.cron_log import Log, first_marker
from tachograph.domain.exit_report import BLOCKING_STEPS
from tachograph.domain.log_markers import MARKERS, words_in
from tachograph.infra.cron_reading import CronFiles, stem_of, summary_of
from tachograph.validating_exits import guard_refusal, outcome_of, validate_exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tachograph.domain.exit_report import ExitReport

STEM = "nightly-20240508T021530Z-4711"
BOOT = (
    "2024-05-08T02:15:30Z harness-bootstrap exit=0 status=started reason=harness_bootstrap_started"
)
HEAD = "HM_JOB=nightly\nRUN_ID=20240508T021530Z-4711\n--- steps ---\n"


def row(rest: str) -> str:
    return f"2024-05-08T02:15:31Z {rest}"


def ledger(*rows: str) -> str:
    return "".join(f"{row(each)}\n" for each in rows)


def step(name: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"name": name, "status": status, "summary": "", "durationMs": 5, **more}


def summary(*steps: dict[str, Any], code: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "runId": "20240508T021530Z-4711",
        "tierLabel": "nightly",
        "startedAt": "2024-05-08T02:15:30.000Z",
        "finishedAt": "2024-05-08T02:16:30.000Z",
        "durationMs": 60000,
        "exitCode": code,
        "summaryLine": "",
        "steps": list(steps),
        "counts": {},
        **more,
    }


class Case:
    """What a run left, what was asked for, and what is to come out."""

    def __init__(
        self,
        rule: str,
        status: str,
        code: int,
        *,
        rows: str | None = "",
        log: str | None = None,
        summary: Any = None,
        required: Sequence[str] = ("prune", "distill"),
        skip: bool = False,
        semantic: str | None = None,
        guard: bool | None = None,
        missing: Sequence[str] | None = None,
        failed: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        error: str | None = None,
        unexplained: Sequence[str] = (),
    ) -> None:
        self.rule = rule
        self.rows = rows
        self.log = log
        self.summary = summary
        self.required = required
        self.skip = skip
        self.expected = {"status": status, "code": code, "unexplained": list(unexplained)}
        optional = {
            "semantic": semantic,
            "guard": guard,
            "missing": missing,
            "failed": failed,
            "classes": classes,
        }
        for name, value in optional.items():
            if value is not None:
                self.expected[name] = value if isinstance(value, str | bool) else list(value)
        self.error = error

    def report(self, folder: Path) -> ExitReport:
        exit_path = folder / f"{STEM}.exit.txt"
        if self.rows is not None:
            exit_path.write_text(self.rows)
        log_path = folder / f"{STEM}.log"
        if self.log is not None:
            log_path.write_text(self.log)
        if self.summary is not None:
            text = self.summary if isinstance(self.summary, str) else json.dumps(self.summary)
            (folder / f"{STEM}.summary.json").write_text(text)
        return validate_exit(
            CronFiles(),
            str(exit_path),
            self.required,
            stem=stem_of(str(exit_path)),
            log_path=None if self.log is None else str(log_path),
            summary_path=summary_of(str(exit_path)),
            allow_skip=self.skip,
        )

    def found(self, report: ExitReport) -> dict[str, Any]:
        shown = report.to_json()
        found = {
            "status": shown["maintenanceStatus"],
            "code": shown["recommendedExitCode"],
            "unexplained": [each["what"] for each in shown["unexplained"]],
            "semantic": shown["semanticStatus"],
            "guard": shown["guardUpdated"],
            "missing": shown["missingSteps"],
            "failed": [each["name"] for each in shown["failedSteps"]],
            "classes": [each["failureClass"] for each in shown["reportableIssues"]],
        }
        return {name: found[name] for name in self.expected}


GOOD = ledger("prune exit=0", "distill exit=0")
SELF = "self-correction-run"
ONE = (SELF,)
SELF_OK = ledger(f"{SELF} exit=0")
NIGHTLY = ("maintenance-nightly",)
WRAPPER_OK = ledger("maintenance-nightly exit=0")

CASES = [
    # 1: the ledger is missing.
    Case("1 no exit file", "failed", 1, rows=None, missing=["prune", "distill"],
         classes=["missing_exit_ledger"], semantic="unknown", guard=False,
         error="Exit ledger not found"),
    Case("1 an empty exit file is one", "failed", 1, rows="", missing=["prune", "distill"],
         classes=["missing_required_step"] * 2),
    # 2: unknown commands.
    Case("2 unknown command", "failed", 1, rows=GOOD,
         log=HEAD + "error: unknown command 'consolidate-episodes'\n",
         missing=["prune", "distill"], guard=False, error="consolidate-episodes",
         classes=["unknown_maintenance_command", "missing_required_step",
                  "missing_required_step"]),
    Case("2 unknown command, with a good summary", "failed", 1, rows=GOOD,
         log=HEAD + "error: unknown command 'x'\n",
         summary=summary(step("prune"), step("distill"))),
    # 3: each required step.
    Case("3 all ended with 0", "success", 0, rows=GOOD, semantic="ok", guard=True, classes=[]),
    Case("3 step= before the name", "success", 0, rows=ledger("step=prune exit=0",
         "step=distill exit=0 status=ok reason=success_analyzed duration_ms=3"), guard=True),
    Case("3 exit code not 0", "failed", 1, rows=ledger("prune exit=0", "distill exit=1"),
         failed=["distill"], missing=[], classes=["nonzero_exit"], semantic="unknown",
         error=r"Failed steps: distill \(exit=1\)"),
    Case("3 status=failed with exit 0", "failed", 1,
         rows=ledger("prune exit=0", "distill exit=0 status=failed reason=odd"),
         failed=["distill"], classes=["reported_failure"]),
    Case("3 the last row of a step counts: good", "success", 0,
         rows=ledger("prune exit=1", "distill exit=0", "prune exit=0")),
    Case("3 the last row of a step counts: bad", "failed", 1,
         rows=ledger("prune exit=0", "distill exit=0", "prune exit=1"), failed=["prune"]),
    Case("3 a negative exit code", "failed", 1, rows=ledger("prune exit=-1", "distill exit=0"),
         failed=["prune"]),
    Case("3 a skip that is not asked about is fine", "success", 0,
         rows=ledger("prune exit=0 status=skipped reason=skipped_cooldown", "distill exit=0")),
    Case("3 a skip with exit code 1 failed", "failed", 1, skip=True,
         rows=ledger("prune exit=1 status=skipped", "distill exit=0"), failed=["prune"]),
    Case("3 more steps than are required", "success", 0,
         rows=ledger("prune exit=0", "distill exit=0", "extra exit=9")),
    # 3, with -skipped.
    Case("3 -skipped without --allow-skip", "partial", 1,
         rows=ledger("prune exit=0", "distill-skipped exit=0"), missing=["distill"]),
    Case("3 -skipped with --allow-skip", "success", 0, skip=True,
         rows=ledger("prune exit=0", "distill-skipped exit=0"), missing=[], guard=True),
    Case("3 -skipped that failed", "partial", 1, skip=True,
         rows=ledger("prune exit=0", "distill-skipped exit=1"), missing=["distill"]),
    # 4: the status.
    Case("4 all were skipped, which is allowed", "skipped", 0, skip=True, guard=False,
         rows=ledger("prune exit=0 status=skipped", "distill exit=0 reason=skipped_cooldown"),
         semantic="ok", error="Skipped steps: prune, distill"),
    Case("4 all were skipped, which was not asked", "success", 0, guard=True,
         rows=ledger("prune exit=0 status=skipped", "distill exit=0 reason=skipped_cooldown")),
    Case("4 skipped_guard is a skip", "skipped", 0, skip=True, required=["prune"],
         rows=ledger("prune exit=0 status=skipped_guard")),
    Case("4 skipped_concurrency is a skip", "skipped", 0, skip=True, required=["prune"],
         rows=ledger("prune exit=0 status=ok reason=skipped_concurrency")),
    Case("4 all by -skipped", "skipped", 0, skip=True, required=["prune"],
         rows=ledger("prune-skipped exit=0"), guard=False),
    Case("4 some were skipped", "success", 0, skip=True, guard=True,
         rows=ledger("prune exit=0 status=skipped", "distill exit=0")),
    Case("4 all missing", "failed", 1, rows=ledger("other exit=0"),
         missing=["prune", "distill"]),
    Case("4 some missing", "partial", 1, rows=ledger("prune exit=0"), missing=["distill"],
         classes=["missing_required_step"], error="Missing steps: distill", guard=False),
    Case("4 some missing, some failed", "failed", 1, rows=ledger("prune exit=2"),
         missing=["distill"], failed=["prune"]),
    *(
        Case(f"4 the feature is off: {phrase}", "skipped", 0, rows=f"{BOOT}\n",
             log=f"{phrase}\n", guard=False, semantic="ok")
        for phrase in (
            "The job was skipped.",
            "Skipping: Hybrid-memory is off by config",
            "Self-correction is disabled.",
            "reflection.enabled is false",
            "Nightly cycle is disabled",
            "sensor sweep was skipped",
            "Persona proposals: enabled is false",
            "Skip the script and reply DISABLED",
        )
    ),
    Case("4 a phrase proves nothing once a step ran", "failed", 1, rows=ledger("other exit=0"),
         log="The job was skipped.\n"),
    # 5: what the log shows.
    Case("5 status=failed_suspect_zero_parsed", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF}: done status=failed_suspect_zero_parsed\n", semantic="semantic_fail",
         classes=["self_correction_zero_parsed"], guard=False, failed=[], missing=[]),
    Case("5 zero parsed/analysed remediation items", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF} suspect: 4 incident(s) found but zero parsed/analysed remediation "
         "items.\n", classes=["self_correction_zero_parsed"]),
    Case("5 status=failed", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF} status=failed\n", classes=["self_correction_analysis_failure"]),
    Case("5 status=failed_parse", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF} status=failed_parse\n", classes=["self_correction_parse_failure"]),
    Case("5 parse_success=false", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF}\nparse_success=false parsed_candidates=3\n",
         classes=["self_correction_parse_failure"]),
    Case("5 status=failed_partial", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF} status=failed_partial\n",
         classes=["self_correction_partial_batch_failure"]),
    Case("5 incidents without parsed candidates", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF}: incidents=4\nparsed_candidates=0\n",
         classes=["self_correction_zero_parsed"]),
    Case("5 no incidents and none parsed", "success", 0, rows=SELF_OK, required=ONE,
         log=f"{HEAD}{SELF}: incidents=0\nparsed_candidates=0 status=success_no_incidents\n",
         classes=[]),
    Case("5 semantic_empty, of any step", "success", 2, rows=ledger("weekly exit=0"),
         required=["weekly"], log=f"{HEAD}weekly: semantic_empty\n", semantic="semantic_fail",
         classes=["semantic_empty"], guard=False),
    Case("5 a partial step of the list", "failed", 2, rows=GOOD,
         log=f"{HEAD}distill: batchFailures=2\n", semantic="degraded",
         classes=["distill_partial_batch_failures"]),
    Case("5 a partial step that is not in the list", "success", 0, rows=ledger("weekly exit=0"),
         required=["weekly"], log=f"{HEAD}weekly semantic=partial\n", semantic="degraded",
         guard=True),
    Case("5 a hidden failure of a model", "failed", 2, rows=WRAPPER_OK, required=NIGHTLY,
         log=HEAD + "enrich: LLM call failed after retries\n", classes=["hidden_llm_failure"]),
    Case("5 a failure of a model that is not hidden", "failed", 1,
         rows=ledger("prune exit=0", "distill exit=1"), log=HEAD + "distill: LLM call failed\n",
         classes=["nonzero_exit"]),
    Case("5 the cursor did not advance", "failed", 2, rows=GOOD, semantic="semantic_fail",
         log=HEAD + "distill cursor_advanced=false scanned=1200\n",
         classes=["cursor_not_advanced"]),
    Case("5 the scan cursor was not advanced", "failed", 2, rows=GOOD, semantic="semantic_fail",
         log=HEAD + "distill: scan cursor not advanced\n", classes=["cursor_not_advanced"]),
    Case("5 a longer name with underscores is another step", "success", 0, classes=[],
         rows=ledger("enrich-entities exit=0", "z exit=0"), required=("enrich-entities", "z"),
         log=HEAD + "enrich_entities_deep: semantic=partial\n"),
    Case("5 a name with underscores is the same step", "failed", 2,
         rows=ledger("enrich-entities exit=0", "z exit=0"), required=("enrich-entities", "z"),
         log=HEAD + "enrich_entities: semantic=partial\n", classes=["semantic_partial"]),
    Case("5 what the log says of a failed step is its one issue", "failed", 1, required=ONE,
         rows=ledger(f"{SELF} exit=2"), log=f"{HEAD}{SELF} status=failed_parse\n",
         classes=["self_correction_parse_failure"]),
    Case("5 beyond 50 lines a step has no text", "success", 0, rows=SELF_OK + ledger("z exit=0"),
         required=(SELF, "z"), log=f"{HEAD}{SELF}\n" + "working\n" * 60 + "parse_success=false\n"),
    Case("5 a line with a time ends the text of a step", "success", 0, rows=GOOD,
         log=f"{HEAD}distill starts\n2024-05-08T02:15:32Z other\nbatchFailures=2\n"),
    Case("5 what the harness prints about itself is no marker", "success", 0, rows=SELF_OK,
         required=ONE, log=f"{HEAD}{SELF} ok\n--- validate-cron-exit ---\n{SELF} status=failed\n"),
    # Mechanical classes.
    Case("mechanical: timeout by exit 124", "failed", 1, rows=ledger("prune exit=124",
         "distill exit=0"), classes=["timeout"]),
    Case("mechanical: timeout by its reason", "failed", 1, rows=ledger(
         "prune exit=1 status=failed reason=timeout", "distill exit=0"), classes=["timeout"]),
    Case("mechanical: killed with 137", "failed", 1, rows=ledger("prune exit=137",
         "distill exit=0"), classes=["sigkill_or_oom"]),
    Case("mechanical: stopped with 143", "failed", 1, rows=ledger("prune exit=143",
         "distill exit=0"), classes=["sigkill_or_oom"]),
    Case("mechanical: locked database", "failed", 1, rows=ledger("prune exit=1",
         "distill exit=0"), log=HEAD + "prune: database is locked\n", classes=["db_lock_timeout"]),
    Case("mechanical: LanceDB conflict", "failed", 1, rows=ledger("prune exit=1",
         "distill exit=0"), log=HEAD + "prune: LanceDB commit conflict\n",
         classes=["lancedb_commit_conflict"]),
    Case("mechanical: an empty artifact", "success", 0, rows=ledger("audit-health exit=0"),
         required=["audit-health"], log=HEAD + "audit-health: final-audit.json is 0 bytes\n",
         classes=["missing_or_empty_required_artifact"]),
    Case("mechanical: empty diagnostics", "success", 0, rows=ledger("diagnostics exit=0"),
         required=["diagnostics"],
         log=HEAD + "diagnostics: memory-diagnostics-live.json size=0\n",
         classes=["zero_byte_memory_diagnostics"]),
    Case("mechanical: the reason of the row tells the meaning", "failed", 1, required=ONE,
         rows=ledger(f"{SELF} exit=2 status=failed reason=failed_suspect_zero_parsed"),
         semantic="semantic_fail", classes=["nonzero_exit"]),
    # 7: the wrapper aborted.
    Case("7 wrapper aborted before steps (#1982)", "failed", 1, rows="", missing=[], failed=[],
         log="HM_JOB=nightly\nRUN_ID=x\nHM_STEP_EXIT=64\nFAILED: nightly\n",
         classes=["wrapper_aborted_before_steps"],
         error=r"Wrapper aborted before steps \(exit=64\); no maintenance steps"),
    Case("7 the exit code is in the last line", "failed", 1, rows=f"{BOOT}\n", missing=[],
         log="HM_JOB=nightly\n2024-05-08T02:15:30Z nightly exit=3\n", error=r"\(exit=3\)"),
    Case("7 killed before the traps: both files are empty (#2094)", "failed", 1, rows="",
         log="", missing=[], error="Wrapper aborted before steps; no"),
    Case("7 the bootstrap row is no step (#2131)", "failed", 1, rows=f"{BOOT}\n", log="",
         missing=[], classes=["wrapper_aborted_before_steps"]),
    Case("7 it reached its steps", "failed", 1, rows=f"{BOOT}\n", log=HEAD,
         missing=["prune", "distill"], classes=["missing_required_step"] * 2),
    Case("7 the row of an earlier validation is no step", "failed", 1, missing=[], log="x\n",
         rows=BOOT + "\n" + ledger("validate-cron-exit exit=1 status=failed")),
    # Ledger lines.
    Case("ledger: a line that does not parse is told", "success", 0, rows=GOOD + "Killed\n",
         unexplained=["ledger_line"]),
    Case("ledger: an unknown status does not parse", "partial", 1,
         rows=ledger("prune exit=0", "distill exit=0 status=fine"), missing=["distill"],
         unexplained=["ledger_line"]),
    Case("ledger: a torn line does not parse", "partial", 1,
         rows=ledger("prune exit=0") + "2024-05-08T02:15:31Z dist", missing=["distill"],
         unexplained=["ledger_line"]),
    Case("ledger: status=started is no end of a step", "partial", 1,
         rows=ledger("prune exit=0", "distill exit=0 status=started"), missing=["distill"]),
    Case("ledger: empty lines and Windows' line ends", "success", 0,
         rows=GOOD.replace("\n", "\r\n\r\n")),
    # The summary.
    Case("summary: all ok", "success", 0, rows=None, guard=True, semantic="ok",
         summary=summary(step("prune"), step("distill"))),
    Case("summary: a step failed", "failed", 1, rows=GOOD, failed=["distill"], guard=False,
         summary=summary(step("prune"), step("distill", "failed"), code=1)),
    Case("summary: a step is missing", "partial", 1, rows=GOOD, missing=["distill"],
         summary=summary(step("prune"))),
    Case("summary: ok that is not meant so", "failed", 1, failed=["distill"],
         semantic="semantic_fail", summary=summary(
             step("prune"), step("distill", semanticOutcome="failed_semantic_empty"))),
    Case("summary: partial blocks the guard", "failed", 1, failed=["distill"],
         semantic="degraded",
         summary=summary(step("prune"), step("distill", semanticOutcome="partial"))),
    Case("summary: an old status of a command is mapped", "failed", 1, failed=["distill"],
         semantic="semantic_fail", summary=summary(
             step("prune"), step("distill", semanticOutcome="failed_suspect_zero_parsed"))),
    Case("summary: the outcome in the step's text", "failed", 1, failed=["distill"],
         summary=summary(step("prune"), step("distill", summary="analysed=0 semantic=failed"))),
    Case("summary: a dash is no outcome", "success", 0,
         summary=summary(step("prune"), step("distill", summary="jobRunId=- semantic=-"))),
    Case("summary 6: the guard needs ok", "success", 1, semantic="degraded", guard=False,
         summary=summary(step("prune"), step("distill", semanticOutcome="success_with_review"))),
    Case("summary: empty is ok", "success", 0, guard=True,
         summary=summary(step("prune"), step("distill", semanticOutcome="empty"))),
    Case("summary: exitCode 2 is degraded", "success", 1, semantic="degraded", guard=False,
         summary=summary(step("prune"), step("distill"), step("other", "deferred"), code=2)),
    Case("summary: exitCode 1 without a failed step", "failed", 1, guard=False,
         summary=summary(step("prune"), step("distill"), code=1), error="exitCode 1"),
    Case("summary: a deferred step of the list", "failed", 2, semantic="degraded", failed=[],
         summary=summary(step("prune"), step("distill", "deferred"), code=2),
         classes=["orchestrator_step_deferred"]),
    Case("summary: a rate limited step of the list", "failed", 2,
         summary=summary(step("prune"), step("distill", "rate_limited"), code=2)),
    Case("summary: all were skipped, which is allowed", "skipped", 0, skip=True,
         summary=summary(step("prune", "skipped_guard"), step("distill", "skipped_gate"))),
    Case("summary: no runner is no skip (#2131)", "partial", 1, skip=True, missing=["distill"],
         summary=summary(step("prune"), step("distill", "skipped_missing_runner"))),
    Case("summary: an unknown status failed", "failed", 1, failed=["distill"],
         summary=summary(step("prune"), step("distill", "wobbly")), unexplained=["step"]),
    Case("summary: an unknown outcome failed", "failed", 1, failed=["distill"],
         summary=summary(step("prune"), step("distill", semanticOutcome="wobbly")),
         unexplained=["step"]),
    Case("summary: the ledger is looked at as well", "failed", 1, failed=["distill"],
         rows=ledger("prune exit=0", "distill exit=1"),
         summary=summary(step("prune"), step("distill"))),
    Case("summary: the ledger knows the exit code of a failed step", "failed", 1,
         rows=ledger("prune exit=0", "distill exit=124"),
         summary=summary(step("prune"), step("distill", "failed"), code=1),
         error=r"distill \(exit=124\)"),
    Case("summary: what is no object among the steps is passed over", "success", 0,
         summary=summary(step("prune"), step("distill")) | {
             "steps": [step("prune"), "odd", step("distill")]}),
    Case("summary: and the log", "failed", 2, rows=GOOD, semantic="semantic_fail",
         log=HEAD + "distill: cursor did not advance\n",
         summary=summary(step("prune"), step("distill"))),
    Case("summary: worst rank, by the log", "failed", 2, required=ONE, semantic="semantic_fail",
         rows=SELF_OK, log=f"{HEAD}{SELF} status=failed_parse\n",
         summary=summary(step(SELF, semanticOutcome="success_with_review"))),
    Case("summary: worst rank, by the summary", "success", 2, required=["weekly"],
         rows=ledger("weekly exit=0"), log=f"{HEAD}weekly semantic=partial\n",
         semantic="semantic_fail",
         summary=summary(step("weekly"), step("else", semanticOutcome="failed"))),
    Case("summary: schemaVersion 2 falls back to the ledger", "success", 0, rows=GOOD,
         summary=summary(step("prune", "failed"), schemaVersion=2), unexplained=["summary"]),
    Case("summary: steps that are no list", "success", 0, rows=GOOD,
         summary=summary() | {"steps": {}}, unexplained=["summary"]),
    Case("summary: no JSON", "success", 0, rows=GOOD, summary="[plugins] loading\n{",
         unexplained=["summary"]),
    Case("summary: JSON that is no object", "success", 0, rows=GOOD, summary="[1]",
         unexplained=["summary"]),
    Case("summary: an empty file", "success", 0, rows=GOOD, summary="",
         unexplained=["summary", "file"]),
    # The summary of a consolidated job: the required name is that of the wrapper.
    Case("consolidated: all ok", "success", 0, rows=WRAPPER_OK, required=NIGHTLY, guard=True,
         summary=summary(step("prune"), step("distill"))),
    Case("consolidated: an inner step failed", "failed", 1, rows=WRAPPER_OK, required=NIGHTLY,
         failed=["distill"], summary=summary(step("prune"), step("distill", "failed"), code=1)),
    Case("consolidated: the wrapper failed", "failed", 1, required=NIGHTLY, failed=[*NIGHTLY],
         rows=ledger("maintenance-nightly exit=1"), summary=summary(step("prune"))),
    Case("consolidated: status=failed of the wrapper", "failed", 1, required=NIGHTLY,
         rows=ledger("maintenance-nightly exit=0 status=failed"), summary=summary(step("prune"))),
    Case("consolidated: exit 2 without --allow-skip", "failed", 1, required=NIGHTLY,
         rows=ledger("maintenance-nightly exit=2"),
         summary=summary(step("prune"), step("weekly", "deferred"), code=2)),
    Case("consolidated: exit 2 with --allow-skip", "success", 1, required=NIGHTLY, skip=True,
         rows=ledger("maintenance-nightly exit=2"), semantic="degraded", guard=False,
         summary=summary(step("prune"), step("weekly", "deferred"), code=2)),
    Case("consolidated: exit 2 beside exitCode 0 is a contradiction", "failed", 1, skip=True,
         rows=ledger("maintenance-nightly exit=2"), required=NIGHTLY,
         summary=summary(step("prune"))),
    Case("consolidated: no row of the wrapper", "failed", 1, rows="", required=NIGHTLY,
         missing=[*NIGHTLY], summary=summary(step("prune"))),
    Case("consolidated: one of two wrappers has no row", "partial", 1, rows=WRAPPER_OK,
         required=("maintenance-nightly", "maintenance-cycle"), missing=["maintenance-cycle"],
         summary=summary(step("prune"))),
    Case("consolidated: a deferred step of the list", "failed", 2, rows=WRAPPER_OK,
         required=NIGHTLY, summary=summary(step("prune"), step("distill", "deferred"), code=2)),
    Case("consolidated: without a step the ledger counts", "success", 0, rows=WRAPPER_OK,
         required=NIGHTLY, summary=summary()),
    # Ours: outcomes decide, no text.
    Case("ours: no text of a log decides", "success", 0, rows=SELF_OK, required=ONE,
         log=f"HM_HARNESS=tachograph\n{HEAD}{SELF} parse_success=false\n", guard=True),
    Case("ours: a log cannot claim it below its head", "failed", 2, rows=SELF_OK, required=ONE,
         log=f"{HEAD}HM_HARNESS=tachograph\n{SELF} parse_success=false\n"),
    Case("ours: success_with_review does not withhold the guard", "success", 0, guard=True,
         required=["weekly"], semantic="degraded", summary=summary(
             step("weekly", semanticOutcome="success_with_review"), tierLabel="cron")),
    Case("ours: partial does", "failed", 1, guard=False, required=["weekly"], summary=summary(
         step("weekly", semanticOutcome="partial"), tierLabel="cron", code=2)),
    # Log lines that no rule knows.
    Case("log: a word that no rule knows is told", "success", 0, rows=GOOD,
         log=HEAD + "distill semantic=glorious\n", unexplained=["log_line"]),
    Case("log: a failure that no rule of these steps reads is told", "success", 0, rows=GOOD,
         log=HEAD + "elsewhere status=failed\n", unexplained=["log_line"]),
    Case("log: good words are explained", "success", 0, rows=GOOD, log=HEAD
         + "distill status=success_analyzed\nprune semantic=success\nstatus=skipped_cooldown\n"),
    Case("log: lines of an aggregate log have rules of their own (#2025)", "success", 0, rows=GOOD,
         log=HEAD + "HM_RUN_SUMMARY run_id=1 status=wobbly job=x exit=0\n"
         + row("x exit=1 status=wobbly\n")),
    Case("log: a status that is a number is none", "success", 0, rows=GOOD,
         log=HEAD + "GET / status=500\n"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule(case: Case, tmp_path: Path) -> None:
    report = case.report(tmp_path)

    assert case.found(report) == case.expected
    if case.error is not None:
        import re

        assert re.search(case.error, report.error or "")


def test_the_rules_are_many_and_their_names_are_unique() -> None:
    names = [case.rule for case in CASES]

    assert len(set(names)) == len(names) >= 40


def test_a_report_has_the_fields_of_the_original_and_four_of_ours(tmp_path: Path) -> None:
    report = Case(
        "",
        "",
        0,
        rows=ledger(
            "prune exit=0", "distill exit=1 status=failed reason=nonzero_exit duration_ms=4"
        ),
    ).report(tmp_path)
    shown = report.to_json()

    assert list(shown) == [
        "maintenanceStatus", "semanticStatus", "recommendedExitCode", "requiredSteps",
        "missingSteps", "failedSteps", "guardUpdated", "logPath", "exitPath", "error",
        "reportableIssues", "failureClass", "wrapperExitCode", "readFirst", "unexplained",
    ]  # fmt: skip
    assert shown["requiredSteps"] == [
        {"name": "prune", "exit": 0},
        {"name": "distill", "exit": 1},
    ]
    assert shown["failedSteps"] == [
        {
            "name": "distill",
            "exit": 1,
            "reason": "nonzero_exit",
            "strictFailureReason": None,
            "error": "Non-zero exit code (nonzero_exit)",
        }
    ]
    assert shown["reportableIssues"][0] == {
        "fingerprint": "hybrid-memory-maintenance:nightly:distill:nonzero_exit",
        "jobName": "nightly",
        "stepName": "distill",
        "failureCategory": "mechanical_failure",
        "failureClass": "nonzero_exit",
        "semanticStatus": "unknown",
    }


def test_a_strict_failure_is_named(tmp_path: Path) -> None:
    rows = ledger("audit-health exit=2 status=failed reason=strict_warnings")
    report = Case("", "", 0, rows=rows, required=["audit-health"]).report(tmp_path)

    assert report.to_json()["failedSteps"][0]["strictFailureReason"] == "strict_warnings"


def test_a_file_beside_that_no_rule_knows_is_told(tmp_path: Path) -> None:
    (tmp_path / "20240508").mkdir()
    (tmp_path / "20240508" / f"{STEM}.summary.json.tmp-12-abc").write_text("{")
    (tmp_path / f"{STEM}.core").write_text("x")
    (tmp_path / "nightly-20240508T021530Z-47110.core").write_text("of another run")
    report = Case("", "", 0, rows=GOOD).report(tmp_path)

    assert [each.path.rpartition("/")[2] for each in report.unexplained] == [
        f"{STEM}.core",
        f"{STEM}.summary.json.tmp-12-abc",
    ]
    assert report.exit_code == 0


def test_the_summary_is_found_in_the_folder_of_its_day(tmp_path: Path) -> None:
    (tmp_path / "20240508").mkdir()
    path = tmp_path / "20240508" / f"{STEM}.summary.json"
    path.write_text("{}")
    exit_path = str(tmp_path / f"{STEM}.exit.txt")

    assert summary_of(exit_path) == str(path)
    beside = tmp_path / f"{STEM}.summary.json"
    beside.write_text("{}")
    assert summary_of(exit_path) == str(beside)


def test_a_log_that_is_named_and_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / f"{STEM}.exit.txt").write_text(GOOD)
    (tmp_path / "log").mkdir()
    for log_path in ("log", "none.log"):
        report = validate_exit(
            CronFiles(),
            str(tmp_path / f"{STEM}.exit.txt"),
            ["prune"],
            stem=STEM,
            log_path=str(tmp_path / log_path),
        )

        assert "cannot be read" in report.unexplained[0].text


def test_a_fifo_in_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / f"{STEM}.exit.txt")

    assert Case("", "", 0, rows=None).report(tmp_path).exit_code == 1


def test_many_odd_lines_are_counted_not_listed(tmp_path: Path) -> None:
    log = HEAD + "semantic=odd\n" * 30
    report = Case("", "", 0, rows=GOOD, log=log).report(tmp_path)

    assert len(report.unexplained) == 21
    assert report.unexplained[-1].text == "10 more such lines"


def test_the_list_of_steps_whose_meaning_withholds_the_guard() -> None:
    assert len(BLOCKING_STEPS) == 41
    assert {"distill", "prune", "cursor", "maintenance", SELF} <= BLOCKING_STEPS


@pytest.mark.parametrize("name", sorted(BLOCKING_STEPS))
def test_a_semantic_failure_of_each_of_them_blocks(name: str, tmp_path: Path) -> None:
    log = f"{HEAD}{name}: semantic=failed\n"
    report = Case("", "", 0, rows=ledger(f"{name} exit=0"), log=log, required=[name]).report(
        tmp_path
    )

    assert (report.status, report.exit_code, report.guard_updated) == ("failed", 2, False)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("errors : 2", "sensor-sweep"),
        ("Parse success: false", "reflect-rules"),
        ("2 session read failure(s)", "extract-procedures"),
        ("Status: partial", "digest-autopilot"),
        ("degraded_model_or_parser", "extract-reinforcement"),
        ("reflect-identity LLM failed", "reflect-identity"),
        ("semantic_empty", "generate-proposals"),
        ("LLMFAILURES=1", "enrich-entities"),
        ("4 incidents found, Analysed: 0", SELF),
        ("Zero parsed/analysed remediation items", SELF),
        ("3 new-pattern embed failures", "reflect"),
    ],
)
def test_a_line_that_says_something_is_not_passed_over(text: str, step: str) -> None:
    assert first_marker(step, None, Log(f"much else\n{text}\nmore"), alone=False) is not None


@pytest.mark.parametrize(
    "pattern", sorted({each for marker in MARKERS for each in (*marker.needs, *marker.unless)})
)
def test_each_rule_has_words_by_which_its_lines_are_found(pattern: str) -> None:
    """Else it would be tried on every line of a long log."""
    assert words_in(pattern)


def test_of_a_long_log_the_lines_that_say_nothing_cost_little() -> None:
    log = Log("a line of which there are many\n" * 200_000 + "distill semantic=partial\n")
    log.look_for(["distill", "prune"])

    assert log.hits(r"\bsemantic=partial\b") == [200_000]
    assert log.of_step("distill") == range(199_995, 200_001)
    assert log.of_step("prune") is None


def test_every_marker_is_a_failure_of_some_kind() -> None:
    assert {marker.semantic_status for marker in MARKERS} == {"semantic_fail", "degraded"}


@pytest.mark.parametrize(
    ("case", "outcome", "code"),
    [
        (Case("", "", 0, rows=GOOD), None, None),
        (Case("", "", 0, rows=ledger("prune exit=0")), "partial", "steps_missing"),
        (Case("", "", 0, rows=""), "failed", "steps_missing"),
        (Case("", "", 0, rows=ledger("prune exit=3")), "failed", "steps_failed"),
        (
            Case("", "", 0, rows="", log="HM_STEP_EXIT=64\n"),
            "failed",
            "wrapper_aborted_before_steps",
        ),
        (
            Case("", "", 0, required=ONE, rows=ledger(f"{SELF} exit=2 reason=failed_partial")),
            "partial",
            "steps_failed",
        ),
        (
            Case(
                "",
                "",
                0,
                rows=ledger(
                    "prune exit=2 reason=failed_partial",
                    "distill exit=2 reason=failed_suspect_zero_parsed",
                ),
            ),
            "failed_semantic_empty",
            "steps_failed",
        ),
        *(
            (Case("", "", 0, required=["prune"], skip=True,
                  rows=ledger(f"prune exit=3 status=failed reason={word}")),
             "failed", "steps_failed")
            for word in ("success_analyzed", "success", "skipped_cooldown", "empty", "monitoring")
        ),
        (
            Case("", "", 0, skip=True, required=["prune"],
                 rows=ledger("prune exit=0 status=skipped reason=skipped_cooldown")),
            "skipped",
            "skipped_cooldown",
        ),
        (
            Case("", "", 0, required=["weekly"], rows=ledger("weekly exit=0"),
                 log=f"{HEAD}weekly semantic_empty\n"),
            "failed",
            "exit_validation",
        ),
    ],
)  # fmt: skip
def test_the_outcome_of_a_run_follows_from_its_steps(
    case: Case, outcome: str | None, code: str | None, tmp_path: Path
) -> None:
    said = outcome_of(case.report(tmp_path))

    assert (said and (said[0], said[2])) == (outcome and (outcome, code))


@pytest.mark.parametrize(
    ("ended_with", "result", "reason_code", "good_rows", "refusal"),
    [
        (0, "success", None, True, None),
        (0, "success_with_review", "not_judged", True, None),
        (0, "empty", None, True, None),
        (3, "success", None, True, "wrapped_step_exit_nonzero"),
        (0, "partial", None, True, "outcome_partial"),
        (0, "partial", "stopped_by_budget", True, "outcome_partial"),
        (0, "failed", None, True, "outcome_failed"),
        (0, "failed_semantic_empty", None, True, "outcome_failed_semantic_empty"),
        (0, "cancelled", None, True, "outcome_cancelled"),
        (0, "success", None, False, "missing_or_failed_required_step"),
    ],
)
def test_a_guard_is_written_only_when_it_was_earned(
    ended_with: int,
    result: str,
    reason_code: str | None,
    good_rows: bool,
    refusal: str | None,
    tmp_path: Path,
) -> None:
    report = Case("", "", 0, rows=GOOD).report(tmp_path)
    given = guard_refusal(
        report,
        ended_with=ended_with,
        result=result,
        reason_code=reason_code,
        second_look=lambda: good_rows,
    )

    assert given == refusal


@pytest.mark.parametrize(
    ("case", "refusal"),
    [
        (Case("", "", 0, rows=ledger("prune exit=0")), "validate_exit_nonzero"),
        (
            Case("", "", 0, skip=True, required=["prune"],
                 rows=ledger("prune exit=0 status=skipped")),
            "maintenance_status_not_success",
        ),
    ],
)  # fmt: skip
def test_the_report_can_withhold_a_guard(case: Case, refusal: str, tmp_path: Path) -> None:
    given = guard_refusal(
        case.report(tmp_path),
        ended_with=0,
        result="success",
        reason_code=None,
        second_look=lambda: True,
    )

    assert given == refusal
