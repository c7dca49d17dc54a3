"""Run the command of `tacho run effect` and print what it printed. Heavy: it starts a process."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from tachograph.executing import perform_effect
from tachograph.infra.child import run_child

if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.session import Session


def perform(session: Session, params: Params, out: Output) -> int:
    """Do the effect, or print what it printed when it was done; return its exit code."""
    result = perform_effect(
        session,
        params.key,
        partial(run_child, params.argv, os.environ),
        idempotent=params.idempotent,
        description=params.describe,
    )
    if result.repeated:
        out.raw(result.output)
        out.note(f"Effect {params.key!r} is done already: its output is repeated, nothing was run.")
        if not result.complete:
            out.warn(f"The output of effect {params.key!r} was longer; only its end was kept.")
    elif result.exit_code:
        out.warn(
            f"tacho: effect {params.key!r} is in doubt: its command ended with "
            f"{result.exit_code}. When you know what it did, say so with --done --reason, "
            "or run it again with --retry --reason."
        )
    return result.exit_code
