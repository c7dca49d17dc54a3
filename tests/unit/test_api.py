"""`tachograph.record` on real stores: which store, which types, one environment per folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tachograph
from tachograph.bootstrap import open_store
from tachograph.infra.codec_extensions import CustomValue


class Price:
    def __init__(self, cents: int) -> None:
        self.cents = cents


def test_each_folder_has_its_own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name / ".tachograph").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        with tachograph.record("here", {"in": name}) as run:
            run.judge(inputs=1, outputs=1)

    for name in ("one", "two"):
        services = open_store(str(tmp_path / name / ".tachograph"))
        assert services.log.head().position == 4
        services.close()


def test_a_registered_type_comes_back_and_anybody_can_read_around_it(store_path: Path) -> None:
    tachograph.register_type(Price, "test_api.price", lambda price: price.cents, Price)
    cents = iter([250, 0])

    def ask_price() -> list[Price]:
        return [Price(next(cents))]

    with pytest.raises(RuntimeError), tachograph.record("shop", store=store_path) as run:
        run.step(ask_price)
        raise RuntimeError("cut off")
    with tachograph.record("shop", store=store_path) as run:
        (price,) = run.step(ask_price)
    shown = subprocess.run(
        [sys.executable, "-m", "tachograph", "--store", str(store_path), "run", "events", run.id],
        check=True,
        capture_output=True,
        text=True,
    )
    services = open_store(str(store_path))
    records = services.log.read_stream(run.id)
    (result,) = [r for r in records if r.topic == "run.step-completed"]
    kept = services.repository.fields(result)["result"]
    services.close()

    assert (type(price), price.cents) == (Price, 250)
    assert "step-completed" in shown.stdout
    assert isinstance(kept[0], CustomValue)


def test_a_value_of_an_unknown_type_names_its_place(store_path: Path) -> None:
    with pytest.raises(tachograph.errors.UnstorableValueError, match=r"inputs\.a\[1\]"):
        with tachograph.record("shop", {"a": [1, object()]}, store=store_path):
            raise AssertionError("not reached")


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = tachograph.colour
    for name in tachograph.__all__:
        assert getattr(tachograph, name) is not None
