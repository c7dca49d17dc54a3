"""What is recorded of the files that a run has left: also when it is over."""

from __future__ import annotations

from tachograph.domain import checks, events
from tachograph.domain.run_rules import RunRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.domain.event import Cause


class TraceCommands(RunRules):
    """What may be recorded of a finished run too, since it moves nothing."""

    def record_files_removed(
        self,
        cause: Cause,
        what: str,
        paths: Sequence[str],
        size: int,
        rule: str,
        *,
        reason: str | None = None,
    ) -> None:
        """Record that files of the run are removed, before they are.

        `what` they are, such as `checkpoint`; `size` is in bytes; `rule` is the id of the rule
        of retention that says so, `reason` is a person's. No paths record nothing.
        """
        self._not_superseded(cause)
        checks.text("what was removed", what)
        checks.text("rule", rule)
        checks.whole("size", size, 0)
        if reason is not None:
            checks.text("reason", reason)
        for path in paths:
            checks.text("path", path)
        if paths:
            self._record(
                events.FilesRemoved,
                cause,
                what=what,
                paths=list(paths),
                size=size,
                rule=rule,
                reason=reason,
            )
