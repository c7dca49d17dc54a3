"""What a queue refuses, one class per outcome a caller can act on."""

from __future__ import annotations

from tachograph.domain.errors import TachographError


class QueueError(TachographError):
    """A queue could not do what was asked."""


class UnknownQueueError(QueueError, LookupError):
    """No queue of this name is declared."""

    template = (
        "There is no queue {0!r}.{1} Declared are: {2}. Declare it in tachograph.toml with "
        "[queues.{0}], or name one of these."
    )


class JobNotFoundError(QueueError, LookupError):
    """There is no job of this id."""

    template = "There is no job {0!r}.{1} `tacho queue list` shows the jobs."


class AmbiguousJobError(QueueError, LookupError):
    """Several jobs have ids that begin so."""

    template = "{0!r} begins the ids of several jobs: {1}. Write more of the id."


class LeaseLostError(QueueError):
    """The lease is not this holder's any more: what it did is not recorded."""

    template = (
        "Job {0} is not leased to epoch {1} any more: {2}. What this holder did is not recorded; "
        "it has to stop."
    )


class JobStatusError(QueueError):
    """The job is not in a state in which this can be done."""

    template = "Job {0} is {1}: it cannot be {2}. {3}"


class KeyTakenError(QueueError):
    """Another job has the unique key."""

    template = (
        "Job {0} cannot wait again: job {1} has its key {2!r}. Cancel that one, or let it end."
    )


class PayloadError(QueueError, ValueError):
    """A payload is not what the model of its job type says."""

    template = "The payload of a {0!r} job for {1!r} is refused by {2}: {3}"


class TerminalJobError(QueueError):
    """Raised by a handler: no further attempt can help, the job is dead at once."""

    code = "terminal_error"


class RateLimitExceededError(TerminalJobError):
    """Raised by a handler: the provider refuses because of its rate limit."""

    code = "rate_limit_exceeded"


class ImmutableArtifactError(TerminalJobError):
    """Raised by a handler: what the job should write can never be changed."""

    code = "immutable_artifact"


class RetryLaterError(QueueError):
    """Raised by a handler: not now; with a number, that many seconds from now at the earliest."""

    template = "Not now: {0}"

    @property
    def seconds(self) -> float | None:
        """How long to wait at least, None where the handler named no time."""
        for each in self.args:
            if isinstance(each, int | float) and not isinstance(each, bool):
                return float(each)
        return None
