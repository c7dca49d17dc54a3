"""The one table of exit codes, and which error ends a command with which. Decides nothing else."""

from __future__ import annotations

OK = 0
FAILURE = 1
USAGE = 2
NOT_FOUND = 3
CORRUPT = 4
DIVERGED = 5
FENCED = 6
GATE_FAILED = 7
NEEDS_PERSON = 8
TRY_LATER = 75
INTERRUPTED = 130
BROKEN_PIPE = 141

MEANINGS = {
    OK: "ok",
    FAILURE: "failure",
    USAGE: "usage",
    NOT_FOUND: "not found, or ambiguous",
    CORRUPT: "the store is damaged",
    DIVERGED: "the replay diverged",
    FENCED: "fenced, or another process holds the lease",
    GATE_FAILED: "the semantic gate failed",
    NEEDS_PERSON: "needs a person",
    TRY_LATER: "try later",
    INTERRUPTED: "interrupted by Ctrl-C",
    BROKEN_PIPE: "the reader of the output went away",
}

# By name, so that no module is imported only to be compared with. The nearest class counts.
OF_ERRORS = {
    "TachographError": FAILURE,
    "ProjectFileNotFoundError": NOT_FOUND,
    "ScheduleNotFoundError": NOT_FOUND,
    "ScheduleError": USAGE,
    "UsageError": USAGE,
    "SettingError": USAGE,
    "PolicyError": USAGE,
    "AnchorFileError": USAGE,
    "StorePathError": USAGE,
    "InvalidAnchorError": USAGE,
    "InvalidIdError": USAGE,
    "InvalidTimeError": USAGE,
    "InvalidValueError": USAGE,
    "UnstorableValueError": USAGE,
    "SecretLeftError": USAGE,
    "RecordOutOfRangeError": USAGE,
    "StoreNotFoundError": NOT_FOUND,
    "RunNotFoundError": NOT_FOUND,
    "AmbiguousRunError": NOT_FOUND,
    "ProcessNotFoundError": NOT_FOUND,
    "StoreCorruptError": CORRUPT,
    "BlobMissingError": CORRUPT,
    "BodyLostError": CORRUPT,
    "SigningKeyError": USAGE,
    "ArchiveDamagedError": CORRUPT,
    "MalformedValueError": CORRUPT,
    "UnregisteredTypeError": FAILURE,
    "ReplayDivergedError": DIVERGED,
    "FencedError": FENCED,
    "RunOwnedError": FENCED,
    "EffectInDoubtError": NEEDS_PERSON,
    "PersonNeededError": NEEDS_PERSON,
    "ApprovalPendingError": NEEDS_PERSON,
    "AttemptRunningError": TRY_LATER,
    "EffectsRepeatedError": NEEDS_PERSON,
    "ForkPointError": NOT_FOUND,
    "DependenciesWaitingError": TRY_LATER,
    "UnknownQueueError": USAGE,
    "PayloadError": USAGE,
    "JobNotFoundError": NOT_FOUND,
    "AmbiguousJobError": NOT_FOUND,
    "LeaseLostError": FENCED,
    "RetryLaterError": TRY_LATER,
    "RepairDeniedError": NEEDS_PERSON,
    "CodeNotFoundError": NOT_FOUND,
    "HandlerUnusableError": USAGE,
    "HandlerTakenError": USAGE,
    "NoHandlersError": USAGE,
    "NotStoppableError": USAGE,
    "RepairWaitError": TRY_LATER,
    "TryLaterError": TRY_LATER,
    "InvalidSpanError": USAGE,
    "DependencyCycleError": USAGE,
    "AdapterNotFoundError": NOT_FOUND,
    "GateFailedError": GATE_FAILED,
    "VersionGapError": CORRUPT,
    "StoreBusyError": TRY_LATER,
    "StoreFullError": TRY_LATER,
    "VersionConflictError": TRY_LATER,
}


def of_error(error: BaseException) -> int:
    """Return the exit code of a command that ended with this error.

    >>> of_error(KeyboardInterrupt()), of_error(ZeroDivisionError())
    (130, 1)
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    for base in type(error).__mro__:
        if base.__name__ in OF_ERRORS:
            return OF_ERRORS[base.__name__]
    return FAILURE
