"""`tacho run fork`: start a run that shares what another one has done up to a point."""

from __future__ import annotations

from tachograph.cli.finding import find_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.forking import Forked

SPEC = Spec(
    "Start a run that shares what another one has done, up to a checkpoint.",
    Argument("run", "The run; a prefix of its id will do.", complete="run"),
    Option(
        "--from",
        "A version, `latest` for its last checkpoint, or a phase, for what came before it.",
        default="latest",
        metavar="CHECKPOINT",
        name="point",
    ),
    Option("--id", "An id of your own.", metavar="ID"),
    Option("--title", "A line for people; that of the run by default.", metavar="TEXT"),
    Option("--reason", "Why; kept with the fork.", metavar="TEXT"),
    flag("--repeat-effects", "Effects begun after that point may be done again; needs --reason."),
    details="""Prints the id of the new run. It has the command and the inputs of the other one, and
what that had done by then: phases, batches, checkpoints, steps, effects, files and answers, at
their own times. It has no attempt and no verdict yet: the next start of the same command and
inputs goes on from there, or `tacho run resume` where the run says how. The other run is left as
it is, finished or not.

Of a run without checkpoints, `latest` shares all that it has done. `phase:NAME` names a phase whose
name is a number or `latest`. An effect that is done stays done, one in doubt stays in
doubt. Effects that were begun after that point, in the run or in other forks of the same history,
are not known to the fork: it is refused unless they are idempotent, or a person says that they may
be done again. Of a run that goes on, let only one go on: the fork or the run.""",
)


def run(params: Params, out: Output) -> None:
    """Fork the run and print how to go on."""
    from tachograph.cli.bars import Bar
    from tachograph.forking import fork

    if params.repeat_effects and params.reason is None:
        raise UsageError("--repeat-effects needs --reason: say why they may be done again.")
    if params.reason is not None and not params.reason.strip():
        raise UsageError("--reason is empty: write some text, or leave it out.")
    services = open_store(out)
    source = find_run(services, params.run, out)
    with Bar(out, "fork") as bar:
        forked = fork(
            services.repository,
            services.actor,
            source,
            params.point,
            run_id=params.id,
            title=params.title,
            reason=params.reason,
            repeat_effects=params.repeat_effects,
            progress=bar,
        )
    _show(services, forked, out)


def _show(services: Services, forked: Forked, out: Output) -> None:
    from tachograph.advising import next_step
    from tachograph.looking import summary_of

    step = next_step(summary_of(services, forked.run_id))
    if out.json:
        out.document(
            {
                "jobRunId": forked.run_id,
                "forkOf": forked.source,
                "version": forked.version,
                "sharedEvents": forked.shared,
                "effectsInDoubt": forked.in_doubt,
                "effectsToRepeat": forked.repeated,
                "sourceGoesOn": forked.source_goes_on,
                "effectsUnknown": forked.unknown,
                "nextStep": step,
            }
        )
        return
    out.line(forked.run_id)
    _warn(forked, out)
    out.note(
        f"It shares {forked.shared} events of {forked.source}, up to version {forked.version}."
    )
    for what, keys in (("In doubt", forked.in_doubt), ("Done again", forked.repeated)):
        if keys:
            out.note(f"{what}: {', '.join(keys)}.")
    out.note(step)


def _warn(forked: Forked, out: Output) -> None:
    """Say what nobody can rule out: effects that are done twice (G10)."""
    if forked.source_goes_on:
        out.warn(
            f"{forked.source} has not ended: effects that it begins from now on, the fork would do "
            "too. Let only one of them go on, or end it with `tacho run cancel`."
        )
    if forked.unknown:
        out.warn(
            "Nobody can tell which effects these runs of the same history have begun, since their "
            f"events are erased or lost: {', '.join(forked.unknown)}."
        )
