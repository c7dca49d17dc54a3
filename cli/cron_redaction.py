"""Find what takes secrets out of the traces of cron jobs (G13): they are kept beside a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tachograph.bootstrap import find
from tachograph.domain.errors import TachographError
from tachograph.infra import secrets, settings, store_folder

if TYPE_CHECKING:
    from tachograph.cli.output import Output
    from tachograph.domain.redaction import Redactor


def store_of(out: Output) -> str | None:
    """Return the folder of the store; None when none is found, which opening it will say."""
    try:
        return find(out.store)[0]
    except TachographError:
        return None


def redactor_in_force(folder: str | None) -> Redactor | None:
    """Return the redactor of a store, which may be none yet; None when there is nothing to hide.

    Where its settings cannot be read the environment counts: opening the store says what is wrong.
    """
    kept = folder if folder is not None and store_folder.is_store(folder) else None
    try:
        return secrets.redactor(os.environ, settings.resolve(kept, os.environ).redact)
    except TachographError:
        return secrets.redactor(os.environ)
