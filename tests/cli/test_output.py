"""Tables fit, JSON is JSON whatever was recorded, and times read well."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.cli.output import Output, to_json
from tachograph.cli.tables import cells, cut, table
from tachograph.cli.times import when
from tachograph.domain.blobref import BlobRef

if TYPE_CHECKING:
    from pathlib import Path

LONG = "job-a-command-with-a-long-name-0dc845e1~12"
MIXED = st.text(alphabet="ab é日本\u0301\t\n\x1b", max_size=30)


@given(rows=st.lists(st.tuples(MIXED, MIXED, MIXED), max_size=5), width=st.integers(30, 80))
def test_a_table_fits_the_terminal_and_moves_no_cursor(
    rows: list[tuple[str, str, str]], width: int
) -> None:
    lines = list(table(("RUN", "STATE", "AGE"), rows, width=width))

    assert len(lines) == len(rows) + 1
    assert [line for line in lines if cells(line) > width or not line.isprintable()] == []


@given(text=MIXED, width=st.integers(1, 40))
def test_a_cut_text_is_no_wider_than_asked(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width


def test_a_long_id_keeps_both_ends() -> None:
    (_, line) = table(("RUN", "STATE"), [(LONG, "running")], width=40)

    assert line == "job-a-command-w…ame-0dc845e1~12  running"


def test_a_table_as_wide_as_it_needs_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output().table(("RUN", "STATE"), [(LONG, "running")])

    assert capsys.readouterr().out.splitlines()[1] == f"{LONG}  running"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"ä": b"\xff"}, {"ä": {"$bytes": "/w=="}}),
        ({1: None, (2, 3): True}, {"1": None, "[2, 3]": True}),
        ({"set": {2, 1}}, {"set": [1, 2]}),
        (float("inf"), "inf"),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
        (BlobRef("0" * 64, 5), {"$blob": "0" * 64, "size": 5}),
        (1 << 80, 1 << 80),
    ],
)
def test_any_recorded_value_becomes_json(value: Any, written: Any) -> None:
    assert json.loads(to_json(value)) == written


def test_text_that_no_stream_can_write_comes_out_as_an_escape(tmp_path: Path) -> None:
    """Python keeps undecodable bytes of file names as lone surrogates."""
    from command_line import tacho

    done = tacho("run", "note", "x", "--run", "a\udcff", "--json", cwd=tmp_path)

    assert done.returncode == 3
    assert json.loads(done.stderr)["error"] == "StoreNotFoundError"


@pytest.mark.parametrize(
    ("time_us", "style", "shown"),
    [
        (0, "relative", "3h05m ago"),
        (11_100_000_000 - 999_999, "relative", "0s ago"),
        (11_101_000_000, "relative", "in 1s"),
        (1_500_000, "iso", "1970-01-01T00:00:01.500Z"),
        (1_500_000, "raw", "1500000"),
        (None, "relative", "-"),
    ],
)
def test_a_time_is_shown_as_asked(time_us: int | None, style: str, shown: str) -> None:
    assert when(time_us, style, 11_100_000_000) == shown


def test_quiet_leaves_out_notes_but_no_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(quiet=True)
    out.note("by the way")
    out.warn("beware")

    assert capsys.readouterr() == ("", "beware\n")
