"""Run themes, each in a process of its own: what one leaves in memory must not slow the next."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

from harness import Bench, Figure

THEMES = ("durable", "threads", "append", "replay", "views", "commands", "queues", "size")
"""The modules that measure, in order. Each has `figures(bench)`."""


def run(theme: str, folder: Path, *, quick: bool) -> tuple[list[Figure], str]:
    """Return the figures of a theme, measured in a new process, and what ended it early, if any."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_measure, theme, folder, quick).result()


def _measure(theme: str, folder: Path, quick: bool) -> tuple[list[Figure], str]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(
        prefix=f"{theme}-", dir=folder, ignore_cleanup_errors=True
    ) as scratch:
        try:
            for figure in import_module(theme).figures(Bench(Path(scratch), quick)):
                figure.theme = theme
                figures.append(figure)
        except Exception:
            return figures, traceback.format_exc()
    return figures, ""
