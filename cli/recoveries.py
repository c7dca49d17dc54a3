"""The options by which a job says how it may be continued. Declares nothing itself."""

from __future__ import annotations

from tachograph.cli.options import WHOLE, Option, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.domain.recovery import Recovery

OPTIONS = (
    Option(
        "--adapter",
        "What resumes it: module:function, an entry point, or a program.",
        metavar="ADAPTER",
        complete="path",
    ),
    Option(
        "--resume-command",
        "The command that resumes it, such as 'bash job.sh'.",
        metavar="COMMAND",
    ),
    flag("--auto-resume", "The watchdog may resume it."),
    Option("--stale-after", "Report it after so long without work.", metavar="SPAN"),
    flag("--kill-stalled", "The watchdog may stop it then, and resume it."),
    Option("--max-retries", "Resumes in a row without progress; 2.", kind=WHOLE, metavar="N"),
    Option("--backoff", "Pause after the first of them, doubling; 60s.", metavar="SPAN"),
    Option("--resume-window", "It expires after so long without work.", metavar="SPAN"),
    Option("--resume-timeout", "How long a resume may take.", metavar="SPAN"),
    Option(
        "--in-doubt",
        "Effects that may have happened: ask a person, do them again, or count them as done.",
        choices=("ask", "retry", "skip"),
    ),
    flag("--unsafe", "Repeating what was cut off may do harm: only a person resumes it."),
    Option("--input-file", "A plan tells when it changed.", multiple=True, metavar="PATH",
           complete="path"),
    Option("--check-artifact", "A command that ends with 0 for a good artifact.",
           metavar="COMMAND"),
)  # fmt: skip
"""Given to every command that starts a run, and to `run recovery`."""

SPANS = {
    "stale_after": "stale_after_seconds",
    "backoff": "backoff_seconds",
    "resume_window": "resume_window_seconds",
    "resume_timeout": "timeout_seconds",
}
"""Options whose value is a length of time, and what each declares."""


def declared(params: Params, before: Recovery | None = None) -> Recovery | None:
    """Return what the options say, on top of what was declared before; None when they say nothing.

    Raises UsageError.
    """
    changes = _changes(params)
    if not changes and not params.input_file:
        return None
    import os

    from tachograph.declaring import traced
    from tachograph.domain.recovery import Recovery

    recovery = (before or Recovery()).changed(**changes)
    if "adapter" in changes or "command" in changes or recovery.working_folder is None:
        recovery = recovery.changed(working_folder=os.getcwd())  # noqa: PTH109
    if recovery.kill_stalled and recovery.stale_after_seconds is None:
        raise UsageError("--kill-stalled says nothing alone: add --stale-after, and how long.")
    try:
        return traced(recovery, code=_code(recovery), inputs=params.input_file)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.") from error


def timeout_of(params: Params) -> float | None:
    """Return the seconds of `--timeout`, None without it. Raises UsageError for 0."""
    if params.timeout is None:
        return None
    seconds = _seconds(params.timeout)
    if seconds <= 0:
        raise UsageError("--timeout is 0: give a time above 0, or leave it out.")
    return seconds


def _changes(params: Params) -> dict[str, Any]:
    if params.adapter is not None and params.resume_command is not None:
        raise UsageError("--adapter and --resume-command exclude each other.")
    changes: dict[str, Any] = {}
    if params.adapter is not None:
        changes.update(adapter=params.adapter, command=None, traces=())
    if params.resume_command is not None:
        words = _words(params.resume_command, "--resume-command")
        changes.update(adapter=None, command=words, traces=())
    if params.check_artifact is not None:
        changes["artifact_check"] = _words(params.check_artifact, "--check-artifact")
    changes.update(
        {name: True for name in ("auto_resume", "kill_stalled") if getattr(params, name)}
    )
    if params.unsafe:
        changes["safe_to_retry"] = False
    for name in ("max_retries", "in_doubt"):
        if getattr(params, name) is not None:
            changes[name] = getattr(params, name)
    for option, name in SPANS.items():
        if getattr(params, option) is not None:
            changes[name] = _seconds(getattr(params, option))
    if changes.get("timeout_seconds") == 0:
        raise UsageError("--resume-timeout is 0: give a time above 0, or leave it out.")
    return changes


def _seconds(text: str) -> float:
    from tachograph.infra.clock import parse_span

    seconds = parse_span(text) / 1_000_000
    return int(seconds) if seconds.is_integer() else seconds


def _words(text: str, what: str) -> list[str]:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{what} is {text!r}: {error}.") from error
    if not words:
        raise UsageError(f"{what} is empty.")
    return words


def _code(recovery: Recovery) -> list[str]:
    """Return the files of the code that resumes the run. Raises what says that there is none."""
    from tachograph.dispatching import code_files

    known = any(each["what"] == "code" for each in recovery.traces)
    return [] if known or not recovery.can_be_dispatched else code_files(recovery)
