"""Keep the outcome of parsing configuration files. Disposable: it never decides anything."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os

from tachograph.domain.errors import MalformedValueError, UnstorableValueError
from tachograph.infra.codec import Codec
from tachograph.infra.store_folder import view_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Known = dict[bytes, dict[str, Any]]


def path(store: str, name: str = "settings.cache") -> str:
    """Return the file of a store that holds what is known."""
    return os.path.join(view_folder(store), name)


def load(cache: str | None) -> Known:
    """Return the outcome for each content that was parsed, by the digest of the content.

    Nothing is known where there is no such file, or a damaged one.
    """
    if cache is None:
        return {}
    try:
        with open(cache, "rb") as file:
            known = Codec().unpack(file.read())
    except (OSError, MalformedValueError):
        return {}
    return known if isinstance(known, dict) else {}


def keep(cache: str | None, known: Known) -> None:
    """Write what is known, whole or not at all; where that is impossible nothing happens."""
    if cache is None:
        return
    temporary = f"{cache}.tmp-{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            file.write(Codec().pack(known))
        os.replace(temporary, cache)
    except (OSError, UnstorableValueError):  # the store cannot be written: parse again next time
        return
