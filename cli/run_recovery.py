"""`tacho run recovery`: see, or change, how a run may be continued."""

from __future__ import annotations

from tachograph.cli.finding import find_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Params, Spec, UsageError, flag
from tachograph.cli.recoveries import OPTIONS, SPANS, declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.output import Output
    from tachograph.domain.recovery import Recovery
    from tachograph.session import Session

NONE = "none"
"""Value of one of SPANS that takes it back."""
TAKEN_BACK = {
    "no_auto_resume": ("auto_resume", "auto_resume"),
    "no_kill_stalled": ("kill_stalled", "kill_stalled"),
    "safe": ("unsafe", "safe_to_retry"),
}
"""By option: the one that it takes back, and what that declares."""

SPEC = Spec(
    "See, or change, how a run may be continued.",
    Argument("run", "The run; a prefix of its id will do to see it.", complete="run"),
    *OPTIONS,
    flag("--no-auto-resume", "The watchdog may no longer resume it."),
    flag("--no-kill-stalled", "The watchdog may no longer stop it."),
    flag("--safe", "Repeating what was cut off does no harm."),
    Option("--reason", "Why it is changed.", metavar="TEXT"),
    details="""Without options it shows what was declared. What is changed here counts from now
on, and lets the watchdog try again where it had given up. `none` as a SPAN takes one back.

\b
  tacho run recovery nightly-1 --max-retries 5 --reason "the network is back" """,
)


def run(params: Params, out: Output) -> None:
    """Show, or record."""
    from tachograph.domain.recovery import Recovery

    services = open_store(out, read_only=params.reason is None)
    if params.reason is None:
        run_id = find_run(services, params.run, out)
        if _changed(params, Recovery()) is not None:
            raise UsageError("Why is it changed? Say so with --reason.")
        state = services.planner.load(run_id)
        _show(run_id, Recovery.from_fields(state.recovery), out)
        return
    session = services.session(params.run, 0)
    recovery = _changed(params, Recovery.from_fields(session.run.recovery))
    if recovery is None:
        raise UsageError("What is changed? Name at least one option besides --reason.")
    _change(session, recovery, params.reason)
    _show(params.run, recovery, out)


def _changed(params: Params, before: Recovery) -> Recovery | None:
    """Return what is declared after this; None when the options say nothing."""
    from tachograph.domain.recovery import Recovery

    default, values = Recovery(), dict(vars(params))
    back: dict[str, Any] = {}
    for option, name in SPANS.items():
        if values[option] == NONE:
            values[option] = None
            back[name] = getattr(default, name)
    for option, (other, name) in TAKEN_BACK.items():
        if values[option] and values[other]:
            words = " and ".join(f"--{each.replace('_', '-')}" for each in (other, option))
            raise UsageError(f"{words} exclude each other.")
        if values[option]:
            back[name] = getattr(default, name)
    taken_back = before.changed(**back)
    recovery = declared(Params(values), taken_back)
    if recovery is None and not back:
        return None
    recovery = recovery or taken_back
    if recovery.kill_stalled and recovery.stale_after_seconds is None:
        raise UsageError("--kill-stalled needs --stale-after: add --no-kill-stalled.")
    return recovery


def _change(session: Session, recovery: Recovery, reason: str) -> None:
    session.execute(lambda run, why: run.declare_recovery(why, recovery, reason=reason))


def _show(run_id: str, recovery: Recovery, out: Output) -> None:
    from tachograph.cli.cards import card

    fields = {name: getattr(recovery, name) for name in recovery.__slots__}
    if out.json:
        out.document({"jobRunId": run_id, "recovery": fields})
        return
    rows = [("Run", run_id)]
    rows += [
        (name.replace("_", " ").capitalize(), _text(value))
        for name, value in fields.items()
        if value is not None and value != []
    ]
    card(out, rows)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        parts = [item["path"] if isinstance(item, dict) else str(item) for item in value]
        return " ".join(parts)
    return f"{value:g}" if isinstance(value, float) else str(value)
