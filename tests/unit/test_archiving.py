"""Names of members are safe and tell texts apart; a manifest that makes no sense is damage."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.archiving import (
    LONGEST_NAME,
    RunPlan,
    from_manifest,
    kept_files,
    safe_name,
    to_manifest,
)
from tachograph.domain.errors import ArchiveDamagedError

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
ARTIFACT = {
    "name": "report",
    "path": "/r",
    "size": 3,
    "sha256": "ab",
    "state": "ok",
    "member": "runs/job/artifacts/report/r",
}
RUN: dict[str, Any] = {
    "jobRunId": "job",
    "status": "success",
    "version": 7,
    "members": 0,
    "bytes": 0,
    "artifacts": [ARTIFACT, {**ARTIFACT, "name": "lost", "member": None}],
    "missingBlobs": [],
}


def manifest(**changes: Any) -> bytes:
    document = json.loads(to_manifest([RunPlan("job", [], RUN)]))
    return json.dumps({**document, **changes}).encode()


@given(ANY_TEXT)
def test_a_safe_name_is_one_part_of_a_path_on_any_system(text: str) -> None:
    name = safe_name(text)

    assert PurePosixPath("runs", name).parts == ("runs", name)
    assert name not in ("", ".", "..")
    assert "\\" not in name
    assert name.isprintable()
    assert len(name.encode()) <= LONGEST_NAME


@given(ANY_TEXT, ANY_TEXT)
def test_different_texts_have_different_safe_names(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)


def test_long_names_that_differ_at_their_end_have_different_safe_names() -> None:
    assert safe_name("ä" * 300) != safe_name("ä" * 301)


@pytest.mark.parametrize("text", ["report.html", "Übersicht 2026", "a~b-c_d", ".env"])
def test_a_plain_name_stays_as_it_is(text: str) -> None:
    assert safe_name(text) == text


def test_a_manifest_is_read_back() -> None:
    assert from_manifest("a", manifest())["runs"] == [RUN]


def test_a_manifest_says_which_files_the_archive_holds() -> None:
    assert kept_files(from_manifest("a", manifest())) == {("job", "report", "ab")}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no JSON",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        manifest(kind="other"),
        manifest(format=2),
        manifest(members=[{"name": "x", "size": 1}]),
        manifest(members=[{"name": "x", "size": "1", "sha256": "ab"}]),
        manifest(members=[{"name": 1, "size": 1, "sha256": "ab"}]),
        manifest(members=None),
        manifest(runs=[{}]),
        manifest(runs=[{**RUN, "bytes": None}]),
        manifest(runs=[{**RUN, "missingBlobs": None}]),
        manifest(runs=[{**RUN, "artifacts": [{}]}]),
        manifest(runs=[{**RUN, "artifacts": [{**ARTIFACT, "path": None}]}]),
        manifest(
            runs=[{**RUN, "artifacts": [{n: v for n, v in ARTIFACT.items() if n != "member"}]}]
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_is_damage(data: bytes) -> None:
    with pytest.raises(ArchiveDamagedError, match="/the/file"):
        from_manifest("/the/file", data)
