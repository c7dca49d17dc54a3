"""Opening a store: what is made, what is found, and what must not be papered over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tachograph.bootstrap import open_store
from tachograph.domain.errors import StoreCorruptError, StoreNotFoundError
from tachograph.starting import Start


def used(store: Path) -> str:
    services = open_store(str(store), create=True)
    run_id = services.starter.start(Start("work"), services.owner()).run_id
    services.close()
    return run_id


def test_a_missing_store_is_made_only_when_asked(store_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        open_store(str(store_path))

    open_store(str(store_path), create=True).close()
    open_store(str(store_path)).close()


@pytest.mark.parametrize("create", [True, False])
def test_a_lost_log_is_not_replaced_by_an_empty_one(store_path: Path, create: bool) -> None:
    """G1: what is gone is reported, not hidden."""
    used(store_path)
    (store_path / "log" / "data.mdb").unlink()

    with pytest.raises(StoreCorruptError, match=r"log/data\.mdb, is missing"):
        open_store(str(store_path), create=create)
    assert not (store_path / "log" / "data.mdb").exists()


def test_a_store_whose_making_was_interrupted_is_finished(store_path: Path) -> None:
    open_store(str(store_path), create=True).close()
    shutil.rmtree(store_path / "log")
    (store_path / "log").mkdir()

    assert used(store_path).startswith("job-work-")


def test_a_part_that_a_store_does_not_have_is_named(store_path: Path) -> None:
    services = open_store(str(store_path), create=True)

    with pytest.raises(AttributeError, match="a store has no 'colour'"):
        _ = services.colour
    services.close()
