"""Text of the systemd user units that call the watchdog. Writes no file, runs no program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SERVICE = """\
# Made by `tacho watchdog install`; `tacho watchdog uninstall` removes it.
[Unit]
Description=Tachograph watchdog of {store}

[Service]
Type=oneshot
{environment}ExecStart={command}
# What an adapter leaves running is not the watchdog's to end.
KillMode=process
"""

_TIMER = """\
# Made by `tacho watchdog install`; `tacho watchdog uninstall` removes it.
[Unit]
Description=Tachograph watchdog of {store}, every {seconds} s

[Timer]
# By clocks that nobody sets; the wait begins when the last call has ended.
OnActiveSec=1s
OnUnitInactiveSec={seconds}s
AccuracySec=1s
Unit={unit}.service

[Install]
WantedBy=timers.target
"""


def service(store: str, command: Sequence[str], path: str | None) -> str:
    """Return the service that calls the watchdog once, with a PATH to find adapters on."""
    variables = "" if path is None else f"Environment={quoted(f'PATH={path}', variable=False)}\n"
    words = " ".join(quoted(word) for word in command)
    return _SERVICE.format(store=plain(store), environment=variables, command=words)


def timer(unit: str, store: str, interval_seconds: int) -> str:
    """Return the timer that starts the service."""
    return _TIMER.format(unit=unit, store=plain(store), seconds=interval_seconds)


def quoted(word: str, *, variable: bool = True) -> str:
    r"""Return a word as systemd.syntax(7) and systemd.service(5) want it written.

    `variable` says that a dollar would begin a variable there.

    >>> print(quoted('a "b" 5% $HOME'))
    "a \"b\" 5%% $$HOME"
    """
    parts = []
    for byte in word.encode("utf-8", "surrogateescape"):
        character = chr(byte)
        if character in '"\\':
            parts.append(f"\\{character}")
        elif character == "%" or (character == "$" and variable):
            parts.append(character * 2)
        elif byte < 0x20 or byte >= 0x7F:
            parts.append(f"\\x{byte:02x}")
        else:
            parts.append(character)
    return f'"{"".join(parts)}"'


def plain(text: str) -> str:
    """Return a text for people, on one line, in which nothing is expanded."""
    readable = text.encode("utf-8", "replace").decode()
    return "".join(character if character.isprintable() else "?" for character in readable).replace(
        "%", "%%"
    )
