"""The anchors that a watchdog appends to a file. A look that finds nothing due costs one stat."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.watch_options import anchor_us
from tachograph.domain.errors import TachographError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output


def keep(services: Services, params: Params, out: Output) -> int:
    """Append an anchor when one is due; return the exit code. A failure is told, and stops nothing.

    A dry run appends none.
    """
    every_us = anchor_us(params)
    if every_us is None or params.dry_run:
        return OK
    from tachograph.anchorkeeping import append_when_due

    try:
        append_when_due(services, params.anchor_file, every_us, params.anchor_sign)
    except (OSError, TachographError) as error:
        out.warn(f"No anchor was appended to {params.anchor_file}: {error}")
        return FAILURE
    return OK
