"""200 kills at random points across writer, reader and rebuild lose nothing acknowledged."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tachograph import storekeeping
from tachograph.bootstrap import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.domain.records import Record

KILLS = 200
GROUND = Path(__file__).with_name("killing_ground.py")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_no_kill_loses_what_was_acknowledged(tmp_path: Path) -> None:
    """G1, G3, G8: no acknowledged batch is lost, no batch twice, the store verifies clean."""
    store = tmp_path / "store"
    seed = random.SystemRandom().randrange(2**32)
    ended = subprocess.run(
        [sys.executable, str(GROUND), str(store), str(KILLS), str(seed)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, f"seed {seed}: {ended.stderr}"
    report = json.loads(ended.stdout)
    services = open_store(str(store))
    try:
        recorded = [
            services.repository.fields(record)["index"]
            for record in every_event(services)
            if record.topic == "run.batch-completed"
        ]
        differences = storekeeping.check_views(services)
    finally:
        services.close()
    problems = list(storekeeping.verify(str(store)))

    assert report["problems"] == [], f"seed {seed}"
    assert len(report["acknowledged"]) > KILLS // 4, "the workers were killed before they worked"
    assert recorded == list(range(len(recorded))), f"seed {seed}"
    assert set(report["acknowledged"]) <= set(recorded), f"seed {seed}"
    assert problems == [], f"seed {seed}"
    assert differences == [], f"seed {seed}"


def every_event(services: Services) -> Iterator[Record]:
    position = 0
    while records := services.log.read(after=position):
        yield from records
        position = records[-1].position
