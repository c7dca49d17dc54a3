"""`tacho run rejudge`: which verdicts another policy would change; with --apply, record that."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.policy import Policy
    from tachograph.rejudging import Rejudged

SPEC = Spec(
    "Show which verdicts another policy would change, and record that.",
    Argument(
        "runs",
        "Runs; the beginnings of their ids will do.",
        required=False,
        multiple=True,
        complete="run",
    ),
    Option("--since", "All runs in which something happened since, such as 30d.", metavar="TIME"),
    Option(
        "--policy",
        "The policy, a TOML file; the one in force by default.",
        metavar="FILE",
        complete="path",
    ),
    flag("--apply", "Record a revision in each run that is judged otherwise; needs --reason."),
    Option("--reason", "Why they are judged again; kept with each revision.", metavar="TEXT"),
    flag("--exit-code", "End with 1 when a verdict would change."),
    details="""A run is judged by the facts that its verdict saw: what the job stated stays as it
was stated, the rest is counted from the log as of that moment. One that ended without a verdict is
judged by what its log holds. Runs with an open attempt are skipped; so is what nobody can judge:
runs that were cancelled, expired or erased, that ended as failed or partial by their own word, or
that recorded nothing to judge them by.

--apply appends one event to each run. The outcome of a run stays what it was, and its first verdict
stays in the log: `tacho run explain` shows both. A second time records nothing.""",
)


def run(params: Params, out: Output) -> int:
    """Show what would change, or record it."""
    from tachograph import rejudging
    from tachograph.cli import rejudge_lines
    from tachograph.cli.bars import Bar
    from tachograph.cli.opening import open_store

    _refuse_nonsense(params)
    services = open_store(out, read_only=not params.apply)
    policy = services.policy() if params.policy is None else services.policy_in(params.policy)
    run_ids = _wanted(services, params, out)
    with Bar(out, "judge") as bar:
        found = rejudging.rejudge(
            services.repository, services.payloads, run_ids, policy, bar, len(run_ids)
        )
    differ = any(each.state == rejudging.DIFFERENT for each in found)
    if params.apply and differ:
        _revise(services, found, policy, params.reason, out)
    rejudge_lines.show(found, policy, out, applied=params.apply)
    return FAILURE if params.exit_code and differ else OK


def _refuse_nonsense(params: Params) -> None:
    if bool(params.runs) == (params.since is not None):
        raise UsageError("Which runs? Name them, or say --since, as in --since 30d, and not both.")
    if params.apply != (params.reason is not None):
        raise UsageError("--apply and --reason go together: say why the verdicts are revised.")
    if params.reason is not None and not params.reason.strip():
        raise UsageError("--reason is empty: say why the verdicts are revised.")


def _wanted(services: Services, params: Params, out: Output) -> list[str]:
    """Return the ids of the runs that are meant, the newest first where a time is given."""
    from tachograph.cli.finding import ask, find_run

    if params.since is None:
        return list(dict.fromkeys(find_run(services, text, out) for text in params.runs))
    from tachograph.infra.clock import now_us, parse_time
    from tachograph.looking import judge_of
    from tachograph.reading import list_runs

    since_us, judge = parse_time(params.since, now_us()), judge_of(services)
    cards = ask(services, out, lambda view: list_runs(view, judge, since_us=since_us))
    return [card["id"] for card in cards]


def _revise(
    services: Services, found: Sequence[Rejudged], policy: Policy, reason: str, out: Output
) -> None:
    from tachograph import rejudging
    from tachograph.cli.bars import Bar
    from tachograph.judging import kept_policy

    stored = kept_policy(policy, services.policy, services.payloads)
    with Bar(out, "revise") as bar:
        rejudging.revise(
            lambda run_id, command: services.session(run_id, 0).execute(command),
            found,
            stored,
            reason,
            bar,
            len(found),
        )
