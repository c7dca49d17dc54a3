"""Every refusal of Tachograph, one class per outcome a caller can act on."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.domain.keeping_errors import *  # noqa: F403
    from tachograph.domain.run_errors import *  # noqa: F403


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
        "Stream {0} goes on at version {1} after version {2}: something between is missing. "
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


class RefusalError(TachographError):
    """A rule of the run forbids this command. Nothing was recorded."""


class InvalidValueError(RefusalError, ValueError):
    """A value given to a command makes no sense."""

    template = "{0} is {1!r}: {2}."


# The others, in modules of their own: making a hundred classes costs a short command a millisecond.

_OTHERS = (
    "run_errors",
    "keeping_errors",
    "queue_errors",
    "handler_errors",
    "worker_errors",
    "repair_errors",
)
"""Looked at in this order: most of what is asked for is of a run."""


def __getattr__(name: str) -> type[TachographError]:
    """Return an error of the other modules, once somebody asks for it."""
    for other in () if name.startswith("_") else _OTHERS:
        module = f"tachograph.domain.{other}"
        __import__(module)  # importlib costs a short command 1 ms
        found = vars(sys.modules[module]).get(name)
        if isinstance(found, type) and issubclass(found, TachographError):
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
