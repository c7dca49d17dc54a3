"""What the shell completes: ids, names and phases from the store. Changes nothing, never fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

from tachograph.domain.errors import BodyLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from tachograph.bootstrap import Services
    from tachograph.domain.records import Record

    Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

NEWEST = 200
"""Runs that are looked at: the newest ones."""


def completer(what: str | None) -> Complete | None:
    """Return the function that completes a kind of value; None leaves it to click."""
    if what is None:
        return None

    def complete(
        context: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        if what in ("path", "file"):
            return [CompletionItem(incomplete, type="file")]
        items = _from_the_store(context, SOURCES[what])
        return [item for item in items if item.value.startswith(incomplete)]

    return complete


def _from_the_store(
    context: click.Context,
    source: Callable[[Services, click.Context], Iterable[CompletionItem]],
) -> list[CompletionItem]:
    from tachograph.bootstrap import open_store

    asked = context.find_root().obj or {}
    try:
        services = open_store(asked.get("store"), read_only=True)
        try:
            return list(source(services, context))
        finally:
            services.close()
    except Exception:  # noqa: BLE001  # a shell that completes is no place for an error
        return []


def runs(services: Services, _context: click.Context) -> Iterable[CompletionItem]:
    """Yield the newest runs with their titles."""
    for record in services.log.read(topics=("run.created",), reverse=True, limit=NEWEST):
        fields = _created(services, record)
        what = fields.get("title") or fields.get("command")
        yield CompletionItem(str(record.stream), help=what or "erased")


def commands(services: Services, _context: click.Context) -> Iterable[CompletionItem]:
    """Return the commands of the newest runs."""
    records = services.log.read(topics=("run.created",), reverse=True, limit=NEWEST)
    names = {_created(services, record).get("command"): None for record in records}
    return [CompletionItem(name) for name in names if name is not None]


def _created(services: Services, record: Record) -> dict[str, Any]:
    """Return what the first event of a run says; nothing where it is erased or lost."""
    try:
        return services.repository.fields(record)
    except BodyLostError:
        return {}


def phases(services: Services, context: click.Context) -> Iterable[CompletionItem]:
    """Return the phases of the run that the command line or the environment names."""
    run = services.repository.get(_run_id(context))
    known = run.phases.values() if run is not None else ()
    return [CompletionItem(phase.name, help=phase.status) for phase in known]


def effects(services: Services, context: click.Context) -> Iterable[CompletionItem]:
    """Return the effects of the run that the command line or the environment names."""
    run = services.repository.get(_run_id(context))
    known = run.effects.items() if run is not None else ()
    return [CompletionItem(key, help=effect["status"]) for key, effect in known]


def queues(services: Services, _context: click.Context) -> Iterable[CompletionItem]:
    """Return the queues that are declared."""
    from tachograph.queue_plans import plan_of

    return [CompletionItem(name) for name in plan_of(services).plan.queues]


def jobs(services: Services, _context: click.Context) -> Iterable[CompletionItem]:
    """Yield the newest jobs with their types and queues."""
    from tachograph.queuekeeping import queues_of

    repository = queues_of(services).repository
    topics = ("queue.job-enqueued",)
    for record in services.log.read(topics=topics, reverse=True, limit=NEWEST):
        fields = repository.fields(record)
        what = f"{fields['type']} in {fields['queue']}" if "type" in fields else "erased"
        yield CompletionItem(str(record.stream), help=what)


def _run_id(context: click.Context) -> str:
    return str(context.params.get("run") or os.environ.get("TACHO_RUN_ID", ""))


SOURCES: dict[str, Callable[[Services, click.Context], Iterable[CompletionItem]]] = {
    "run": runs,
    "command": commands,
    "phase": phases,
    "effect": effects,
    "queue": queues,
    "job": jobs,
}
