"""Clocks, cron and time zones that misled users of other systems. Named by the report."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest
from workbench import Workbench

from tachograph.domain.liveness import ALIVE, Lease, Observer, judge
from tachograph.domain.owner import Owner
from tachograph.domain.schedule import Schedule
from tachograph.infra.cron_times import due_after, local
from tachograph.recounting import recount

HOUR_US = 3_600_000_000
BERLIN = "Europe/Berlin"
BEFORE_US = 1_806_150_000_000_000
"""27 March 2027, the day before the clocks of Berlin go forward."""


class TestReport80:
    """A lease is written by one clock and judged by another; skew rejects what is valid."""

    @pytest.mark.parametrize("step_us", [-HOUR_US, -70_000, 40_000, HOUR_US])
    def test_a_step_of_the_wall_clock_ends_no_lease(self, step_us: int) -> None:
        beat = Lease(1, "boot", 1_000_000, BEFORE_US + step_us, 30.0)
        owner = Owner("there", kind="none")
        alive = judge(
            owner,
            here=Observer("here", "boot"),
            process_start=lambda _pid: None,
            lease=beat,
            boottime_us=20_000_000,
            epoch=1,
        )

        assert alive.state == ALIVE

    def test_a_verdict_follows_from_positions_however_the_clock_ran(self) -> None:
        """G3: the second batch is recorded an hour before the first one."""
        bench = Workbench()
        bench.now = BEFORE_US
        with bench.record() as run:
            with run.phase("parse") as phase:
                for batch in phase.batches([1, 2, 3, 4], size=2):
                    batch.complete(list(batch.items))
                    bench.now -= HOUR_US
            run_id = run.id
        found = recount(bench.repository, bench.payloads, run_id)

        assert found is not None
        assert found.run.counted_facts().outputs == 4
        assert found.follows


class TestReport81:
    """What becomes of an hour that does not exist, and of one that exists twice."""

    def test_a_skipped_time_is_due_at_the_first_moment_after_it_once(self) -> None:
        nightly = Schedule("s", "30 2 * * *", timezone=BERLIN)
        first, second = islice(due_after(nightly, BEFORE_US), 2)

        assert local(nightly, first).isoformat(timespec="minutes") == "2027-03-28T03:00+02:00"
        assert second - first == 24 * HOUR_US - HOUR_US // 2

    def test_a_doubled_time_is_due_once(self) -> None:
        nightly = Schedule("s", "30 2 * * *", timezone=BERLIN)
        times = [local(nightly, due) for due in islice(due_after(nightly, BEFORE_US), 300)]

        assert len({time.date() for time in times}) == len(times)

    def test_a_job_of_every_quarter_of_an_hour_is_not_silent_for_an_hour(self) -> None:
        often = Schedule("s", "*/15 * * * *", timezone=BERLIN)
        times = list(islice(due_after(often, BEFORE_US), 2 * 96))

        assert {later - earlier for earlier, later in pairwise(times)} == {HOUR_US // 4}


class TestReport82:
    """A time zone that nobody named is the first cause of false alarms."""

    def test_two_zones_have_two_times_for_one_line(self) -> None:
        here = Schedule("s", "30 2 * * *", timezone=BERLIN)
        there = Schedule("s", "30 2 * * *", timezone="UTC")

        assert next(due_after(here, BEFORE_US)) != next(due_after(there, BEFORE_US))

    def test_a_time_is_told_with_its_offset(self) -> None:
        there = Schedule("s", "30 2 * * *", timezone="America/New_York")
        text = local(there, next(due_after(there, BEFORE_US))).isoformat(timespec="minutes")

        assert text.endswith("T02:30-04:00")
