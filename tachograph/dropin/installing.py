"""Put the scripts into a workspace and take them out again. What was there before comes back.

Nothing that somebody wrote by hand is removed or overwritten without a copy.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tachograph.dropin import heartbeats
from tachograph.dropin.page import PAGE
from tachograph.infra import workspace_files

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.dropin.places import Workspace

    Record = dict[str, Any]

FOLDER = ("data", "tachograph-drop-in")
"""Where the workspace keeps what was there before, and what was installed."""
RECORD = "installed.json"
BEFORE = "before"
EDITED = "edited"
NO_INTERPRETER = 'INTERPRETER = ""'
NO_PROGRAM = 'PROGRAM = ""'


class Installation:
    """What installing or uninstalling did, or in a dry run would do; paths as texts."""

    def __init__(self) -> None:
        self.copied: list[str] = []
        self.unchanged: list[str] = []
        self.removed: list[str] = []
        self.restored: list[str] = []
        self.kept: list[str] = []
        """Files that were changed by hand: uninstall leaves them, install keeps a copy."""
        self.heartbeat_changed = False


def contents(interpreter: str = sys.executable) -> dict[str, bytes]:
    """Return the files that are installed, by their path in the workspace."""
    runtime = _text("task_runtime").replace(NO_INTERPRETER, f"INTERPRETER = {interpreter!r}")
    program = _text("task_runtime_program")
    made = {
        "scripts/task_runtime.py": runtime,
        "scripts/task_runtime_watch.py": program.replace(NO_PROGRAM, 'PROGRAM = "watch"'),
        "scripts/task_runtime_resume.py": program.replace(NO_PROGRAM, 'PROGRAM = "resume"'),
        "templates/openclaw-task-recovery/task_resume.py": _text("task_resume"),
        "docs/openclaw-task-recovery/tachograph.md": PAGE,
    }
    return {name: text.encode() for name, text in made.items()}


def install(workspace: Workspace, *, dry_run: bool = False) -> Installation:
    """Install or refresh the files, and the section of HEARTBEAT.md; again changes nothing.

    A crash in the middle leaves a workspace that another run completes.
    """
    done = Installation()
    record = _load(workspace)
    for name, data in contents().items():
        path = workspace.root / name
        if workspace_files.read(path) == data:
            done.unchanged.append(str(path))
            if name not in record["files"] and not dry_run:  # the record was lost
                record["files"][name] = {"sha256": _digest(data), "before": False}
                _save(workspace, record)
            continue
        done.copied.append(str(path))
        if not dry_run:
            _install_file(workspace, record, name, data, done)
    _install_heartbeat(workspace, record, done, dry_run=dry_run)
    return done


def uninstall(workspace: Workspace, *, dry_run: bool = False) -> Installation:
    """Take the files out and put back what was there before; cards and store stay."""
    done = Installation()
    record = _load(workspace)
    for name in list(record["files"]):
        _uninstall_file(workspace, record, name, done, dry_run=dry_run)
    _uninstall_heartbeat(workspace, record, done, dry_run=dry_run)
    if dry_run:
        return done
    for name in contents():
        workspace_files.remove_empty((workspace.root / name).parent)
    if record["files"]:
        _save(workspace, record)
    else:
        _forget(workspace)
    return done


# Single files.


def _install_file(
    workspace: Workspace, record: Record, name: str, data: bytes, done: Installation
) -> None:
    path = workspace.root / name
    present = workspace_files.read(path)
    known = record["files"].get(name)
    if present is not None and known is None:
        workspace_files.replace(_folder(workspace) / BEFORE / name, present)
    elif present is not None and known is not None and _digest(present) != known["sha256"]:
        done.kept.append(str(_keep_edit(workspace, name, present)))
    before = known["before"] if known is not None else present is not None
    # The record comes first: what it does not know, nothing would put back.
    record["files"][name] = {"sha256": _digest(data), "before": before}
    _save(workspace, record)
    is_program = name.endswith(".py")
    mode = workspace_files.PROGRAM if is_program else workspace_files.PLAIN
    workspace_files.replace(path, data, mode=mode)


def _uninstall_file(
    workspace: Workspace, record: Record, name: str, done: Installation, *, dry_run: bool
) -> None:
    path = workspace.root / name
    known = record["files"][name]
    present = workspace_files.read(path)
    if present is not None and _digest(present) != known["sha256"]:
        done.kept.append(str(path))
        return
    former = _folder(workspace) / BEFORE / name
    data = workspace_files.read(former) if known["before"] else None
    (done.removed if data is None else done.restored).append(str(path))
    if dry_run:
        return
    if data is None:
        workspace_files.remove(path)
    else:
        workspace_files.replace(path, data)
    del record["files"][name]
    _save(workspace, record)


def _keep_edit(workspace: Workspace, name: str, present: bytes) -> Path:
    kept = _folder(workspace) / EDITED / f"{name}.{_digest(present)[:12]}"
    workspace_files.replace(kept, present)
    return kept


# HEARTBEAT.md.


def _install_heartbeat(
    workspace: Workspace, record: Record, done: Installation, *, dry_run: bool
) -> None:
    path = workspace.heartbeat
    present = workspace_files.read(path)
    wanted = heartbeats.patched(present, heartbeats.block(workspace.root))
    done.heartbeat_changed = wanted != present
    if dry_run or not done.heartbeat_changed:
        return
    known = record["heartbeat"]
    if known is None:
        former = None if present is None else heartbeats.section_of(present)
        known = {"before": present is not None, "section": former is not None}
        for name, data in (("HEARTBEAT.md", present), ("section", former)):
            if data is not None:
                workspace_files.replace(_folder(workspace) / BEFORE / name, data)
    elif present is None or _digest(present) != known["sha256"]:
        known["touched"] = True  # somebody else wrote to it as well: only the section is ours
    record["heartbeat"] = {**known, "sha256": _digest(wanted)}
    _save(workspace, record)
    workspace_files.replace(path, wanted)


def _uninstall_heartbeat(
    workspace: Workspace, record: Record, done: Installation, *, dry_run: bool
) -> None:
    known = record["heartbeat"]
    present = workspace_files.read(workspace.heartbeat)
    if known is None or present is None:
        return
    before = _folder(workspace) / BEFORE
    if _digest(present) == known["sha256"] and not known.get("touched"):
        wanted = workspace_files.read(before / "HEARTBEAT.md") if known["before"] else None
    else:
        former = workspace_files.read(before / "section") if known["section"] else None
        wanted = heartbeats.without(present, former)
    done.heartbeat_changed = wanted != present
    if dry_run:
        return
    if wanted is None:
        workspace_files.remove(workspace.heartbeat)
    elif done.heartbeat_changed:
        workspace_files.replace(workspace.heartbeat, wanted)
    record["heartbeat"] = None


# What is remembered.


def _folder(workspace: Workspace) -> Path:
    return workspace.root.joinpath(*FOLDER)


def _load(workspace: Workspace) -> Record:
    data = workspace_files.read(_folder(workspace) / RECORD)
    record: Record = {"files": {}, "heartbeat": None} if data is None else json.loads(data)
    return record


def _save(workspace: Workspace, record: Record) -> None:
    text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    workspace_files.replace(_folder(workspace) / RECORD, text.encode())


def _forget(workspace: Workspace) -> None:
    """Remove what was remembered; edits that were kept stay."""
    folder = _folder(workspace)
    workspace_files.remove(folder / RECORD)
    before = folder / BEFORE
    for path in sorted(before.rglob("*"), reverse=True):
        (workspace_files.remove_empty if path.is_dir() else workspace_files.remove)(path)
    workspace_files.remove_empty(before)
    workspace_files.remove_empty(folder)


def _text(module: str) -> str:
    return files("tachograph.dropin.installed").joinpath(f"{module}.py").read_text("utf-8")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
