"""The options that say how a watchdog looks and whom it tells: of `run`, and of `install`.

Reads no secret but that of a webhook, and prints none.
"""

from __future__ import annotations

from tachograph.cli.options import FLAG, WHOLE, Option, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params

SECRET = "TACHO_WEBHOOK_SECRET"  # noqa: S105  # the name of the variable that holds it
SECRET_BYTES = 64 * 1024
"""Most that is read of a file with a secret."""

ANCHOR_EVERY = "1h"
HOUR_US = 3_600_000_000

_FILES = ("signal_file", "webhook_secret_file", "anchor_file", "anchor_sign")

WATCHING = (
    flag("--auto-resume", "Resume the runs whose job lets it."),
    Option("--command", "Only runs of this command.", metavar="COMMAND", complete="command"),
    Option("--timeout", "How long a resume may take.", metavar="SPAN"),
    Option("--jobs", "Resumes at the same time.", kind=WHOLE, default=4, metavar="N"),
    Option("--signal-file", "Append each signal to this file.", metavar="PATH", complete="path",
           env="TACHO_SIGNAL_FILE"),
    Option("--signal-command", "Run this for each signal, its JSON on stdin.", metavar="COMMAND",
           env="TACHO_SIGNAL_COMMAND"),
    Option("--webhook", "Post each signal there; signed where there is a secret.",
           metavar="URL", env="TACHO_WEBHOOK"),
    Option("--webhook-secret-file", f"The secret is in this file (mode 0600), not in {SECRET}.",
           metavar="PATH", complete="path", env="TACHO_WEBHOOK_SECRET_FILE"),
    Option("--anchor-file", "Append where the log ends to this file, when it went on.",
           metavar="PATH", complete="path", env="TACHO_ANCHOR_FILE"),
    Option("--anchor-every", "Least time between two anchors.", default=ANCHOR_EVERY,
           metavar="SPAN"),
    Option("--anchor-sign", "Sign anchors with the key in this file.", metavar="KEYFILE",
           complete="path", env="TACHO_ANCHOR_SIGN"),
    Option("--ping", "Report each look there, with /start and /fail: a dead man's switch.",
           metavar="URL", env="TACHO_PING"),
)  # fmt: skip
"""Given to `watchdog run`, and to `watchdog install`, which hands them on."""


def words(params: Params) -> list[str]:
    """Return the command line of these options as they were given, in the environment too.

    It means the same in another folder. Raises UsageError for what `run` would refuse later.
    """
    from tachograph.cli.recoveries import timeout_of

    timeout_of(params)
    check_jobs(params)
    anchor_us(params)
    secret = webhook_secret(params)
    if params.webhook is not None and secret and params.webhook_secret_file is None:
        raise UsageError(
            f"{SECRET} is set, and no secret is written into a crontab or a unit: put it into a "
            "file that only you can read, and name that with --webhook-secret-file."
        )
    found: list[str] = []
    for option in WATCHING:
        value = getattr(params, option.name)
        if value in (None, option.unset()):
            continue
        if option.kind == FLAG:
            found.append(option.flag)
            continue
        text = _anywhere(option.name, str(value))
        found += [f"{option.flag}={text}"] if text.startswith("-") else [option.flag, text]
    return found


def check_jobs(params: Params) -> None:
    """Refuse to resume nothing at a time."""
    if params.jobs < 1:
        raise UsageError(f"--jobs is {params.jobs}: give 1 or more.")


def anchor_us(params: Params) -> int | None:
    """Return the least time between two anchors in µs, None where none are wanted.

    Raises UsageError for a key or a span without a file, and for no span.
    """
    if params.anchor_file is None:
        if params.anchor_sign is not None or params.anchor_every != ANCHOR_EVERY:
            raise UsageError("--anchor-every and --anchor-sign go with --anchor-file.")
        return None
    if params.anchor_every == ANCHOR_EVERY:
        return HOUR_US
    from tachograph.infra.clock import parse_span

    return parse_span(params.anchor_every)


def webhook_secret(params: Params) -> str | None:
    """Return the secret of the webhook: from the named file, else from the environment.

    Raises UsageError for a file that others can read, or that holds none.
    """
    import os

    if params.webhook_secret_file is None:
        return os.environ.get(SECRET) or None
    return _read_secret(params.webhook_secret_file)


def _read_secret(name: str) -> str:
    import os
    import sys
    from pathlib import Path

    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            found = file.read(SECRET_BYTES)
        secret = found.decode().strip()
    except OSError as error:
        raise UsageError(f"--webhook-secret-file {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--webhook-secret-file {path} is no text in UTF-8.") from error
    if mode & 0o077 and sys.platform != "win32":
        raise UsageError(f"--webhook-secret-file {path} can be read by others: chmod 600 it.")
    if not secret:
        raise UsageError(f"--webhook-secret-file {path} is empty.")
    return secret


def _anywhere(name: str, text: str) -> str:
    """Return a value that means the same in whatever folder it is used."""
    import shlex
    from pathlib import Path

    if name in _FILES:
        return str(Path(text).expanduser().absolute())
    if name != "signal_command":
        return text
    try:
        program, *more = shlex.split(text) or [""]
    except ValueError as error:
        raise UsageError(f"--signal-command is {text!r}: {error}.") from error
    if "/" not in program or Path(program).is_absolute():
        return text
    return shlex.join([str(Path(program).absolute()), *more])
