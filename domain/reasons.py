"""What each reason code means, in words, and what would have made the run end otherwise.

A policy of a project brings reason codes of its own: those speak by the text of their rule.
"""

from __future__ import annotations

BY_THE_GATE: dict[str, str] = {
    "stopped_by_budget": "a limit ended it before it was through",
    "stopped_before_output": "a limit ended it before anything came out",
    "provider_failed": "the provider never answered",
    "filter_unreadable": "what a filter answered could not be read, so nothing says what was to do",
    "faults_only": "nothing but faults came of it",
    "declared_no_work": "the job says that there was nothing to do",
    "all_filtered": "a filter took out all there was",
    "no_input": "there was nothing to work on",
    "outputs_without_input": "something came out of nothing",
    "never_asked": "there was work, and no model or parser was asked to do it",
    "blank_output": "what came out says nothing",
    "no_item_parsed": "something went in and nothing came out",
    "expected_files_missing": "files that it was to make are not there",
    "below_minimum_fraction": "less came out than was declared as the least",
    "fewer_outputs": "less came out than went in",
    "faults_seen": "there were faults on the way",
    "outputs_present": "what was to come out is there",
    "effects_done": "its recorded side effects were done",
    "not_judged": "nothing says whether it did its work",
}
"""Reason codes of the policies that come with Tachograph."""

BY_ITS_END: dict[str, tuple[str, str | None]] = {
    "exception": ("an exception left the job's block", "without the exception"),
    "exit_code": ("the exit code of its command says so", "by what it recorded"),
    "try_later": ("its command said by its exit code: try again later", "with exit code 0"),
    "killed": ("its command was killed by a signal that nobody asked for", "without the signal"),
    "timeout": ("its command was stopped at its time limit", "had it ended in time"),
    "not_run": ("its command could not be run at all", "had the command been there"),
    "not_begun": ("it was asked to end before its command was run", "had it gone on"),
    "interrupted": ("it was asked to end by a signal, or left its block early", "had it gone on"),
    "cancelled": ("its asyncio task was cancelled", "had its task gone on"),
    "stopped_by_person": ("a person stopped it with Ctrl-C", "had nobody stopped it"),
    "nothing_to_repair": ("no domain asked for a repair", None),
    "repairs_done": ("the repairs that were asked for were done", None),
    "repairs_observed": ("repairs were recommended, and none was to be done", None),
    "repairs_put_off": ("cooldown or budget put all repairs off", None),
    "repairs_not_done": ("a repair failed, or was denied until a person looks at it", None),
    "terminal_error": ("its command said by its exit code that no attempt can help", "without it"),
    "lease_lost": ("its job was given to another worker", "had its worker kept the job"),
    "waits_for_approval": ("it waits until a person agrees", "once a person has agreed"),
    "phases_open": ("it ended while a phase or a planned batch was open", "with nothing left open"),
    "task_failed": ("the task itself reported that it failed", "without that report"),
    "artifacts_missing": ("none of the files it names is there", "with one of these files there"),
    "nested_run": ("its command's own run came to this", "by what it recorded itself"),
    "returned": ("its function returned this outcome by name", "by what it recorded"),
    "refused": ("it could not end as it said it did", "had that been so"),
    "rate_limited": ("the provider asked to be left alone for now", "without the rate limit"),
    "skipped_concurrency": ("its job was at work already, in another run", "had it been alone"),
    "steps_failed": ("a step of it failed", None),
    "steps_missing": ("nothing says that a required step was run", None),
    "steps_skipped": ("all its required steps were passed over", None),
    "steps_deferred": ("steps of it are still to be done", None),
    "still_at_work": ("what a killed attempt had started was at work", "once that had ended"),
    "steps_done": ("each step that was due did its work", None),
    "nothing_due": ("no step was due", None),
    "exit_validation": ("what its steps have left says that they did not do their work", None),
    "wrapper_aborted_before_steps": ("what wraps its steps ended before the first of them", None),
    "imported_checkpoint": ("it was taken over in the middle of its work, by a checkpoint", None),
    "contradictory_record": ("the record that it was imported from contradicts itself", None),
}
"""Reason codes of how an attempt ended: what happened, and the condition that was not met for the
gate to judge; None where what its steps came to is all there is to judge."""

OF_A_STEP: dict[str, str] = {
    "deadline_reached": "the time of the whole run was up",
    "feature_disabled": "it is switched off",
    "done_for_good": "it is to be done once, and was",
    "dependency_unmet": "a step it depends on was never done",
    "guard_holds": "it did its work not long ago",
    "no_runner": "nobody has said how to run it",
    "breaker_open": "the provider had asked to be left alone several times in a row",
    "dry_run": "it would have been run",
    "locked": "another maintenance run was at it",
    "stopped": "the run was asked to stop",
    "left_running": "it was left running",
    "unfinished": "it was begun, and nothing says that it ended",
    "expired": "its run was left too long",
}
"""Reason codes of what became of a maintenance step, besides those of the run it started."""


def meaning(reason_code: str | None) -> str | None:
    """Return what a reason code means; None for one that only its policy knows.

    >>> meaning("no_input"), meaning("exit_code"), meaning("ours")
    ('there was nothing to work on', 'the exit code of its command says so', None)
    """
    code = reason_code or ""
    if code in BY_ITS_END:
        return BY_ITS_END[code][0]
    return BY_THE_GATE.get(code) or OF_A_STEP.get(code)


def otherwise(reason_code: str | None) -> str | None:
    """Return what would have let the gate judge, for an end that was not judged by it."""
    found = BY_ITS_END.get(reason_code or "")
    return None if found is None else found[1]
