"""Watch over runs: notice who is gone or silent, resume what may be resumed, call a person.

Every tick decides by the log alone, and records what it tells: a situation is told once, however
many watchdogs there are, and a resume is begun once.
"""

from __future__ import annotations

from itertools import islice

from tachograph import signals
from tachograph.domain import attention, errors
from tachograph.domain.liveness import ALIVE, GONE
from tachograph.domain.plan import OWNED
from tachograph.domain.recovery_state import SILENT
from tachograph.sighting import (
    Sighting,
    exhausted,
    latest_us,
    noting,
    reason_of,
    untold,
    would_be_news,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from tachograph.domain.event import Cause
    from tachograph.domain.plan import Obstacle, Plan
    from tachograph.domain.run import Run
    from tachograph.resuming import Resumption
    from tachograph.signals import Report
    from tachograph.surroundings import Surroundings, View

    Fields = dict[str, Any]


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
        attention.NOT_LOOKED_AT,
    }
)
"""Reasons that a watchdog finds, and tells when it records them."""
STORE_DOWN = (
    errors.StoreFullError,
    errors.StoreReadOnlyError,
    errors.StoreBusyError,
    errors.StoreClosedError,
)
"""What is wrong with the store and not with one run."""
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
    """Looks after the runs of a store.

    `spawn` runs a resume, at once or in the background; it returns False when it has no room.
    """

    def __init__(
        self,
        around: Surroundings,
        orders: Orders,
        spawn: Callable[[str, Callable[[], None]], bool],
    ) -> None:
        self._around = around
        self._orders = orders
        self._spawn = spawn
        self._unreturned: set[str] = set()
        """Runs whose resume ended here without being recorded: a full disk keeps them waiting."""

    def tick(self, report: Report) -> Report:
        """Look at every run that should be looked at now, and tell what was found and done.

        Costs what is stale, not what exists.
        """
        now = self._around.now()
        seen = self._around.moments()

        def look(run_id: str) -> None:
            run = self._around.load(run_id)
            if run is None or not run.attempt_open:
                self._settle(run_id)  # its lease says no more: nobody has to look again
            if run is not None and self._is_ours(run):
                self._look(Sighting(run, now, seen, report))
                self._clear_failure(run)

        found = [*self._unreturned, *self._candidates(latest_us(now, seen))]
        self._each(dict.fromkeys(found), report, look)
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

        def tell(run_id: str) -> None:
            run = self._around.load(run_id)
            if run is not None and self._is_ours(run):
                self._tell_what_it_asks(Sighting(run, now, [], report))
                report.active_needs_attention += [
                    signals.needs_attention(run, code, detail, None)
                    for code, detail in run.attention.items()
                ]

        self._each(needing, report, tell)
        return report

    def _each(self, run_ids: Iterable[str], report: Report, look: Callable[[str], None]) -> None:
        """Look at each run; one that cannot be looked at does not keep the others waiting."""
        for run_id in run_ids:
            try:
                look(run_id)
            except STORE_DOWN:
                raise
            except Exception as error:  # noqa: BLE001  # whatever is wrong with one
                self._tell_of_failure(run_id, error, report)

    # Whom to look at.

    def _candidates(self, latest_us: int) -> list[str]:
        def question(view: View) -> list[str]:
            found = list(view.due(latest_us))
            for process, one in view.watched_processes():
                card = view.card_at(one)
                # After the attempt it is the dispatcher that counts.
                worker = card["worker"] if card["attempt_open"] else None
                state = self._around.process_state(worker or card["owner"] or {})
                if state == GONE:
                    found += view.watched_by(process)
            return [str(view.card_at(created)["id"]) for created in found]

        return list(dict.fromkeys([*self._around.ask(question), *self._around.expired()]))

    def _is_ours(self, run: Run) -> bool:
        return self._orders.command is None or run.command == self._orders.command

    # What to do about one.

    def _look(self, look: Sighting) -> None:
        run = look.run
        if run.dispatch is None:
            self._unreturned.discard(run.id)  # else the next resume would be taken for given up
        elif self._adopt(look):
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
            self._note(look, GONE, liveness.reason)
            self._settle(run.id)
        self._consider(look)

    def _adopt(self, look: Sighting) -> bool:
        """Record the return of a resume that nobody waits for any more, and tell of it."""
        run = look.run
        if not self._orders.record:
            return False
        ours = run.id in self._unreturned
        done = self._around.dispatcher().adopt(run.id, given_up=ours)
        if done is None:
            return False
        self._unreturned.discard(run.id)
        self._tell(look, run, done)
        return True

    def _clear_failure(self, run: Run) -> None:
        if attention.NOT_LOOKED_AT in run.attention and self._orders.record:
            self._around.session(run.id).execute(
                lambda run, why: run.clear_attention(why, attention.NOT_LOOKED_AT)
            )

    def _tell_of_failure(self, run_id: str, error: Exception, report: Report) -> None:
        """Tell that a run cannot even be looked at, once; the watchdog goes on with the others."""
        text = f"{type(error).__name__}: {error}"
        report.skipped.append({"task_id": run_id, "task_type": "", "reason": text})
        if not self._orders.record:
            return
        session = self._around.session(run_id)
        try:
            news = session.execute(
                lambda run, why: run.raise_attention(why, attention.NOT_LOOKED_AT, text)
            )
        except STORE_DOWN:
            raise
        except Exception:  # noqa: BLE001  # not even that can be recorded: it is in the report
            return
        if news:
            report.needs_attention.append(
                signals.needs_attention(session.run, attention.NOT_LOOKED_AT, text, None)
            )

    def _settle(self, run_id: str) -> None:
        if self._orders.record:
            self._around.settle(run_id)

    def _look_at_the_living(self, look: Sighting) -> None:
        declared = look.declared
        if look.is_overdue() and self._around.process_state(look.run.owner or {}) == GONE:
            self._end_overdue(look)
            return
        if declared.stale_after_seconds is None:
            return
        if look.age_us < declared.stale_after_seconds * 1_000_000:
            return
        self._note(look, SILENT, "its owner lives, and records nothing")
        if self._orders.auto_resume and declared.auto_resume and declared.kill_stalled:
            self._stop(look)

    def _stop(self, look: Sighting) -> None:
        """Stop who lives and does nothing, and resume the run; only if it can be resumed then."""
        plan = self._plan(look)
        others = [each for each in plan.obstacles if each.code != OWNED]
        if others:
            self._say_what_is_in_the_way(look, others)
            return
        sharing = self._around.sharing(look.run)
        if sharing:
            wrong: str | None = f"its process works on other runs too: {', '.join(sharing)}"
        elif not self._orders.record:
            self._would_resume(look, plan, stops=look.run.own_processes)
            return
        else:
            wrong = self._around.stop(look.run)
        self._go_on(look, wrong)

    def _end_overdue(self, look: Sighting) -> None:
        """End an adapter whose time is up and whose dispatcher was killed."""
        if not self._orders.record:
            return
        self._go_on(look, self._around.stop(look.run))

    def _go_on(self, look: Sighting, wrong: str | None) -> None:
        """Resume a run whose processes were stopped, or say what is `wrong`."""
        run = look.run = self._around.load(look.run.id) or look.run
        lives = self._around.process_state(run.owner or {}) != GONE
        if wrong is None and run.dispatch is not None and not self._adopt(look) and lives:
            return  # its dispatcher is about to record the return
        if wrong is None and look.run.attempt_open:
            liveness = self._around.liveness(look.run)
            wrong = liveness.reason if liveness.state == ALIVE else None
        if wrong is None:
            self._consider(look)
        else:
            self._call(look, attention.NOT_STOPPED, wrong)

    def _look_at_the_unknown(self, look: Sighting, reason: str) -> None:
        limit = look.declared.stale_after_seconds
        if limit is not None and look.age_us >= limit * 1_000_000:
            self._call(look, attention.NOT_JUDGED, reason)

    def _note(self, look: Sighting, kind: str, reason: str) -> None:
        """Tell that a run is gone or silent, once."""
        look.report.stale.append(signals.stale(look.run, look.age_us))
        evidence = {"reason": reason, "silent_seconds": look.age_us // 1_000_000}
        if self._record(look, lambda run, why: run.detect_stall(why, kind, evidence)):
            look.report.alerts.append(signals.alert(look.run, kind, reason, look.age_us))

    def _consider(self, look: Sighting) -> None:
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

    def _try(self, look: Sighting) -> None:
        plan = self._plan(look)
        if not plan.obstacles:
            self._resume(look, plan)
            return
        self._say_what_is_in_the_way(look, plan.obstacles)

    def _say_what_is_in_the_way(self, look: Sighting, obstacles: Sequence[Obstacle]) -> None:
        self._skip(look, "; ".join(each.text for each in obstacles))
        for obstacle in obstacles:
            if obstacle.code in NEEDS_PERSON:
                self._call(look, *reason_of(look.run, obstacle))

    def _plan(self, look: Sighting) -> Plan:
        return self._around.planner().plan_of(
            look.run, unattended=True, timeout_seconds=self._limit(look)
        )

    def _would_resume(self, look: Sighting, plan: Plan, **more: object) -> None:
        entry = signals.tried(look.run.id, "dry-run", look.run, None, None)
        execute = plan.execute or {}
        entry.update(command=execute.get("name"), argv=execute.get("argv"), **more)
        look.report.resumed.append(entry)

    def _resume(self, look: Sighting, plan: Plan) -> None:
        before = look.run
        if not self._orders.record:
            self._would_resume(look, plan)
            return

        def work() -> None:
            try:
                done = self._around.dispatcher().resume(
                    before.id, unattended=True, timeout_seconds=self._limit(look)
                )
            except errors.RefusalError as refusal:
                self._skip(look, str(refusal))  # another watchdog was first, or all is well
            except Exception as error:  # noqa: BLE001  # else this process would seem to be at it
                self._unreturned.add(before.id)
                text = f"{type(error).__name__}: {error}"
                look.report.resumed.append(signals.tried(before.id, "error", before, None, text))
            else:
                self._tell(look, before, done)

        if not self._spawn(before.id, work):
            self._skip(look, "as many resumes as may be are at work; it is next")

    def _limit(self, look: Sighting) -> float | None:
        """Return how long a resume may take: the job's limit or ours, whichever is shorter."""
        limits = (look.declared.timeout_seconds, self._orders.timeout_seconds)
        return min((each for each in limits if each is not None), default=None)

    def _tell(self, look: Sighting, before: Run, done: Resumption) -> None:
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
            self._call(look, *exhausted(after))

    # What is recorded and told.

    def _expire(self, look: Sighting) -> None:
        window = look.declared.resume_window_seconds
        reason = f"no work for longer than its resume window of {window:g} s"

        def expire(run: Run, why: Cause) -> bool:
            run.expire(why, reason)
            return True

        if self._record(look, expire):
            look.report.expired.append(signals.skipped(look.run, reason, look.age_us))

    def _call(self, look: Sighting, code: str, detail: str | None) -> None:
        """Call a person, once."""
        if self._record(look, lambda run, why: run.raise_attention(why, code, detail)):
            look.report.needs_attention.append(
                signals.needs_attention(look.run, code, detail, look.now.wall_us)
            )

    def _tell_what_it_asks(self, look: Sighting) -> None:
        """Tell what the run, its adapter or an edited card asks of a person: each once."""
        for code, detail in look.run.attention.items():
            if code in FOUND_HERE or untold(look.run, code) is None:
                continue
            if self._record(look, noting(code)):
                look.report.needs_attention.append(
                    signals.needs_attention(look.run, code, detail, None)
                )

    def _skip(self, look: Sighting, reason: str) -> None:
        look.report.skipped.append(signals.skipped(look.run, reason, look.age_us))

    def _record(self, look: Sighting, command: Callable[[Run, Cause], bool]) -> bool:
        """Record what is told, and say whether it is news. A dry run only finds that out."""
        if not self._orders.record:
            return would_be_news(look.run, command, look.now)
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


def run_at_once(_run_id: str, work: Callable[[], None]) -> bool:
    """Run a resume before the tick goes on: how `Watchdog` is told to wait."""
    work()
    return True
