"""Hand the watchdog's signals on: to a file, a command, a webhook. A failure stops nobody else.

Nothing heavy is imported before there is a signal to hand on.
"""

from __future__ import annotations

import os

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from subprocess import Popen
    from typing import Any, Protocol

    Signal = Mapping[str, Any]

    class Sink(Protocol):
        """Where signals go."""

        name: str
        """What to call it in messages; holds no secret."""
        receiver: str
        """What tells it from every other one; never shown, since an address may be a secret."""

        def send(self, signal: Signal) -> None:
            """Hand one signal on. Raises SinkDownError when the next one has no chance either."""

        def close(self) -> None:
            """Release what it holds; a later `send` takes it again."""


COMMAND_SECONDS = 30.0
"""How long a command may take for one signal."""
VARIABLE_LENGTH = 4_000
"""Most of a text that goes into a variable: Linux starts no program with 128 KiB in one."""
ERROR_BYTES = 2_000
"""How much of what a failing command wrote is told."""


class SinkDownError(Exception):
    """The sink takes no signal at all at the moment."""


class SinkFailure(_Fields):
    """Signals that a sink did not take: the ids of all that failed for the same reason."""

    __slots__ = ("error", "signals", "sink")

    def __init__(self, sink: str, error: str, signals: Sequence[str]) -> None:
        self.sink = sink
        self.error = error
        self.signals = list(signals)


def make_sinks(
    *,
    file: str | None = None,
    command: str | None = None,
    webhook: str | None = None,
    webhook_secret: str | None = None,
) -> list[Sink]:
    """Return the sinks that are described: a path, a command line, a URL and its secret."""
    sinks: list[Sink] = []
    if file is not None:
        sinks.append(FileSink(file))
    if command is not None:
        sinks.append(CommandSink(command))
    if webhook is not None:
        from tachograph.infra.webhooks import Webhook

        sinks.append(Webhook(webhook, webhook_secret))
    return sinks


def deliver(signals: Sequence[Signal], sinks: Sequence[Sink]) -> list[SinkFailure]:
    """Hand every signal to every sink and return what failed. Raises nothing that a sink raises."""
    failures: list[SinkFailure] = []
    for sink in sinks if signals else ():
        failed: dict[str, list[str]] = {}
        _send_all(signals, sink, failed)
        failures += [SinkFailure(sink.name, error, ids) for error, ids in failed.items()]
    return failures


def _send_all(signals: Sequence[Signal], sink: Sink, failed: dict[str, list[str]]) -> None:
    try:
        for number, signal in enumerate(signals):
            try:
                sink.send(signal)
            except SinkDownError as error:
                ids = [str(left.get("id")) for left in signals[number:]]
                failed.setdefault(_reason(error), []).extend(ids)
                return
            except Exception as error:  # noqa: BLE001  # whatever it is, the others go on
                failed.setdefault(_reason(error), []).append(str(signal.get("id")))
    finally:
        sink.close()


def _reason(error: Exception) -> str:
    text = str(error)
    return text if isinstance(error, SinkDownError) else f"{type(error).__name__}: {text}"


def to_json(signal: Signal) -> bytes:
    """Return a signal as one line of JSON in UTF-8, without the line's end."""
    import json

    # backslashreplace writes what is no character (of an undecodable file name) as JSON does.
    return json.dumps(signal, ensure_ascii=False).encode("utf-8", "backslashreplace")


class FileSink:
    """Appends one line of JSON per signal. After `send` returns the line is on disk."""

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(os.path.expanduser(path))
        self.name = f"file {self._path}"
        self.receiver = self.name

    def send(self, signal: Signal) -> None:
        """Append a signal in one write, so that lines of several processes do not mix."""
        from tachograph.infra.durable import sync_file

        line = to_json(signal) + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise SinkDownError(f"{error.strerror}: {self._path}") from error
        try:
            regular, broken = self._look()
            line = b"\n" + line if broken else line
            if os.write(descriptor, line) < len(line):
                raise SinkDownError(f"the disk is full: {self._path}")
            if regular:
                sync_file(descriptor)
        finally:
            os.close(descriptor)

    def _look(self) -> tuple[bool, bool]:
        """Say whether it is a regular file, and whether its last line was cut off."""
        import stat

        found = os.stat(self._path)
        if not stat.S_ISREG(found.st_mode):
            return False, False
        if not found.st_size:
            return True, False
        with open(self._path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return True, file.read(1) != b"\n"

    def close(self) -> None:
        """Nothing is held between signals."""


class CommandSink:
    """Runs a command per signal: JSON on its stdin, the essentials in variables.

    The variables are TACHO_SIGNAL_ID, _KIND, _TASK_ID, _SUMMARY and _MESSAGE. No shell is
    involved: the line is only split into words. Long texts are cut off in variables. A command
    that takes longer than 30 seconds is killed, with its group.
    """

    def __init__(self, command: str, timeout_seconds: float = COMMAND_SECONDS) -> None:
        self._command = command
        self._timeout_seconds = timeout_seconds
        self.name = f"command {command.split(None, 1)[0] if command.strip() else '(empty)'}"
        self.receiver = f"command {command}"

    def send(self, signal: Signal) -> None:
        """Run the command to its end. Raises unless its exit code is 0."""
        import shlex
        import subprocess
        import tempfile

        try:
            argv = shlex.split(self._command)
        except ValueError as error:
            raise SinkDownError(f"the command cannot be split into words: {error}") from error
        if not argv:
            raise SinkDownError("the command is empty")
        # Files, not pipes: neither side can wait for the other, nor for a daemon left behind.
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
            given.write(to_json(signal) + b"\n")
            given.seek(0)
            try:
                process = subprocess.Popen(
                    argv,
                    env=_variables(signal),
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            except OSError as error:
                raise SinkDownError(f"{argv[0]} cannot be run: {error.strerror}") from error
            self._await(process)
            errors.seek(0)
            if process.returncode:
                said = errors.read(ERROR_BYTES).decode("utf-8", "replace").strip()
                raise OSError(f"it ended with {process.returncode}: {said or 'no message'}")

    def _await(self, process: Popen[bytes]) -> None:
        import signal
        import subprocess

        try:
            process.wait(self._timeout_seconds)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the group is its own
            process.wait()
            raise SinkDownError(f"it took more than {self._timeout_seconds:g} s") from error

    def close(self) -> None:
        """Nothing is held between signals."""


def _variables(signal: Signal) -> dict[str, str]:
    names = ("id", "kind", "task_id", "summary", "message")
    given = {f"TACHO_SIGNAL_{name.upper()}": signal.get(name) for name in names}
    texts = {
        name: str(value).replace("\0", "")[:VARIABLE_LENGTH]
        for name, value in given.items()
        if value is not None
    }
    return {**os.environ, **texts}
