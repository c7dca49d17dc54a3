"""Gather the facts that a doctor judges. Like bootstrap it knows use cases and infra.

It changes nothing but what any reader does: stale reader slots are freed, views catch up.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from tachograph import bodykeeping, diagnosing, erasurekeeping, looking, projecting, reading
from tachograph.bootstrap import find, open_store
from tachograph.diagnosing import FAIL, OK, WARN, Check
from tachograph.domain.errors import SettingError, StoreError, StorePathError, TachographError
from tachograph.domain.health import HEALTHY, UNHEALTHY
from tachograph.infra import clock, filesystems, settings, store_folder
from tachograph.infra.store_files import StoreFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.domain.health import Health

PACKAGES = ("tachograph", "lmdb", "msgpack", "eventsourcing", "click", "pydantic")
LONGEST_ERROR = 160
"""Characters of an error that are shown."""
PAGE_CHECK_BYTES = 256 * 2**20
"""A larger log is not read through page by page here: that is what `store verify` is for."""


def examine(store: str | None) -> Iterator[Check]:
    """Yield a check for everything that can be looked at; a missing store ends it early."""
    yield diagnosing.python(sys.version_info[:3], _packages())
    try:
        folder, origin = find(store)
    except StorePathError as error:
        yield Check("store", FAIL, str(error), "Name another folder with --store or TACHO_STORE.")
        return
    yield _settings(folder)
    if not store_folder.is_store(folder):
        found = f"{folder} ({origin}) is not there yet"
        yield Check("store", WARN, found, "`tacho run start` or `tachograph.record` makes it.")
        return
    try:
        store_folder.check_format(folder)
    except StoreError as error:
        yield Check("store", FAIL, str(error))
        return
    yield Check("store", OK, f"{folder} ({origin})")
    yield from _folder(folder)
    yield from _log(folder)


def _packages() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "of a checkout"
    return found


def _settings(folder: str) -> Check:
    try:
        found = settings.resolve(folder, os.environ)
    except SettingError as error:
        return Check("settings", FAIL, str(error), "`tacho config path` names the files.")
    own = [name for name, origin in found.origins.items() if origin != "default"]
    return Check("settings", OK, f"set: {', '.join(own)}" if own else "all by default")


def _folder(folder: str) -> Iterator[Check]:
    files = StoreFiles(folder)
    kind = filesystems.type_of(folder)
    network = kind in filesystems.NETWORK_TYPES
    allowed = os.environ.get(filesystems.ALLOW_VARIABLE) == "1"
    yield diagnosing.file_system(folder, kind, network=network, allowed=allowed)
    writable = store_folder.is_writable(folder)
    advice = None if writable else "Change its permissions: nothing can be recorded in it."
    yield Check("writable", OK if writable else FAIL, "yes" if writable else "no", advice)
    yield diagnosing.room(files.free_bytes(), sum(files.sizes().values()))
    yield diagnosing.leftovers(files.leftovers())


def _log(folder: str) -> Iterator[Check]:
    files = StoreFiles(folder)
    if not files.has_log():
        advice = "If it held runs, restore it from a backup; the next run makes a new log."
        yield Check("log", FAIL, f"there is none in {folder}", advice)
        return
    try:
        if files.data_bytes() <= PAGE_CHECK_BYTES:
            pages = diagnosing.pages(files.damage())
            yield pages
            if pages.state == FAIL:
                return  # to open a damaged file can kill this process
        services = open_store(folder, read_only=not store_folder.is_writable(folder))
    except (TachographError, OSError) as error:
        yield Check("log", FAIL, str(error))
        return
    try:
        yield from _services(services)
    finally:
        services.close()


def _services(services: Services) -> Iterator[Check]:
    environment = services.environment
    newest = services.log.read(limit=1, reverse=True)
    yield Check("log", OK, f"{services.log.head().position} events")
    cleared = environment.clear_stale_readers()
    last = environment.last_transaction()
    behind = [(pid, last - txn) for pid, txn in environment.readers()]
    yield diagnosing.readers(cleared, behind)
    yield diagnosing.clock(clock.now_us(), newest[0].time_us if newest else None)
    yield diagnosing.archives(*bodykeeping.quick_look(services))
    yield diagnosing.erasing(
        erasurekeeping.pending(services.folder),
        [each.detail for each in erasurekeeping.problems(services.folder, services.log)],
    )
    yield from _views(services)


def _views(services: Services) -> Iterator[Check]:
    stopped: list[str] = []
    try:
        lag = projecting.lag(services.log, services.views())
        judge = looking.judge_of(services)
        runs = looking.ask(
            services,
            lambda view: reading.list_runs(view, judge, statuses=(reading.INTERRUPTED,)),
            report=lambda error: stopped.append(str(error)),
        )
    except StoreError as error:
        yield Check("views", FAIL, str(error))
        return
    yield diagnosing.views(lag, stopped[0] if stopped else None)
    yield diagnosing.interrupted([run["id"] for run in runs])
    yield from _health(services)


def _health(services: Services) -> Iterator[Check]:
    from tachograph.health.diagnosing import diagnose
    from tachograph.healthkeeping import HealthKeeping
    from tachograph.queue_plans import plan_of

    try:
        keeping = HealthKeeping(services, plan_of(services))
    except TachographError as error:  # the project's file makes no sense
        yield Check("health", FAIL, str(error), "Correct it: the health of queues depends on it.")
        return
    health = diagnose(keeping.domains(), services.actor.now_us())
    bad = [domain.name for domain in health.domains if domain.status == health.status]
    found = f"{health.status}, score {health.score:.2f}"
    if health.status == HEALTHY:
        yield Check("health", OK, found)
    else:
        state = FAIL if health.status == UNHEALTHY else WARN
        advice = "`tacho maintenance diagnose` shows each rule that is broken."
        yield Check("health", state, f"{found}: {', '.join(bad)}", advice)
    yield _dead_jobs(health)


def _dead_jobs(health: Health) -> Check:
    """Judge jobs that nobody will do: within the thresholds of their queues, and beyond."""
    queues = health.fact("queue", "queues", {})
    dead = {name: counts for name, counts in queues.items() if counts["dead"]}
    if not dead:
        return Check("dead_jobs_backlog", OK, "none")
    domain = health.domain("queue")
    rules = {penalty.rule for penalty in domain.penalties} if domain is not None else set()
    number = sum(counts["dead"] for counts in dead.values())
    each = ", ".join(f"{counts['dead']} {name}" for name, counts in dead.items())
    errors = [str(counts["lastError"]) for counts in dead.values() if counts["lastError"]]
    said = f" Last error: {errors[0][:LONGEST_ERROR]}" if errors else ""
    found = f"{number} permanently dead job(s) ({each}).{said}"
    advice = (
        "`tacho queue requeue --apply --reason …` once it can go well, else `tacho queue cancel`."
    )
    state = FAIL if rules & {"queue.dead", "queue.oldest-dead"} else WARN
    return Check("dead_jobs_backlog", state, found, advice)
