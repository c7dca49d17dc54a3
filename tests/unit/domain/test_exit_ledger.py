"""A line of a ledger is a row as a whole, or none."""

from __future__ import annotations

import doctest

import pytest

from tachograph.domain import exit_ledger, exit_report, log_markers
from tachograph.domain.exit_ledger import Ledger, LedgerRow, ReportedStatus, parse_row, status_of
from tachograph.domain.exit_report import job_of

TIME = "2024-05-08T02:15:30Z"
WHOLE = [
    LedgerRow(TIME, "prune", 0),
    LedgerRow(TIME, "prune", -1),
    LedgerRow(TIME, "extract-daily", 137, status="failed", reason="nonzero_exit"),
    LedgerRow(TIME, "a:b@c", 0, status="skipped_guard"),
    LedgerRow(TIME, "distill", 0, reason="skipped_cooldown"),
    LedgerRow(TIME, "distill", 0, status="ok", reason="x=y", duration_ms=0),
    LedgerRow(TIME, "distill", 0, duration_ms=12),
    LedgerRow(TIME, "harness-bootstrap", 0, status="started", reason="harness_bootstrap_started"),
]


@pytest.mark.parametrize("row", WHOLE, ids=str)
def test_a_row_is_read_as_it_is_written(row: LedgerRow) -> None:
    assert parse_row(str(row)) == row
    assert parse_row(f"  {row}\t\n") == row


@pytest.mark.parametrize(
    "line",
    [
        "",
        "prune exit=0",
        f"{TIME} prune",
        f"{TIME} prune exit=",
        f"{TIME} prune exit=x",
        f"{TIME} prune exit=1.5",
        f"{TIME} prune exit=--1",
        f"{TIME} prune exit=٣",
        f"{TIME} prune 0",
        f"{TIME} step= exit=0",
        f"{TIME} prune exit=0 status=fine",
        f"{TIME} prune exit=0 status=",
        f"{TIME} prune exit=0 reason=x status=ok",
        f"{TIME} prune exit=0 status=ok status=ok",
        f"{TIME} prune exit=0 duration_ms=1.5",
        f"{TIME} prune exit=0 duration_ms=-1",
        f"{TIME} prune exit=0 more",
        f"{TIME} prune exit=0 more=1",
        f"{TIME} prune distill exit=0",
        "2024-05-08 02:15:30Z prune exit=0",
        "2024-05-08T02:15:30 prune exit=0",
        "2024-05-08T02:15:30.123Z prune exit=0",
        "2024-05-0xT02:15:30Z prune exit=0",
        "ok " + TIME + " prune exit=0",
    ],
)
def test_what_is_no_row_is_none(line: str) -> None:
    assert parse_row(line) is None


def test_a_ledger_has_the_rows_of_steps_and_tells_the_rest() -> None:
    ledger = Ledger(
        f"{TIME} harness-bootstrap exit=0 status=started reason=harness_bootstrap_started\n"
        f"{TIME} prune exit=1\n\nSegmentation fault\n{TIME} prune exit=0\n"
        f"{TIME} validate-cron-exit exit=0 status=ok reason=maintenance_success\n"
    )

    assert [row.exit_code for row in ledger.rows] == [1, 0]
    assert ledger.last["prune"].exit_code == 0
    assert ledger.unparsable == [(4, "Segmentation fault")]


@pytest.mark.parametrize(
    ("exit_code", "reported", "status", "reason"),
    [
        (0, None, "ok", None),
        (0, "success_analyzed", "ok", "success_analyzed"),
        (0, "skipped_cooldown", "skipped", "skipped_cooldown"),
        (0, "failed", "failed", "failed"),
        (0, "failed_parse", "failed", "failed_parse"),
        (2, "failed_partial", "failed", "failed_partial"),
        (1, "success_analyzed", "failed", "success_analyzed"),
        (1, None, "failed", "nonzero_exit"),
    ],
)
def test_the_status_of_a_row(
    exit_code: int, reported: str | None, status: str, reason: str | None
) -> None:
    assert status_of(exit_code, reported) == (status, reason)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_the_last_status_counts_wherever_the_output_is_cut(size: int) -> None:
    data = b"x status=success_analyzed\nstatus=ok status=200\n" + b"-" * 700
    data += b" status=failed_parse, the end" + b"." * 600
    found = ReportedStatus()
    for start in range(0, len(data), size):
        found.add(data[start : start + size])

    assert found.last == "failed_parse"


def test_output_without_a_status_has_none() -> None:
    found = ReportedStatus()
    found.add(b"status=fine exit status 0 \xff\xfe")

    assert found.last is None


@pytest.mark.parametrize(
    "text",
    [
        b"exit_status=failed_count=0",
        b"status=failed_count=0",
        b"status=failed=1",
        b"exit-status=failed",
        b"response.status=failed",
        b"--status=skipped_cooldown",
        b"status=failedness",
        b"status=" + b"failed_" + b"x" * 5000,
    ],
)
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_a_token_is_a_word_of_its_own(text: bytes, size: int) -> None:
    found = ReportedStatus()
    for start in range(0, len(text), size):
        found.add(text[start : start + size])

    assert found.last is None
    found.add(b"\n status=failed_parse")
    assert found.last == "failed_parse"


def test_a_soft_token_is_a_word_of_its_own() -> None:
    found = ReportedStatus(ReportedStatus.SOFT)
    found.add(b"exit_status=degraded status=degraded_by=2 status=no_changes_made ")

    assert found.last is None


@pytest.mark.parametrize("mark", ["\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_a_line_ends_at_a_line_feed_only(mark: str) -> None:
    ledger = Ledger(f"{TIME} a exit=0 reason=x{mark}{TIME}\n{TIME} b exit=0\r\n")

    assert list(ledger.last) == (["b"] if mark == "\r" else ["a", "b"])


def test_a_new_execution_begins_without_rows() -> None:
    row = f"{TIME} harness-bootstrap exit=0 status=started reason=harness_execution_started\n"

    assert list(Ledger(f"{TIME} a exit=0\n{row}{TIME} b exit=0\n").last) == ["b"]


@pytest.mark.parametrize(
    ("stem", "job"),
    [
        ("nightly-20240508T021530Z-4711", "nightly"),
        ("a-b-2024-05-08T02-15-30-000Z", "a-b"),
        ("nightly-20240508.cron", "nightly"),
        ("nightly", "nightly"),
    ],
)
def test_the_job_of_a_name_is_the_same_in_every_run(stem: str, job: str) -> None:
    assert job_of(stem) == job


@pytest.mark.parametrize("module", [exit_ledger, exit_report, log_markers])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_row_of_the_harness_says_that_the_steps_are_reached() -> None:
    """A script that was stopped in its first step has not been aborted before its steps."""
    ledger = Ledger(
        f"{TIME} harness-bootstrap exit=0 status=started reason=harness_steps_started\n"
    )

    assert ledger.reached_steps
    assert ledger.rows == []
