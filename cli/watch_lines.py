"""How a watchdog tells people and tools what it found: on the screen, to sinks, to a ping URL."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.watch_options import webhook_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.infra.sinks import Sink
    from tachograph.signals import Report


class Messenger:
    """Tells what a watchdog found. A dry run is told on the screen alone."""

    def __init__(self, services: Services, params: Params, out: Output) -> None:
        self._services = services
        self._out = out
        self._quiet = params.dry_run
        self._ping_url = None if params.dry_run else params.ping
        self._sinks = [] if params.dry_run else _sinks(params)
        self._command = params.command
        self._since = services.log.head().position if self._sinks else 0
        """From where a sink hears that was never told anything."""
        self._told: set[tuple[object, ...]] = set()

    def begin(self) -> None:
        """Report that a look begins."""
        self._ping("start", "")

    def failed(self, error: BaseException) -> None:
        """Report that a look failed."""
        self._ping("fail", f"{type(error).__name__}: {error}")

    def tell(self, report: Report, *, whole: bool) -> int:
        """Tell a report and return the exit code; without `whole`, only what is new of it."""
        if self._quiet:
            self._leave_out_what_was_told(report)
        self._print(report, whole=whole)
        if report.touched and not self._quiet:
            from tachograph.cli.task_cards import follow

            follow(self._services, report.touched, self._out)
        failures = self.announce()
        body = f"{report.running_count} running, {len(report.stale)} stale"
        self._ping("fail" if failures else "success", "\n".join([body, *failures]))
        return FAILURE if failures else OK

    def _leave_out_what_was_told(self, report: Report) -> None:
        """Tell each situation once in this process: a dry run notes nowhere that it was told."""
        for name in (*report.KINDS, "resumed", "expired"):
            told = getattr(report, name)
            told[:] = [each for each in told if self._is_new(name, each)]

    def _is_new(self, name: str, entry: dict[str, Any]) -> bool:
        said = (name, entry["task_id"], entry.get("id"), entry.get("epoch"), entry.get("action"))
        is_new = said not in self._told
        self._told.add(said)
        return is_new

    def _print(self, report: Report, *, whole: bool) -> None:
        if self._out.json:
            fields = report.to_fields()
            if whole:
                self._out.document(fields)
            else:
                self._out.document_line(fields)
            return
        for line in lines(report, whole=whole):
            self._out.line(line)

    def announce(self) -> list[str]:
        """Tell the sinks what they have not heard yet, and return what failed."""
        if not self._sinks:
            return []
        from tachograph.announcing import announce

        failed = announce(self._services, self._sinks, since=self._since, command=self._command)
        failures = [f"{each.sink}: {each.error} ({', '.join(each.signals)})" for each in failed]
        for failure in failures:
            self._out.warn(f"Signals were not delivered to {failure}; they are told again.")
        return failures

    def _ping(self, what: Literal["start", "success", "fail"], body: str) -> None:
        if self._ping_url is None:
            return
        from tachograph.infra.webhooks import ping

        failure = ping(self._ping_url, what, body)
        if failure is not None:
            self._out.warn(f"The ping was not delivered: {failure.error}")


def _sinks(params: Params) -> list[Sink]:
    """Return where signals go; nothing is imported where they go nowhere."""
    if (params.signal_file, params.signal_command, params.webhook) == (None, None, None):
        return []
    from tachograph.infra.sinks import make_sinks

    return make_sinks(
        file=params.signal_file,
        command=params.signal_command,
        webhook=params.webhook,
        webhook_secret=None if params.webhook is None else webhook_secret(params),
    )


def lines(report: Report, *, whole: bool) -> list[str]:
    """Return a report for people; without `whole` nothing but what is new."""
    found = [f"alert      {each['message']}" for each in report.alerts]
    found += [f"recovered  {each['message']}" for each in report.recoveries]
    found += [f"attention  {each['message']}" for each in report.needs_attention]
    found += [f"expired    {each['task_id']}: {each['reason']}" for each in report.expired]
    found += [_tried(each) for each in report.resumed if each["action"] != "resume"]
    if whole:
        found += [f"skipped    {each['task_id']}: {each['reason']}" for each in report.skipped]
        told = {(each["task_id"], each["code"]) for each in report.needs_attention}
        found += [
            f"still open {each['message']}"
            for each in report.active_needs_attention
            if (each["task_id"], each["code"]) not in told
        ]
        found.append(f"{report.running_count} at work, {len(report.stale)} without life.")
    return found


def _tried(each: dict[str, object]) -> str:
    if each.get("stops"):
        return f"would      stop the process of {each['task_id']}, and resume it"
    if each["action"] == "dry-run":
        return f"would      resume {each['task_id']} with: {each['command']}"
    why = each["error"] or "the run got no further"
    return f"{each['action']:<10} {each['task_id']}: {why}"
