"""Settings and where each comes from: flag, environment, store, user, default. Never guesses.

Short commands read settings too, so a configuration file is parsed and validated (TOML,
pydantic) only when its content has changed; the outcome is kept in the store's `views` folder.
"""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os

from tachograph.domain.errors import SettingError
from tachograph.infra import settings_cache
from tachograph.infra.store_folder import config_file

try:
    from _blake2 import blake2b  # hashlib costs a short command 2 ms and is the same function
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DAY = 86_400
_DEFAULT = "default"


class Setting:
    """A setting: its default, what it may be, and what it is for.

    `kind` is "whole" (int), "seconds" (int or float), "choice", "file" (str) or "texts" (list of
    str).
    """

    __slots__ = ("choices", "default", "highest", "kind", "lowest", "meaning", "name")

    def __init__(
        self,
        name: str,
        kind: str,
        default: object,
        meaning: str,
        *,
        lowest: int = 0,
        highest: int = 0,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.meaning = meaning
        self.lowest = lowest
        self.highest = highest
        self.choices = choices

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"TACHO_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """The option that sets it."""
        return "--" + self.name.replace("_", "-")

    @property
    def allowed(self) -> str:
        """What it may be, for people."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "texts":
            return "a list of names of environment variables, and of @files"
        if self.kind == "file":
            return "the path of a file"
        number = "a whole number" if self.kind == "whole" else "a number"
        return f"{number} from {self.lowest} to {self.highest}"

    def accepts(self, value: object) -> bool:
        """Say whether a value is one of those allowed."""
        if self.kind == "choice":
            return value in self.choices
        if self.kind == "texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        if self.kind == "file":
            return isinstance(value, str)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind == "whole" and not isinstance(value, int):
            return False
        return self.lowest <= value <= self.highest

    def read(self, text: str) -> object:
        """Return the value that a text of the environment or the command line stands for.

        What makes no sense is returned as it is, for `accepts` to refuse.
        """
        if self.kind in ("choice", "file"):
            return text.strip()
        if self.kind == "texts":
            return [item.strip() for item in text.split(",") if item.strip()]
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
        return text


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "snapshot_every", "whole", 500, "Events between snapshots of a run.",
            lowest=1, highest=1_000_000,
        ),
        Setting(
            "lease_seconds", "seconds", 30, "How long a heartbeat is good for.",
            lowest=1, highest=30 * DAY,
        ),
        Setting(
            "heartbeat_seconds", "seconds", 10,
            "Time between heartbeats; at most half of lease_seconds, by default a third.",
            lowest=0, highest=10 * DAY,
        ),
        Setting(
            "blob_threshold_bytes", "whole", 16_384,
            "Values that pack to more than this go to the blobs folder.",
            lowest=0, highest=16 * 1024 * 1024,
        ),
        Setting(
            "time_format", "choice", "auto",
            "How times are printed; auto: each command as fits it.",
            choices=("auto", "relative", "iso", "raw"),
        ),
        Setting(
            "policy", "file", "",
            "Gate policy that judges runs (TOML); a relative path counts from the file that "
            "names it.",
        ),
        Setting(
            "artifacts", "file", "",
            "Folder for the artifact files of runs, kept up to date while they go on; none "
            "without it. A relative path counts from the file that names it.",
        ),
        Setting(
            "redact", "texts", [],
            "Environment variables, and @files of values, that must never be recorded.",
        ),
    )
}  # fmt: skip
"""Every setting by its name."""


class Settings:
    """The settings in force. `origins` says where each value comes from."""

    __slots__ = (*SETTINGS, "origins")

    snapshot_every: int
    lease_seconds: float
    heartbeat_seconds: float
    blob_threshold_bytes: int
    time_format: str
    policy: str
    artifacts: str
    redact: list[str]
    origins: dict[str, str]

    def __init__(self, values: Mapping[str, tuple[Any, str]]) -> None:
        self.origins = {name: origin for name, (_, origin) in values.items()}
        for name, (value, _) in values.items():
            setattr(self, name, value)

    @property
    def policy_file(self) -> str | None:
        """The absolute path of the gate policy; None for the one that comes with Tachograph."""
        return self._path("policy")

    @property
    def artifacts_folder(self) -> str | None:
        """The absolute path of the folder for artifact files; None when they are not wanted."""
        return self._path("artifacts")

    def _path(self, name: str) -> str | None:
        """Return the path that a setting names, counted from the file that sets it."""
        written = getattr(self, name)
        if not written:
            return None
        origin = self.origins[name]
        folder = os.path.dirname(origin) if os.path.isabs(origin) else os.getcwd()
        return os.path.join(folder, os.path.expanduser(written))


def resolve(
    store: str | None,
    environment: Mapping[str, str],
    *,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings for a store (None: without one).

    For each setting the first of these counts: flag (None: not given), environment variable
    `TACHO_…`, the store's `config` file, the user's `tachograph/config.toml`, the default.
    Raises SettingError, which names the file, the key and what is allowed.
    """
    files = [user_file(environment)]
    if store is not None:
        files.append(config_file(store))
    values: dict[str, tuple[object, str]] = {
        name: (_own(setting.default), _DEFAULT) for name, setting in SETTINGS.items()
    }
    for path, found in zip(files, _of_files(files, store), strict=True):
        values.update((name, (value, path)) for name, value in found.items())
    values.update(_of_environment(environment))
    values.update(_of_flags(flags or {}))
    _fit_heartbeat(values)
    return Settings(values)


def user_file(environment: Mapping[str, str]) -> str:
    """Return the user's configuration file, which need not exist."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(folder):  # the specification has relative paths ignored
        folder = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(folder, "tachograph", "config.toml")


def unknown(where: str, name: str) -> SettingError:
    """Return the error for a setting that does not exist."""
    import difflib

    near = difflib.get_close_matches(name, SETTINGS, 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return SettingError(
        where, f"there is no setting {name!r}", f"{hint}There are {', '.join(SETTINGS)}."
    )


def refused(where: str, setting: Setting, value: object) -> SettingError:
    """Return the error for a value that a setting cannot have."""
    return SettingError(
        where, f"{setting.name} cannot be {value!r}", f"Allowed is {setting.allowed}."
    )


def _own(value: object) -> object:
    return list(value) if isinstance(value, list) else value


def _of_environment(environment: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = {}
    for name, setting in SETTINGS.items():
        text = environment.get(setting.variable)
        if text:  # an empty variable counts as not set
            origin = f"environment variable {setting.variable}"
            found[name] = _checked(origin, setting, setting.read(text)), origin
    return found


def _of_flags(flags: Mapping[str, object]) -> dict[str, tuple[object, str]]:
    found: dict[str, tuple[object, str]] = {}
    for name, given in flags.items():
        if name not in SETTINGS:
            raise unknown("flags", name)
        if given is not None:
            setting = SETTINGS[name]
            value = setting.read(given) if isinstance(given, str) else given
            found[name] = _checked(setting.flag, setting, value), setting.flag
    return found


def _checked(where: str, setting: Setting, value: object) -> object:
    if not setting.accepts(value):
        raise refused(where, setting, value)
    return value


def _fit_heartbeat(values: dict[str, tuple[Any, str]]) -> None:
    """Keep at least two heartbeats within a lease, so that a late one kills no run."""
    lease, lease_origin = values["lease_seconds"]
    heartbeat, origin = values["heartbeat_seconds"]
    if origin == _DEFAULT:
        values["heartbeat_seconds"] = min(heartbeat, lease / 3), origin
    elif heartbeat * 2 > lease:
        raise SettingError(
            origin,
            f"heartbeat_seconds cannot be {heartbeat:g} when lease_seconds is {lease:g} "
            f"({lease_origin})",
            "Allowed is at most half of the lease, so that one late heartbeat does no harm.",
        )


def _of_files(paths: list[str], store: str | None) -> list[dict[str, Any]]:
    """Return the values of each file, parsing only those whose content is not known yet."""
    contents = [_content(path) for path in paths]
    if not any(contents):
        return [{} for _ in paths]
    cache = None if store is None else settings_cache.path(store)
    known, used = settings_cache.load(cache), {}
    found: list[dict[str, Any]] = []
    for path, content in zip(paths, contents, strict=True):
        key = blake2b(_table() + content, digest_size=32).digest()
        if not content:
            found.append({})
            continue
        if key not in known:
            from tachograph.infra.settings_file import parse

            known[key] = parse(path, content)
        used[key] = known[key]
        found.append(known[key])
    if used != settings_cache.load(cache):
        settings_cache.keep(cache, used)
    return found


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read().strip()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        raise SettingError(
            path, f"it cannot be read: {error.strerror}", "Change its permissions or remove it."
        ) from error


def _table() -> bytes:
    """Return what the outcome of parsing depends on besides the content."""
    return ";".join(f"{name}: {setting.allowed}" for name, setting in SETTINGS.items()).encode()
