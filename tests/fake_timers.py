"""Stand-ins for `systemctl` and `crontab`: real programs that keep their state in files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SYSTEMCTL = """#!/bin/sh
PATH=/usr/bin:/bin
echo "systemctl $*" >>"$HOME/calls"
shift
case "$1" in
  show) [ ! -e "$HOME/no-bus" ] || { echo "Failed to connect to bus" >&2; exit 1; } ;;
  daemon-reload) [ ! -e "$HOME/broken" ] || { echo "Access denied" >&2; exit 4; } ;;
  enable) touch "$HOME/on" ;;
  disable) rm -f "$HOME/on" ;;
  is-enabled | is-active) [ -e "$HOME/on" ] ;;
esac
"""
CRONTAB = """#!/bin/sh
PATH=/usr/bin:/bin
case "$1" in
  -l)
    [ ! -e "$HOME/broken" ] || { echo "not allowed to use cron" >&2; exit 1; }
    [ -e "$HOME/tab" ] || { echo "no crontab for ada" >&2; exit 1; }
    cat "$HOME/tab" ;;
  -r) echo "crontab -r" >>"$HOME/calls"; rm "$HOME/tab" ;;
  -) echo "crontab -" >>"$HOME/calls"; cat >"$HOME/tab" ;;
esac
"""


class FakeTimers:
    """A home with programs on its PATH, and what they were called with."""

    def __init__(self, home: Path, *, systemd: bool = True, cron: bool = True) -> None:
        self.home = home
        self.programs = home / "fake bin"
        self.programs.mkdir()
        for name, text, wanted in (("systemctl", SYSTEMCTL, systemd), ("crontab", CRONTAB, cron)):
            if wanted:
                (self.programs / name).write_text(text)
                (self.programs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": str(self.programs), "HOME": str(home)}

    def calls(self) -> list[str]:
        """Return the calls since the last question that may have changed something."""
        path = self.home / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        questions = ("show", "is-enabled", "is-active")
        return [line for line in lines if not set(line.split()) & set(questions)]

    def tell(self, state: str) -> None:
        """Let the programs behave otherwise: "no-bus" or "broken"."""
        (self.home / state).touch()

    @property
    def tab(self) -> bytes | None:
        """The crontab, None when there is none."""
        path = self.home / "tab"
        return path.read_bytes() if path.exists() else None

    @tab.setter
    def tab(self, text: bytes) -> None:
        (self.home / "tab").write_bytes(text)

    def units(self) -> dict[str, str]:
        """Return the unit files by the end of their name."""
        folder = self.home / ".config" / "systemd" / "user"
        return {path.suffix: path.read_text() for path in sorted(folder.glob("*"))}
