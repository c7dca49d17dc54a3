"""Whole processes: what a job script pays for a command, and what a large store adds to it."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import durable
import installed
import stores
from harness import LOWER, Figure, absent, in_milliseconds, latencies, timed

from tachograph.projecting import catch_up
from tachograph.starting import Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Bench, Measure

SCRIPT = Path(__file__).with_name("peers") / "json_card.py"
CARD = "a script that keeps a JSON card"
FEW = 10
MANY = 100_000
PER_ROUND = 5
RUN_ID = "mail-000005"
"""A run that both the small and the large store have."""


class Commands:
    """Runs programs of an environment on one store, and waits for their end."""

    def __init__(self, environment: Path, store: Path, **variables: str) -> None:
        self._environment = environment
        self._folder = store.parent
        self._variables = installed.clean_environment(
            store.parent, TACHO_STORE=str(store), **variables
        )

    def seconds(self, name: str, *arguments: str) -> float:
        """Return how long a program takes. Raises CommandError when it fails."""
        command = [installed.program(name, self._environment), *arguments]
        return timed(lambda: self._run(command))

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            env=self._variables,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        if done.returncode:
            raise CommandError(command, done)


class CommandError(Exception):
    """A command failed."""

    def __init__(self, command: list[str], done: subprocess.CompletedProcess[bytes]) -> None:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        words = " ".join([Path(command[0]).name, *command[1:3]])
        super().__init__(f"{words} exits with {done.returncode}: {' '.join(said[-2:])}")


def figures(bench: Bench) -> Iterator[Figure]:
    """Yield the time of commands as whole processes."""
    bench.say("installing a wheel of this code, unless that was done")
    environment = installed.environment()
    yield from _checkpoint(bench, environment)
    yield from _reading(bench, environment)
    yield from _watching(bench, environment)


def _checkpoint(bench: Bench, environment: Path) -> Iterator[Figure]:
    store = bench.folder / "store"
    services = stores.new_store(store)
    session = services.starter.start(Start("nightly-report", {"root": "src"}), services.owner())
    services.close()
    commands = Commands(
        environment, store, TACHO_RUN_ID=session.run_id, TACHO_EPOCH=str(session.epoch)
    )
    card = bench.folder / "card.json"
    card.write_text(json.dumps(durable.new_card(), indent=2), encoding="utf-8")
    script = installed.compiled(SCRIPT, bench.folder)
    numbers = itertools.count()

    def offset() -> tuple[str, ...]:
        return ("--offset", str(next(numbers)), "--total", "1000000")

    def ours() -> float:
        return commands.seconds("tacho", "run", "checkpoint", *offset())

    def script_peer() -> float:
        return commands.seconds("python", script, str(card), *offset())

    def idle_peer() -> float:
        return commands.seconds("python", "-c", "pass")

    name = "tacho run checkpoint"
    pairs = latencies(ours, script_peer, per_round=PER_ROUND, seconds=bench.seconds(20))
    yield Figure(name, CARD, "ms", in_milliseconds(pairs), relation=LOWER, target=1.0)
    pairs = latencies(ours, idle_peer, per_round=PER_ROUND, seconds=bench.seconds(6))
    yield Figure(name, "python -c pass", "ms", in_milliseconds(pairs), relation=LOWER)


def _reading(bench: Bench, environment: Path) -> Iterator[Figure]:
    """Yield what many runs in a store add to reading commands."""
    many = bench.size(MANY, MANY // 10)
    few_commands = Commands(environment, _store(bench, FEW))
    many_commands = Commands(environment, _store(bench, many))
    for words in (("run", "list"), ("run", "status", RUN_ID)):
        name = f"tacho {words[0]} {words[1]}, {many:,} runs"
        peer = f"with {FEW} runs"
        try:
            pairs = latencies(
                _reader(many_commands, words),
                _reader(few_commands, words),
                per_round=PER_ROUND,
                seconds=bench.seconds(15),
            )
        except CommandError as error:
            yield absent(name, peer, str(error), relation=LOWER, target=1.5)
        else:
            yield Figure(name, peer, "ms", in_milliseconds(pairs), relation=LOWER, target=1.5)


def _watching(bench: Bench, environment: Path) -> Iterator[Figure]:
    """Yield what many living runs add to a watchdog's look when none of them is stale."""
    many = bench.size(MANY, MANY // 10)
    words = ("watchdog", "run", "--once", "--auto-resume")
    few_commands = Commands(environment, _living(bench, FEW))
    many_commands = Commands(environment, _living(bench, many))
    pairs = latencies(
        _reader(many_commands, words),
        _reader(few_commands, words),
        per_round=PER_ROUND,
        seconds=bench.seconds(15),
    )
    name = f"tacho watchdog run --once, {many:,} living runs"
    peer = f"with {FEW} runs"
    yield Figure(name, peer, "ms", in_milliseconds(pairs), relation=LOWER, target=1.5)


def _living(bench: Bench, runs: int) -> Path:
    """Make a store of so many runs that this process is at, or that have just beaten."""
    folder = bench.folder / f"{runs}-living"
    if runs > FEW:
        bench.say(f"recording {runs:,} living runs")
    services = stores.new_store(folder)
    stores.fill(services, stores.living_runs(runs, services.owner().to_fields()))
    for number in range(1, runs, 2):
        services.presence.beat(f"mail-{number:06}", 1, None, lease_seconds=86_400)
    catch_up(services.log, services.codec, services.views())
    services.close()
    return folder


def _reader(commands: Commands, words: tuple[str, ...]) -> Measure:
    return lambda: commands.seconds("tacho", *words)


def _store(bench: Bench, runs: int) -> Path:
    """Make a store of so many runs whose views are caught up, as after any reading command."""
    folder = bench.folder / f"{runs}-runs"
    if runs > FEW:
        bench.say(f"recording {runs:,} runs")
    services = stores.new_store(folder)
    stores.fill(services, stores.short_runs(runs))
    catch_up(services.log, services.codec, services.views())
    services.close()
    return folder
