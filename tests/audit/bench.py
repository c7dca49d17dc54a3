"""Runs recorded by the real use cases, the same each time, and how they are explained.

Clock, ids, host, pid and processes are made by hand. Holds no test.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING, Any
from unittest import mock

from recovering import Recovering, process

from tachograph import auditing, projecting, reading
from tachograph.cli.audit_lines import print_audit
from tachograph.cli.output import Output, to_json
from tachograph.domain.liveness import judge_attempt
from tachograph.domain.owner import Owner
from tachograph.shapes import explanation_shape
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tachograph.domain.liveness import Liveness
    from tachograph.domain.recovery import Recovery
    from tachograph.session import Session

    Fields = dict[str, Any]

BEGIN_US = 1_772_332_200_000_000
"""2026-03-01 02:30:00 in UTC."""
SECOND_US = 1_000_000
GOLDEN: dict[str, Callable[[Audited], str]] = {}
"""By name: what records the run and returns its id."""
ANYWHERE = "/srv/job"
"""Stands in what is explained for the folder that the files of a test are in."""


class Audited(Recovering):
    """A bench whose clock goes on by a second at every event, and that explains its runs.

    Real files are in `folder`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.now = BEGIN_US
        self.actor.name, self.actor.host, self.actor.pid = "tacho", "ada", 4711

    def tick(self) -> int:
        """Return a second more than the last time."""
        self.now += SECOND_US
        return self.now

    def job(
        self,
        command: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        recovery: Recovery | None = None,
        **options: Any,
    ) -> Session:
        """Start a run in a process of its own, which lives."""
        self.begun += 1
        pid = 1000 + self.begun
        self.processes[pid] = pid
        want = Start(command, inputs or {"day": "2026-02-28"}, recovery=recovery, **options)
        return self.starter.start(want, process(pid))

    def ends(self, session: Session, outcome: str | None = None, **options: Any) -> str:
        """End an attempt, and with it the process."""
        result = session.finish(outcome, **options)
        self.kill(session.run_id)
        return result

    def judge(
        self, run_id: str, epoch: int, owner: Fields, worker: Fields | None = None
    ) -> Liveness:
        """Judge an attempt as `reading` asks for it."""
        return judge_attempt(
            Owner.from_fields(owner),
            None if worker is None else Owner.from_fields(worker),
            here=self.here,
            process_start=self.process_start,
            lease=self.lasting.leases.get(run_id),
            boottime_us=self.boot_us,
            epoch=epoch,
        )

    def summary(self, run_id: str) -> Fields:
        """Return what is known of a run, as of now."""
        return projecting.ask(
            self.log,
            self.codec,
            self.views,
            lambda view: reading.summary(view, self.judge, run_id),
        )

    def audit(self, run_id: str) -> Fields:
        """Return everything that explains a run."""
        return self.audit_of(self.summary(run_id))

    def audit_of(self, summary: Fields) -> Fields:
        """Return everything that explains the run of a summary."""
        return auditing.audit(self.repository, self.payloads, summary)

    def timeline(self, run_id: str) -> list[Fields]:
        """Return what happened in a run."""
        return projecting.ask(
            self.log,
            self.codec,
            self.views,
            lambda view: reading.timeline(view, self.judge, run_id),
        )

    def shape(self, run_id: str) -> Fields:
        """Return the explanation of a run as `--json` prints it."""
        text = to_json(explanation_shape(self.audit(run_id)), indent=2)
        shape: Fields = json.loads(self.anywhere(text))
        return shape

    def screen(self, run_id: str) -> str:
        """Return the explanation of a run as people see it."""
        with self.clock(), contextlib.redirect_stdout(io.StringIO()) as printed:
            print_audit(self.audit(run_id), Output())
        return self.anywhere(printed.getvalue())

    @contextlib.contextmanager
    def clock(self) -> Iterator[None]:
        """Let it be now what the bench says, where a screen says how long ago something was."""
        with mock.patch("tachograph.infra.clock.now_us", lambda: self.now):
            yield

    def anywhere(self, text: str) -> str:
        """Return a text without the folder that the files of this test are in."""
        return text.replace(str(self.folder), ANYWHERE)


def golden(recorder: Callable[[Audited], str]) -> Callable[[Audited], str]:
    """Make a run one of the golden ones, by the name of the function."""
    GOLDEN[recorder.__name__.replace("_", "-")] = recorder
    return recorder
