"""The policies that come with Tachograph, every version that was ever released.

A verdict names the policy it was made by; with these rules it can be judged again years later.
Released rules never change: a new rule, or another condition, makes a new version of the policy.
"""

from __future__ import annotations

from tachograph.domain import outcome
from tachograph.domain.policy import Policy, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ID = "default"
NEWEST = 2


def default_policy(version: int = NEWEST) -> Policy:
    """Return the default policy, or the version of it that was the default once.

    Raises KeyError for a version that does not exist.
    """
    policy = _made.get(version)
    if policy is None:
        rows = _VERSIONS[version]
        policy = _made[version] = Policy(ID, version, [Rule(_fields(*row)) for row in rows])
    return policy


def known_policy(policy_id: str, version: int) -> Policy | None:
    """Return a policy that comes with Tachograph, None for any other."""
    return default_policy(version) if policy_id == ID and version in _VERSIONS else None


_made: dict[int, Policy] = {}


def _fields(
    rule_id: str,
    version: int,
    when: tuple[str, ...],
    result: str,
    code: str,
    text: str,
    otherwise: str | None = None,
) -> dict[str, Any]:
    return {
        "id": rule_id,
        "version": version,
        "when": when,
        "outcome": result,
        "reason_code": code,
        "text": text,
        "otherwise": otherwise,
    }


_ALL_DONE = ("all-done", 1, ("produced >= 1",), outcome.SUCCESS, "outputs_present")
_NOT_JUDGED = (
    "not-judged",
    1,
    (),
    outcome.SUCCESS_WITH_REVIEW,
    outcome.NOT_JUDGED,
    "inputs and outputs were not both declared, so nothing says that the job did its work",
)

_FIRST: tuple[tuple[Any, ...], ...] = (
    (
        "stopped-early",
        1,
        ("stopped set",),
        outcome.PARTIAL,
        outcome.STOPPED_BY_BUDGET,
        "stopped early ({stopped}) with {outputs} of {inputs} items done",
    ),
    (
        "faults-only",
        1,
        ("faults >= 1", "produced < 1"),
        outcome.FAILED_SEMANTIC_EMPTY,
        "faults_only",
        "{faults} faults and no output, so nothing says that there was nothing to do",
    ),
    (
        "declared-no-work",
        1,
        ("declared set", "produced < 1"),
        outcome.EMPTY,
        "declared_no_work",
        "the job declared that there was nothing to do: {declared}",
    ),
    (
        "no-input",
        1,
        ("inputs == 0", "produced < 1"),
        outcome.EMPTY,
        "no_input",
        "there was no input",
    ),
    (
        "outputs-without-input",
        1,
        ("inputs == 0",),
        outcome.SUCCESS_WITH_REVIEW,
        "outputs_without_input",
        "{outputs} outputs although there was no input",
    ),
    (
        "no-item-parsed",
        1,
        ("inputs >= 1", "outputs == 0"),
        outcome.FAILED_SEMANTIC_EMPTY,
        outcome.NO_ITEM_PARSED,
        "{inputs} items went in, none came out, and nobody declared that there was nothing to do",
    ),
    (
        "fewer-outputs",
        1,
        ("outputs < inputs",),
        outcome.SUCCESS_WITH_REVIEW,
        "fewer_outputs",
        "{outputs} of {inputs} items came out",
    ),
    (
        "faults-seen",
        1,
        ("faults >= 1", "outputs set"),
        outcome.SUCCESS_WITH_REVIEW,
        "faults_seen",
        "{faults} faults on the way to {outputs} outputs",
    ),
    (*_ALL_DONE, "{outputs} outputs from {inputs} inputs"),
    _NOT_JUDGED,
)

_SECOND: tuple[tuple[Any, ...], ...] = (
    # A run that stopped before anything came out, night after night, is no healthy bounded run.
    (
        "stopped-before-output",
        1,
        ("stopped set", "done == 0"),
        outcome.PARTIAL,
        outcome.STOPPED_BEFORE_OUTPUT,
        "stopped early ({stopped}) before anything came out of {work} items",
        "it was not stopped early",
    ),
    (
        "stopped-early",
        2,
        ("stopped set",),
        outcome.PARTIAL,
        outcome.STOPPED_BY_BUDGET,
        (
            "stopped early ({stopped}) with {done} of {work} items done; batches unfinished: "
            "{batches_missing}"
        ),
        "it was not stopped early",
    ),
    (
        "deadline-before-output",
        1,
        ("deadline_left_seconds <= 0", "batches_missing >= 1", "done == 0"),
        outcome.PARTIAL,
        outcome.STOPPED_BEFORE_OUTPUT,
        "its deadline passed before anything came out; batches unfinished: {batches_missing}",
        "deadline not reached: {deadline_left} left",
    ),
    (
        "deadline-passed",
        1,
        ("deadline_left_seconds <= 0", "batches_missing >= 1"),
        outcome.PARTIAL,
        outcome.STOPPED_BY_BUDGET,
        "its deadline passed; batches unfinished: {batches_missing}",
        "deadline not reached: {deadline_left} left",
    ),
    # Nobody answered: that says nothing about the model or the parser.
    (
        "provider-failed",
        1,
        ("answered == 0", "provider_faults >= 1", "produced < 1"),
        outcome.FAILED,
        "provider_failed",
        "the provider answered none of {asked} items; its faults: {provider_faults}",
        "the provider answered {answered} of {asked}",
    ),
    # A classifier that could not be read lets nothing through: that is not "no input".
    (
        "filter-unreadable",
        1,
        ("filter_faults >= 1", "produced < 1"),
        outcome.FAILED_SEMANTIC_EMPTY,
        "filter_unreadable",
        (
            "answers of the filter could not be read ({filter_faults}): that it let nothing "
            "through says nothing about the {extracted} items it was given"
        ),
        "what filters answered could be read in the end",
    ),
    (
        "faults-only",
        2,
        ("faults >= 1", "produced < 1", "effects < 1", "made < 1"),
        outcome.FAILED_SEMANTIC_EMPTY,
        "faults_only",
        "faults ({faults}) and no output, so nothing says that there was nothing to do",
        "no fault is left that nothing made good",
    ),
    (
        "declared-no-work",
        2,
        ("declared set", "produced < 1", "faults < 1"),
        outcome.EMPTY,
        "declared_no_work",
        "the job declared that there was nothing to do: {declared}",
        "nobody declared that there was nothing to do",
    ),
    (
        "declared-for-each",
        1,
        ("work >= 1", "quiet >= work", "produced < 1", "faults < 1"),
        outcome.EMPTY,
        "declared_no_work",
        "for each of {work} items it was declared that there is nothing to do",
        "nothing to do was declared for {quiet} of {work} items",
    ),
    (
        "all-filtered",
        1,
        ("extracted >= 1", "work == 0", "produced < 1", "faults < 1"),
        outcome.EMPTY,
        "all_filtered",
        "{extracted} items were found, and a filter that could be read took all of them out",
    ),
    (
        "no-input",
        2,
        ("work == 0", "produced < 1", "faults < 1"),
        outcome.EMPTY,
        "no_input",
        "there was no input",
        "there was input: {work} items",
    ),
    (
        "outputs-without-input",
        2,
        ("work == 0", "produced >= 1"),
        outcome.SUCCESS_WITH_REVIEW,
        "outputs_without_input",
        "something came out ({done}) although there was no input",
    ),
    (
        "never-asked",
        1,
        ("work >= 1", "asked == 0", "done == 0"),
        outcome.FAILED,
        "never_asked",
        "{work} items were there, and none was put to a model or parser",
        "{asked} of {work} items were put to a model or parser",
    ),
    (
        "blank-output",
        1,
        ("blank >= 1", "produced < 1"),
        outcome.FAILED_SEMANTIC_EMPTY,
        "blank_output",
        "all that came out is whitespace or a placeholder; blank outputs: {blank}",
        "no output is whitespace or a placeholder",
    ),
    (
        "no-item-parsed",
        2,
        ("work >= 1", "done == 0"),
        outcome.FAILED_SEMANTIC_EMPTY,
        outcome.NO_ITEM_PARSED,
        "{work} items went in, none came out, and nobody declared that there was nothing to do",
        "{done} of {work} items came out",
    ),
    (
        "files-missing",
        1,
        ("files_expected >= 1", "files_present == 0", "produced < 1"),
        outcome.FAILED_SEMANTIC_EMPTY,
        "expected_files_missing",
        "none of the files it was to make is there ({files_present} of {files_expected})",
        "{files_present} of {files_expected} expected files are there",
    ),
    (
        "below-minimum",
        1,
        ("accounted < minimum_fraction * work",),
        outcome.FAILED,
        "below_minimum_fraction",
        "{accounted} of {work} items came out, less than the declared fraction {minimum_fraction}",
        "the declared minimum, {minimum_fraction} of {work} items, was reached with {accounted}",
    ),
    (
        "some-files-missing",
        1,
        ("files_present < files_expected",),
        outcome.SUCCESS_WITH_REVIEW,
        "expected_files_missing",
        "of the files it was to make, {files_present} of {files_expected} are there",
    ),
    (
        "fewer-outputs",
        2,
        ("unaccounted >= 1",),
        outcome.SUCCESS_WITH_REVIEW,
        "fewer_outputs",
        "{done} of {work} items came out",
    ),
    # Faults that a later try made good are not among these.
    (
        "faults-seen",
        2,
        ("faults >= 1",),
        outcome.SUCCESS_WITH_REVIEW,
        "faults_seen",
        "{produced} came out, with faults on the way: {faults}",
    ),
    (*_ALL_DONE, "{work} in, {done} out"),
    (
        "files-made",
        1,
        ("files_expected >= 1", "files_present >= files_expected"),
        outcome.SUCCESS,
        "outputs_present",
        "every file it was to make is there ({files_present} of {files_expected})",
    ),
    (
        "effects-done",
        1,
        ("effects >= 1", "work unset"),
        outcome.SUCCESS,
        "effects_done",
        "its recorded effects were done ({effects}), and nothing else was declared as its work",
    ),
    _NOT_JUDGED,
)

_VERSIONS = {1: _FIRST, 2: _SECOND}
