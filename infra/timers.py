"""Have the machine call the watchdog: by a systemd user timer, or by a line of the crontab.

Each store has its own unit or line, known by a mark made from the store's path. What others have
put there is never touched.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from hashlib import blake2b
from typing import TYPE_CHECKING

from tachograph.domain.errors import TimerCommandError, TimerUnavailableError
from tachograph.domain.records import _Fields
from tachograph.infra import crontab, programs, systemd_units
from tachograph.infra.writing import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    Kind = Literal["systemd", "cron", "auto"]

SYSTEMD = "systemd"
CRON = "cron"
AUTO = "auto"

INSTALLED = "installed"
UPDATED = "updated"
UNCHANGED = "unchanged"
REMOVED = "removed"
ABSENT = "absent"

LINGER = "It runs while you are logged in; `loginctl enable-linger` lets it run all the time."


class Installation(_Fields):
    """What calls the watchdog of one store.

    `files` are the texts of unit files by path, `lines` those of the crontab, `commands` what
    has to be run once they are there. `environment` is where programs are found.
    """

    __slots__ = (
        "command",
        "commands",
        "environment",
        "files",
        "interval_seconds",
        "kind",
        "lines",
        "mark",
    )

    def __init__(
        self,
        kind: str,
        mark: str,
        interval_seconds: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        files: Mapping[str, str] | None = None,
        lines: Sequence[str] = (),
        commands: Sequence[Sequence[str]] = (),
    ) -> None:
        self.kind = kind
        self.mark = mark
        self.interval_seconds = interval_seconds
        self.command = list(command)
        self.environment = dict(environment)
        self.files = dict(files or {})
        self.lines = list(lines)
        self.commands = [list(each) for each in commands]


class Change(_Fields):
    """What was done, or would be.

    `action` is one of "installed", "updated", "unchanged", "removed" and "absent"; `files`,
    `lines` and `commands` are what it took.
    """

    __slots__ = ("action", "commands", "files", "kind", "lines")

    def __init__(
        self,
        kind: str,
        action: str,
        files: Sequence[str] = (),
        lines: Sequence[str] = (),
        commands: Sequence[Sequence[str]] = (),
    ) -> None:
        self.kind = kind
        self.action = action
        self.files = list(files)
        self.lines = list(lines)
        self.commands = [list(each) for each in commands]


def mark_of(store: str) -> str:
    """Return the name by which everything that belongs to a store is known."""
    path = os.path.realpath(store).encode("utf-8", "surrogateescape")
    return f"tachograph-watchdog-{blake2b(path, digest_size=5).hexdigest()}"


def plan(
    kind: Kind,
    interval_seconds: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    store: str,
) -> Installation:
    """Return what would call a command at an interval; changes nothing.

    "auto" is systemd where its user manager answers, else cron. Raises TimerUnavailableError
    where there is neither, and InvalidValueError for an interval that cron does not know.
    """
    chosen = _available(kind, interval_seconds, command, environment)
    mark, path = mark_of(store), environment.get("PATH")
    if chosen == CRON:
        lines = crontab.lines(mark, store, interval_seconds, command, path)
        return Installation(chosen, mark, interval_seconds, command, environment, lines=lines)
    folder = unit_folder(environment)
    files = {
        os.path.join(folder, f"{mark}.service"): systemd_units.service(store, command, path),
        os.path.join(folder, f"{mark}.timer"): systemd_units.timer(mark, store, interval_seconds),
    }
    commands = [_systemctl("daemon-reload"), _systemctl("enable", "--now", f"{mark}.timer")]
    return Installation(
        chosen, mark, interval_seconds, command, environment, files=files, commands=commands
    )


def unit_folder(environment: Mapping[str, str]) -> str:
    """Return where a user's own units are."""
    home = environment.get("HOME") or os.path.expanduser("~")
    config = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(config, "systemd", "user")


def install(planned: Installation, *, dry_run: bool = False) -> Change:
    """Do what was planned, or say what would be done. Raises TimerCommandError.

    A second time nothing is changed; what differs from the plan is replaced.
    """
    if planned.kind == CRON:
        return _install_lines(planned, dry_run=dry_run)
    return _install_units(planned, dry_run=dry_run)


def uninstall(
    kind: Kind, environment: Mapping[str, str], *, store: str, dry_run: bool = False
) -> list[Change]:
    """Remove what `install` made for a store: from one place, or with "auto" from both.

    Returns one change per place where something was; none is one that says "absent". Raises
    TimerCommandError.
    """
    return remove(kind, mark_of(store), environment, dry_run=dry_run)


def remove(
    kind: Kind, mark: str, environment: Mapping[str, str], *, dry_run: bool = False
) -> list[Change]:
    """Remove what is known by a mark, as `uninstall` does. Raises TimerCommandError."""
    changes = []
    if kind in (SYSTEMD, AUTO):
        changes.append(_remove_units(mark, environment, dry_run=dry_run))
    if kind == CRON or (kind == AUTO and programs.find("crontab", environment) is not None):
        changes.append(_remove_lines(mark, environment, dry_run=dry_run))
    found = [change for change in changes if change.action != ABSENT]
    return found or [Change(kind, ABSENT)]


def where(environment: Mapping[str, str], *, store: str) -> list[str]:
    """Return the kinds that call the watchdog of a store already."""
    return placed(environment, mark_of(store))


def placed(environment: Mapping[str, str], mark: str) -> list[str]:
    """Return the kinds that call what is known by a mark already."""
    kinds = [SYSTEMD] if _unit_files(mark, environment) else []
    if programs.find("crontab", environment) is not None:
        with contextlib.suppress(TimerCommandError):
            kinds += [CRON] if crontab.holds(_read_crontab(environment), mark) else []
    return kinds


def _available(
    kind: str, interval_seconds: int, command: Sequence[str], environment: Mapping[str, str]
) -> str:
    """Return the kind to use. Raises TimerUnavailableError where it cannot be used."""
    chosen, problems = choose(kind, environment)
    if chosen is not None:
        return chosen
    name = "systemd or cron" if kind == AUTO else kind
    raise TimerUnavailableError(
        name, " and ".join(problems), f"{interval_seconds} s", shlex.join(command)
    )


def choose(kind: str, environment: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """Return the kind to use, or None and why none can be used."""
    problems = []
    if kind in (SYSTEMD, AUTO):
        problem = _no_systemd(environment)
        if problem is None:
            return SYSTEMD, []
        problems.append(problem)
    if kind in (CRON, AUTO):
        if programs.find("crontab", environment) is not None:
            return CRON, []
        problems.append("there is no program crontab")
    return None, problems


def marks(environment: Mapping[str, str], prefix: str) -> list[str]:
    """Return the marks, beginning so, of everything that is installed."""
    found = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(unit_folder(environment))):
            stem, _, end = name.rpartition(".")
            if stem.startswith(prefix) and end in ("timer", "service"):
                found.append(stem)
    if programs.find("crontab", environment) is not None:
        with contextlib.suppress(TimerCommandError):
            found += crontab.marks(_read_crontab(environment), prefix)
    return list(dict.fromkeys(found))


def texts(environment: Mapping[str, str], mark: str) -> list[str]:
    """Return what is installed under a mark: its unit files, and its lines of the crontab."""
    found = [_read(path) or "" for path in _unit_files(mark, environment)]
    if programs.find("crontab", environment) is not None:
        with contextlib.suppress(TimerCommandError):
            lines = _read_crontab(environment).splitlines()
            ours = [line for line in lines if crontab.holds(line, mark)]
            found += [line.decode("utf-8", "replace") for line in ours]
    return found


def _no_systemd(environment: Mapping[str, str]) -> str | None:
    """Return why there is no systemd user manager to talk to, None when there is one."""
    if programs.find("systemctl", environment) is None:
        return "there is no program systemctl"
    done = programs.run(_systemctl("show", "--property=Version"), environment)
    if done.returncode:
        return f"systemctl --user does not work here ({programs.said(done)})"
    return None


# systemd


def _systemctl(*words: str) -> list[str]:
    return ["systemctl", "--user", *words]


def _install_units(planned: Installation, *, dry_run: bool) -> Change:
    present = {path: _read(path) for path in planned.files}
    wrong = [path for path, text in planned.files.items() if present[path] != text]
    timer = f"{planned.mark}.timer"
    if not wrong and _is_on(timer, planned.environment):
        return Change(SYSTEMD, UNCHANGED)
    known = any(text is not None for text in present.values())
    commands = list(planned.commands)
    if known:  # a timer that runs goes on with the times it was started with
        commands.append(_systemctl("restart", timer))
    if not dry_run:
        for path in wrong:
            _write(path, planned.files[path])
        for command in commands:
            programs.must(command, planned.environment)
    return Change(SYSTEMD, UPDATED if known else INSTALLED, wrong, commands=commands)


def _is_on(timer: str, environment: Mapping[str, str]) -> bool:
    return not any(
        programs.run(_systemctl(question, timer), environment).returncode
        for question in ("is-enabled", "is-active")
    )


def _remove_units(mark: str, environment: Mapping[str, str], *, dry_run: bool) -> Change:
    files = _unit_files(mark, environment)
    if not files:
        return Change(SYSTEMD, ABSENT)
    disable = _systemctl("disable", "--now", f"{mark}.timer")
    reload = _systemctl("daemon-reload")
    if not dry_run:
        programs.must(disable, environment)
        for path in files:
            os.unlink(path)
        programs.must(reload, environment)
    return Change(SYSTEMD, REMOVED, files, commands=[disable, reload])


def _unit_files(mark: str, environment: Mapping[str, str]) -> list[str]:
    paths = [
        os.path.join(unit_folder(environment), f"{mark}.{end}") for end in ("timer", "service")
    ]
    return [path for path in paths if os.path.lexists(path)]


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(path: str, text: str) -> None:
    """Write a file that only its owner reads, for a URL may be secret, and never half of it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace_file(path, text.encode("utf-8", "surrogateescape"))


# cron


def _install_lines(planned: Installation, *, dry_run: bool) -> Change:
    before = _read_crontab(planned.environment)
    after = crontab.with_lines(before, planned.mark, planned.lines)
    if after == before:
        return Change(CRON, UNCHANGED)
    action = UPDATED if crontab.holds(before, planned.mark) else INSTALLED
    if not dry_run:
        _write_crontab(after, planned.environment)
    return Change(CRON, action, lines=planned.lines)


def _remove_lines(mark: str, environment: Mapping[str, str], *, dry_run: bool) -> Change:
    before = _read_crontab(environment)
    after = crontab.with_lines(before, mark, ())
    if after == before:
        return Change(CRON, ABSENT)
    gone = [line for line in before.splitlines() if crontab.holds(line, mark)]
    if not dry_run:
        _write_crontab(after, environment)
    return Change(CRON, REMOVED, lines=[line.decode("utf-8", "replace") for line in gone])


def _read_crontab(environment: Mapping[str, str]) -> bytes:
    """Return the user's crontab. Raises TimerCommandError: what was not read is not replaced."""
    done = programs.run(["crontab", "-l"], environment)
    if done.returncode and b"no crontab" not in done.stderr.lower():
        raise TimerCommandError("crontab -l", done.returncode, programs.said(done))
    return done.stdout if not done.returncode else b""


def _write_crontab(text: bytes, environment: Mapping[str, str]) -> None:
    if text:
        programs.must(["crontab", "-"], environment, text)
    else:
        programs.must(["crontab", "-r"], environment)
