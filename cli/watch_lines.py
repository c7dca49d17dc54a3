"""How a watchdog tells people and tools what it found: on the screen, to sinks, to a ping URL."""

from __future__ import annotations

import os

from tachograph.cli.exit_codes import FAILURE, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.signals import Report

SECRET = "TACHO_WEBHOOK_SECRET"  # noqa: S105  # the name of the variable that holds it


class Messenger:
    """Tells what a watchdog found. A dry run is told on the screen alone."""

    def __init__(self, services: Services, params: Params, out: Output) -> None:
        self._services = services
        self._out = out
        self._quiet = params.dry_run
        self._ping_url = None if params.dry_run else params.ping
        self._file = params.signal_file
        self._command = params.signal_command
        self._webhook = params.webhook

    def begin(self) -> None:
        """Report that a look begins."""
        self._ping("start", "")

    def failed(self, error: BaseException) -> None:
        """Report that a look failed."""
        self._ping("fail", f"{type(error).__name__}: {error}")

    def tell(self, report: Report, *, whole: bool) -> int:
        """Tell a report and return the exit code; without `whole`, only what is new of it."""
        self._print(report, whole=whole)
        if report.touched and not self._quiet:
            from tachograph.cli.task_cards import follow

            follow(self._services, report.touched, self._out)
        failures = self._send(report)
        for failure in failures:
            self._out.warn(f"Signals were not delivered to {failure}")
        body = f"{report.running_count} running, {len(report.stale)} stale"
        self._ping("fail" if failures else "success", "\n".join([body, *failures]))
        return FAILURE if failures else OK

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

    def _send(self, report: Report) -> list[str]:
        signals = [] if self._quiet else report.signals
        if not signals:
            return []
        from tachograph.infra.sinks import deliver, make_sinks

        sinks = make_sinks(
            file=self._file,
            command=self._command,
            webhook=self._webhook,
            webhook_secret=os.environ.get(SECRET) or None,
        )
        return [
            f"{each.sink}: {each.error} ({', '.join(each.signals)})"
            for each in deliver(signals, sinks)
        ]

    def _ping(self, what: Literal["start", "success", "fail"], body: str) -> None:
        if self._ping_url is None:
            return
        from tachograph.infra.webhooks import ping

        failure = ping(self._ping_url, what, body)
        if failure is not None:
            self._out.warn(f"The ping was not delivered: {failure.error}")


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
    if each["action"] == "dry-run":
        return f"would      resume {each['task_id']} with: {each['command']}"
    why = each["error"] or "the run got no further"
    return f"{each['action']:<10} {each['task_id']}: {why}"
