"""The work of `tacho maintenance worker`: cycles, one after another, until it is asked to stop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tachograph.cli.asked import Asked
from tachograph.cli.health_lines import care_document, print_care
from tachograph.domain.errors import RunOwnedError
from tachograph.healthkeeping import HealthKeeping
from tachograph.queue_plans import plan_of

if TYPE_CHECKING:
    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.repair_policy import RepairPolicy
    from tachograph.health.caring import CareReport
    from tachograph.queue_plans import QueuePlans


class Worker:
    """Does cycles on one store; what the project declares is read anew before each."""

    def __init__(self, services: Services, params: Params, out: Output) -> None:
        self._services = services
        self._params = params
        self._out = out

    def once(self) -> int:
        """Do one cycle. Raises RunOwnedError while another one is under way."""
        self._tell(self._cycle(self._plans()))
        return 0

    def forever(self, interval_us: int | None) -> int:
        """Do cycles until SIGINT or SIGTERM. One that fails is told, and the next one is done.

        Without an interval that of the project counts, as it is at the time.
        """
        out = self._out
        plans = self._plans()
        with Asked(twice=True) as asked:
            while not asked.is_set():
                began = time.monotonic()
                try:
                    plans = self._plans()
                    idle = why_idle(plans.repair)
                    if idle is None:
                        self._tell(self._cycle(plans))
                    else:
                        out.note(f"Left out: {idle}")
                except RunOwnedError as error:
                    out.note(f"Left out: {error}")
                except Exception as error:  # noqa: BLE001  # the next one may go better
                    out.warn(f"{type(error).__name__}: {error}")
                out.flush()
                seconds = (interval_us or plans.repair.interval_us) / 1_000_000
                asked.wait(max(0.0, seconds - (time.monotonic() - began)))
        return 0

    def _plans(self) -> QueuePlans:
        return plan_of(self._services, self._params.config)

    def _cycle(self, plans: QueuePlans) -> CareReport:
        mode = self._params.mode or plans.repair.mode
        return HealthKeeping(self._services, plans).care(mode)

    def _tell(self, report: CareReport) -> None:
        if self._out.json:
            self._out.document_line(care_document(report))
        else:
            print_care(report, self._out)


def why_idle(policy: RepairPolicy) -> str | None:
    """Return why no maintenance worker goes on by itself; None when one may."""
    if policy.frozen:
        return "repairs are frozen ([repair] frozen in tachograph.toml)."
    if not policy.enabled:
        return "repairs are switched off ([repair] enabled in tachograph.toml)."
    return None
