"""A project with queues, and workers of it in processes of their own. Holds no test."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_line import TACHO

from tachograph.bootstrap import open_store
from tachograph.domain.queued_job import run_id_of
from tachograph.infra.processes import process_start
from tachograph.queue_plans import plan_of
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.domain.queued_job import QueuedJob

HANDLERS = '''
import os, subprocess, sys, threading, time
from tachograph.queues.handlers import handler

def log(word):
    with open("log", "a") as file:
        file.write(word + "\\n")

def wait(job):
    """Say on one pipe that it is at work, and wait for a word on another."""
    log(f"begun {job.attempt}")
    with open("started", "w") as pipe:
        pipe.write("begun\\n")
    with open("go") as pipe:
        pipe.read()

@handler("plain")
def plain(job):
    log(f"plain {job.payload}")
    return {"payload": job.payload}

@handler("bad")
def bad(job):
    raise ValueError("no")

@handler("slow")
def slow(job):
    if job.run.checkpoint is None:
        job.run.effect("mail", log, "sent")
        job.run.save_offset(5, 10)
    log(f"from {job.run.checkpoint['offset']}")
    if job.attempt == 1:
        wait(job)
    log("done")

@handler("limited")
def limited(job):
    """Has a time limit: it starts a process beside itself, and never ends."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    log(f"pids {os.getpid()} {child.pid}")
    threading.Event().wait()

@handler("isolated")
def isolated(job):
    log(f"isolated {os.getpid()} {job.payload}")
    job.run.progress(1, 2)
    if job.payload == "later":
        from tachograph.domain.queue_errors import RetryLaterError
        raise RetryLaterError(3_600)
    if job.payload == "limit":
        from tachograph.domain.queue_errors import RateLimitExceededError
        raise RateLimitExceededError("429")
    return {"done": job.payload}
'''
PROJECT = """
[queues.memory.types.limited]
timeout = "4s"
[queues.memory.types.isolated]
timeout = "60s"
[queues.memory.types.shell]
command = ["sh", "work.sh"]
[queues.memory.types.brief]
command = ["sh", "work.sh"]
timeout = "2s"
[queues.summary]
"""
STARTED = "echo begun >started; "
"""Says on a pipe that it is at work."""


class Project:
    """A folder with handlers, a store, and pipes by which handlers wait for the test."""

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder = folder
        self.store = store
        self.processes: list[subprocess.Popen[str]] = []
        folder.mkdir()
        (folder / "worker_jobs.py").write_text(HANDLERS)
        (folder / "tachograph.toml").write_text(PROJECT)
        for name in ("started", "go"):
            os.mkfifo(folder / name)

    def script(self, text: str) -> None:
        (self.folder / "work.sh").write_text(text)

    def enqueue(self, kind: str, payload: Any = None, queue: str = "memory", **more: Any) -> str:
        services = open_store(str(self.store), create=True)
        try:
            plan = plan_of(services, str(self.folder / "tachograph.toml")).plan
            return queues_of(services, plan).enqueue(Enqueue(queue, kind, payload, **more)).job_id
        finally:
            services.close()

    def complete(self, job_id: str) -> None:
        """Do a job without a worker."""
        services = open_store(str(self.store))
        try:
            queueing = queues_of(services)
            (leased,) = queueing.lease(["memory"], services.owner())
            assert leased.job.id == job_id
            queueing.complete(job_id, leased.job.epoch)
        finally:
            services.close()

    def job(self, job_id: str) -> QueuedJob:
        services = open_store(str(self.store), read_only=True)
        try:
            return queues_of(services).get(job_id)
        finally:
            services.close()

    def history(self, job_id: str) -> list[tuple[str, dict[str, Any]]]:
        services = open_store(str(self.store), read_only=True)
        try:
            history = queues_of(services).repository.history(job_id)
        finally:
            services.close()
        return [(record.topic.removeprefix("queue.job-"), fields) for record, fields in history]

    def run(self, job_id: str) -> Any:
        services = open_store(str(self.store), read_only=True)
        try:
            return services.repository.get(run_id_of(queues_of(services).get(job_id)))
        finally:
            services.close()

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a worker, whatever the load of the machine is."""
        command = [*TACHO, "queue", "worker", "--handlers", "worker_jobs", "--max-load", "0"]
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env={**os.environ, "TACHO_STORE": str(self.store)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def work(self, *arguments: str) -> tuple[int, str, str]:
        """Let a worker work to its end; return exit code, stdout and stderr."""
        process = self.begin(*(arguments or ("--drain",)))
        written, told = process.communicate()
        return process.returncode, written, told

    def wait_until_it_works(self) -> None:
        assert (self.folder / "started").read_text() == "begun\n"

    def let_go(self) -> None:
        (self.folder / "go").write_text("word\n")

    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


def projects(tmp_path: Path, store: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project", store)
    yield project
    project.end()


def is_gone(pid: int) -> bool:
    """Say whether a process has ended."""
    if process_start(pid) is None:
        return True
    # One that nobody has reaped has ended, too.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> None:
    process.send_signal(number)
