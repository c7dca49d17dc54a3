"""Why a run stands as it does is told from its events, in bounds, however long its stream is."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from recovering import AUTO, Recovering, fails

from tachograph import explaining
from tachograph.domain.gate import Facts
from tachograph.domain.records import Record

if TYPE_CHECKING:
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run


@pytest.fixture
def bench() -> Recovering:
    return Recovering()


def judged(bench: Recovering) -> dict[str, Any] | None:
    return explaining.last_event(bench.repository, "job", explaining.JUDGED)


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


class TestLastEvents:
    def test_where_there_is_none_there_is_none(self, bench: Recovering) -> None:
        bench.begin()

        assert judged(bench) is None
        assert explaining.last_event(bench.repository, "nobody", explaining.JUDGED) is None

    def test_an_event_has_its_fields_and_where_it_stands(self, bench: Recovering) -> None:
        session = bench.cut_off_alive(AUTO)
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=0)))
        found = judged(bench)

        assert found is not None
        assert found["outcome"] == "failed_semantic_empty"
        assert found["version"] == found["position"] == session.run.version
        assert (found["topic"], found["time_us"]) == (explaining.JUDGED, session.run.updated_us)

    def test_the_last_of_several_counts(self, bench: Recovering) -> None:
        session = bench.begin()
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=0)))
        session.execute(lambda run, why: run.judge(why, Facts(inputs=3, outputs=3)))
        found = judged(bench)

        assert found is not None
        assert found["outcome"] == "success"

    def test_of_several_topics_the_last_event_of_any_counts(self, bench: Recovering) -> None:
        session = bench.begin()
        session.start_phase("parse")
        session.execute(lambda run, why: run.add_note(why, "on it"))
        found = explaining.last_event(
            bench.repository, "job", "run.phase-started", "run.attempt-started"
        )

        assert found is not None
        assert (found["topic"], found["phase"]) == ("run.phase-started", "parse")

    @pytest.mark.parametrize("later", [explaining.PAGE - 1, explaining.PAGE, 3 * explaining.PAGE])
    def test_it_is_found_however_many_events_came_after_it(
        self, bench: Recovering, later: int
    ) -> None:
        session = bench.begin()
        session.execute(lambda run, why: run.judge(why, Facts(inputs=1, outputs=1)))
        version = session.run.version

        def note(run: Any, why: Any) -> None:
            for _ in range(later):
                run.add_note(why, "on it")

        session.execute(note)
        found = judged(bench)

        assert found is not None
        assert found["version"] == version

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

        assert (session.run.version, judged(bench)) == (events, None)

    def test_one_whose_body_was_erased_says_nothing(
        self, bench: Recovering, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench.begin().execute(lambda run, why: run.judge(why, Facts(inputs=1, outputs=1)))
        version = bench.run().version
        read = bench.log.read_stream

        def erased(*args: Any, **options: Any) -> list[Record]:
            found: list[Record] = read(*args, **options)
            for record in found:
                record.absent, record.body = True, b""
            return found

        monkeypatch.setattr(bench.log, "read_stream", erased)

        assert judged(bench) is None
        assert explaining.event_at(bench.repository, "job", version) is None

    def test_an_event_is_found_by_its_version(self, bench: Recovering) -> None:
        bench.begin().start_phase("parse")
        found = explaining.event_at(bench.repository, "job", bench.run().version)

        assert found is not None
        assert (found["topic"], found["phase"]) == ("run.phase-started", "parse")
        assert explaining.event_at(bench.repository, "job", 99) is None

    def test_the_newest_events_of_a_topic_come_first_and_in_bounds(self, bench: Recovering) -> None:
        session = bench.begin()
        for text in ("one", "two", "three"):
            session.execute(partial(_note, text=text))
        topic = "run.note-added"
        found = explaining.latest_events(bench.repository, "job", topic)
        newest = explaining.latest_events(bench.repository, "job", topic, most=2)

        assert [fields["text"] for _, fields in found] == ["three", "two", "one"]
        assert [fields["text"] for _, fields in newest] == ["three", "two"]


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


def _note(run: Run, why: Cause, *, text: str) -> None:
    run.add_note(why, text)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
