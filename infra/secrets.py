"""Find the secret values that must not reach the store (G13). Reads them, never prints them."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os
from itertools import pairwise

from tachograph.domain.errors import SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tachograph.domain.redaction import Redactor

_ENDINGS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "CREDENTIAL")
_WORDS = frozenset({"TOKENS", "SECRETS", "PASSWORDS", "CREDENTIALS", "APIKEYS", "PASS", "PAT"})
_KEYS = frozenset(
    {"ACCESS", "ACCOUNT", "API", "AUTH", "ENCRYPTION", "MASTER", "PRIVATE", "SECRET", "SIGNING"}
    | {"STORAGE"}
)
# What is said *about* a secret, such as where its file is, is none.
_ABOUT = frozenset(
    {"FILE", "PATH", "DIR", "URL", "URI", "HOST", "NAME", "ID", "TYPE", "TTL", "EXPIRY"}
    | {"EXPIRES", "LENGTH", "COUNT", "LIMIT", "SOCK", "HELPER", "ENABLED", "VERSION"}
)
_SWITCHES = frozenset({"enabled", "disabled", "default", "required", "optional"})


def looks_secret(name: str) -> bool:
    """Say whether an environment variable of this name holds a secret.

    >>> [looks_secret(name) for name in ("GITHUB_TOKEN", "PGPASSWORD", "OPENAI_API_KEY")]
    [True, True, True]
    >>> [looks_secret(name) for name in ("PATH", "SSH_AUTH_SOCK", "MAX_TOKENS", "TOKEN_FILE")]
    [False, False, True, False]
    """
    words = "".join(sign if sign.isalnum() else " " for sign in name).upper().split()
    if not words or words[-1] in _ABOUT:
        return False
    return any(word.endswith(_ENDINGS) or word in _WORDS for word in words) or any(
        word in _KEYS and after in ("KEY", "KEYS") for word, after in pairwise(words)
    )


def collect(environment: Mapping[str, str], named: Iterable[str] = ()) -> list[str]:
    """Return the secret values of the environment and of the `redact` setting.

    `named` holds names of environment variables, and `@path` for files with one literal value
    on each line. A password inside a URL counts whatever its variable is called. Raises
    SettingError when a named file cannot be read.
    """
    values: list[str] = []
    for name, value in environment.items():
        if looks_secret(name) and _is_secret_value(name, value):
            values += _parts(value)
        elif "://" in value:
            values += _url_passwords(value)
    for entry in named:
        if entry.startswith("@"):
            values += _literals(entry)
        elif entry in environment:
            values += _parts(environment[entry])
    return [value for value in dict.fromkeys(values) if _is_long_enough(value)]


def redactor(
    environment: Mapping[str, str],
    named: Iterable[str] = (),
    *others: Mapping[str, str],
) -> Redactor | None:
    """Return a redactor of the secrets that `collect` finds, None when there are none to hide.

    It finds them in the environment, and in `others`: those of processes to be started.
    """
    entries = list(named)
    values = [value for each in (environment, *others) for value in collect(each, entries)]
    if not values:
        return None
    from tachograph.domain.redaction import Redactor

    return Redactor(values) or None


def _is_long_enough(value: str) -> bool:
    # Imported only where there is a secret: most commands have none to hide.
    from tachograph.domain.redaction import MIN_LENGTH

    return len(value) >= MIN_LENGTH


def _is_secret_value(name: str, value: str) -> bool:
    if name.upper().endswith("TOKENS") and value.isdecimal():
        return False  # how many tokens a model may write
    if value.lower() in _SWITCHES:
        return False
    return not (os.path.isabs(value) and os.path.exists(value))  # a path to the secret


def _parts(value: str) -> list[str]:
    """Return a value, and how it looks to a program that strips it."""
    return [value, value.strip()]


def _url_passwords(value: str) -> Iterator[str]:
    """Yield the passwords of `scheme://user:password@host`, quoted and plain."""
    for rest in value.split("://")[1:]:
        authority = rest.split("/", 1)[0].split("?", 1)[0].split("#", 1)[0]
        user, at, _ = authority.rpartition("@")
        password = user.partition(":")[2]
        if at and _is_long_enough(password):
            yield password
            if "%" in password:
                from urllib.parse import unquote

                yield unquote(password)


def _literals(entry: str) -> list[str]:
    path = os.path.expanduser(entry[1:])
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [line for line in file.read().splitlines() if line]
    except OSError as error:
        raise SettingError(
            "redact",
            f"the file of secret values {path} cannot be read: {error.strerror}",
            "Name a file with one secret value on each line, or take the entry out.",
        ) from error
