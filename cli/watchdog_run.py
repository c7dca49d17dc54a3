"""`tacho watchdog run`: look after runs: who is gone, who is silent, who needs a person."""

from __future__ import annotations

from tachograph.cli.opening import open_store
from tachograph.cli.options import Option, Spec, UsageError, flag
from tachograph.cli.watch_options import WATCHING, anchor_us, check_jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.cli.watch_lines import Messenger
    from tachograph.signals import Report
    from tachograph.watching import Orders

SPEC = Spec(
    "Look after runs: notice who is gone, resume what may be resumed, call a person.",
    flag("--once", "Look once, wait for the resumes, and end."),
    flag("--no-wait", "With --once: leave resumes to a process that tells on stderr of them."),
    Option("--interval", "Time between looks, until Ctrl-C.", metavar="SPAN"),
    flag("--dry-run", "Say what would be done; write nothing, send nothing."),
    *WATCHING,
    details="""A run whose owner is gone is found at once, one whose owner lives and records
nothing after its --stale-after. Signals are given once for each situation: alerts, recoveries
(only when the run got further) and needs_attention. What is still open is repeated in
active_needs_attention. With --anchor-file, where the log ends is kept outside it: `tacho store
verify --anchor FILE` then tells whether the log was shortened or replaced.

\b
  tacho watchdog run --interval 60s --auto-resume
  tacho watchdog install --interval 60 --auto-resume""",
)

INTERVAL = "60s"


def run(params: Params, out: Output) -> int:
    """Look once, or again and again."""
    if params.once and params.interval is not None:
        raise UsageError("--once and --interval exclude each other.")
    if params.no_wait and not params.once:
        raise UsageError("--no-wait goes with --once.")
    check_jobs(params)
    anchor_us(params)
    orders = _orders(params)
    if params.once or (params.dry_run and params.interval is None):
        return _once(params, orders, out)
    from tachograph.cli.watching import forever

    return forever(params, orders, _seconds(params.interval or INTERVAL, "--interval"), out)


def _orders(params: Params) -> Orders:
    from tachograph.cli.recoveries import timeout_of
    from tachograph.watching import Orders

    return Orders(
        auto_resume=params.auto_resume,
        record=not params.dry_run,
        command=params.command,
        timeout_seconds=timeout_of(params),
    )


def _seconds(text: str, what: str) -> float:
    from tachograph.infra.clock import parse_span

    seconds = parse_span(text) / 1_000_000
    if seconds <= 0:
        raise UsageError(f"{what} is {text}: give a time above 0.")
    return seconds


def _once(params: Params, orders: Orders, out: Output) -> int:
    from tachograph.cli.watch_lines import Messenger
    from tachograph.lookout import Lookout
    from tachograph.signals import Report
    from tachograph.watching import Watchdog

    services = open_store(out, read_only=params.dry_run)
    messenger = Messenger(services, params, out)
    around = Lookout(services)
    crew = _Crew(params.jobs)
    watchdog = Watchdog(around, orders, crew.spawn)
    messenger.begin()
    report: Report = Report(services.actor.now_us())
    try:
        watchdog.tick(report)
        if crew.has_work and not params.no_wait:
            messenger.announce()  # an alert does not wait for a resume that takes hours
            crew.wait()
        watchdog.count(report)
    except BaseException as error:
        messenger.failed(error)
        raise
    code = messenger.tell(report.take(), whole=True)
    keep_files(services, params, out)
    if params.anchor_file is not None:
        from tachograph.cli.watch_anchor import keep

        code = max(code, keep(services, params, out))
    if crew.has_work:
        from tachograph.infra.background import in_background

        in_background(lambda: _finish(services, crew, report, messenger))
    return code


def keep_files(services: Services, params: Params, out: Output) -> None:
    """Bring the artifact files up to the log, where the settings want them; tell what is wrong."""
    if services.settings.artifacts_folder is None or params.dry_run:
        return
    from tachograph.artifact_trees import configured, look_after

    found = configured(services)
    for text in () if found is None else look_after(found, services):
        out.warn(f"tacho: {text}")


def _finish(services: Services, crew: _Crew, report: Report, messenger: Messenger) -> None:
    """Resume what is to be resumed, and tell what came of it, in a process of its own."""
    import os

    services.actor.pid = os.getpid()
    crew.wait()
    messenger.tell(report.take(), whole=False)


class _Crew:
    """Runs resumes: at once where there is one, side by side where there are several."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: list[tuple[str, Callable[[], None]]] = []

    def spawn(self, run_id: str, work: Callable[[], None]) -> bool:
        """Take a resume on; there is always room."""
        self._waiting.append((run_id, work))
        return True

    @property
    def has_work(self) -> bool:
        """Whether something was taken on and not done yet."""
        return bool(self._waiting)

    def wait(self) -> None:
        """Do all that was taken on, and return when it is done."""
        waiting, self._waiting = self._waiting, []
        if len(waiting) < 2:
            for _, work in waiting:
                work()
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._size) as pool:
            for future in [pool.submit(work) for _, work in waiting]:
                future.result()
