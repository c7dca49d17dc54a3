"""What the original's commands print into a cron log, and what it means: rules as one table.

The compatibility layer for old files only. What our own harness runs is judged by outcomes, and
its logs say so in their head: no text of theirs decides anything.
"""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SEMANTIC_FAIL = "semantic_fail"
DEGRADED = "degraded"


def words_in(pattern: str) -> list[str]:
    r"""Return words, in small letters, one of which is in any text that a pattern matches.

    Finding words is much faster than trying patterns. None are returned for a pattern of which
    that cannot be said. It knows what patterns of this table are made of, and no more.

    >>> words_in(r"\bparse[_\s-]?success\s*[=:]\s*(?:false|0)\b")
    ['success']
    >>> words_in(r"\b[1-9]\d* incidents(?: found)?|\boom\b")
    ['incidents', 'oom']
    """
    import re

    # Without what a letter stands for, without what may be left out.
    bare = re.sub(r"\\[a-zA-Z]|\\[^a-zA-Z]|\[[^]]*\][?*]?|\(\?!\w\)", " ", pattern)
    bare = re.sub(r"\(\?:[^()]*\)\?|.[?*](?!:)", " ", bare)
    outside, inside = "", bare
    while outside != inside:
        outside, inside = inside, re.sub(r"\([^()]*\)", "", inside)
    if "|" not in outside:
        words = re.findall(r"[A-Za-z_]{3,}", bare.partition("(")[0])
        if words:
            return [max(words, key=len).lower()]
    found = [re.findall(r"[A-Za-z_]{3,}", piece) for piece in bare.split("|")]
    return [max(words, key=len).lower() for words in found] if all(found) else []


class Marker(_Fields):
    """A rule: text in a step's part of the log that means something.

    All of `needs` must be found there (regular expressions, without regard to case) and none of
    `unless`. `step` is None for a rule of every step.
    """

    __slots__ = ("failure_class", "needs", "semantic_status", "step", "unless")

    def __init__(
        self,
        step: str | None,
        failure_class: str,
        semantic_status: str,
        *needs: str,
        unless: Sequence[str] = (),
    ) -> None:
        self.step = step
        self.failure_class = failure_class
        self.semantic_status = semantic_status
        self.needs = needs
        self.unless = tuple(unless)


def _above_0(*names: str) -> str:
    return rf"\b(?:{'|'.join(names)})\s*[=:]\s*[1-9]\d*\b"


def _is_0(*names: str) -> str:
    return rf"\b(?:{'|'.join(names)})\s*[=:]\s*0\b"


_PARTIAL = r"\bsemantic=partial\b"
_NO_PARSE = r"\bparse[_\s-]?success\s*[=:]\s*(?:false|0)\b"
_NO_NEED = (r"\bzero_rules_reason\s*[=:]\s*(?:insufficient_patterns|valid_no_actionable_rules)\b",)
_NO_METAS = (r"\bzero_metas_reason\s*[=:]\s*(?:insufficient_patterns|valid_no_actionable_metas)\b",)
_SELF = "self-correction-run"
_EMPTY = r"\bsemantic_empty\b|\bsemantic=failed_semantic_empty\b|\bfailed_suspect_zero_parsed\b"

MARKERS = (
    Marker(_SELF, "self_correction_partial_batch_failure", SEMANTIC_FAIL,
           r"\bstatus=failed_partial\b"),
    Marker(_SELF, "self_correction_zero_parsed", SEMANTIC_FAIL,
           r"\bstatus=failed_suspect_zero_parsed\b|\bzero parsed/analysed remediation items\b"),
    Marker(_SELF, "self_correction_analysis_failure", SEMANTIC_FAIL, r"\bstatus=failed\b(?!_)"),
    Marker(_SELF, "self_correction_parse_failure", SEMANTIC_FAIL,
           r"\bstatus=failed_parse\b|\bparse_success=false\b"),
    Marker(_SELF, "self_correction_zero_parsed", SEMANTIC_FAIL,
           r"\b(?:incidents(?: found)?\s*[=:]\s*[1-9]\d*|[1-9]\d* incidents found)\b",
           _is_0("parsed_candidates", "analysed")),
    Marker("reflect-rules", "invalid_response_format_zero_stored", SEMANTIC_FAIL,
           _NO_PARSE, _is_0("stored"), unless=_NO_NEED),
    Marker("reflect-rules", "reflect_rules_parse_failure", SEMANTIC_FAIL, _NO_PARSE,
           unless=_NO_NEED),
    Marker("reflect-rules", "reflect_rules_zero_stored", SEMANTIC_FAIL, _is_0("stored"),
           unless=(*_NO_NEED, r"\bstatus=ok\b")),
    Marker("generate-proposals", "generate_proposals_zero_created", SEMANTIC_FAIL,
           r"\bsemantic_empty\b"),
    Marker("generate-proposals", "generate_proposals_zero_created", SEMANTIC_FAIL,
           _NO_PARSE, _is_0("created"), r"\binsights?\b"),
    Marker("extract-reinforcement", "extract_reinforcement_semantic_empty", SEMANTIC_FAIL,
           rf"{_EMPTY}|\bzero parsed remediations\b"),
    Marker("extract-reinforcement", "extract_reinforcement_parser_degraded", DEGRADED,
           r"\bdegraded_model_or_parser\b"),
    Marker("reflect-identity", "reflect_identity_llm_failure", SEMANTIC_FAIL,
           r"\breflect-identity LLM failed\b"),
    Marker("reflect", "reflect_embed_partial", DEGRADED,
           rf"\b[1-9]\d* new-pattern embed failure|{_PARTIAL}"),
    Marker("reflect-meta", "reflect_meta_degraded", DEGRADED,
           r"\bstatus=(?:partial|degraded)\b",
           unless=_NO_METAS),
    Marker("enrich-entities", "enrich_entities_llm_failures", DEGRADED, _above_0("llmFailures")),
    Marker("enrich-entities-deep", "enrich_entities_llm_failures", DEGRADED,
           _above_0("llmFailures")),
    Marker("consolidate", "consolidate_cluster_failures", DEGRADED, _above_0("clustersFailed")),
    Marker("consolidate", "consolidate_vector_partial", DEGRADED, _above_0("vector_failures")),
    Marker("distill", "distill_partial_batch_failures", DEGRADED,
           rf"{_PARTIAL}|{_above_0('batchFailures')}"),
    Marker("extract-daily", "extract_daily_vector_partial", DEGRADED,
           _above_0("vector_failures")),
    Marker("extract-procedures", "extract_procedures_read_failures", DEGRADED,
           rf"{_above_0('readFailures')}|\bsession read failure\(s\)"),
    Marker("extract-directives", "extract_directives_partial", DEGRADED,
           rf"{_PARTIAL}|\bcursorBlockedReason=\S"),
    Marker("resolve-contradictions", "resolve_contradictions_degraded_backlog", DEGRADED,
           r"\bdegraded=1\b", r"\bno_progress=1\b"),
    Marker("generate-auto-skills", "generate_auto_skills_validation_failures", DEGRADED,
           _above_0("failedValidation", "failedEval")),
    Marker("scope-promote", "scope_promote_partial", DEGRADED,
           rf"{_PARTIAL}|{_above_0('failed')}"),
    Marker("repair-vectors", "repair_vectors_partial", DEGRADED,
           rf"{_PARTIAL}|{_above_0('orphan_cleanup_failed')}"),
    Marker("prune", "prune_vector_cleanup_partial", DEGRADED, _above_0("vector_failures")),
    Marker("reembed-vectorless", "reembed_vectorless_partial", DEGRADED,
           rf"{_PARTIAL}|{_above_0('failures')}"),
    Marker("sensor-sweep", "sensor_sweep_errors", DEGRADED, _above_0("errors")),
    Marker("crystallization-rescan", "crystallization_rescan_errors", DEGRADED,
           _above_0("errors")),
    Marker("digest-autopilot", "digest_autopilot_failed_status", DEGRADED,
           r"\bstatus[=:]\s*(?:failed|partial)\b"),
    # For every step, those of projects of their own included.
    Marker(None, "semantic_empty", SEMANTIC_FAIL, _EMPTY),
    Marker(None, "semantic_failed", SEMANTIC_FAIL, r"\bsemantic=failed\b(?!_)"),
    Marker(None, "semantic_partial", DEGRADED, rf"{_PARTIAL}|\bstatus=failed_partial\b"),
)  # fmt: skip
"""Of each step the first that holds counts."""

HIDDEN_LLM_FAILURE = (
    "hidden_llm_failure",
    r"llm call failed|failed its llm call|provider call failed|model request failed",
)
_NOT = r"(?:(?:did|does|was|is|has|could)(?:\s+not|n['\u2019]t)|not|never)(?:\s+been)?"
CURSOR_NOT_ADVANCED = (
    "cursor_not_advanced",
    rf"\bcursor(?:[_ ]?advanced\s*=\s*false|\s+{_NOT}\s+advanc(?:e|ed|ing))\b",
)
"""Failure classes that withhold the guard whatever the step, and the text that shows them."""

FEATURE_OFF = (
    r"\bjob was skipped\b",
    r"\bskip(?:ped|ping)?\b.*\bhybrid[- ]memory\b.*\bconfig\b",
    r"\bself[- ]correction\b.*\b(?:disabled|skipped)\b",
    r"\breflection\b.*\b(?:disabled|skipped|enabled is false)\b",
    r"\bnightly\s*cycle\b.*\b(?:disabled|skipped|enabled is false)\b",
    r"\bsensor\s*sweep\b.*\b(?:disabled|skipped|enabled is false)\b",
    r"\bpersona\s*proposals?\b.*\b(?:disabled|skipped|enabled is false)\b",
    r"\bskip the script\b.*\b(?:disabled|reply)\b",
)
"""Phrases that prove, with an empty ledger, that a feature is switched off."""

UNKNOWN_COMMAND = r"error:\s*unknown command\s+['\"]([^'\"]+)['\"]"
WRAPPER_EXIT = (r"\bHM_STEP_EXIT=(-?\d+)", r"^\d{4}-\S+Z \S+ exit=(-?\d+)\s*$", r"\(exit=(-?\d+)\)")
"""Where a log says how its wrapper ended; the first kind that is found, its last line."""

_LANCEDB = r"\blancedb\b[^\n]*\b(?:commit|conflict|concurrent)|\bconcurrent\b[^\n]*\bmutation\b"
_LOCKED = r"\bdatabase is locked\b|\bsqlite[_ ]busy\b|\block(?: wait)?[_ ]time(?:d )?out\b"
STORAGE_CLASSES = (
    ("lancedb_commit_conflict", _LANCEDB),
    ("db_lock_timeout", _LOCKED),
)
MECHANICAL_CLASSES = (
    ("timeout", (124,), r"\btimeout\b"),
    ("sigkill_or_oom", (137, 143), r"\boom\b|out of memory|sigkill|\bkilled\b"),
)
"""Why a step failed: by exit codes, or by its reason. Any other is `nonzero_exit`."""
EMPTY_ARTIFACTS = (
    ("audit-health", "audit", "mechanical_failure", "missing_or_empty_required_artifact",
     r"(?:final-audit\.json|final audit)[^\n]*(?:0 bytes|0-byte|size=0|empty|malformed)"),
    ("diagnostics", "diagnostics", "diagnostic_failure", "zero_byte_memory_diagnostics",
     r"memory-diagnostics-live\.json[^\n]*(?:0 bytes|0-byte|size=0|empty|malformed)"),
)  # fmt: skip
"""Files that a step must leave: step, its name in issues, category, class, what a log says."""

SWITCHED_OFF = ("skip", "disabled", "enabled is false")
"""Any line with a phrase of FEATURE_OFF holds one of these."""
