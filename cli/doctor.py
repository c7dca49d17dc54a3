"""`tacho doctor`: look at everything that keeps jobs from being recorded, and say what to do."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.options import Spec
from tachograph.cli.tables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Look at everything that keeps jobs from being recorded, and say what to do.",
    details="Each line is ok, warn or fail. Ends with 1 when one is fail. It clears the slots of "
    "killed readers, and lets views catch up; `tacho store verify` looks at every event.",
)

_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}


def run(_params: Params, out: Output) -> int:
    """Print a line for each thing that was looked at."""
    from tachograph.doctoring import examine

    checks = []
    for check in examine(out.store):
        checks.append(check)
        if out.json:
            continue
        state = f"{check.state:<4}"
        if out.styled():
            state = f"\033[{_COLOURS[check.state]}m{state}\033[0m"
        out.line(f"{state}  {check.name:<17} {shown(check.found)}")
        if check.advice is not None:
            out.line(f"{'':<23} → {check.advice}")
    failed = any(check.state == "fail" for check in checks)
    if out.json:
        out.document(
            {
                "healthy": not failed,
                "checks": [
                    {
                        "name": check.name,
                        "state": check.state,
                        "found": check.found,
                        "advice": check.advice,
                    }
                    for check in checks
                ],
            }
        )
    return FAILURE if failed else OK
