"""The program `scripts/task_runtime_watch.py`: one look of the watchdog, told in its old shape."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from tachograph import cards
from tachograph.domain.errors import StoreNotFoundError, TachographError
from tachograph.domain.liveness import GONE
from tachograph.domain.owner import UNOWNED
from tachograph.dropin.adopting import adopt
from tachograph.dropin.opening import exit_code, open_tasks
from tachograph.dropin.places import VARIABLE
from tachograph.dropin.resume import TIMEOUT_SECONDS
from tachograph.dropin.runtime import fail, newest_first, warn
from tachograph.dropin.syncing import sync_tasks
from tachograph.infra.card_files import CardFiles
from tachograph.lookout import Lookout
from tachograph.signals import Report
from tachograph.watching import Orders, Watchdog, run_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run
    from tachograph.dropin.places import Workspace
    from tachograph.dropin.tasks import Tasks

    Fields = dict[str, Any]

PROGRAM = "task_runtime_watch.py"
LISTS = (
    "alerts",
    "recoveries",
    "resumed",
    "skipped",
    "needs_attention",
    "active_needs_attention",
)


def run(workspace: Workspace, argv: Sequence[str]) -> int:
    """Look once, print the report, and return the exit code."""
    args = parser().parse_args(argv)
    os.environ[VARIABLE] = str(workspace.root)  # adapters outside it ask for it
    record = args.auto_resume and not args.dry_run
    try:
        tasks = open_tasks(workspace, create=record)
        try:
            report = _look(tasks, args, record=record)
        finally:
            tasks.services.close()
    except StoreNotFoundError:
        report = _empty()
    except (TachographError, OSError, ValueError) as error:
        fail(error)
        return exit_code(error)
    sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(PROGRAM, description="Look after the tasks of a workspace.")
    found.add_argument("--task-type")
    found.add_argument("--auto-resume", action="store_true")
    found.add_argument("--dry-run", action="store_true")
    found.add_argument("--timeout-seconds", type=int, default=TIMEOUT_SECONDS)
    return found


def _look(tasks: Tasks, args: argparse.Namespace, *, record: bool) -> Fields:
    """Let the watchdog look, and bring the card files of what it touched up to date."""
    if record:
        _take_over(tasks)
        _release_hosts(tasks)
    around = Lookout(tasks.services)
    orders = Orders(
        auto_resume=args.auto_resume,
        record=record,
        command=args.task_type or None,
        timeout_seconds=args.timeout_seconds,
    )
    watchdog = Watchdog(around, orders, run_at_once)
    report = watchdog.count(watchdog.tick(Report(tasks.services.actor.now_us())))
    told = _told(report)
    if record:
        for problem in sync_tasks(tasks, _touched(told))[1]:
            _warn(problem)
    return {**told, **_lists(tasks, args.task_type, told)}


def _take_over(tasks: Tasks) -> None:
    """Import cards that are in their files only, so that they are watched."""
    for name in CardFiles(tasks.workspace.cards).names():
        try:
            if tasks.newest(tasks.task_id(name)) is None:
                adopt(tasks, name)
        except (TachographError, OSError) as error:
            _warn(str(error))


def _release_hosts(tasks: Tasks) -> None:
    """Count on no process that gives the watchdog's commands as well as a task's.

    Such as the agent that runs both: it lives on when the task has died, and proves nothing.
    """
    for run in tasks.all(unfinished=True):
        hosts = tasks.caller.hosts(run) if run.attempt_open else []
        if hosts:
            session = tasks.services.session(run.id, run.epoch)
            session.execute(partial(_release, hosts=hosts))


def _release(run: Run, why: Cause, hosts: list[list[Any]]) -> None:
    run.change_card(why, {cards.HOSTS: [*run.card.get(cards.HOSTS, []), *hosts]})
    worker = run.worker or {}
    if [worker.get("boot_id"), worker.get("pid"), worker.get("started")] in hosts:
        run.start_worker(why, {"kind": UNOWNED})


# The report.


def _told(report: Report) -> Fields:
    """Return the report as plain values, each task by the id of its card."""
    fields = report.to_fields()
    for name in (*LISTS, "stale", "expired"):
        fields[name] = [_of_task(entry) for entry in fields[name]]
    fields["checked_at"] = cards.iso(report.checked_us)
    return fields


def _of_task(entry: Fields) -> Fields:
    run_id = str(entry["task_id"])
    return {**entry, "task_id": cards.task_id_of(run_id), "run_id": run_id}


def _touched(told: Fields) -> list[str]:
    names = (*LISTS, "stale", "expired")
    return [entry["task_id"] for name in names for entry in told[name]]


def _lists(tasks: Tasks, task_type: str | None, told: Fields) -> Fields:
    """Return the tasks that run, and those that are stale, in the short form of their cards."""
    found = [tasks.card(run) for run in tasks.all(unfinished=True)]
    running = newest_first(
        card
        for card in found
        if cards.is_running(card) and task_type in (None, "", card["task_type"])
    )
    noted = {entry["task_id"] for entry in told["stale"]}
    stale = [card for card in running if card["id"] in noted or _is_gone(tasks, card)]
    return {
        "running_count": len(running),
        "stale_count": len(stale),
        "running": [tasks.result(card) for card in running],
        "stale": [tasks.result(card) for card in stale],
    }


def _is_gone(tasks: Tasks, card: Fields) -> bool:
    run = tasks.newest(str(card["id"]))
    if run is None:
        return False
    return not run.attempt_open or tasks.services.liveness(run).state == GONE


def _empty() -> Fields:
    """Return the report of a workspace that has no store yet."""
    from tachograph.infra.clock import now_us

    fields = _told(Report(now_us()))
    return {**fields, "running": []}


def _warn(text: str) -> None:
    warn(text, PROGRAM)
