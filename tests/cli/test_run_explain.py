"""`run explain` says exactly why a run stands as it does, from the log alone, in bounds.

What it says of each kind of run is in tests/audit: here it is the command.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from abandoned import FINISHES, abandon
from audit.pages import Page
from command_line import Done, here
from stores import files, opened, record_run

from tachograph.cli import run_explain
from tachograph.domain.gate import Facts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("store_environment")
Capture = pytest.CaptureFixture[str]


def explain(capsys: Capture, *options: str) -> Done:
    return here(capsys, "run", "explain", "job", *options)


def shape(capsys: Capture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explain(capsys, "--json").stdout)
    return found


def rows(done: Done) -> list[str]:
    """Return the lines with single spaces."""
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def judged_empty(store: Path) -> None:
    """Record a run of which nothing came out."""
    with opened(store) as services:
        session = record_run(services, "job", outcome=None)
        session.receive_answer(
            phase="parse", asked=3, answered=3, parsed=0, source="large", text="no JSON"
        )
        session.end_phase("parse")
        session.judge(Facts(inputs=3, outputs=0))
        session.finish()


def test_a_verdict_is_told_with_its_rule_facts_and_evidence(
    capsys: Capture, store_path: Path
) -> None:
    judged_empty(store_path)
    done = explain(capsys)
    shown = rows(done)

    assert done.returncode == 0
    assert shown[0] == "Run job (report)"
    assert "Status failed_semantic_empty" in shown
    assert any(
        row.startswith("Verdict failed_semantic_empty (no_item_parsed): 3 ") for row in shown
    )
    assert "Rule no-item-parsed, version 2, of policy default, version 2" in shown
    assert "done == 0: holds (0)" in shown
    assert "inputs 3 items there were to work on; versions 5, 6, 7" in shown
    assert any(row.startswith("outputs 0 ") and "no event says it" in row for row in shown)
    assert "outputs: the job states 0, the events before it say 3" in shown
    assert "answer, phase parse, from large (version 8)" in shown
    assert "| no JSON" in shown
    assert "nobody declared that there was nothing to do (declared-no-work)" in shown
    assert any(row.startswith("outputs 1 instead of 0 → success_with_review") for row in shown)
    assert any(row.startswith("Judged 2") and "(version 10, position 10)" in row for row in shown)


def test_a_resume_is_told_with_what_its_adapter_wrote(capsys: Capture, store_path: Path) -> None:
    code = "import sys; print('boom', file=sys.stderr); print('{\"a\": 1}'); sys.exit(3)"
    abandon(store_path, code)
    here(capsys, "watchdog", "run", "--once", "--auto-resume")
    shown = rows(explain(capsys))

    assert any(row.startswith("Noticed gone, ") for row in shown)
    assert any(row.endswith(": the run got no further") for row in shown)
    assert "Adapter exit code 3" in shown
    assert any(row.startswith("Said ") and "raw_stdout" in row for row in shown)
    assert shown[shown.index("Its adapter wrote to stderr") + 1] == "boom"


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
    text, shown = explain(capsys).stdout, shape(capsys)

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
    text, shown = explain(capsys).stdout, shape(capsys)

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


def test_where_nothing_is_there_nothing_is_told(capsys: Capture) -> None:
    here(capsys, "run", "start", "demo", "--id", "job", "--unowned")
    done = explain(capsys)
    shown = shape(capsys)

    assert done.returncode == 0
    assert not [row for row in rows(done) if row.startswith(("Verdict", "Resume", "Noticed"))]
    assert (shown["verdict"], shown["resume"], shown["stall"]) == (None, None, None)
    assert (shown["attention"], shown["effectsInDoubt"]) == ([], [])
    assert {each["source"] for each in shown["facts"]} == {"derived"}
    assert shown["kind"] == "unfinished"


def test_the_beginning_of_an_id_will_do(capsys: Capture, store_path: Path) -> None:
    judged_empty(store_path)

    assert here(capsys, "run", "explain", "jo").stdout == explain(capsys).stdout


def test_it_writes_nothing(capsys: Capture, store_path: Path) -> None:
    judged_empty(store_path)
    before = files(store_path)
    explain(capsys)
    explain(capsys, "--json")
    explain(capsys, "--html", "-")

    assert files(store_path) == before


def test_a_run_that_is_not_there_is_exit_code_3(capsys: Capture, store_path: Path) -> None:
    abandon(store_path)

    assert here(capsys, "run", "explain", "nothing").returncode == 3


class TestPages:
    def test_a_page_is_written_whole(
        self, capsys: Capture, store_path: Path, tmp_path: Path
    ) -> None:
        judged_empty(store_path)
        target = tmp_path / "why.html"
        done = explain(capsys, "--html", str(target))
        page = Page(target.read_text("utf-8"))

        assert done.returncode == 0
        assert done.stdout == ""
        assert f"{target}: {target.stat().st_size} bytes" in done.stderr
        assert page.data == shape(capsys)
        assert "no JSON" in page.text
        assert "What happened" in page.headings

    def test_a_dash_is_stdout(self, capsys: Capture, store_path: Path) -> None:
        judged_empty(store_path)
        page = Page(explain(capsys, "--html", "-").stdout)

        assert page.data["jobRunId"] == "job"

    def test_a_file_that_cannot_be_written_is_named(
        self, capsys: Capture, store_path: Path, tmp_path: Path
    ) -> None:
        judged_empty(store_path)
        target = tmp_path / "no" / "folder" / "why.html"
        done = explain(capsys, "--html", str(target))

        assert done.returncode not in (0, 2)
        assert str(target) in done.stderr

    def test_of_a_long_history_the_newest_is_shown(
        self, capsys: Capture, store_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run_explain, "MOST_ENTRIES", 3)
        judged_empty(store_path)

        assert "3 entries" in Page(explain(capsys, "--html", "-").stdout).text
