"""Why a run stands as it does is told from its events, in bounds, however long its stream is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recovering import AUTO, Recovering, fails

from tachograph import explaining
from tachograph.domain.gate import Facts
from tachograph.domain.records import Record


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def verdict(bench: Recovering) -> dict[str, Any] | None:
    return explaining.verdict(bench.repository, "job")


def resume(bench: Recovering) -> dict[str, Any]:
    found = explaining.last_resume(bench.repository, bench.payloads, "job")
    assert found is not None
    return found


def replied(bench: Recovering, stdout: bytes, stderr: bytes = b"") -> dict[str, Any]:
    """Resume a run whose adapter says this, and return what is told of it."""
    bench.adapters.says = stdout, stderr
    bench.cut_off()
    bench.dispatcher.resume("job")
    return resume(bench)


class TestVerdicts:
    def test_where_nothing_was_judged_there_is_none(self, bench: Recovering) -> None:
        bench.begin()

        assert verdict(bench) is None
        assert explaining.verdict(bench.repository, "nobody") is None

    def test_a_verdict_has_the_facts_that_it_saw_and_where_they_are_from(
        self, bench: Recovering
    ) -> None:
        session = bench.cut_off_alive(AUTO)
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=0)))
        found = verdict(bench)
        last = session.run.phases["parse"].last_version

        assert found is not None
        assert (found["outcome"], found["gate"]) == ("failed_semantic_empty", "default")
        assert (found["facts"]["inputs"], found["facts"]["outputs"]) == (3, 0)
        assert found["evidence"] == [last]
        assert found["version"] == session.run.version
        assert sorted(found) == sorted(
            ["version", "gate", "outcome", "rule", "reason_code", "reason", "facts", "evidence",
             "policy_version"]
        )  # fmt: skip

    def test_the_last_of_several_counts(self, bench: Recovering) -> None:
        session = bench.begin()
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=0)))
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=3)))
        found = verdict(bench)

        assert found is not None
        assert found["outcome"] == "success"

    @pytest.mark.parametrize("later", [explaining.PAGE - 1, explaining.PAGE, 3 * explaining.PAGE])
    def test_it_is_found_however_many_events_came_after_it(
        self, bench: Recovering, later: int
    ) -> None:
        session = bench.begin()
        session.execute(lambda run, why: run.judge(why, Facts(inputs=1, outputs=1)))
        judged = session.run.version

        def note(run: Any, why: Any) -> None:
            for _ in range(later):
                run.add_note(why, "on it")

        session.execute(note)
        found = verdict(bench)

        assert found is not None
        assert found["version"] == judged

    @pytest.mark.parametrize("events", [explaining.PAGE, explaining.PAGE + 1])
    def test_a_whole_stream_without_one_is_read_to_its_beginning(
        self, bench: Recovering, events: int
    ) -> None:
        session = bench.begin()
        missing = events - session.run.version

        def note(run: Any, why: Any) -> None:
            for _ in range(missing):
                run.add_note(why, "on it")

        session.execute(note)

        assert (session.run.version, verdict(bench)) == (events, None)

    def test_one_whose_body_was_erased_says_nothing(
        self, bench: Recovering, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.begin().execute(lambda run, why: run.judge(why, Facts(inputs=1, outputs=1)))
        read = bench.log.read_stream

        def erased(*args: Any, **options: Any) -> list[Record]:
            found: list[Record] = read(*args, **options)
            for record in found:
                record.absent, record.body = True, b""
            return found

        monkeypatch.setattr(bench.log, "read_stream", erased)

        assert verdict(bench) is None


class TestResumes:
    def test_where_no_resume_returned_there_is_none(self, bench: Recovering) -> None:
        bench.cut_off()

        assert explaining.last_resume(bench.repository, bench.payloads, "job") is None

    def test_a_resume_has_how_it_ended_and_what_it_said(self, bench: Recovering) -> None:
        found = replied(bench, b'{"ok": true, "rows": 3}', b"warning: slow\n")

        assert (found["progressed"], found["error"]) == (True, None)
        assert (found["stderr"], found["stderr_omitted"]) == ("warning: slow\n", 0)
        assert found["result"]["reply"] == {"ok": True, "rows": 3}
        assert "omitted" not in found["result"]
        assert found["version"] == bench.run().version

    def test_a_failure_is_told(self, bench: Recovering) -> None:
        bench.adapters.work = fails
        found = replied(bench, b"{}")

        assert (found["progressed"], found["error"]) == (False, "exit code 3")
        assert found["result"]["exit_code"] == 3

    def test_one_that_could_not_be_run_said_nothing(self, bench: Recovering) -> None:
        def broken(_session: object) -> None:
            raise OSError("Exec format error")

        bench.adapters.work = broken
        found = replied(bench, b"")

        assert found["error"] == "it could not be run: Exec format error"
        assert "reply" not in found["result"]

    def test_of_a_long_stderr_the_end_is_kept(self, bench: Recovering) -> None:
        found = replied(bench, b"{}", b"a" * 100 + b"b" * explaining.TAIL)

        assert found["stderr"] == "b" * explaining.TAIL
        assert found["stderr_omitted"] == 100

    def test_a_long_reply_is_cut_and_counted(self, bench: Recovering) -> None:
        found = replied(bench, b"x" * 600_000)
        reply, omitted = found["result"]["reply"], found["result"]["omitted"]

        assert reply["raw_stdout"] == "x" * explaining.LONGEST
        assert reply["problem"].startswith("stdout is no JSON")
        assert omitted == {"raw_stdout": 600_000 - explaining.LONGEST}

    def test_a_long_error_is_cut_and_counted(self, bench: Recovering) -> None:
        bench.adapters.work = fails
        said = json.dumps({"error": "e" * 500_000}).encode()
        found = replied(bench, said)

        assert found["error"].startswith("exit code 3: eee")
        assert found["error"].endswith("characters left out)")
        assert len(json.dumps(found, default=str)) < 3 * explaining.LONGEST

    @pytest.mark.parametrize(
        "reply",
        [
            {f"row {number}": "x" * 100 for number in range(5_000)},
            {f"{number} " + "n" * 30_000: 1 for number in range(20)},
            {"rows": [list(range(1_000)) for _ in range(500)]},
            {"a": "x" * 2_000, "b": "y" * 20_000, "c": {"deep": "z" * 20_000}},
        ],
    )
    def test_a_reply_of_any_shape_is_bounded_and_nothing_is_uncounted(
        self, reply: dict[str, Any]
    ) -> None:
        shown, omitted = explaining.bounded(reply)
        whole = sum(len(name) + len(_text(value)) for name, value in reply.items())
        kept = sum(len(name) + len(_text(value)) for name, value in shown.items())

        assert kept <= explaining.MOST_SAID
        assert kept + sum(omitted.values()) == whole


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
