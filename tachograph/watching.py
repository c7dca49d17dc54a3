"""Watch over runs: notice who is gone or silent, resume what may be resumed, call a person.

Every tick decides by the log alone, and records what it tells: a situation is told once, however
many watchdogs there are, and a resume is begun once.
"""

from __future__ import annotations

from itertools import islice

from tachograph import signals
from tachograph.domain import attention, errors
from tachograph.domain import plan as plans
from tachograph.domain.ages import age_us, awake_age_us, was_set
from tachograph.domain.liveness import ALIVE, GONE
from tachograph.domain.recovery import Recovery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from tachograph.domain.ages import Moment
    from tachograph.domain.event import Cause
    from tachograph.domain.liveness import Liveness
    from tachograph.domain.plan import Plan
    from tachograph.domain.run import Run
    from tachograph.planning import Planner
    from tachograph.projections.watch_list import WatchListView
    from tachograph.resuming import Dispatcher, Resumption
    from tachograph.session import Session
    from tachograph.signals import Report

    Fields = dict[str, Any]

    class Card(Protocol):
        """Finds cards."""

        def open_cards(self) -> Iterator[Fields]:
            """Yield the cards of runs that are open, latest created first."""
            ...

        def card_at(self, created_position: int) -> Fields:
            """Return the card of the run created at a position."""
            ...

    class View(WatchListView, Card, Protocol):
        """What a watchdog reads."""

    class Surroundings(Protocol):
        """What a watchdog needs of the machine and the store."""

        def ask(self, question: Callable[[View], Any]) -> Any:
            """Catch the views up, and answer a question from them."""
            ...

        def load(self, run_id: str) -> Run | None:
            """Return a run as it is now."""
            ...

        def session(self, run_id: str) -> Session:
            """Return a session that belongs to no attempt."""
            ...

        def liveness(self, run: Run) -> Liveness:
            """Judge the attempt of a run."""
            ...

        def process_state(self, process: Fields) -> str:
            """Say whether a process is alive, gone or unknown, by itself alone."""
            ...

        def expired(self) -> list[str]:
            """Return the runs whose lease has ended."""
            ...

        def settle(self, run_id: str) -> None:
            """Take a run off that list until it beats again."""
            ...

        def now(self) -> Moment:
            """Return what the clocks show."""
            ...

        def moments(self) -> list[Moment]:
            """Return what they showed earlier in this boot."""
            ...

        def note_moment(self, moment: Moment) -> None:
            """Keep what they show."""
            ...

        def stop(self, run: Run) -> str | None:
            """End the processes of a run for good; return what is wrong when that fails."""
            ...

        def planner(self) -> Planner:
            """Return what makes plans."""
            ...

        def dispatcher(self) -> Dispatcher:
            """Return what resumes runs."""
            ...


NEEDS_PERSON = (
    attention.NO_ADAPTER,
    attention.UNSAFE,
    attention.EFFECTS_IN_DOUBT,
    attention.ARTIFACT_DAMAGED,
    attention.DEPENDENCY,
    attention.DEPENDENCY_CYCLE,
    attention.REJECTED,
    attention.MAX_RETRIES,
    attention.WINDOW,
)
"""Obstacles for which a person is called; others go away by themselves or are known."""
FOUND_HERE = frozenset(
    {
        *NEEDS_PERSON,
        attention.RESUME_FAILED,
        attention.NOT_JUDGED,
        attention.NOT_STOPPED,
    }
)
"""Reasons that a watchdog finds, and tells when it records them."""
TOLD = "told:"
"""Begins the slots of a card's `watchdog` table that say what was told of the other reasons."""

MOST_RUNNING = 100
"""Runs at work that a report lists, latest created first; all are counted."""


class Orders:
    """How a watchdog is to work.

    Without `auto_resume` nothing is resumed, and what could be is listed as skipped. Without
    `record` nothing is written: that is a dry run. `command` watches the runs of one command.
    `timeout_seconds` bounds each resume, on top of what its job declares.
    """

    __slots__ = ("auto_resume", "command", "record", "timeout_seconds")

    def __init__(
        self,
        *,
        auto_resume: bool = False,
        record: bool = True,
        command: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.auto_resume = auto_resume
        self.record = record
        self.command = command
        self.timeout_seconds = timeout_seconds


class Watchdog:
    """Looks after the runs of a store. `spawn` runs a resume, at once or in the background."""

    def __init__(
        self,
        around: Surroundings,
        orders: Orders,
        spawn: Callable[[str, Callable[[], None]], None],
    ) -> None:
        self._around = around
        self._orders = orders
        self._spawn = spawn

    def tick(self, report: Report) -> Report:
        """Look at every run that should be looked at now, and tell what was found and done.

        Costs what is stale, not what exists.
        """
        now = self._around.now()
        seen = self._around.moments()
        for run_id in self._candidates(_latest_us(now, seen)):
            run = self._around.load(run_id)
            if run is None or not run.attempt_open:
                self._settle(run_id)  # its lease says no more: nobody has to look again
            if run is not None and self._is_ours(run):
                self._look(_Look(run, now, seen, report))
        if self._orders.record:
            self._around.note_moment(now)
        return report

    def count(self, report: Report) -> Report:
        """Add to a report how many runs are at work, and what needs a person as of now.

        What a run itself asks of a person is told here, once.
        """

        def question(view: View) -> tuple[int, list[Fields], list[str]]:
            ids = [str(view.card_at(created)["id"]) for created in view.needing()]
            at_work = (card for card in view.open_cards() if card["attempt_open"])
            return view.watched_count(), list(islice(at_work, MOST_RUNNING)), ids

        report.running_count, running, needing = self._around.ask(question)
        report.running = [signals.at_work(card) for card in running]
        now = self._around.now()
        for run_id in needing:
            run = self._around.load(run_id)
            if run is not None and self._is_ours(run):
                self._tell_what_it_asks(_Look(run, now, [], report))
                report.active_needs_attention += [
                    signals.needs_attention(run, code, detail, None)
                    for code, detail in run.attention.items()
                ]
        return report

    # Whom to look at.

    def _candidates(self, latest_us: int) -> list[str]:
        def question(view: View) -> list[str]:
            found = list(view.due(latest_us))
            for process, one in view.watched_processes():
                card = view.card_at(one)
                state = self._around.process_state(card["worker"] or card["owner"] or {})
                if state == GONE:
                    found += view.watched_by(process)
            return [str(view.card_at(created)["id"]) for created in found]

        return list(dict.fromkeys([*self._around.ask(question), *self._around.expired()]))

    def _is_ours(self, run: Run) -> bool:
        return self._orders.command is None or run.command == self._orders.command

    # What to do about one.

    def _look(self, look: _Look) -> None:
        run = look.run
        if run.finished:
            return
        if run.attempt_open:
            liveness = self._around.liveness(run)
            if liveness.state == ALIVE:
                self._settle(run.id)
                self._look_at_the_living(look)
                return
            if liveness.state != GONE:
                self._look_at_the_unknown(look, liveness.reason)
                return
            self._note(look, "gone", liveness.reason)
            self._settle(run.id)
        self._consider(look)

    def _settle(self, run_id: str) -> None:
        if self._orders.record:
            self._around.settle(run_id)

    def _look_at_the_living(self, look: _Look) -> None:
        declared = look.declared
        if declared.stale_after_seconds is None:
            return
        if look.age_us < declared.stale_after_seconds * 1_000_000:
            return
        self._note(look, "silent", "its owner lives, and records nothing")
        may = self._orders.record and self._orders.auto_resume and declared.auto_resume
        if may and declared.kill_stalled:
            wrong = self._around.stop(look.run)
            if wrong is None:
                look.run = self._around.load(look.run.id) or look.run
                self._consider(look)
            else:
                self._call(look, attention.NOT_STOPPED, wrong)

    def _look_at_the_unknown(self, look: _Look, reason: str) -> None:
        limit = look.declared.stale_after_seconds
        if limit is not None and look.age_us >= limit * 1_000_000:
            self._call(look, attention.NOT_JUDGED, reason)

    def _note(self, look: _Look, kind: str, reason: str) -> None:
        """Tell that a run is gone or silent, once."""
        look.report.stale.append(signals.stale(look.run, look.age_us))
        evidence = {"reason": reason, "silent_seconds": look.age_us // 1_000_000}
        if self._record(look, lambda run, why: run.detect_stall(why, kind, evidence)):
            look.report.alerts.append(signals.alert(look.run, kind, reason, look.age_us))

    def _consider(self, look: _Look) -> None:
        """Resume a run that nobody is at, or say why not."""
        declared = look.declared
        if look.is_past_its_window():
            self._expire(look)
            return
        if look.run.recovery is None:
            return
        if not declared.auto_resume:
            self._skip(look, "the job does not let it be resumed unattended")
        elif not self._orders.auto_resume:
            self._skip(look, "auto-resume was not asked for")
        else:
            self._try(look)

    def _try(self, look: _Look) -> None:
        if self._orders.record and look.run.dispatch is not None:
            self._around.dispatcher().adopt(look.run.id)
            look.run = self._around.load(look.run.id) or look.run
        plan = self._around.planner().plan_of(look.run, unattended=True)
        if not plan.obstacles:
            self._resume(look, plan)
            return
        self._skip(look, "; ".join(each.text for each in plan.obstacles))
        for obstacle in plan.obstacles:
            if obstacle.code in NEEDS_PERSON:
                self._call(look, *_reason(look.run, obstacle))

    def _resume(self, look: _Look, plan: Plan) -> None:
        before = look.run
        if not self._orders.record:
            entry = signals.tried(before.id, "dry-run", before, None, None)
            execute = plan.execute or {}
            entry.update(command=execute.get("name"), argv=execute.get("argv"))
            look.report.resumed.append(entry)
            return

        def work() -> None:
            try:
                done = self._around.dispatcher().resume(
                    before.id, unattended=True, timeout_seconds=self._orders.timeout_seconds
                )
            except errors.RefusalError as refusal:
                self._skip(look, str(refusal))  # another watchdog was first, or all is well
            except (errors.TachographError, OSError) as error:
                look.report.resumed.append(
                    signals.tried(before.id, "error", before, None, str(error))
                )
            else:
                self._tell(look, before, done)

        self._spawn(before.id, work)

    def _tell(self, look: _Look, before: Run, done: Resumption) -> None:
        """Tell what came of a resume; only progress is a recovery."""
        after = self._around.load(before.id) or before
        if done.fenced:
            action = "fenced"
        elif done.progressed:
            action = "resume"
            look.report.recoveries.append(
                signals.recovery(before, after, done, self._around.now().wall_us)
            )
        else:
            action = "ineffective" if done.error is None else "error"
        look.report.resumed.append(signals.tried(before.id, action, after, done, done.error))
        look.run = after
        if not after.finished and after.futile >= look.declared.max_retries:
            self._call(look, *_exhausted(after))

    # What is recorded and told.

    def _expire(self, look: _Look) -> None:
        window = look.declared.resume_window_seconds
        reason = f"no work for longer than its resume window of {window:g} s"

        def expire(run: Run, why: Cause) -> bool:
            run.expire(why, reason)
            return True

        if self._record(look, expire):
            look.report.expired.append(signals.skipped(look.run, reason, look.age_us))

    def _call(self, look: _Look, code: str, detail: str | None) -> None:
        """Call a person, once."""
        if self._record(look, lambda run, why: run.raise_attention(why, code, detail)):
            look.report.needs_attention.append(
                signals.needs_attention(look.run, code, detail, look.now.wall_us)
            )

    def _tell_what_it_asks(self, look: _Look) -> None:
        """Tell what the run, its adapter or an edited card asks of a person: each once."""
        for code, detail in look.run.attention.items():
            if code in FOUND_HERE or _untold(look.run, code) is None:
                continue
            if self._record(look, _noting(code)):
                look.report.needs_attention.append(
                    signals.needs_attention(look.run, code, detail, None)
                )

    def _skip(self, look: _Look, reason: str) -> None:
        look.report.skipped.append(signals.skipped(look.run, reason, look.age_us))

    def _record(self, look: _Look, command: Callable[[Run, Cause], bool]) -> bool:
        """Record what is told, and say whether it is news. A dry run only finds that out."""
        if not self._orders.record:
            return _would(look.run, command, look.now)
        session = self._around.session(look.run.id)
        epoch = look.run.epoch

        def unless_it_went_on(run: Run, why: Cause) -> bool:
            return run.epoch == epoch and not run.finished and command(run, why)

        try:
            return session.execute(unless_it_went_on)
        except errors.RefusalError:
            return False
        finally:
            look.run = session.reload()


class _Look:
    """One run under a watchdog's eyes."""

    def __init__(self, run: Run, now: Moment, seen: list[Moment], report: Report) -> None:
        self.run = run
        self.now = now
        self.report = report
        self._seen = seen

    @property
    def declared(self) -> Recovery:
        """What the job said about its recovery."""
        return Recovery.from_fields(self.run.recovery)

    @property
    def age_us(self) -> int:
        """How long the run has shown no work while the machine was awake."""
        since_us = self.run.worked_us or self.run.created_us
        return awake_age_us(since_us, self.now, self._seen)

    def is_past_its_window(self) -> bool:
        """Say whether it was left too long; never because, or just after, the clock was set."""
        window = self.declared.resume_window_seconds
        since_us = self.run.worked_us or self.run.created_us
        past = window is not None and age_us(since_us, self.now, self._seen) > window * 1_000_000
        return past and not was_set(self.now, self._seen)


def _latest_us(now: Moment, seen: list[Moment]) -> int:
    """Return the wall time by the clock of this boot that was the furthest ahead.

    Some events may have their times from it: by a clock that was set back since, nothing that
    happened before would be due for as long as it was set back.
    """
    shown = [moment.wall_us + now.boot_us - moment.boot_us for moment in seen]
    return max([now.wall_us, *shown])


def _reason(run: Run, obstacle: plans.Obstacle) -> tuple[str, str | None]:
    if obstacle.code == attention.MAX_RETRIES:
        return _exhausted(run)
    return obstacle.code, obstacle.text


def _exhausted(run: Run) -> tuple[str, str | None]:
    """Return why a run is not resumed any more: its resumes failed, or changed nothing."""
    detail = f"{run.futile} resumes in a row brought no progress"
    if run.resume_error is None:
        return attention.MAX_RETRIES, detail
    return attention.RESUME_FAILED, f"{detail}; the last one: {run.resume_error}"


def _untold(run: Run, code: str) -> str | None:
    """Return what stands for a reason for attention as it is now; None when it was told."""
    asked = run.approvals.get(code.removeprefix(attention.APPROVAL))
    said = asked["subject_digest"] if asked else f"{run.epoch}:{run.attention.get(code)}"
    told = (run.card.get("watchdog") or {}).get(TOLD + code)
    return said if code in run.attention and told != said else None


def _noting(code: str) -> Callable[[Run, Cause], bool]:
    """Return the command that notes on a run's card that this was told; False when it was."""

    def note(run: Run, why: Cause) -> bool:
        said = _untold(run, code)
        if said is None:
            return False
        kept = {
            slot: value
            for slot, value in (run.card.get("watchdog") or {}).items()
            if not slot.startswith(TOLD) or slot.removeprefix(TOLD) in run.attention
        }
        run.change_card(why, {"watchdog": {**kept, TOLD + code: said}})
        return True

    return note


def _would(run: Run, command: Callable[[Run, Cause], bool], now: Moment) -> bool:
    """Say whether a command would be news, on a copy that nobody keeps."""
    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run as Copy

    copy = Copy()
    copy.restore(run.to_snapshot())
    try:
        return command(copy, Cause(now.wall_us, "watchdog", "", 0, 0))
    except errors.RefusalError:
        return False


def run_at_once(_run_id: str, work: Callable[[], None]) -> None:
    """Run a resume before the tick goes on: how `Watchdog` is told to wait."""
    work()
