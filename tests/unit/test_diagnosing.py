"""A doctor calls fine what is fine, and says what to do about everything else."""

from __future__ import annotations

import pytest

from tachograph import diagnosing
from tachograph.diagnosing import FAIL, OK, WARN, Check

MIB = 2**20
HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("check", "state", "found"),
    [
        (diagnosing.python((3, 11, 7), {"lmdb": "3.0"}), OK, "Python 3.11.7, lmdb 3.0"),
        (diagnosing.python((3, 10, 1), {}), FAIL, "Python 3.10.1"),
        (diagnosing.file_system("/s", "ext4", network=False, allowed=False), OK, "ext4 at /s"),
        (diagnosing.file_system("/s", "", network=False, allowed=False), OK, "unknown at /s"),
        (diagnosing.file_system("/s", "nfs4", network=True, allowed=False), FAIL, "nfs4"),
        (diagnosing.file_system("/s", "nfs4", network=True, allowed=True), WARN, "nfs4"),
        (diagnosing.room(9000 * MIB, MIB), OK, "9000 MiB free"),
        (diagnosing.room(900 * MIB, MIB), WARN, "900 MiB free"),
        (diagnosing.room(9000 * MIB, 9001 * MIB), WARN, "9000 MiB free"),
        (diagnosing.room(MIB, MIB), FAIL, "1 MiB free"),
        (diagnosing.pages([]), OK, "no damage"),
        (diagnosing.pages(["page 7 is odd"]), FAIL, "1 problems: page 7 is odd"),
        (diagnosing.readers(2, [(7, 3)]), OK, "1 open, 2 of killed"),
        (diagnosing.readers(0, [(7, 3), (8, 5000)]), WARN, "process 8 is 5000 commits behind"),
        (diagnosing.clock(HOUR_US, None), OK, "not behind"),
        (diagnosing.clock(HOUR_US, HOUR_US + 1_000_000), OK, "not behind"),
        (diagnosing.clock(HOUR_US, 2 * HOUR_US), WARN, "3600 seconds behind"),
        (diagnosing.views({"a": 0}, None), OK, "up to date"),
        (diagnosing.views({"a": 0, "b": 3}, None), OK, "b was 3 events behind"),
        (diagnosing.views({}, "it stopped"), FAIL, "it stopped"),
        (diagnosing.leftovers([]), OK, "none"),
        (diagnosing.leftovers(["/s/a", "/s/b"]), WARN, "2, such as /s/a"),
        (diagnosing.archives(0, [], []), OK, "none"),
        (diagnosing.archives(3, [], []), OK, "3"),
        (diagnosing.archives(3, ["/s/7.zst is missing"], ["/s/8.zst"]), FAIL, "7.zst is missing"),
        (diagnosing.archives(3, [], ["/s/8.zst"]), WARN, "1 that no event needs, such as /s/8"),
        (diagnosing.erasing([], []), OK, "nothing under way"),
        (diagnosing.erasing(["job-1"], ["x"]), FAIL, "begun and not finished: job-1"),
        (diagnosing.interrupted([]), OK, "none"),
        (diagnosing.interrupted(["a"]), WARN, "1: a"),
        (diagnosing.interrupted(["a", "b", "c", "d"]), WARN, "4: a, b, c, …"),
    ],
)
def test_a_fact_is_judged(check: Check, state: str, found: str) -> None:
    assert check.state == state
    assert found in check.found
    assert (check.advice is None) == (state == OK)
