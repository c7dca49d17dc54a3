"""What the drop-in refuses besides what a run refuses."""

from __future__ import annotations

from tachograph.domain.errors import RefusalError, TachographError


class TaskNotFoundError(TachographError):
    """There is no task of this id."""

    template = "task not found: {0}"


class TaskNotImportedError(TachographError):
    """There is a card of this id, and it is not in the ledger."""

    template = (
        "The card of {0} is not in the ledger yet, and {1} cannot be taken over: {2}. "
        "Mend the file, then run `tacho workspace import`."
    )


class TaskExistsError(RefusalError):
    """A task of this id is not finished."""

    template = (
        "Task {0} exists already and is {1}: nothing was changed, and its history is kept. "
        "Go on with it, give another --task-id, or end it first (`tacho run cancel {2}`)."
    )


class TaskAlikeError(RefusalError):
    """Two different ids would have the same card."""

    template = (
        "{0!r} and {1!r} both become the task id {2}. Give another --task-id: "
        "two tasks never share a card."
    )


class TaskFinishedError(RefusalError):
    """The task is over, and final is final."""

    template = (
        "Task {0} is finished ({1}); nothing moves it any more. "
        "Create a new one: the same --task-id begins its next execution."
    )


class PairError(TachographError, ValueError):
    """An artifact or a meta value is no pair."""

    template = "{0} in {1!r}: write key=value."
