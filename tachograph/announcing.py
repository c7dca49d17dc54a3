"""Tell the signals of a store to whoever wants to hear them: each at least once, in order.

Like bootstrap it knows both sides. A receiver that fails hears at the next look what it missed,
whoever looks then; it keeps no other one waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.infra.sinks import deliver
from tachograph.infra.told import Told
from tachograph.news import news

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.bootstrap import Services
    from tachograph.infra.sinks import Sink, SinkFailure

KEPT_US = 24 * 3600 * 1_000_000
"""How long a signal that a receiver does not take is told again; one that is refused for good
must not keep later ones back for ever."""


def announce(
    services: Services, sinks: Sequence[Sink], *, since: int, command: str | None = None
) -> list[SinkFailure]:
    """Tell every sink what it has not heard yet, and return what failed.

    `since` is the position from which a sink hears that was never told anything. Watchdogs that
    run at the same time take turns.
    """
    told = Told(services.folder)
    failures: list[SinkFailure] = []
    with told.lock():
        head = services.log.head().position
        for sink in sinks:
            heard = told.position(sink.receiver)
            after = since if heard is None else heard
            fresh = list(news(services.repository, after=after, up_to=head, command=command))
            failed = deliver([each.signal for each in fresh], [sink])
            failures += failed
            missed = {signal for failure in failed for signal in failure.signals}
            now_us = services.actor.now_us()
            again = [
                each.position
                for each in fresh
                if each.signal["id"] in missed and now_us - each.time_us < KEPT_US
            ]
            reached = min(again) - 1 if again else head
            if reached != heard:
                told.keep(sink.receiver, reached)
    return failures
