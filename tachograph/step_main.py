"""`python -m tachograph.step_main module:function` runs a Python function as a maintenance step."""

from __future__ import annotations

import sys

from tachograph.bootstrap import joined, open_store
from tachograph.step_calling import call, returned_key


def report(outcome: str) -> None:
    """Record in the step's run which outcome its function returned; without a run, nothing."""
    at = joined()
    if at is None:
        return
    services = open_store()
    try:
        services.session(*at).complete_step(returned_key(at[1]), outcome)
    finally:
        services.close()


if __name__ == "__main__":
    sys.exit(call(sys.argv[1:], report))
