"""The store and the attempt that a command works on. Guesses neither: writes never guess."""

from __future__ import annotations

from tachograph.cli.options import WHOLE, Option, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.policy import Policy
    from tachograph.session import Session

ACTOR = "shell"
"""Who the events of shell commands say caused them."""

RUN = Option("--run", "The run.", env="TACHO_RUN_ID", metavar="ID", complete="run")
EPOCH = Option("--epoch", "The attempt.", kind=WHOLE, env="TACHO_EPOCH", metavar="N")

AUTO = "auto"
"""The setting `time_format` that leaves the choice to each command."""

_HOW = 'Begin your script with: eval "$(tacho run start COMMAND --export)"'


def open_store(out: Output, *, create: bool = False, read_only: bool = False) -> Services:
    """Return the services of the store that `--store` names or that is found.

    They are closed when the command ends. Raises StoreNotFoundError.
    """
    from tachograph.bootstrap import open_store as open_

    services = open_(out.store, create=create, read_only=read_only, actor=ACTOR)
    out.keep(services)
    if out.time is None and services.settings.time_format != AUTO:
        out.time = services.settings.time_format
    return services


def run_id(params: Params) -> str:
    """Return the run that is meant. Raises UsageError when nothing says which."""
    if params.run is None:
        raise UsageError(f"Which run? Neither --run nor TACHO_RUN_ID says so. {_HOW}")
    return str(params.run)


def anybody(params: Params, out: Output, *, read_only: bool = False) -> Session:
    """Return a session for whoever it is: a person needs no attempt for what he may do."""
    run = run_id(params)
    return open_store(out, read_only=read_only).session(run, params.epoch or 0)


def policy_in(path: str | None) -> Policy | None:
    """Return the gate policy of a file for one judgement; None without a file: the one in force.

    Raises PolicyError.
    """
    if path is None:
        return None
    from tachograph.infra.policies import policy_of

    return policy_of(path)


def attempt(params: Params, out: Output) -> Session:
    """Return the attempt that the command writes for. Raises UsageError when none is named."""
    run, epoch = which_attempt(params)
    return open_store(out).session(run, epoch)


def which_attempt(params: Params) -> tuple[str, int]:
    """Return the run and the epoch that are meant. Raises UsageError when none is named."""
    run = run_id(params)
    if params.epoch is None:
        raise UsageError(
            f"Which attempt of run {run}? Neither --epoch nor TACHO_EPOCH says so. {_HOW}"
        )
    return run, params.epoch
