"""The JSON of the commands that archive, erase and anchor, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Anchor, Micros, Moment, Shape


class OffloadedRun(Shape):
    """A run whose bodies leave the log, or stay."""

    job_run_id: str
    status: str
    events: int = Field(description="Bodies in the log.")
    bytes: int
    why: str | None = Field(description="Why they stay; null when they go.")


class Offloaded(Shape):
    """`store archive`."""

    applied: bool
    events: int
    bytes: int
    runs: list[OffloadedRun]
    archives: list[str] = Field(description="Names of the files that were made.")
    archive_bytes: int
    moved_events: int


class Related(Shape):
    """A run that has something of an erased one."""

    job_run_id: str
    relation: Literal["fork", "source", "parent", "within"]


class Erased(Shape):
    """`store erase`."""

    job_run_id: str
    applied: bool
    erased_before: bool = Field(
        description="Whether the log said so already; then `events` and `blobs` went at that time."
    )
    events: int = Field(description="Bodies that were destroyed, or would be.")
    bytes: int | None = Field(description="Null when it was erased before.")
    blobs: list[str] = Field(description="Digests of the payloads that only this run refers to.")
    shared_blobs: list[str] = Field(description="Digests of those that stay: others do, too.")
    doubtful_blobs: list[str] = Field(
        description="Digests of those that stay since nobody can tell whether others do, too."
    )
    unread: list[str] = Field(description="Streams with lost or damaged events: why not.")
    files: list[str] = Field(description="Files in the store that go, by their names.")
    rewritten: list[str] = Field(
        description="Archives in the store that hold it; they go, or are written anew without it."
    )
    outside: list[str] = Field(description="Other files that it recorded, which are left alone.")
    unreadable: list[str] = Field(
        description="Damaged archives in the store, which are left alone and may hold some of it."
    )
    related: list[Related] = Field(description="Runs that may hold copies of its words.")
    cards: list[str] = Field(description="Cards in a workspace that were removed.")


class Anchored(Shape):
    """`store anchor`, and a line of a file of anchors."""

    anchor: Anchor
    time: Moment | None
    time_us: Micros | None
    first: str | None = Field(description="Digest of the first event: which log it is.")
    public_key: str | None = Field(None, description="Ed25519, 64 hex digits.")
    signature: str | None = Field(None, description="Ed25519, 128 hex digits.")


class AnchorKey(Shape):
    """`store anchor-key`."""

    file: str
    public_key: str
    public_pem: str
    made: bool = Field(description="Whether the key is a new one.")


BODIES: dict[str, TypeAdapter[Any]] = {
    "store-archive": TypeAdapter(Offloaded),
    "store-erase": TypeAdapter(Erased),
    "store-anchor": TypeAdapter(Anchored),
    "store-anchor-key": TypeAdapter(AnchorKey),
}
