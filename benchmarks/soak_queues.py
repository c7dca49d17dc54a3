"""Kill queue workers at random, again and again, and prove that no job is lost or done wrongly.

`make soak`, or `python benchmarks/soak_queues.py --jobs 300 --kills 12`. Four real worker
processes do jobs; SIGKILL hits one after the other and another takes its place. Half of the jobs
have an effect with a key: it happens exactly once. The others are done at least once. Where a kill
hit within such an effect, nobody can know whether it happened: its job is dead as in doubt, and
the soak settles it as a person does, by a look at the world.

Prints a report with its seed. Ends with 1 when anything was not as promised.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soak_world import BEGIN, EFFECT, END, World, held_at_once

from tachograph.bootstrap import open_store
from tachograph.domain.queued_job import COMPLETED, DEAD, run_id_of
from tachograph.queue_plans import plan_of
from tachograph.queuekeeping import queues_of
from tachograph.queues.enqueueing import Enqueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tachograph.bootstrap import Services
    from tachograph.domain.queued_job import QueuedJob

HERE = Path(__file__).parent
QUEUE = "soak"
TYPES = ("keyed", "plain")
ATTEMPTS = 500
"""More than any job can lose to kills."""
PROJECT = f'[queues.{QUEUE}]\nmax_attempts = {ATTEMPTS}\npoll = "100ms"\n'
TACHO = (sys.executable, "-c", "from tachograph.cli.main import main; main()")
WORKERS = 4
SILENT_SECONDS = 60
"""Without a sign of any worker for so long, they are stuck."""
REQUEUED = 100
"""Jobs that one command requeues."""
IN_DOUBT = "EffectInDoubtError: "
"""How the error of a job begins that only a person can let go on."""


class StuckError(Exception):
    """Workers that live do nothing."""


class Soak:
    """A project with a queue, its workers, and what they did."""

    def __init__(self, folder: Path, jobs: int, seed: int) -> None:
        self.folder = folder
        self.jobs = jobs
        self.world = World()
        self.kills = 0
        self.settled: list[str] = []
        self.problems: list[str] = []
        self.ids: list[str] = []
        self._dice = random.Random(seed)
        self._out, self._in = os.pipe()
        self._rest = b""
        self._workers: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("TACHO_")},
            "TACHO_STORE": str(folder / "store"),
            "SOAK_PIPE": str(self._in),
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        }
        (folder / "tachograph.toml").write_text(PROJECT, encoding="utf-8")

    # The way of a soak.

    def run(self, kills: int) -> None:
        """Enqueue, do the jobs under kills, settle what is in doubt, then look at all of it."""
        self._enqueue()
        try:
            self._work_under_kills(kills)
            self._finish()
            if self._settle():
                self._finish()
        finally:
            for worker in self._workers:
                worker.kill()
                worker.wait()
        self._hear(0)
        self._check()

    def _open(self) -> Services:
        return open_store(str(self.folder / "store"), create=True, actor="soak")

    def _enqueue(self) -> None:
        services = self._open()
        queues = queues_of(services, plan_of(services, str(self.folder / "tachograph.toml")).plan)
        wants = [Enqueue(QUEUE, TYPES[number % 2], number) for number in range(self.jobs)]
        self.ids = [each.job_id for each in queues.enqueue_many(wants)]
        services.close()

    def _work_under_kills(self, kills: int) -> None:
        """Kill a worker after a random number of signs, and a random moment later."""
        self._workers = [self._start() for _ in range(WORKERS)]
        signs = max(2, 2 * 3 * self.jobs // max(kills, 1))
        while self.kills < kills and len(self.world.begun) < self.jobs:
            wanted = len(self.world.seen) + self._dice.randrange(signs)
            while len(self.world.seen) < wanted and len(self.world.begun) < self.jobs:
                self._hear(SILENT_SECONDS)
            until = time.perf_counter() + self._dice.random() * 0.01
            while time.perf_counter() < until:
                pass
            self._kill(self._dice.randrange(WORKERS))
            self._tell()

    def _tell(self) -> None:
        """Tell the person who waits how far it is."""
        if self.kills % 50 == 0:
            done = len(self.world.times(END))
            print(
                f"{self.kills} kills, {done:,} of {self.jobs:,} jobs", file=sys.stderr, flush=True
            )

    def _kill(self, number: int) -> None:
        worker = self._workers[number]
        self.world.killed_ns[worker.pid] = time.monotonic_ns()
        worker.kill()
        worker.wait()
        self.kills += 1
        self._workers[number] = self._start()

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                *TACHO,
                *("queue", "worker", QUEUE, "--handlers", "soak_handlers", "--max-load", "0"),
                *options,
            ],
            cwd=self.folder,
            env=self._environment,
            pass_fds=[self._in],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _finish(self) -> None:
        """Stop the workers in good order, and let others do what is left."""
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        self._await_end()
        self._workers = [self._start("--drain") for _ in range(WORKERS)]
        self._await_end()

    def _await_end(self) -> None:
        while any(worker.poll() is None for worker in self._workers):
            self._hear(0.05)

    def _hear(self, seconds: float) -> None:
        """Listen until somebody says something. Raises StuckError after the longest silence."""
        if not select.select([self._out], [], [], seconds)[0]:
            if seconds >= SILENT_SECONDS:
                raise StuckError(f"no sign of any worker for {seconds} s")
            return
        lines = (self._rest + os.read(self._out, 1 << 16)).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self.world.hear(line.decode())

    # What only a person can settle.

    def _settle(self) -> bool:
        """Say of each effect in doubt whether it happened, and requeue; False when there is none.

        The world knows: no handler is at work.
        """
        dead = [
            job
            for job in self._each_job()
            if job.status == DEAD and str(job.error).startswith(IN_DOUBT)
        ]
        happened = self.world.times(EFFECT)
        for job in dead:
            number = self.ids.index(job.id)
            told = "--done" if happened[number] else "--retry"
            reason = ("--reason", "looked at the world")
            self._tacho("run", "effect", "deliver", told, *reason, "--run", run_id_of(job))
            self.settled.append(job.id)
        for start in range(0, len(dead), REQUEUED):
            ids = ",".join(job.id for job in dead[start : start + REQUEUED])
            how = ("--reason", "settled", "--force", "--apply", "--max-batch", str(REQUEUED))
            self._tacho("queue", "requeue", "--ids", ids, *how)
        return bool(dead)

    def _tacho(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*TACHO, *words],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            self.problems.append(
                f"tacho {' '.join(words[:3])} exits with {done.returncode}: {said}"
            )
        return done

    # What must be so in the end.

    def _each_job(self) -> Iterator[QueuedJob]:
        services = self._open()
        queues = queues_of(services)
        try:
            for job_id in self.ids:
                yield queues.get(job_id)
        finally:
            services.close()

    def _check(self) -> None:
        effects = self.world.times(EFFECT)
        for number, job in enumerate(self._each_job()):
            what = f"job {number} ({job.type}, {job.attempts} attempts)"
            if job.status != COMPLETED:
                self.problems.append(f"{what} is {job.status}: {job.error}")
            if job.type == "keyed" and effects[number] != 1:
                self.problems.append(f"the effect of {what} happened {effects[number]} times")
            if not effects[number]:
                self.problems.append(f"{what} was never done")
        self.problems += self.world.overlaps()
        self._check_histories()
        self._check_counts()
        self._tacho("store", "verify")
        self._tacho("view", "check")

    def _check_histories(self) -> None:
        services = self._open()
        repository = queues_of(services).repository
        for number, job_id in enumerate(self.ids):
            history = [
                (record.topic, fields.get("epoch", 0))
                for record, fields in repository.history(job_id)
            ]
            completed = sum(topic == "queue.job-completed" for topic, _ in history)
            if held_at_once(history):
                self.problems.append(f"job {number} had two holders at once")
            if completed != 1:
                self.problems.append(f"job {number} was completed {completed} times")
        services.close()

    def _check_counts(self) -> None:
        shown = json.loads(self._tacho("queue", "status", QUEUE, "--json").stdout)
        counts = {
            name: number
            for name, number in shown["queues"][QUEUE].items()
            if name in {"pending", "leased", "completed", "failed", "dead", "cancelled"}
        }
        wanted = dict.fromkeys(counts, 0) | {"completed": self.jobs}
        if counts != wanted:
            self.problems.append(f"the queue counts {counts}")

    def report(self, seed: int, seconds: float) -> dict[str, Any]:
        """Return what was done and seen."""
        begun, effects = self.world.times(BEGIN), self.world.times(EFFECT)
        return {
            "seed": seed,
            "jobs": self.jobs,
            "workers": WORKERS,
            "kills": self.kills,
            "seconds": round(seconds, 1),
            "begun": sum(begun.values()),
            "most_attempts": max(begun.values(), default=0),
            "effects": sum(effects.values()),
            "repeated": sum(count - 1 for count in effects.values()),
            "in_doubt": len(self.settled),
            "problems": self.problems,
        }


def main() -> int:
    """Soak, print the report."""
    options = _parser().parse_args()
    kills = options.jobs // 50 if options.kills is None else options.kills
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="soak-") as folder:
        soak = Soak(Path(folder), options.jobs, options.seed)
        started = time.monotonic()
        try:
            soak.run(kills)
        except StuckError as error:
            soak.problems.append(str(error))
        report = soak.report(options.seed, time.monotonic() - started)
    print(json.dumps(report, indent=2))
    return int(bool(soak.problems))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--kills", type=int, help="how many; one for fifty jobs without")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--folder", type=Path, help="where to put the store; /tmp without")
    return parser


if __name__ == "__main__":
    sys.exit(main())
