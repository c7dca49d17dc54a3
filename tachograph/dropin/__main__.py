"""`python -m tachograph.dropin PROGRAM WORKSPACE …`: what the installed scripts hand over to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.dropin.places import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = ("runtime", "watch", "resume", "bridge")
USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Run one of the programs and return its exit code."""
    if len(argv) < 2 or argv[0] not in PROGRAMS:
        sys.stderr.write(f"usage: python -m tachograph.dropin {'|'.join(PROGRAMS)} WORKSPACE …\n")
        return USAGE
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # whatever the locale of a heartbeat says
            reconfigure(encoding="utf-8", errors="surrogateescape")
    program, workspace, rest = argv[0], Workspace(Path(argv[1])), argv[2:]
    if program == "runtime":
        from tachograph.dropin.runtime import run
    elif program == "watch":
        from tachograph.dropin.watch import run
    elif program == "resume":
        from tachograph.dropin.resume import run
    else:
        from tachograph.dropin.bridge import run
    return run(workspace, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
