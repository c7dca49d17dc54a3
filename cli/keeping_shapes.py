"""The JSON of the commands about the store and the jobs, as models; see `shapes`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Anchor, Micros, Outcome, Shape


class Reader(Shape):
    """A process that reads the log."""

    pid: int
    transaction: int


class Sizes(Shape):
    """Bytes on disk of the parts of a store."""

    log: int
    views: int
    presence: int
    blobs: int
    archive: int = Field(description="Archives of events' bodies.")


class JobCounts(Shape):
    """Jobs of all queues by their state; each that is not pruned is in exactly one."""

    pending: int
    scheduled: int
    failed: int = Field(description="They wait for another attempt after a failed one.")
    leased: int
    completed: int
    dead: int
    cancelled: int


class Info(Shape):
    """`store info`."""

    store: str
    origin: str = Field(description="By which rule the store was found.")
    format: int
    events: int
    runs: int
    jobs: JobCounts | None = Field(description="None where there never was one.")
    streams: int
    event_types: int
    snapshots: int
    blobs: int
    anchor: Anchor
    last_write_us: Micros | None
    sizes: Sizes
    map_size: int
    readers: list[Reader]


class Problem(Shape):
    """Damage that was found."""

    kind: str
    position: int
    detail: str


class Verified(Shape):
    """`store verify`."""

    store: str
    whole: bool
    anchors: int = Field(description="Anchors that the log was compared with.")
    problems: list[Problem]


class Backup(Shape):
    """`store backup`."""

    backup: str
    events: int
    anchor: Anchor
    blobs: int
    problems: list[str]


class Imported(Shape):
    """`store import`."""

    store: str
    imported: int
    known: int
    blobs: int
    missing_blobs: int
    lost_bodies: int = Field(description="Bodies that the exported store's archives had lost.")
    anchor: Anchor


class Compacted(Shape):
    """`store compact`."""

    store: str
    dry_run: bool
    log_bytes_before: int
    log_bytes_after: int
    removed_blobs: int
    removed_blob_bytes: int


class Setting(Shape):
    """A setting, and where its value comes from."""

    name: str
    value: Any
    origin: str
    meaning: str


class Settings(Shape):
    """`config show`."""

    store: str
    store_origin: str
    settings: list[Setting]


class Place(Shape):
    """A path, and whether something is there."""

    path: str
    exists: bool


class StorePlace(Place):
    """Where the store is, and by which rule."""

    origin: str


class Paths(Shape):
    """`config path`."""

    store: StorePlace
    store_config: Place
    user_config: Place


class Check(Shape):
    """A thing that `doctor` looked at."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str | None


class Health(Shape):
    """`doctor`."""

    healthy: bool
    checks: list[Check]


class Job(Shape):
    """A job of `job list`."""

    job: str
    description: str


class Report(Shape):
    """`job run code-report`."""

    job_run_id: str
    semantic_outcome: Outcome
    reused_batches: int
    ran_batches: int
    report: list[str]


class Demo(Report):
    """`demo`."""

    killed_pid: int
    store: str


KEEPING: dict[str, TypeAdapter[Any]] = {
    "store-info": TypeAdapter(Info),
    "store-verify": TypeAdapter(Verified),
    "store-backup": TypeAdapter(Backup),
    "store-import": TypeAdapter(Imported),
    "store-compact": TypeAdapter(Compacted),
    "config-show": TypeAdapter(Settings),
    "config-path": TypeAdapter(Paths),
    "doctor": TypeAdapter(Health),
    "job-list": TypeAdapter(list[Job]),
    "job-run-code-report": TypeAdapter(Report),
    "demo": TypeAdapter(Demo),
}
