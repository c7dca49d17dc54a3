"""What a watchdog needs of the store and the machine. `lookout` implements it.

This port is an inner seam of Tachograph and may change in any release.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from tachograph.domain.ages import Moment
    from tachograph.domain.liveness import Liveness
    from tachograph.domain.run import Run
    from tachograph.planning import Planner
    from tachograph.projections.watch_list import WatchListView
    from tachograph.resuming import Dispatcher
    from tachograph.session import Session

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

        def sharing(self, run: Run) -> list[str]:
            """Return the other runs that count on a process which would be stopped with a run."""
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
