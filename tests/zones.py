"""Machines of a time zone of one's own choice. Holds no test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tachograph.infra import cron_times

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def live_in(zone: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the machine be in a time zone, and return the folder that says so."""
    etc = folder / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "localtime").unlink(missing_ok=True)
    (etc / "localtime").symlink_to(f"/usr/share/zoneinfo/{zone}")
    monkeypatch.setattr(cron_times, "ETC", str(etc))
    cron_times._zone_in.cache_clear()
    return etc
