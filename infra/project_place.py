"""Find `tachograph.toml`. Reads nothing of it: commands in loops look for it too."""
# pathlib costs 10 ms at the start of a command.

from __future__ import annotations

import os

from tachograph.domain.errors import ProjectFileNotFoundError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "tachograph.toml"
VARIABLE = "TACHO_CONFIG"


def find(named: str | None, environment: Mapping[str, str], here: str, store: str | None) -> str:
    """Return the absolute path of the project's file.

    The first of these counts: the one that is named, TACHO_CONFIG, the nearest one from the
    folder `here` upwards, the one beside the store. Raises ProjectFileNotFoundError.
    """
    found = find_any(named, environment, here, store)
    if found is None:
        looked = f"in {here} and the folders above"
        if store is not None:
            looked += f", and beside the store {store}"
        raise ProjectFileNotFoundError(NAME, looked)
    return found


def find_any(
    named: str | None, environment: Mapping[str, str], here: str, store: str | None
) -> str | None:
    """Return what `find` returns; None where there is none.

    Raises ProjectFileNotFoundError for one that is named and not there.
    """
    given = named or environment.get(VARIABLE)
    if given:
        path = os.path.join(here, os.path.expanduser(given))
        if not os.path.isfile(path):
            raise ProjectFileNotFoundError(path, "there, as it was named")
        return os.path.abspath(path)
    folder = os.path.abspath(here)
    while True:
        path = os.path.join(folder, NAME)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    if store is None:
        return None
    beside = os.path.join(os.path.dirname(os.path.abspath(store)), NAME)
    return beside if os.path.isfile(beside) else None
