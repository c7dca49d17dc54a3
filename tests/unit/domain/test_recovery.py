"""What a job declares about its recovery: checked, stored without loss, and read by any version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.errors import InvalidValueError
from tachograph.domain.recovery import IN_DOUBT, Recovery

TRACE = {"path": "job.py", "size": 9, "sha256": "ab", "what": "code"}
EVERYTHING: dict[str, Any] = {
    "adapter": "jobs:resume",
    "command": ["make", "report"],
    "working_folder": "/srv/jobs",
    "auto_resume": True,
    "safe_to_retry": False,
    "stale_after_seconds": 1800,
    "max_retries": 5,
    "backoff_seconds": 10,
    "resume_window_seconds": 86400,
    "kill_stalled": True,
    "in_doubt": "skip",
    "timeout_seconds": 180,
    "traces": [TRACE],
    "artifact_check": ["file", "--mime"],
    "python": "/usr/bin/python3",
}


def test_the_example_of_everything_is_complete() -> None:
    assert EVERYTHING.keys() == set(Recovery.__slots__)
    assert Recovery(**EVERYTHING).to_fields().keys() == EVERYTHING.keys()


def test_what_is_declared_comes_back_from_its_stored_form() -> None:
    assert Recovery.from_fields(Recovery(**EVERYTHING).to_fields()) == Recovery(**EVERYTHING)


def test_what_has_its_default_value_is_not_stored() -> None:
    assert Recovery().to_fields() == {}


@pytest.mark.parametrize("stored", [None, {}])
def test_a_job_that_declared_nothing_is_not_resumed_unattended(stored: Any) -> None:
    declared = Recovery.from_fields(stored)

    assert declared == Recovery()
    assert (declared.auto_resume, declared.can_be_dispatched) == (False, False)


def test_what_only_a_newer_version_knows_is_left_out() -> None:
    """G9."""
    assert Recovery.from_fields({"adapter": "a", "colour": "red"}) == Recovery(adapter="a")


@pytest.mark.parametrize("name", EVERYTHING)
def test_one_value_is_changed_and_the_others_stay(name: str) -> None:
    declared = Recovery(**EVERYTHING)
    changed = declared.changed(**{name: getattr(Recovery(), name)})

    assert changed.to_fields() == {n: v for n, v in EVERYTHING.items() if n != name}
    assert declared == Recovery(**EVERYTHING)


def test_a_declaration_shares_no_list_with_its_maker() -> None:
    command, traces = ["make"], [{"path": "a"}]
    declared = Recovery(command=command, artifact_check=command, traces=traces)
    command.append("clean")
    traces[0]["path"] = "b"

    assert declared == Recovery(command=["make"], artifact_check=["make"], traces=[{"path": "a"}])


def test_a_stored_form_that_makes_no_sense_can_be_read() -> None:
    """It is refused when it is declared, not by everybody who reads it."""
    stored = {"command": "make", "traces": ["job.py"]}

    assert Recovery.from_fields(stored).to_fields() == stored


@pytest.mark.parametrize(
    ("adapter", "command", "can"),
    [(None, None, False), ("jobs:resume", None, True), (None, ["make"], True)],
)
def test_an_adapter_or_a_command_can_be_dispatched(
    adapter: str | None, command: list[str] | None, can: bool
) -> None:
    assert Recovery(adapter=adapter, command=command).can_be_dispatched is can


class TestCheck:
    @pytest.mark.parametrize("declared", [Recovery(), Recovery(**EVERYTHING)])
    def test_what_makes_sense_is_accepted(self, declared: Recovery) -> None:
        declared.check()

        assert declared == Recovery.from_fields(declared.to_fields())

    @pytest.mark.parametrize("value", IN_DOUBT)
    def test_each_way_to_treat_effects_in_doubt_is_accepted(self, value: str) -> None:
        declared = Recovery(in_doubt=value)
        declared.check()

        assert declared.in_doubt == value

    @pytest.mark.parametrize(
        ("name", "value", "saying"),
        [
            ("adapter", "", "adapter is ''"),
            ("working_folder", " ", "working folder is ' '"),
            ("python", 3, "python is 3"),
            ("command", [], "it must be a list of words"),
            ("command", [1], "it must be a list of words"),
            ("artifact_check", [], "artifact check is"),
            ("stale_after_seconds", -1, "stale after seconds is -1"),
            ("resume_window_seconds", "1d", "it must be a number, 0 or more"),
            ("timeout_seconds", float("nan"), "timeout seconds is nan"),
            ("backoff_seconds", -0.5, "backoff seconds is -0.5"),
            ("max_retries", 1.5, "it must be a whole number, 0 or more"),
            ("in_doubt", "perhaps", "it must be one of ask, retry, skip"),
            ("command", "make report", "command is 'make report': it must be a list of words"),
            ("artifact_check", "file", "artifact check is 'file': it must be a list of words"),
            ("timeout_seconds", 0, "timeout seconds is 0: give a time above 0"),
            ("timeout_seconds", 0.0, "timeout seconds is 0: give a time above 0"),
            ("adapter", "a\0b", "a NUL reaches no program"),
            ("working_folder", "/srv\0", "a NUL reaches no program"),
            ("python", "\0", "a NUL reaches no program"),
            ("command", ["make", "a\0"], "a NUL reaches no program"),
            ("artifact_check", ["\0"], "a NUL reaches no program"),
            ("kill_stalled", True, "say with stale_after_seconds when"),
            ("traces", "abc", "trace is 'a': it must hold path, size, sha256 and what"),
            ("traces", [{}], "path of a trace is None"),
            ("traces", [{**TRACE, "path": "a\0"}], "a NUL reaches no program"),
            ("traces", [{**TRACE, "size": "9"}], "size of a trace is '9'"),
            ("traces", [{**TRACE, "sha256": b"ab"}], "sha256 of a trace is b'ab'"),
            ("traces", [TRACE, {**TRACE, "what": "data"}], "it must be one of code, input"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, name: str, value: object, saying: str) -> None:
        declared: Any = Recovery().changed(**{name: value})

        with pytest.raises(InvalidValueError) as refused:
            declared.check()

        assert saying in str(refused.value)


class TestPause:
    def test_there_is_none_before_the_first_try(self) -> None:
        assert Recovery(backoff_seconds=60).pause_us(0) == 0

    def test_it_doubles(self) -> None:
        pauses = [Recovery(backoff_seconds=1.5).pause_us(tries) for tries in (1, 2, 3)]

        assert pauses == [1_500_000, 3_000_000, 6_000_000]

    def test_it_is_at_most_an_hour(self) -> None:
        assert Recovery(backoff_seconds=60).pause_us(10) == 3_600_000_000

    def test_a_longer_first_pause_is_kept_and_not_doubled(self) -> None:
        assert [Recovery(backoff_seconds=7200).pause_us(tries) for tries in (1, 5)] == [
            7_200_000_000,
            7_200_000_000,
        ]

    @given(seconds=st.floats(0, allow_nan=False), futile=st.integers(0, 10**6))
    def test_whatever_is_declared_it_is_a_number_that_can_be_stored(
        self, seconds: float, futile: int
    ) -> None:
        assert 0 <= Recovery(backoff_seconds=seconds).pause_us(futile) < 2**62
