"""The commands about gate policies, and those by which a shell job is judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import here, history, tacho

from tachograph.cli.fact_values import read_facts
from tachograph.cli.options import UsageError
from tachograph.cli.run_expect import deadline_us
from tachograph.domain.default_policy import default_policy
from tachograph.domain.errors import InvalidSpanError, InvalidTimeError
from tachograph.domain.facts import DERIVED, MEANINGS
from tachograph.infra.clock import now_us

if TYPE_CHECKING:
    from pathlib import Path

Capture = pytest.CaptureFixture[str]

POLICY = """
id = "mine"
version = 3

[[rules]]
id = "too-few"
when = ["outputs >= 1", "unaccounted >= 1"]
outcome = "failed"
reason_code = "too_few"
text = "only {outputs} of {work}"
"""
HIDDEN = """
[[rules]]
id = "hidden"
when = ["unaccounted >= 1", "outputs >= 2"]
outcome = "partial"
reason_code = "hidden"
text = "never said"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return path


def judged() -> dict[str, Any]:
    return [fields for topic, fields in history("job") if topic == "run.semantic-gate-judged"][-1]


class TestShow:
    def test_the_rules_in_force_are_shown_without_a_store(
        self, store_environment: Path, capsys: Capture
    ) -> None:
        done = here(capsys, "policy", "show")

        assert done.returncode == 0
        assert done.stderr.startswith("default, version 2, from package; digest ")
        lines = done.stdout.splitlines()
        assert lines[0].split() == ["RULE", "V", "WHEN", "OUTCOME", "REASON", "CODE"]
        assert [line.split()[0] for line in lines[1:]] == [r.id for r in default_policy().rules]
        assert lines[-1].split() == [
            "not-judged",
            "1",
            "always",
            "success_with_review",
            "not_judged",
        ]
        assert not store_environment.exists()

    def test_a_file_is_shown_as_json(
        self, store_environment: Path, policy: Path, capsys: Capture
    ) -> None:
        found = json.loads(here(capsys, "policy", "show", policy, "--json").stdout)

        assert (found["id"], found["version"], found["origin"]) == ("mine", 3, str(policy))
        assert found["rules"][0] == {
            "id": "too-few",
            "version": 1,
            "when": ["outputs >= 1", "unaccounted >= 1"],
            "outcome": "failed",
            "reasonCode": "too_few",
            "text": "only {outputs} of {work}",
            "otherwise": None,
        }

    def test_the_setting_is_in_force(
        self, run: str, policy: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TACHO_POLICY", str(policy))

        assert here(capsys, "policy", "show").stderr.startswith(f"mine, version 3, from {policy};")


class TestCheck:
    def test_a_file_that_can_be_used_says_so(
        self, store_environment: Path, policy: Path, capsys: Capture
    ) -> None:
        done = here(capsys, "policy", "check", policy)

        assert (done.returncode, done.stderr) == (0, f"{policy} can be used: mine, version 3.\n")
        assert done.stdout.splitlines()[1].startswith("too-few")

    def test_a_file_that_cannot_be_used_names_the_rule(
        self, store_environment: Path, policy: Path, capsys: Capture
    ) -> None:
        policy.write_text(POLICY.replace("unaccounted", "unacounted"))
        done = here(capsys, "policy", "check", policy)

        assert (done.returncode, done.stdout) == (2, "")
        assert "rule 'too-few': there is no fact 'unacounted': did you mean" in done.stderr

    def test_a_rule_that_can_never_decide_is_a_warning(
        self, store_environment: Path, policy: Path, capsys: Capture
    ) -> None:
        policy.write_text(POLICY + HIDDEN)
        done = here(capsys, "policy", "check", policy)
        found = json.loads(here(capsys, "policy", "check", policy, "--json").stdout)

        assert done.returncode == 0
        assert (
            "rule 'hidden' can never decide: whenever it holds, 'too-few' (outputs >= 1, "
            "unaccounted >= 1) holds before it" in done.stderr
        )
        assert found["unreached"] == [{"rule": "hidden", "decidedBy": "too-few"}]


class TestFacts:
    def test_every_fact_is_listed_with_its_meaning(
        self, store_environment: Path, capsys: Capture
    ) -> None:
        lines = here(capsys, "policy", "facts").stdout.splitlines()
        found = json.loads(here(capsys, "policy", "facts", "--json").stdout)

        assert [line.split()[0] for line in lines[1:]] == [*MEANINGS, *DERIVED]
        assert {each["name"]: each["derived"] for each in found} == {
            **dict.fromkeys(MEANINGS, False),
            **dict.fromkeys(DERIVED, True),
        }
        unsaid = {each["name"]: each["unsaid"] for each in found}
        assert (unsaid["faults"], unsaid["inputs"], unsaid["work"]) == (0, None, None)


class TestTry:
    def test_it_says_what_would_be_concluded_and_what_would_change_it(
        self, store_environment: Path, capsys: Capture
    ) -> None:
        done = here(capsys, "policy", "try", "--fact", "inputs=3", "--fact", "outputs=0")

        assert done.returncode == 0
        lines = done.stdout.splitlines()
        assert lines[0] == "failed_semantic_empty"
        assert lines[1].startswith("rule no-item-parsed: 3 items went in")
        assert ["outputs=1", "0", "success_with_review", "fewer-outputs"] in [
            line.split() for line in lines
        ]
        assert not store_environment.exists()

    def test_a_file_is_tried(self, store_environment: Path, policy: Path, capsys: Capture) -> None:
        line = ("policy", "try", policy, "--fact", "inputs=3", "--fact", "outputs=1", "--json")
        found = json.loads(here(capsys, *line).stdout)

        assert (found["outcome"], found["rule"], found["reason"]) == (
            "failed",
            "too-few",
            "only 1 of 3",
        )
        assert found["facts"] == {"inputs": 3, "outputs": 1}
        assert {"fact": "outputs", "was": 1, "to": 3}.items() <= {
            **next(
                each
                for each in found["changes"]
                if each["outcome"] == "success" and each["fact"] == "outputs"
            )
        }.items()

    def test_nothing_known_is_tried_too(self, store_environment: Path, capsys: Capture) -> None:
        assert here(capsys, "policy", "try").stdout.startswith("success_with_review\n")


class TestFactValues:
    def test_each_is_read_by_its_kind(self) -> None:
        assert read_facts(["inputs=3", "stopped=a=b", "deadline_left_seconds=-3"]) == {
            "inputs": 3,
            "stopped": "a=b",
            "deadline_left_seconds": -3.0,
        }

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("inputs", "write NAME=VALUE"),
            ("imputs=3", "there is no such fact. Did you mean inputs?"),
            ("zzz=3", "there is no such fact. There are inputs, "),
            ("work=3", "it follows from other facts (the larger of inputs and extracted"),
            ("inputs=-3", "it is a count: write a whole number from 0"),
            ("inputs=3.5", "it is a count"),
            ("inputs=", "it is a count"),
            ("inputs=" + "9" * 19, "it is a count"),
            ("declared= ", "write some text after the ="),
            ("minimum_fraction=half", "write a number"),
            ("minimum_fraction=nan", "write a number"),
            ("deadline_left_seconds=inf", "write a number"),
        ],
    )
    def test_what_makes_no_sense_says_why(self, text: str, problem: str) -> None:
        with pytest.raises(UsageError) as caught:
            read_facts([text])

        assert problem in str(caught.value)

    def test_a_fact_is_stated_once(self) -> None:
        with pytest.raises(UsageError, match="--fact inputs is given twice"):
            read_facts(["inputs=3", "inputs=4"])


class TestJudge:
    def test_every_fact_can_be_stated(self, run: str, capsys: Capture) -> None:
        done = here(capsys, *(["run", "judge", "--fact", "extracted=9", "--fact", "filtered=9"]))

        assert (done.stdout, done.returncode) == ("empty\n", 0)
        assert judged()["facts"] == {"extracted": 9, "filtered": 9}

    def test_options_and_facts_go_together(self, run: str, capsys: Capture) -> None:
        done = here(
            capsys, *(["run", "judge", "--inputs", "9", "--fact", "asked=0", "--outputs", "0"])
        )

        assert (done.stdout, done.returncode) == ("failed\n", 7)
        assert judged()["rule"] == "never-asked"

    def test_one_fact_is_not_stated_twice(self, run: str, capsys: Capture) -> None:
        done = here(capsys, *(["run", "judge", "--inputs", "9", "--fact", "inputs=8"]))

        assert done.returncode == 2
        assert "--inputs and --fact inputs state the same fact" in done.stderr

    def test_a_policy_can_be_given_for_one_judgement(
        self, run: str, policy: Path, capsys: Capture
    ) -> None:
        line = ["run", "judge", "--inputs", "3", "--outputs", "1"]
        strict = here(capsys, *line, "--policy", policy)
        usual = here(capsys, *line)

        assert (strict.stdout, strict.returncode) == ("failed\n", 7)
        assert usual.stdout == "success_with_review\n"

    @pytest.mark.parametrize("ends", ["judge", "finish"])
    def test_the_setting_judges(
        self,
        ends: str,
        run: str,
        policy: Path,
        capsys: Capture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("TACHO_POLICY", str(policy))
        here(capsys, *(["run", "phase", "start", "a"]))
        here(capsys, *(["run", "batch", "a", "0", "--inputs", "3", "--parsed", "1"]))
        here(capsys, *(["run", "phase", "end", "a"]))

        assert here(capsys, "run", ends).stdout == "failed\n"
        assert judged()["policy"]["id"] == "mine"

    def test_a_policy_that_cannot_be_used_judges_nothing(
        self, run: str, policy: Path, capsys: Capture
    ) -> None:
        policy.write_text("id = ")
        done = here(capsys, "run", "judge", "--policy", policy)

        assert done.returncode == 2
        assert "it is not TOML" in done.stderr
        assert [topic for topic, _ in history("job")] == ["run.created", "run.attempt-started"]


class TestExec:
    def test_the_setting_judges_a_wrapped_command(
        self, store_environment: Path, tmp_path: Path, policy: Path
    ) -> None:
        policy.write_text(POLICY.replace('["outputs >= 1", "unaccounted >= 1"]', '["made >= 1"]'))
        line = (
            "run",
            "exec",
            "--id",
            "job",
            "--expect-output",
            "out",
            "--",
            "sh",
            "-c",
            "echo x >out",
        )
        done = tacho(*line, cwd=tmp_path, environment={"TACHO_POLICY": str(policy)})

        assert judged()["rule"] == "too-few"
        assert done.returncode == 1

    def test_a_policy_that_cannot_be_used_runs_nothing(
        self, store_environment: Path, tmp_path: Path
    ) -> None:
        done = tacho(
            *("run", "exec", "--", "touch", "out"),
            cwd=tmp_path,
            environment={"TACHO_POLICY": "nowhere.toml"},
        )

        assert done.returncode == 2
        assert "nowhere.toml cannot be used: it cannot be read" in done.stderr
        assert not (tmp_path / "out").exists()


class TestExpect:
    def test_what_is_expected_is_recorded_and_printed(
        self, run: str, capsys: Capture, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        line = [
            "run",
            "expect",
            "--inputs",
            "9",
            "--extracted",
            "12",
            "--minimum-fraction",
            "0.5",
            "--json",
        ]
        here(capsys, *(["run", "expect", "--deadline", "2026-03-01T06:00Z"]))
        found = json.loads(here(capsys, *line, "--file", out).stdout)

        assert found == {
            "jobRunId": "job",
            "inputs": 9,
            "extracted": 12,
            "minimumFraction": 0.5,
            "files": [str(out)],
            "deadlineUs": 1_772_344_800_000_000,
        }

    def test_nothing_expected_is_a_mistake(self, run: str, capsys: Capture) -> None:
        done = here(capsys, "run", "expect", "--reason", "x")

        assert done.returncode == 2
        assert "Nothing is expected: give --inputs" in done.stderr

    def test_a_person_may_change_it_from_outside(
        self, run: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("TACHO_EPOCH")
        line = ["run", "expect", "--inputs", "9", "--reason", "late"]

        assert here(capsys, *line).returncode == 0
        assert history("job")[-1][1] == {"expectations": {"inputs": 9}, "reason": "late"}

    @pytest.mark.parametrize(
        ("text", "seconds"), [("90", 90), ("90s", 90), ("2h30m", 9000), ("2 days", 172_800)]
    )
    def test_a_span_counts_from_now(self, text: str, seconds: int) -> None:
        before = now_us()

        assert 0 <= deadline_us(text) - before - seconds * 1_000_000 < 60_000_000

    @pytest.mark.parametrize(
        ("text", "at_us"),
        [
            ("1970-01-02T00:00Z", 86_400_000_000),
            ("1970-01-02 00:00+00:00", 86_400_000_000),
            ("@86400", 86_400_000_000),
            ("1700000000", 1_700_000_000_000_000),
            ("1700000000000", 1_700_000_000_000_000),
        ],
    )
    def test_a_time_is_a_time(self, text: str, at_us: int) -> None:
        assert deadline_us(text) == at_us

    @pytest.mark.parametrize("text", ["tomorrow", "", "2026-13-01", "12x"])
    def test_what_is_neither_is_refused(self, text: str) -> None:
        with pytest.raises((InvalidSpanError, InvalidTimeError)):
            deadline_us(text)


class TestAnswer:
    def test_an_answer_is_recorded_and_printed(
        self, run: str, capsys: Capture, tmp_path: Path
    ) -> None:
        raw = tmp_path / "raw"
        raw.write_text("[1, 2")
        here(capsys, *(["run", "phase", "start", "ask"]))
        line = "run answer --phase ask --batch 2 --source large --asked 5 --parsed 2 --json"
        done = here(capsys, *line.split(), "--fault", "truncated", "--text", f"@{raw}")

        assert json.loads(done.stdout)["answered"] == 5
        assert history("job")[-1][1] == {
            "phase": "ask",
            "batch": 2,
            "source": "large",
            "asked": 5,
            "answered": 5,
            "parsed": 2,
            "accepted": None,
            "filtered": None,
            "declared": None,
            "fault": "truncated",
            "error": None,
            "text": "[1, 2",
        }

    def test_a_provider_that_failed_answered_nothing(self, run: str, capsys: Capture) -> None:
        here(
            capsys,
            *(["run", "answer", "--asked", "5", "--fault", "provider", "--error"]),
            "HTTP 500",
        )

        assert history("job")[-1][1]["answered"] == 0
        assert here(capsys, "run", "judge").stdout == "failed\n"

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("--parsed 3", "How many items was it about? Give --asked."),
            ("--asked 3 --batch 1", "--batch is the number of a batch of a phase"),
            ("--asked 3 --answered 4", "answered is 4: 3 were asked"),
            ("--asked 3 --fault mood", "mood"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, line: str, problem: str, run: str, capsys: Capture
    ) -> None:
        done = here(capsys, "run", "answer", *line.split())

        assert done.returncode == 2
        assert problem in done.stderr
