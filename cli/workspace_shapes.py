"""The JSON of the commands about workspaces, as models; see `shapes`. Never imported to print."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from tachograph.cli.reading_shapes import Shape


class Installed(Shape):
    """`workspace install`; its names are those of the scripts that it replaces."""

    ok: Literal[True]
    workspace: str
    copied: list[str] = Field(description="Files that were written.")
    unchanged: list[str] = Field(description="Files that were as they should be.")
    kept: list[str] = Field(description="Copies of files that had been changed by hand.")
    heartbeat_changed: bool = Field(alias="heartbeat_changed")
    dry_run: bool = Field(alias="dry_run")


class Uninstalled(Shape):
    """`workspace uninstall`."""

    ok: Literal[True]
    workspace: str
    removed: list[str]
    restored: list[str] = Field(description="Files that were there before, and are again.")
    kept: list[str] = Field(description="Files that were changed by hand, and stay.")
    heartbeat_changed: bool = Field(alias="heartbeat_changed")
    dry_run: bool = Field(alias="dry_run")


class ImportedCard(Shape):
    """A card file, and what came of it."""

    file: str
    task_id: str
    state: Literal["imported", "known", "unreadable"]
    status: str | None = Field(description="Of the task; null for an unreadable file.")
    problem: str | None


class ImportedCards(Shape):
    """`workspace import`."""

    workspace: str
    dry_run: bool
    cards: list[ImportedCard]


class Synced(Shape):
    """`workspace sync`."""

    workspace: str
    written: list[str] = Field(description="Tasks whose card file differed.")
    problems: list[str]


class Scaffolded(Shape):
    """`workspace scaffold`."""

    task_id: str
    adapter: str
    job: str
    card: str


WORKSPACE: dict[str, TypeAdapter[Any]] = {
    "workspace-install": TypeAdapter(Installed),
    "workspace-uninstall": TypeAdapter(Uninstalled),
    "workspace-import": TypeAdapter(ImportedCards),
    "workspace-sync": TypeAdapter(Synced),
    "workspace-scaffold": TypeAdapter(Scaffolded),
}
