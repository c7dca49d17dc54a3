"""A log and the views of it, for tests of projections and of what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench import Workbench

from tachograph import projecting, reading
from tachograph.domain.liveness import ALIVE, GONE, Liveness
from tachograph.infra.codec import Codec
from tachograph.infra.memory_views import MemoryViews
from tachograph.projections import run_summaries
from tachograph.projections.timeline import Timelines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tachograph.domain.event import Event
    from tachograph.projections.views import ViewReader, ViewStore

Fields = dict[str, Any]
DAY_US = 86_400_000_000


def summary_of(events: Iterable[Event]) -> Fields:
    """Fold the events of one run into its summary, without any storage."""
    run: Fields = {}
    for position, event in enumerate(events, start=1):
        run = run or run_summaries.new_summary(event.originator_id)
        run_summaries.apply(run, event.TOPIC, dict(vars(event)), position)
    return run


def timeline_of(events: Iterable[Event], portion: int = 1000) -> list[Fields]:
    """Fold the events of one run into its timeline, flushed after each portion."""
    views = MemoryViews(Codec())
    numbered = list(enumerate(events, start=1))
    for first in range(0, len(numbered), portion):
        part = numbered[first : first + portion]

        def work(writer: Any, part: list[tuple[int, Event]] = part) -> None:
            timelines = Timelines(writer)
            for position, event in part:
                fields = dict(vars(event))
                timelines.fold(event.TOPIC, fields, position, event.originator_id)
            timelines.flush()

        views.update(work)
    with views.read() as reader:
        return reader.timeline(numbered[0][1].originator_id)


class Viewed(Workbench):
    """A workbench with views. `alive` says which runs have a live owner, for `judge` too."""

    def __init__(self, views: ViewStore | None = None) -> None:
        super().__init__()
        self.views: ViewStore = views if views is not None else MemoryViews(self.codec)
        self.judged: list[str] = []
        self.beaten_us: int | None = None

    def judge(
        self, run_id: str, epoch: int, owner: Fields, worker: Fields | None = None
    ) -> Liveness:
        """Judge an owner by `alive`, and note that it was asked."""
        self.judged.append(run_id)
        state = ALIVE if run_id in self.alive else GONE
        return Liveness(state, f"process {owner['pid']} is {state}", self.beaten_us)

    def ask(self, question: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Catch up, then ask a question of `reading` that needs a judge."""
        return projecting.ask(
            self.log,
            self.codec,
            self.views,
            lambda view: question(view, self.judge, *args, **options),
        )

    def find(self, text: str) -> str:
        """Catch up, then find a run."""
        return projecting.ask(
            self.log, self.codec, self.views, lambda view: reading.find_run(view, text)
        )

    def listed(self, **options: Any) -> list[str]:
        """Return the ids that a list shows."""
        return [card["id"] for card in self.ask(reading.list_runs, **options)]

    def catch_up(self) -> int:
        """Fold what is new."""
        return projecting.catch_up(self.log, self.codec, self.views)

    def content(self, views: ViewStore | None = None) -> list[tuple[str, bytes, bytes]]:
        """Return everything in the views."""
        with (views or self.views).read() as reader:
            return list(reader.rows())


def everything(bench: Workbench) -> None:
    """Record a few runs whose events are of every topic that a run can have."""
    one = bench.start("parse", {"n": 1}, run_id="job-one")
    other = bench.start("parse", {"n": 2}, run_id="job-other", title="Second")
    one.start_phase("open")
    one.plan_batches("open", 3, 2, None)
    other.start_phase("open")
    for index in range(3):
        one.complete_batch("open", index, inputs=2, parsed=1)
        other.save_checkpoint({"offset": index, "total": 9}, kind="offset")
    one.complete_step("load", 42)
    one.intend_effect("mail", description="to ada")
    other.intend_effect("post")
    one.complete_effect("mail", "sent")
    one.execute(lambda run, why: run.record_artifact(why, "r", path="r.txt", size=1, sha256="a"))
    one.execute(lambda run, why: run.report_progress(why, 2, 3, "files"))
    one.execute(lambda run, why: run.schedule_retry(why, "parse", 1, error="no JSON"))
    one.execute(lambda run, why: run.take_fallback(why, "large", "small"))
    other.execute(lambda run, why: run.block(why, "waits for a disk"))
    one.end_phase("open")
    one.finish()
    bench.start("parse", {"n": 2}, run_id="job-other").finish("partial", reason="half")
    other = bench.start("parse", {"n": 2}, run_id="job-other")
    other.execute(lambda run, why: run.add_note(why, "look here", level="warning"))
    other.execute(lambda run, why: run.cancel(why, "no longer wanted"))
    bench.start("index", run_id="job-last").start_phase("read")


def check_reader(view: ViewReader) -> ViewReader:
    """Return the view; a type checker sees that it satisfies the port."""
    return view
