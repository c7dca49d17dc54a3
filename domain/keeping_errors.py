"""What is refused around the runs: archives, files, adapters, timers, what a project declares."""

from __future__ import annotations

from tachograph.domain.errors import (
    MalformedValueError,
    RefusalError,
    StoreError,
    StoreFullError,
    TachographError,
)


class UnregisteredTypeError(MalformedValueError):
    """Bytes hold a value of a custom type whose name nobody registered."""

    template = (
        "The stored value has the custom type {0!r}, which is not registered. "
        "Register the transcoding that wrote it before reading."
    )


class ImportRefusedError(StoreError):
    """An export file cannot be imported."""

    template = (
        "{0} cannot be imported: line {1} {2}. Nothing was written. "
        "Export again with `tacho store export`, or use another copy of the file."
    )


class OtherEventsError(StoreError):
    """An export file and a store do not have the same beginning."""

    template = (
        "The store at {0} cannot take {1}: {2}. Nothing was written. "
        "Import into a new store: name a new folder with --store."
    )


class InvalidAnchorError(TachographError, ValueError):
    """The text is no anchor."""

    template = (
        "{0!r} is no anchor. Write POSITION:DIGEST as `tacho store info` prints it: a whole "
        "number, a colon, and 64 hexadecimal digits."
    )


class PolicyError(TachographError, ValueError):
    """A gate policy cannot be used."""

    template = "The gate policy {0} cannot be used: {1}."


class ProcessNotFoundError(TachographError):
    """There is no process of this pid."""

    template = (
        "There is no process {0}. Name the process that does the work, or start the run "
        "with --unowned."
    )


# Bodies that leave the log.


class BodyLostError(StoreError):
    """The archive that holds the body of an event cannot give it back."""

    template = (
        "The body of {2} is lost: its archive {0} {1}. Put that file back from a backup; all "
        "events outside it stay readable. `tacho store verify` lists everything it held."
    )


class BodiesStayError(RefusalError):
    """The bodies of a run's events may not leave the log."""

    template = "The bodies of run {0} stay where they are: {1}."


class ErasureNoRoomError(StoreFullError):
    """A run is erased in the log, and there is no room to write its files anew."""

    template = (
        "{2} is erased in the log of the store at {0}, and bytes of it are still in its files: "
        "there is no room to write them anew ({1}). Free space and give the same command again: "
        "it does the rest."
    )


class ErasureUnfinishedError(StoreError):
    """A run is erased in the log, and some file that holds bytes of it could not be changed."""

    template = (
        "{2} is erased in the log of the store at {0}, and bytes of it are still in its files: "
        "{1}. Mend that and give the same command again: it does the rest."
    )


class ErasurePendingError(TachographError):
    """What is being erased is still there in part: no copy may be made of it."""

    template = (
        "The erasing of {1} in the store {0} was begun and not finished, so that a copy would "
        "hold what was erased. Finish it first: `tacho store erase {1.shell} --reason … --apply`."
    )


# Anchors and their signatures.


class AnchorFileError(TachographError):
    """A file of anchors cannot be written."""

    template = "No anchor was appended to {0}: {1}. Name a file in a folder that can be written."


class SigningUnavailableError(TachographError):
    """What signs is not installed."""

    template = (
        "Signing needs the package {0}, which is not installed: "
        "`pip install 'tachograph[signing]'`."
    )


class SigningKeyError(TachographError, ValueError):
    """A file holds no key that signs or checks anchors."""

    template = "{0} cannot be used as a key: {1}."


# Archives and the files of runs.


class ArchiveDamagedError(TachographError):
    """An archive is not what was written, or is none."""

    template = (
        "{0} cannot be trusted as an archive: {1}. Use another copy of it; "
        "`tacho run archive --check` says which of its members are whole."
    )


class FileChangedError(TachographError):
    """A file changed while it was copied."""

    template = "{0} changed while it was copied: {1}. Nothing was kept; run it again."


class RunUnfinishedError(RefusalError):
    """The run may still go on."""

    template = (
        "Run {0} is unfinished ({1}): it may go on, and an archive of it would be old then. "
        "End it with `tacho run cancel` or `tacho run expire`, or archive it with --force."
    )


# Files that are made from the log.


class ArtifactFolderError(TachographError):
    """The folder of artifact files cannot be used."""

    template = (
        "The artifact files cannot be read or written: {0}: {1}. Correct that, or name another "
        "folder with --write or the setting `artifacts`."
    )


class ArtifactsTakenError(TachographError):
    """The folder holds the files of another run of the same id."""

    template = (
        "{0} is of another run ({1}), and is left as it is. Name another folder with --write or "
        "the setting `artifacts`."
    )


# Adapters: what takes a run up again.


class PageUnwritableError(TachographError):
    """A page cannot be written where it was asked for."""

    template = "{0} cannot be written: {1}. Name another file, or - for stdout."


class AdapterNotFoundError(TachographError):
    """There is no adapter of this name."""

    template = (
        "There is no adapter {0!r}: looked for {1}. Name a function as package.module:function, "
        "an entry point of the group tachograph.adapters, or the path of a program."
    )


class AdapterUnusableError(TachographError):
    """The adapter is there but cannot be run."""

    template = "Adapter {0!r} cannot be used: {1}."


# The project's file: what is declared in tachograph.toml.


class ProjectFileError(TachographError, ValueError):
    """The project's file says something that makes no sense."""

    template = "{0}: {1} Correct it there."


class ProjectFileNotFoundError(TachographError):
    """There is no tachograph.toml."""

    template = (
        "There is no {0}: looked {1}. Make one (examples/maintenance/tachograph.toml shows how), "
        "or name it with --config or TACHO_CONFIG."
    )


class PlanError(TachographError, ValueError):
    """The declared maintenance steps cannot be."""


class MaintenanceStepNotFoundError(TachographError, LookupError):
    """There is no maintenance step of this name."""

    template = "There is no maintenance step {0!r}.{1} There are: {2}."


class ScheduleNotFoundError(TachographError, LookupError):
    """There is no schedule of this name."""

    template = "There is no schedule {0!r} in {1}. There are: {2}."


class ScheduleError(TachographError, ValueError):
    """A schedule cannot be."""

    template = "Schedule {0!r}: {1}."


class SchedulesUnavailableError(TachographError):
    """The machine offers no way to call what is scheduled."""

    template = (
        "Schedules cannot be installed with {0}: {1}. Have the commands that `tacho cron install` "
        "shows called by whatever you have."
    )


# Timers: what the machine calls the watchdog with.


class TimerUnavailableError(TachographError):
    """The machine offers no way to call the watchdog."""

    template = (
        "The watchdog cannot be installed with {0}: {1}. Have this called by whatever you have, "
        "about every {2}: {3}"
    )


class TimerCommandError(TachographError):
    """A program that installs timers failed."""

    template = "`{0}` failed with exit code {1}: {2}. Correct that and try again."
