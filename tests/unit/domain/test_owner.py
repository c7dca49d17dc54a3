"""An owner is stored as plain values and read back whatever version wrote it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.owner import Owner

texts = st.none() | st.text()
numbers = st.none() | st.integers(0, 2**63 - 1)


@given(
    st.builds(Owner, texts, texts, numbers, numbers, texts, st.sampled_from(["process", "unowned"]))
)
def test_an_owner_survives_its_stored_form(owner: Owner) -> None:
    assert Owner.from_fields(owner.to_fields()) == owner


def test_the_stored_form_leaves_out_what_is_not_known() -> None:
    assert Owner("ada", kind="unowned").to_fields() == {"kind": "unowned", "host": "ada"}


def test_fields_of_an_older_version_are_none() -> None:
    owner = Owner.from_fields({"kind": "process", "host": "ada", "pid": 7})

    assert owner == Owner("ada", None, 7, None, None, "process")


def test_fields_of_a_newer_version_are_ignored() -> None:
    assert Owner.from_fields({"host": "ada", "cgroup": "/x"}) == Owner("ada")


@pytest.mark.parametrize(
    "fields",
    [
        {"pid": "7"},
        {"pid": True},
        {"pid": 7.0},
        {"host": 7},
        {"boot_id": b"x"},
        {"kind": "robot"},
        {},
    ],
)
def test_a_field_of_the_wrong_type_counts_as_absent(fields: dict[str, Any]) -> None:
    assert Owner.from_fields(fields) == Owner(None)


def test_equal_owners_hash_alike_and_differ_from_others() -> None:
    first, second = Owner("ada", "b", 1, 2), Owner("ada", "b", 1, 2)

    assert (first, hash(first)) == (second, hash(second))
    assert first != Owner("ada", "b", 1, 3)
