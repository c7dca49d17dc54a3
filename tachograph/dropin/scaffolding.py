"""Write an ad hoc adapter with the task that it continues. Never overwrites a file."""

from __future__ import annotations

import shlex
from importlib.resources import files
from typing import TYPE_CHECKING

from tachograph import cards
from tachograph.domain import ids
from tachograph.domain.errors import TachographError
from tachograph.dropin import scaffolds
from tachograph.dropin.errors import TaskExistsError
from tachograph.dropin.syncing import write_card
from tachograph.dropin.wishes import Wish
from tachograph.infra import workspace_files

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.dropin.tasks import Tasks

PYTHON = "python"
BASH = "bash"
TEMPLATES = (PYTHON, BASH)
TASK_TYPE = "adhoc"


class FileExistsAlreadyError(TachographError):
    """A file is in the place of one that would be written."""

    template = "{0} exists already. Nothing was written: name another slug, or remove it."


class ScriptsMissingError(TachographError):
    """The workspace has no scripts."""

    template = "{0} is missing: run `tacho workspace install` first. Nothing was written."


class Scaffold:
    """What was written: the adapter, the job, and the task that they belong to."""

    def __init__(self, task_id: str, adapter: Path, job: Path, card: Path) -> None:
        self.task_id = task_id
        self.adapter = adapter
        self.job = job
        self.card = card


def scaffold(tasks: Tasks, slug: str, *, template: str, title: str | None = None) -> Scaffold:
    """Write the files and begin the task, waiting for its job; nothing when anything is there.

    Raises FileExistsAlreadyError, TaskExistsError, ScriptsMissingError or InvalidIdError.
    """
    task_id = ids.task_id(slug)
    title = title or slug
    folder = tasks.workspace.root / "tmp" / "task-runtime" / task_id
    texts = _texts(template, task_id, title)
    _check_free(tasks, task_id, [folder / name for name in texts])
    for name, text in texts.items():
        workspace_files.replace(folder / name, text.encode(), mode=workspace_files.PROGRAM)
    adapter, job = (folder / name for name in texts)
    wish = Wish(
        event="created",
        message="made by tacho workspace scaffold",
        status=cards.PENDING,
        title=title,
        adapter=str(adapter),
        allow_auto_resume=True,
        stale_after_minutes=cards.DEFAULT_STALE_MINUTES,
    )
    tasks.create(TASK_TYPE, wish, given_id=task_id)
    write_card(tasks, task_id)
    return Scaffold(task_id, adapter, job, tasks.workspace.card_file(task_id))


def _texts(template: str, task_id: str, title: str) -> dict[str, str]:
    """Return the adapter and the job, by their names."""
    if template == BASH:
        quoted = shlex.quote(title)
        return {
            "task_resume.sh": scaffolds.RESUME.replace("SLUG", task_id),
            "job.sh": scaffolds.JOB.replace("SLUG", task_id).replace("=TITLE", f"={quoted}"),
        }
    resume, job = _module("adhoc_resume"), _module("adhoc_job")
    job = job.replace('SLUG = "SLUG"', f"SLUG = {task_id!r}").replace('"TITLE"', repr(title))
    return {
        "task_resume.py": resume.replace("SLUG", task_id),
        "job.py": job.replace("task SLUG", f"task {task_id}"),
    }


def _check_free(tasks: Tasks, task_id: str, paths: list[Path]) -> None:
    script = tasks.workspace.scripts / "task_runtime.py"
    if not script.is_file():
        raise ScriptsMissingError(str(script))
    for path in paths:
        if path.exists():
            raise FileExistsAlreadyError(str(path))
    run = tasks.newest(task_id)
    if run is not None and not run.finished:
        raise TaskExistsError(task_id, cards.status(run), run.id)


def _module(name: str) -> str:
    return files("tachograph.dropin.installed").joinpath(f"{name}.py").read_text("utf-8")
