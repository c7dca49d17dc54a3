"""`run explain` says why a run stands as it does, from the log alone, in bounds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from abandoned import FINISHES, abandon
from command_line import Done, here
from stores import files, opened

from tachograph.domain.gate import Facts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]


def explain(capsys: Capture, *options: str) -> Done:
    return here(capsys, "run", "explain", "job", *options)


def rows(done: Done) -> list[str]:
    """Return the lines with single spaces."""
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_a_verdict_is_told_with_its_rule_facts_and_evidence(
    capsys: Capture, store_path: Path
) -> None:
    abandon(store_path)
    with opened(store_path) as services:
        session = services.session("job", 1)
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=0)))
    done = explain(capsys)
    shown = rows(done)

    assert done.returncode == 0
    assert "Run job (report)" in shown
    assert any(row.startswith("Verdict failed_semantic_empty (") for row in shown)
    assert any(row.startswith("Rule ") and ", policy " in row for row in shown)
    assert any(row.startswith("Facts faults 0, inputs 3, outputs 0") for row in shown)
    assert "Evidence events of version 5 (`tacho run events`)" in shown
    assert "tacho run resume job" in shown[-1]


def test_a_resume_is_told_with_what_its_adapter_wrote(capsys: Capture, store_path: Path) -> None:
    code = "import sys; print('boom', file=sys.stderr); print('{\"a\": 1}'); sys.exit(3)"
    abandon(store_path, code)
    here(capsys, "watchdog", "run", "--once", "--auto-resume")
    done = explain(capsys)
    shown = rows(done)

    assert any(row.startswith("Noticed gone, ") for row in shown)
    assert any(row.endswith(": the run got no further") for row in shown)
    assert "Adapter exit code 3" in shown
    assert any(row.startswith("Said ") and "raw_stdout" in row for row in shown)
    assert shown[shown.index("Its adapter wrote to stderr:") + 1] == "boom"


def test_a_resume_that_ended_well_says_so(capsys: Capture, store_path: Path) -> None:
    abandon(store_path, FINISHES)
    here(capsys, "watchdog", "run", "--once", "--auto-resume")
    shown = rows(explain(capsys))

    assert "Adapter ended well" in shown
    assert shown[-1].startswith("It is finished.")


def test_however_much_an_adapter_said_a_screenful_is_shown(
    capsys: Capture, store_path: Path
) -> None:
    code = "import sys; print('x' * 600_000); sys.stderr.write('y' * 9_000 + '\\n'); sys.exit(1)"
    abandon(store_path, code)
    here(capsys, "watchdog", "run", "--once", "--auto-resume")
    text, shown = explain(capsys).stdout, json.loads(explain(capsys, "--json").stdout)

    assert len(text) < 15_000
    assert "598001 characters of raw_stdout are left out" in text
    assert "(its first 1001 characters are left out)" in text
    assert shown["resume"]["result"]["omitted"] == {"raw_stdout": 598_001}
    assert shown["resume"]["stderrOmitted"] == 1_001


def test_what_a_person_is_asked_is_cut_too(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    with opened(store_path) as services:
        session = services.session("job", 0)
        session.execute(lambda run, why: run.raise_attention(why, "adapter_asks", "q" * 50_000))
    text, shown = explain(capsys).stdout, json.loads(explain(capsys, "--json").stdout)

    assert len(text) < 5_000
    assert "Attention " in text
    assert len(shown["attention"][0]["detail"]) < 5_000


def test_effects_in_doubt_are_named_with_what_settles_them(
    capsys: Capture, store_path: Path
) -> None:
    abandon(store_path)
    with opened(store_path) as services:
        session = services.session("job", 1)
        session.intend_effect("mail the team")
        session.intend_effect("pay")
    shown = rows(explain(capsys))

    assert "In doubt mail the team" in shown
    assert shown[shown.index("In doubt mail the team") + 1] == "pay"
    assert "tacho run effect 'mail the team' --run job --done --reason" in shown[-1]


def test_where_nothing_is_there_nothing_is_told(capsys: Capture, store_path: Path) -> None:
    here(capsys, "run", "start", "demo", "--id", "job", "--unowned")
    done = explain(capsys)
    shown = json.loads(explain(capsys, "--json").stdout)

    assert done.returncode == 0
    assert not [row for row in rows(done) if row.startswith(("Verdict", "Resume", "Noticed"))]
    assert (shown["verdict"], shown["resume"], shown["stall"]) == (None, None, None)
    assert (shown["attention"], shown["effectsInDoubt"]) == ([], [])


def test_it_writes_nothing(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)
    before = files(store_path)
    explain(capsys)

    assert files(store_path) == before


def test_a_run_that_is_not_there_is_exit_code_3(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)

    assert here(capsys, "run", "explain", "nothing").returncode == 3
