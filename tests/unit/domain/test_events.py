"""Every event has its own frozen topic and fields, so that old logs stay readable (G4, G9)."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from tachograph.domain import (
    errors,
    event_types,
    events,
    queue_events,
    queued_job,
    repair_events,
    repairs,
    run_state,
)
from tachograph.domain.event import Cause, Event
from tachograph.domain.event_types import all_types, upcast
from tachograph.domain.events import EVENT_TYPES, BatchCompleted, RunCancelled
from tachograph.domain.queue_events import QUEUE_EVENTS, JobEvent
from tachograph.domain.repair_events import REPAIR_EVENTS, RepairEvent
from tachograph.domain.run import Run

SCHEMAS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "event_schemas.json").read_text(encoding="utf-8")
)
KINDS = pytest.mark.parametrize("kind", all_types().values(), ids=all_types())
BASES = {Event, JobEvent, RepairEvent}
REGISTRIES = [
    pytest.param(events, Event, EVENT_TYPES, id="run"),
    pytest.param(queue_events, JobEvent, QUEUE_EVENTS, id="queue"),
    pytest.param(repair_events, RepairEvent, REPAIR_EVENTS, id="repair"),
]

HOW_TO_CHANGE = """
The stored fields of {topic} changed, and logs out there hold the old ones. If you mean it:
1. raise `class_version` of the event by one, to N, and write `upcast_v(N-1)_vN(fields)`;
2. in tests/golden/make_golden.py move the old sample to EARLIER, write a new one, and run it:
   it adds vN.json and changes no other file;
3. put this into tests/golden/event_schemas.json:
{entry}
"""


def schema(kind: type[Event]) -> dict[str, Any]:
    return {"class_version": kind.class_version, "fields": dict(kind.field_names())}


def example(kind: type[Event]) -> Event:
    return kind(**{name: f"<{name}>" for name in kind.field_names()})


class TestSchemas:
    @KINDS
    def test_topic_version_and_fields_are_frozen(self, kind: type[Event]) -> None:
        """G9."""
        entry = json.dumps({kind.TOPIC: schema(kind)}, indent=2)

        assert SCHEMAS.get(kind.TOPIC) == schema(kind), HOW_TO_CHANGE.format(
            topic=kind.TOPIC, entry=entry
        )

    def test_no_topic_is_taken_away(self) -> None:
        """G9: an event that is no longer recorded must still be readable."""
        assert set(SCHEMAS) - set(all_types()) == set()

    @KINDS
    def test_every_event_has_a_topic_of_its_own(self, kind: type[Event]) -> None:
        assert "TOPIC" in vars(kind)
        assert re.fullmatch(r"(run|queue|repair)\.[a-z]+(-[a-z]+)*", kind.TOPIC)
        assert all_types()[kind.TOPIC] is kind
        assert event_types.find(kind.TOPIC) is kind

    @pytest.mark.parametrize(("module", "base", "registry"), REGISTRIES)
    def test_every_event_class_is_known_by_its_topic(
        self, module: Any, base: type[Event], registry: dict[str, type[Event]]
    ) -> None:
        classes = {
            found
            for found in vars(module).values()
            if isinstance(found, type) and issubclass(found, base) and found not in BASES
        }

        assert classes == set(registry.values())
        assert set(base.__subclasses__()) - BASES == classes

    def test_the_kinds_of_events_share_no_topic(self) -> None:
        registries = (EVENT_TYPES, QUEUE_EVENTS, REPAIR_EVENTS)

        assert len(all_types()) == sum(len(registry) for registry in registries)

    @pytest.mark.parametrize(
        ("handlers", "registry"),
        [
            pytest.param(run_state._HANDLERS, EVENT_TYPES, id="run"),
            pytest.param(queued_job._HANDLERS, QUEUE_EVENTS, id="job"),
            pytest.param(repairs._HANDLERS, REPAIR_EVENTS, id="repairs"),
        ],
    )
    def test_what_it_happens_to_can_apply_every_event(
        self, handlers: dict[str, Any], registry: dict[str, type[Event]]
    ) -> None:
        assert set(handlers) == set(registry)

    @KINDS
    def test_a_fact_is_named_in_the_past_tense(self, kind: type[Event]) -> None:
        last_word = re.findall("[A-Z][a-z]+", kind.__name__)[-1]

        assert re.search("(ed|Done|Taken)$", last_word)
        assert last_word not in ("Updated", "Changed", "Deleted")

    @KINDS
    def test_every_event_says_what_it_means(self, kind: type[Event]) -> None:
        assert kind.__doc__

    @KINDS
    def test_every_event_says_where_when_and_who(self, kind: type[Event]) -> None:
        first = list(kind.field_names())[:4]

        assert first == ["originator_id", "originator_version", "time_us", "by"]


class TestFrozen:
    @KINDS
    def test_a_field_cannot_change_or_go(self, kind: type[Event]) -> None:
        """G4."""
        event = example(kind)
        before = dict(vars(event))
        for name in [*kind.field_names(), "extra"]:
            with pytest.raises(AttributeError, match=f"{kind.__name__} is frozen: {name} cannot"):
                setattr(event, name, None)
            with pytest.raises(AttributeError, match=f"{kind.__name__} is frozen: {name} cannot"):
                delattr(event, name)

        assert vars(event) == before

    def test_an_event_cannot_be_a_key(self) -> None:
        with pytest.raises(TypeError):
            hash(example(RunCancelled))


class TestFields:
    @KINDS
    def test_a_missing_field_is_refused(self, kind: type[Event]) -> None:
        for name in kind.field_names():
            fields = dict(vars(example(kind)))
            del fields[name]
            with pytest.raises(TypeError, match=rf"fields missing or unknown: \['{name}'\]"):
                kind(**fields)

    @KINDS
    def test_an_unknown_field_is_refused(self, kind: type[Event]) -> None:
        with pytest.raises(TypeError, match=r"fields missing or unknown: \['colour'\]"):
            kind(**vars(example(kind)), colour="red")

    def test_constants_of_the_class_are_no_fields(self) -> None:
        assert {"TOPIC", "class_version"} & RunCancelled.field_names().keys() == set()


class TestRoundTrip:
    @KINDS
    def test_an_event_is_made_again_from_its_fields(self, kind: type[Event]) -> None:
        event = example(kind)

        assert kind(**vars(event)) == event

    @KINDS
    def test_an_event_survives_pickling_and_copying(self, kind: type[Event]) -> None:
        event = example(kind)

        assert pickle.loads(pickle.dumps(event)) == event
        assert copy.deepcopy(event) == event

    @KINDS
    def test_an_event_of_today_needs_no_upcasting(self, kind: type[Event]) -> None:
        fields = dict(vars(example(kind)))
        stored = {**fields, "class_version": kind.class_version}

        assert upcast(kind.TOPIC, stored) == fields

    @KINDS
    def test_there_is_an_upcaster_for_every_step(self, kind: type[Event]) -> None:
        """G9."""
        steps = [name for name in vars(kind) if name.startswith("upcast_")]

        assert steps == [f"upcast_v{n}_v{n + 1}" for n in range(1, kind.class_version)]

    def test_an_unknown_topic_is_refused(self) -> None:
        for topic in ("run.vanished", "queue.vanished", "repair.vanished", "billing.paid"):
            with pytest.raises(KeyError, match=topic):
                upcast(topic, {})

    def test_a_version_of_a_later_tachograph_is_refused(self) -> None:
        """G9: reading it as today's would misread it."""
        for topic in ("run.cancelled", "queue.job-cancelled", "repair.ended"):
            with pytest.raises(KeyError, match=f"{topic} version 2"):
                upcast(topic, {"class_version": 2, "reason": "so"})


class TestEquality:
    def test_events_with_equal_fields_are_equal(self) -> None:
        assert example(RunCancelled) == example(RunCancelled)

    def test_another_value_or_another_class_makes_another_event(self) -> None:
        event = example(RunCancelled)

        assert event != RunCancelled(**{**vars(event), "reason": "other"})
        assert event != events.RunExpired(**vars(event))
        assert event != vars(event)

    def test_an_event_shows_its_fields(self) -> None:
        shown = repr(example(BatchCompleted))

        assert shown.startswith("BatchCompleted(originator_id='<originator_id>', ")
        assert "index='<index>'" in shown


class TestCause:
    def test_an_event_says_who_caused_it(self) -> None:
        assert Cause(5, "tacho", "ada", 17, 2).by() == ["tacho", "ada", 17, 2]

    def test_a_cause_is_outside_any_attempt_unless_it_says_so(self) -> None:
        assert Cause(5, "mira", "ada", 17).epoch == 0


class TestMutate:
    def test_the_first_event_makes_the_run(self) -> None:
        fields: dict[str, Any] = dict.fromkeys(events.RunCreated.field_names())
        fields |= {"originator_id": "a", "originator_version": 1, "time_us": 5, "by": []}
        run = events.RunCreated(**fields).mutate(None)

        assert isinstance(run, Run)
        assert (run.id, run.version, run.created_us) == ("a", 1, 5)

    def test_a_later_event_moves_the_same_run(self) -> None:
        run = Run()
        run.version = 1
        fields: dict[str, Any] = {
            "originator_id": "a",
            "originator_version": 2,
            "time_us": 5,
            "by": [],
        }
        event = events.RunBlocked(**fields, reason="no disk")

        assert event.mutate(run) is run
        assert (run.version, run.blocked) == (2, "no disk")

    @pytest.mark.parametrize("version", [1, 3, 0])
    def test_an_event_that_does_not_follow_is_refused(self, version: int) -> None:
        """G3: a gap in a stream, or a snapshot of another version, shows at once."""
        run = Run()
        run.version = 1
        fields: dict[str, Any] = {
            "originator_id": "a",
            "originator_version": version,
            "time_us": 5,
            "by": [],
        }

        with pytest.raises(errors.VersionGapError, match="after version 1"):
            events.RunBlocked(**fields, reason="no disk").mutate(run)

    def test_applying_an_event_does_not_record_it(self) -> None:
        run = Run()
        run.version = 1
        fields: dict[str, Any] = {
            "originator_id": "a",
            "originator_version": 2,
            "time_us": 5,
            "by": [],
        }
        events.RunBlocked(**fields, reason="no disk").mutate(run)

        assert run.pending_events == []

    def test_an_unknown_topic_is_not_applied(self) -> None:
        with pytest.raises(KeyError):
            Run().evolve("run.vanished", {})
