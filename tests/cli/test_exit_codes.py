"""Every error has an exit code on purpose, and each code is in the one table."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tachograph.domain
from tachograph.cli import exit_codes
from tachograph.cli.options import UsageError
from tachograph.domain import errors

# Errors that say no more than "it did not work": exit code 1 is meant.
PLAIN_FAILURES = {
    "ImmutableArtifactError",
    "JobStatusError",
    "KeyTakenError",
    "QueueError",
    "RateLimitExceededError",
    "RepairError",
    "TerminalJobError",
    "ArtifactFolderError",
    "ArtifactsTakenError",
    "BodiesStayError",
    "ErasurePendingError",
    "ErasureUnfinishedError",
    "FileChangedError",
    "ForkRefusedError",
    "RunExistsError",
    "GuardWithheldError",
    "MaintenanceStepNotFoundError",
    "PlanError",
    "ProjectFileError",
    "SchedulesUnavailableError",
    "StepUnplannedError",
    "SigningUnavailableError",
    "RunUnfinishedError",
    "NotResumableError",
    "PlanChangedError",
    "AdapterUnusableError",
    "PageUnwritableError",
    "TimerCommandError",
    "TimerUnavailableError",
    "StoreFailedError",
    "ApprovalError",
    "BatchCompletedError",
    "BatchesOpenError",
    "BatchRangeError",
    "CommandChangedError",
    "EffectDoneError",
    "EffectUnknownError",
    "ImportRefusedError",
    "InputsChangedError",
    "NetworkFileSystemError",
    "OtherEventsError",
    "PhaseEndedError",
    "PhaseNotOpenError",
    "PhaseOpenError",
    "PhasesOpenError",
    "RefusalError",
    "RunFinishedError",
    "StepDoneError",
    "StoreClosedError",
    "StoreError",
    "StoreExistsError",
    "StoreFormatError",
    "StoreReadOnlyError",
    "StoredNameError",
    "TrackingConflictError",
    "UnknownEventTypeError",
    "UnregisteredTypeError",
    "VerdictSameError",
}


def subclasses(base: type[BaseException]) -> set[type[BaseException]]:
    found = {base}
    for child in base.__subclasses__():
        found |= subclasses(child)
    return found


def every_error() -> dict[str, type[BaseException]]:
    """Return the error classes of the domain and of the command line by name."""
    for module in pkgutil.iter_modules(tachograph.domain.__path__):
        importlib.import_module(f"tachograph.domain.{module.name}")
    found = subclasses(errors.TachographError)
    prefixes = ("tachograph.domain", "tachograph.cli.options")
    return {cls.__name__: cls for cls in found if cls.__module__.startswith(prefixes)}


def test_every_error_has_a_code_or_is_a_plain_failure() -> None:
    bases_with_a_code = {
        name
        for name, cls in every_error().items()
        if any(base.__name__ in exit_codes.OF_ERRORS for base in cls.__mro__[:-1])
        and exit_codes.of_error(cls.__new__(cls)) != exit_codes.FAILURE
    }

    assert set(every_error()) - bases_with_a_code - {"TachographError"} == PLAIN_FAILURES & set(
        every_error()
    )


def test_every_name_in_the_table_is_an_error() -> None:
    assert set(exit_codes.OF_ERRORS) - set(every_error()) == set()


def test_every_code_has_a_meaning() -> None:
    named = {
        value for name, value in vars(exit_codes).items() if name.isupper() and type(value) is int
    }

    assert named == set(exit_codes.MEANINGS)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("odd"), 2),
        (errors.RunNotFoundError("job-a", ""), 3),
        (errors.StoreCorruptError("s", "bits"), 4),
        (errors.FencedError("job-a", 1, 2), 6),
        (errors.RunOwnedError("job-a", "process 7"), 6),
        (errors.EffectInDoubtError("job-a", "mail", 1), 8),
        (errors.StoreFullError("s", "full"), 75),
        (errors.RunFinishedError("job-a", "success"), 1),
        (ValueError("unexpected"), 1),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_an_error_ends_a_command_with_its_code(error: BaseException, code: int) -> None:
    assert exit_codes.of_error(error) == code
