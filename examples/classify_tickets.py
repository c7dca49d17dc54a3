"""An agent job: ask a model about tickets in batches, fall back, retry, and be judged truthfully.

Run it twice: the first time the provider fails in the middle; the second time it goes on there.

    python examples/classify_tickets.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import tachograph

TICKETS = [f"ticket {number}: the export is slow" for number in range(12)]
OUTAGE = Path("provider-is-down")


def ask(model: str, tickets: list[str]) -> list[dict[str, str]]:
    """Stand in for a model: answers, unless it has an outage or is the small one's bad day."""
    if OUTAGE.exists() and "ticket 6" in tickets[0]:
        OUTAGE.unlink()
        raise ConnectionError("provider unavailable")
    if model == "large" and "ticket 3" in tickets[0]:
        raise TimeoutError("no answer in 60 s")
    return [{"ticket": ticket, "label": "performance"} for ticket in tickets]


def classify(run: tachograph.Recording, tickets: list[str]) -> list[dict[str, str]]:
    """Ask the large model, then the small one."""
    try:
        return ask("large", tickets)
    except TimeoutError as error:
        run.retry("transient", 1, error=error, model="large")
        run.fallback("large", "small", "the large model timed out")
        return ask("small", tickets)


def main() -> int:
    """Run the job and print what came of it."""
    policy = {"model": "large", "fallbacks": ["small"]}
    inputs = {"tickets": TICKETS}
    with tachograph.record("classify-tickets", inputs, model_policy=policy) as run:
        with run.phase("classify") as phase:
            for batch in phase.batches(TICKETS, size=3):
                batch.complete(classify(run, list(batch.items)))
        labels = run.outputs("classify")
        outcome = run.judge(inputs=len(TICKETS), outputs=len(labels))
        run.effect("publish", print, f"{len(labels)} labels, attempt {run.epoch}: {outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
