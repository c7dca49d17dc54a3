"""Every refusal of Tachograph, one class per outcome a caller can act on."""

from __future__ import annotations


class TachographError(Exception):
    """Base class of every error that Tachograph raises on purpose.

    `str()` of an error says what happened, to what, and what to do next. The arguments stay in
    `args` and fill the class's `template`, so an error survives pickling.
    """

    template = "{0}"

    def __str__(self) -> str:
        if not self.args:
            return str(type(self).__doc__)
        shown = [_Text(each) if isinstance(each, str) else each for each in self.args]
        return self.template.format(*shown)


class _Text(str):
    """An argument that a template can show in a command too: `{0.shell}`."""

    __slots__ = ()

    @property
    def shell(self) -> str:
        """The text as a shell takes it."""
        from shlex import quote

        return quote(self)


# The store: what bytes, disks and other processes can do to a command.


class StoreError(TachographError):
    """The store could not do what was asked."""


class StoreNotFoundError(StoreError):
    """There is no store at this path."""

    template = (
        "There is no Tachograph store at {0}. Name one with --store or TACHO_STORE; "
        "`tacho run start` and `tachograph.record` create it."
    )


class StoreExistsError(StoreError):
    """Something is already in the place where a store, backup or export should go."""

    template = "{0} already exists and is not empty. Name a new folder or file."


class StoreReadOnlyError(StoreError):
    """The store folder cannot be written."""

    template = (
        "The store at {0} cannot be written: {1}. "
        "Change its permissions, or name another store with --store or TACHO_STORE."
    )


class StoreFormatError(StoreError):
    """The store was written by a newer Tachograph."""

    template = (
        "The store at {0} has format {1}; this Tachograph reads up to {2}. "
        "Update Tachograph. Nothing was changed."
    )


class StoreCorruptError(StoreError):
    """Bytes of the store are damaged."""

    template = (
        "The store at {0} is damaged: {1}. "
        "Run `tacho store verify` to list the damage, and restore from a backup."
    )


class StoreFullError(StoreError):
    """The disk or the memory map is full; everything acknowledged stays readable."""

    template = (
        "No room to write to the store at {0}: {1}. Nothing of this command was recorded; "
        "everything recorded before is safe. Free space and run it again."
    )


class NetworkFileSystemError(StoreError):
    """LMDB must not be used on a network file system."""

    template = (
        "{0} is on a network file system ({1}), where LMDB may lose or damage data. "
        "Use a local disk with --store or TACHO_STORE, or set TACHO_ALLOW_NETWORK_FS=1 "
        "to take the risk."
    )


class StoreBusyError(StoreError):
    """Another process holds the store open or a lock on it."""

    template = "The store at {0} is in use: {1}. Wait for it to end, then run again."


class BlobMissingError(StoreError):
    """A payload that an event refers to is not in the blob folder, or is damaged."""

    template = (
        "The payload {0} is {1}. Run `tacho store verify` to see which events need it, "
        "and restore the blobs folder from a backup."
    )


class VersionConflictError(StoreError):
    """Another writer recorded an event at this version first."""

    template = (
        "Version {1} of stream {0!r} is already recorded: another writer was first. "
        "Load the stream again and decide again."
    )


class RecordOutOfRangeError(StoreError, ValueError):
    """A part of a record does not fit the stored layout. Nothing was written."""

    template = (
        "Stream {0!r} cannot take a record with {1}: the limit is {2}. "
        "Pass a whole number from 0 to the limit, or less data."
    )


class TrackingConflictError(StoreError):
    """A position of another log was already processed."""

    template = (
        "Position {1} of {0!r} is not after {2}, which is already processed. "
        "Do not process it again; read on from there."
    )


class StoredNameError(StoreError):
    """Two different names have the same stored key."""

    template = "{0!r} has the same stored key as {1!r}. Choose another name."


class StoreFailedError(StoreError):
    """The system or LMDB refused for a reason that there is no advice for."""

    template = "The store at {0} could not be used: {1}. Nothing of this command was recorded."


class StoreClosedError(StoreError):
    """The store was closed in this process."""

    template = "The store at {0} was closed. Open it again."


class VersionGapError(StoreError):
    """An event of a stream is missing, or a snapshot is of another version than it says."""

    template = (
        "Run {0} goes on at version {1} after version {2}: something between is missing. "
        "Run `tacho store verify` to see what, and restore from a backup."
    )


class UnstorableValueError(TachographError, TypeError):
    """A value has no exact stored form. Nothing was written."""

    template = (
        "{0} cannot be stored: {1} has no exact stored form. Pass plain values "
        "(None, bool, int, float, str, bytes, list, tuple, set, dict, datetime, UUID, Decimal), "
        "or register its type with tachograph.register_type."
    )


class MalformedValueError(TachographError, ValueError):
    """Bytes are not the stored form of any value."""

    template = (
        "These bytes are not a stored value: {0}. "
        "Run `tacho store verify` to see what is damaged, and restore it from a backup."
    )


class UnregisteredTypeError(MalformedValueError):
    """Bytes hold a value of a custom type whose name nobody registered."""

    template = (
        "The stored value has the custom type {0!r}, which is not registered. "
        "Register the transcoding that wrote it before reading."
    )


class SecretLeftError(TachographError, ValueError):
    """A known secret would be stored. Nothing was written."""

    template = (
        "{0} holds a known secret in a place where it cannot be redacted, such as inside a value "
        "of a custom type. Take it out before recording. Nothing was written."
    )


class UnknownEventTypeError(StoreError):
    """The log holds an event type that this version does not know."""

    template = (
        "Unknown event type {0!r} at {1}. It was written by a newer Tachograph or by another "
        "application: update Tachograph, or name the right store."
    )


class ReplayDivergedError(StoreError):
    """What is stored about a run is not what its events say."""

    template = (
        "Run {0} does not replay to what is stored: from version {1} on, {3} in its {2} is "
        "{4!r}, and the events say {5!r}. The events count: `tacho view rebuild` makes all views "
        "and snapshots anew; `tacho store verify` says whether the log is whole."
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


class StorePathError(StoreError):
    """A store cannot be at this path."""

    template = (
        "{0} cannot be a store: {1}. Name another folder with --store or TACHO_STORE; "
        "`tacho config show --origin` says where this one was named."
    )


# What people write, on the command line or in a configuration file.


class SettingError(TachographError, ValueError):
    """A setting is unknown or has a value that it cannot have."""

    template = "{0}: {1}. {2}"


class PolicyError(TachographError, ValueError):
    """A gate policy cannot be used."""

    template = "The gate policy {0} cannot be used: {1}."


class InvalidTimeError(TachographError, ValueError):
    """The text is not a time."""

    template = (
        "{0!r} is not a time: {1}. Write a date (2026-03-01, 2026-03-01T14:30, "
        "2026-03-01T14:30:00Z), seconds since 1970, `now`, or how long ago (3d, 2h30m, 90s)."
    )


class InvalidSpanError(TachographError, ValueError):
    """The text is no length of time."""

    template = (
        "{0!r} is no length of time: {1}. Write a number and a unit, such as 90s, 30m, 2h30m or "
        "7d; a number alone means seconds."
    )


class ProcessNotFoundError(TachographError):
    """There is no process of this pid."""

    template = (
        "There is no process {0}. Name the process that does the work, or start the run "
        "with --unowned."
    )


# Runs: what the rules of a run refuse. Nothing is recorded when one of these is raised.


class RefusalError(TachographError):
    """A rule of the run forbids this command. Nothing was recorded."""


class RunNotFoundError(RefusalError):
    """There is no run of this id."""

    template = "There is no run {0!r}.{1} `tacho run list` shows what there is."


class AmbiguousRunError(RefusalError):
    """Several runs start with this prefix."""

    template = "{0!r} fits several runs: {1}. Write more of the id."


class RunFinishedError(RefusalError):
    """The run is finished, and final is final."""

    template = (
        "Run {0} is finished ({1}); nothing moves it any more. Start the same command with the "
        "same inputs again to get a new run."
    )


class RunOwnedError(RefusalError):
    """A live process owns the run."""

    template = (
        "Run {0} is at work: {1}. Wait for it, or stop it with `tacho run cancel {0} --reason …`. "
        "To take it over all the same, give `tacho run start` or `tacho run resume` --takeover "
        "and --reason."
    )


class FencedError(RefusalError):
    """A newer attempt owns the run: this one may not write any more."""

    template = (
        "Attempt {1} of run {0} was superseded by attempt {2}; its writes are refused. "
        "Stop this process, or start the run again to take a new attempt."
    )


class NoAttemptError(FencedError):
    """Only an attempt may do this, and the caller belongs to none."""

    template = (
        "Only an attempt of run {0} may do this, and the caller belongs to none. "
        "Start one with `tacho run start`, or name yours with TACHO_EPOCH."
    )


class AttemptEndedError(FencedError):
    """The attempt has said how it ended; it may not write any more."""

    template = (
        "Attempt {1} of run {0} has ended ({2}) and may not write any more. "
        "Start the run again to take a new attempt."
    )


class InputsChangedError(RefusalError):
    """The id is taken by a run over other inputs."""

    template = (
        "{0} was recorded for other {1}. Use another id for the new ones, or give the same "
        "{1} to continue."
    )


class CommandChangedError(RefusalError):
    """The id is taken by a run of another command."""

    template = "Run {0} is a run of {1!r}, not of {2!r}. Use another id."


class PhaseNotOpenError(RefusalError):
    """The phase is not running."""

    template = "Phase {1!r} of run {0} is {2}. Start it first, and end it after its last batch."


class PhaseOpenError(RefusalError):
    """The phase is running already."""

    template = "Phase {1!r} of run {0} is running already. End it before you start it again."


class PhaseEndedError(RefusalError):
    """The phase has ended already."""

    template = "Phase {1!r} of run {0} has ended already ({2}). Start a phase of another name."


class BatchRangeError(RefusalError, ValueError):
    """The batch index is outside the plan."""

    template = "Batch {2} of phase {1!r} of run {0} is out of range: {3}."


class BatchCompletedError(RefusalError):
    """The batch is finished already."""

    template = "Batch {2} of phase {1!r} of run {0} is finished already. Go on with another one."


class BatchesOpenError(RefusalError):
    """Planned batches are not finished."""

    template = (
        "Phase {1!r} of run {0} has {2} unfinished batches ({3}). Finish them, or end the "
        "phase or run as failed or partial."
    )


class PhasesOpenError(RefusalError):
    """A run cannot end well while a phase is running."""

    template = "Run {0} has running phases: {1}. End them before the run finishes as {2}."


class EffectInDoubtError(RefusalError):
    """The side effect may have happened; the job does not say that repeating it is harmless."""

    template = (
        "Effect {1!r} of run {0} was begun in {2} and has no result: it may have "
        "happened. Look, then say so: `tacho run effect {1.shell} --run {0} --done --reason …`, "
        "or `--retry --reason …` to let it be done again."
    )


class GateFailedError(RefusalError):
    """The gate judged that the run failed; naming a good outcome does not change that."""

    template = (
        "Run {0} cannot finish as {3}: the gate judged {1} ({2}). Finish it without an outcome, "
        "or judge again with what the gate did not know, such as a declared reason."
    )


class AttemptRunningError(RefusalError):
    """The run is at work: its verdict is not made yet."""

    template = "Run {0} is in the middle of an attempt; wait until it has ended."


class VerdictSameError(RefusalError):
    """The other policy judges as the newest verdict does."""

    template = "The verdict of run {0} stays {1} (rule {2}); there is nothing to revise."


class EffectUnknownError(RefusalError):
    """An effect needs its intent before its result."""

    template = "Effect {1!r} of run {0} was never begun. Record the intent first."


class EffectDoneError(RefusalError):
    """The effect has its result already."""

    template = "Effect {1!r} of run {0} is done already. Its recorded result stands."


class StepDoneError(RefusalError):
    """The step has its result already."""

    template = "Step {1!r} of run {0} is done already. Its recorded result stands."


class GuardWithheldError(RefusalError):
    """A maintenance step that did not do its work may not count as done."""

    template = "Run {0}: maintenance step {1!r} ended as {2}, which leaves it due again."


class StepUnplannedError(RefusalError, ValueError):
    """A maintenance step is not in the plan of its run."""

    template = "Run {0} has no maintenance step {1!r} in its plan. Plan it first."


class ApprovalError(RefusalError):
    """The approval is unknown, decided, or for something else."""

    template = "Approval {1!r} of run {0} {2}."


class ApprovalPendingError(RefusalError):
    """A person has to agree before the run goes on."""

    template = (
        "Run {0} waits for approval of {1!r}. Decide with "
        "`tacho run approve {0} {1.shell} --reason …` or "
        "`tacho run reject {0} {1.shell} --reason …`, then resume it."
    )


class DependenciesWaitingError(RefusalError):
    """Runs that this one waits for have not ended well yet."""

    template = (
        "Run {0} waits for {1}. It can start when they have ended well: `tacho watchdog run "
        "--auto-resume` starts it then, or start it again yourself."
    )


class DependencyCycleError(RefusalError, ValueError):
    """A run would wait for itself."""

    template = "Run {0} cannot wait for {1}: that would be a cycle ({2}). Leave one of them out."


class NotResumableError(RefusalError):
    """The run cannot be resumed as things stand."""

    template = "Run {0} cannot be resumed: {1}. `tacho run plan {0}` shows all there is to know."


class PersonNeededError(NotResumableError):
    """A person has to decide before the run can be resumed."""

    template = "Run {0} needs a person before it can be resumed: {1}."


class TryLaterError(NotResumableError):
    """The run can be resumed later, without anybody doing anything."""

    template = "Run {0} cannot be resumed yet: {1}. Try again later."


class PlanChangedError(RefusalError):
    """What a resume would do is not what was agreed to."""

    template = (
        "The plan of run {0} is now {2}, not {1}: something has changed since. "
        "Look at `tacho run plan {0}` again."
    )


class RunExistsError(RefusalError):
    """The id of a new run is taken."""

    template = "There is a run {0} already. Choose another id, or leave it out to get a free one."


class ForkRefusedError(RefusalError):
    """A run cannot share what it has done."""

    template = "Run {0} cannot be forked: {1}."


class ForkPointError(RefusalError, ValueError):
    """A run has no such point to fork from."""

    template = (
        "Run {0} has no point {1!r} to fork from: {2}. Write a version, `latest`, or the name of "
        "a phase; `tacho run events {0}` shows the versions."
    )


class EffectsRepeatedError(RefusalError):
    """A fork would do once more what may do harm when it is done twice (G10)."""

    template = (
        "A fork of run {0} from version {1} would do effects once more that were begun already: "
        "{2}. Fork from a later point, or say that they may be repeated: --repeat-effects with "
        "--reason."
    )


class InvalidValueError(RefusalError, ValueError):
    """A value given to a command makes no sense."""

    template = "{0} is {1!r}: {2}."


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
