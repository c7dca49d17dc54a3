"""Wrap any command as a run or as an effect, and say truthfully what came of it (G12).

Knows how commands end, not how they are run: that comes in as a function.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.domain import errors, outcome
from tachograph.domain.expectations import Expectations
from tachograph.domain.gate import judge
from tachograph.domain.job_run_shapes import COMMAND_PHASE
from tachograph.domain.recovery_state import ending_key
from tachograph.expecting import facts_of_files, problems
from tachograph.measuring import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tachograph.domain.ended import Ended
    from tachograph.domain.event import Cause
    from tachograph.domain.facts import Facts
    from tachograph.domain.policy import Policy
    from tachograph.domain.run import Run
    from tachograph.session import Session

PHASE = COMMAND_PHASE
EFFECT_OUTPUT_BYTES = 1 << 20
"""Output of an effect that is kept, to be printed again on a resume."""


class Expected:
    """Files that a command is to make, among those that its run was declared to make."""

    def __init__(self, run: Run, paths: Sequence[str]) -> None:
        self._run = run
        self._paths = {path: str(Path(path).absolute()) for path in paths}

    def missing(self) -> dict[str, str]:
        """Return what is wrong with each file that is not as expected."""
        found = problems(Expectations.from_fields(self._run.expectations))
        given = {absolute: path for path, absolute in self._paths.items()}
        return {given.get(path, path): problem for path, problem in found.items()}

    def made(self) -> dict[str, tuple[int, str]]:
        """Return size and SHA-256 of the files that are as expected."""
        missing = self.missing()
        return {path: measure(Path(path)) for path in self._paths if path not in missing}


class Verdict:
    """What came of a wrapped command: the outcome, why, and the files that are missing."""

    __slots__ = ("missing", "outcome", "reason", "reason_code")

    def __init__(
        self,
        result: str,
        reason: str | None,
        reason_code: str | None,
        missing: Mapping[str, str],
    ) -> None:
        self.outcome = result
        self.reason = reason
        self.reason_code = reason_code
        self.missing = missing


def conclude(
    session: Session,
    ended: Ended,
    expected: Expected,
    success_codes: Sequence[int] = (0,),
    *,
    said: tuple[str, str, str] | None = None,
) -> Verdict:
    """Record how the wrapped command ended and end the attempt, all or nothing.

    An exit code that means success is judged by the gate: by what the command itself recorded and
    stated, and by the expected files where there are any. A command that ended the attempt itself
    has the last word. Only an end that is final counts as progress: a watchdog does not try for
    ever what fails again and again. Raises FencedError when another attempt owns the run by now.

    `said` is the outcome, with its reason and code, that the caller knows by better signs than
    the exit code.
    """
    run = session.reload()
    missing = expected.missing()
    if run.epoch == session.epoch and not run.attempt_open:
        return Verdict(run.outcome or run.ended or "", run.reason, run.reason_code, missing)
    made = expected.made()
    policy = session.policy()
    result = session.payloads.store(ending(ended), "result")

    def record(run: Run, why: Cause, result_of_run: tuple[str, str, str] | None) -> None:
        run.complete_step(why, ending_key(session.epoch), result)
        for path, (size, sha256) in made.items():
            absolute = str(Path(path).absolute())
            run.record_artifact(why, path, path=absolute, size=size, sha256=sha256)
        if result_of_run is not None:
            how, reason, code = result_of_run
            if outcome.is_terminal(how, code):
                run.end_phase(why, PHASE, summary=described(ended))
            run.finish(why, how, reason=reason, reason_code=code)
            return
        facts = _facts_of_files(run)
        if _is_final(run, facts, why, policy):
            run.end_phase(why, PHASE, summary=described(ended))
        if facts is not None:
            run.judge(why, facts, policy=policy)
        run.finish(why, policy=policy)

    bad = said or bad_ending(ended, success_codes)
    try:
        session.execute(lambda run, why: record(run, why, bad))
    except (errors.PhasesOpenError, errors.BatchesOpenError) as refusal:
        left = (outcome.PARTIAL, str(refusal), "phases_open")
        session.execute(lambda run, why: record(run, why, left))
    run = session.run
    return Verdict(run.outcome or "", run.reason, run.reason_code, missing)


def _facts_of_files(run: Run) -> Facts | None:
    """Return what is there of the expected files, and what the command has stated of itself.

    None where no file was expected: then the command's own judgement stands.
    """
    if not Expectations.from_fields(run.expectations).files:
        return None
    return facts_of_files(run.expectations).over(run.stated_facts())


def _is_final(run: Run, facts: Facts | None, why: Cause, policy: Policy) -> bool:
    """Say whether the run will be over by its verdict; if not, its phase is to be run again."""
    if facts is None and run.verdict is not None:
        return outcome.is_terminal(run.verdict["outcome"], run.verdict["reason_code"])
    counted = run.counted_facts(why.time_us)
    judgement = judge(counted if facts is None else facts.over(counted), policy)
    return outcome.is_terminal(judgement.outcome, judgement.reason_code)


def bad_ending(ended: Ended, success_codes: Sequence[int]) -> tuple[str, str, str] | None:
    """Return outcome, reason and code of a command that did not end well, None of one that did.

    One that ended on a signal that it was asked to end by is `partial`: it was interrupted.
    """
    if ended.timed_out:
        return outcome.FAILED, f"stopped at its time limit, {described(ended)}", "timeout"
    if ended.exit_code in success_codes:
        return None
    if _interrupted(ended):
        by_person = "SIGINT" in ended.asked or ended.shell_code == 128 + signal.SIGINT
        code = outcome.STOPPED_BY_PERSON if by_person else "interrupted"
        return outcome.PARTIAL, f"interrupted, {described(ended)}", code
    code = "exit_code" if ended.signal is None else "killed"
    return outcome.FAILED, described(ended), code


def _interrupted(ended: Ended) -> bool:
    number = ended.shell_code - 128
    if number == signal.SIGINT:
        return True
    return any(number == getattr(signal, name) for name in ended.asked)


def described(ended: Ended) -> str:
    """Return how a command ended, in words: `exit code 3`, `killed by SIGKILL`."""
    if ended.exit_code is not None:
        return f"exit code {ended.exit_code}"
    return f"killed by {_signal_name(ended.signal or 0)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"


def ending(ended: Ended) -> dict[str, Any]:
    """Return how a command ended as plain values to record."""
    return {
        "exit_code": ended.exit_code,
        "signal": None if ended.signal is None else _signal_name(ended.signal),
        "seconds": round(ended.seconds, 3),
        "timed_out": ended.timed_out,
        "output": as_text(ended.output),
        "output_bytes": ended.output_bytes,
    }


def as_text(data: bytes) -> str | bytes:
    r"""Return bytes as text where they are text; a character that the cut split is left out.

    >>> as_text("ü".encode()[1:] + b"ber"), as_text(b"\xff\xfe")
    ('ber', b'\xff\xfe')
    """
    for cut in range(min(4, len(data) + 1)):
        if cut and not 0x80 <= data[cut - 1] < 0xC0:  # only a continuation byte can be cut off
            break
        try:
            return data[cut:].decode()
        except UnicodeDecodeError:
            continue
    return data


class EffectResult:
    """What an effect printed and returned; `repeated` says that it was not run again."""

    __slots__ = ("complete", "exit_code", "output", "repeated")

    def __init__(self, exit_code: int, output: bytes, *, complete: bool, repeated: bool) -> None:
        self.exit_code = exit_code
        self.output = output
        self.complete = complete
        self.repeated = repeated


def recorded_effect(session: Session, key: str) -> EffectResult | None:
    """Return what a finished effect printed; None when it is not finished.

    An effect whose result was recorded by hand printed that result.
    """
    known = session.run.effects.get(key)
    if known is None or known["status"] != "done":
        return None
    result = session.recorded_result(known["version"])
    if not isinstance(result, dict) or "output_bytes" not in result:
        text = "" if result is None else str(result)
        return EffectResult(0, text.encode(), complete=True, repeated=True)
    output = result["output"]
    data = output.encode("utf-8", "surrogateescape") if isinstance(output, str) else output
    complete = result["output_bytes"] <= EFFECT_OUTPUT_BYTES
    return EffectResult(result["exit_code"], data, complete=complete, repeated=True)


def perform_effect(
    session: Session,
    key: str,
    run_child: Callable[..., Ended],
    *,
    idempotent: bool = False,
    description: str | None = None,
) -> EffectResult:
    """Run a command as an effect: at most once (G10), its output recorded.

    A command that does not end with 0 leaves the effect in doubt, as an exception does in
    Python: what it had done by then, nobody knows. `run_child` runs it, given `tail_bytes` and
    `capture_stderr`. Raises EffectInDoubtError, and OSError when it cannot be run at all.
    """
    recorded = recorded_effect(session, key)
    if recorded is not None:
        return recorded
    session.intend_effect(key, idempotent=idempotent, description=description)
    ended = run_child(tail_bytes=EFFECT_OUTPUT_BYTES, capture_stderr=False)
    if ended.exit_code == 0:
        session.complete_effect(key, ending(ended))
    complete = ended.output_bytes <= EFFECT_OUTPUT_BYTES
    return EffectResult(ended.shell_code, ended.output, complete=complete, repeated=False)
