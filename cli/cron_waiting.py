"""Wait for the command of a cron job whose keeper was killed: it may live on. Judges nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tachograph.cli.opening import open_store
from tachograph.domain.errors import TachographError
from tachograph.domain.owner import Owner
from tachograph.infra.job_lock import named_run
from tachograph.infra.store_folder import cron_folder

if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.cron_ending import Ending
    from tachograph.cli.output import Output
    from tachograph.domain.run import Run

LOOK_SECONDS = 0.25
GRACE_SECONDS = 10.0
"""Between the polite and the final signal at the time limit."""


def wait_for_command(out: Output, ending: Ending, limit_seconds: float | None) -> bool:
    """Wait until the command has ended; False when another attempt has the run by then.

    At the time limit of the line it is stopped, as its keeper would have done. A store that
    cannot be opened knows of no command.
    """
    try:
        services = open_store(out)
        run = _run_of(services, ending)
        if run is None or services.live_owner(run) is None:
            return True
        out.warn(f"tacho: the command of run {run.id} lives on: waiting for its end.")
        while services.live_owner(run) is not None:
            if limit_seconds is not None and ending.seconds > limit_seconds:
                _stop(services, run)
                limit_seconds = None
            time.sleep(LOOK_SECONDS)
        now = services.repository.get(run.id)
    except (TachographError, OSError) as error:
        out.warn(f"tacho: whether the command lives on cannot be seen: {error}")
        return True
    return now is None or now.epoch == run.epoch


def _run_of(services: Services, ending: Ending) -> Run | None:
    """Return the run as the killed keeper had it; its lock says which execution it was."""
    name = named_run(cron_folder(services.folder), ending.job)
    if name is None or name.partition("~")[0] != ending.run_id:
        return None
    return services.repository.get(name)


def _stop(services: Services, run: Run) -> None:
    from tachograph.infra.stopping import stop

    worker = None if run.worker is None else Owner.from_fields(run.worker)
    owner = Owner.from_fields(run.owner or {})
    stop(owner, worker, here=services.observer, grace_seconds=GRACE_SECONDS, kill=True)
