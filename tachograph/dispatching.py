"""Build what resuming needs: planner and dispatcher of an open store.

Like bootstrap it knows both sides. It is imported only where a run is planned or resumed.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tachograph.infra import adapter_child, adapters
from tachograph.infra.spool import Spooled, spooled
from tachograph.keeping import Heartbeat
from tachograph.planning import Planner
from tachograph.resuming import LONGEST_CHECKPOINT, Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.domain.owner import Owner
    from tachograph.domain.recovery import Recovery
    from tachograph.resuming import Outputs

COMMAND = "command"
CHECK_SECONDS = 60.0
"""How long the check of one artifact may take."""


def planner_of(services: Services) -> Planner:
    """Return what makes plans of resumes."""
    return Planner(
        services.repository,
        services.liveness,
        services.actor.now_us,
        locate,
        check_file,
    )


def dispatcher_of(services: Services) -> Dispatcher:
    """Return what resumes runs."""
    return Dispatcher(
        services.repository,
        services.payloads,
        services.planner,
        services.beat,
        services.actor,
        StoreAdapters(services),
    )


def locate(run_id: str, declared: Recovery) -> dict[str, Any]:
    """Return what would be executed to continue a run.

    Raises AdapterNotFoundError, AdapterUnusableError, or OSError for a command that is not there.
    """
    folder = declared.working_folder
    if declared.adapter is None:
        command = list(declared.command or ())
        adapter_child.find_program(command[0], os.environ, folder)
        found = adapters.AdapterCommand(COMMAND, shlex.join(command), command, None)
        argv = command
    else:
        found = adapters.resolve(declared.adapter, folder, os.environ, python=declared.python)
        argv = [*found.argv, *adapters.arguments(run_id, declared.timeout_seconds)]
    return {
        "kind": found.kind,
        "name": found.name,
        "argv": argv,
        "folder": folder,
        "code_path": found.code_path,
        "timeout_seconds": declared.timeout_seconds,
    }


def code_files(declared: Recovery) -> list[str]:
    """Return the files whose change would make a resume do something else than it did.

    For a command these are the files among its words. Raises what `locate` raises.
    """
    found = locate("", declared)
    if found["kind"] != COMMAND:
        return [] if found["code_path"] is None else [found["code_path"]]
    words = [os.path.join(declared.working_folder or "", word) for word in found["argv"]]  # noqa: PTH118
    # Path.is_file raises for a word that is too long for a name, such as a whole program.
    return [path for path in words if os.path.isfile(path)]  # noqa: PTH113


def check_file(command: Sequence[str], path: str, folder: str | None) -> str | None:
    """Run a check of a file, and return what is wrong with the file, None when it is good."""
    try:
        done = subprocess.run(
            [*command, path],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]} cannot be run: {error}"
    if done.returncode == 0:
        return None
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
    return said.splitlines()[-1] if said else f"exit code {done.returncode}"


class StoreAdapters:
    """Runs the adapters of a store's runs."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def outputs(self, run_id: str, epoch: int) -> Spooled:
        """Return the files for an attempt."""
        return spooled(self._services.folder, run_id, epoch)

    def run(
        self,
        execute: Mapping[str, Any],
        variables: Mapping[str, str],
        outputs: Outputs,
        on_started: Callable[[int], None],
    ) -> adapter_child.AdapterEnd:
        """Run an adapter to its end. Raises OSError when it cannot be run at all."""
        environment = {**os.environ, **variables, "TACHO_STORE": self._services.folder}
        checkpoint = environment["TACHO_CHECKPOINT"]
        if len(checkpoint) > LONGEST_CHECKPOINT:
            Path(outputs.checkpoint).write_text(checkpoint, encoding="utf-8")
            environment["TACHO_CHECKPOINT"] = f"@{outputs.checkpoint}"
        return adapter_child.run_adapter(
            execute["argv"],
            environment,
            folder=execute["folder"],
            stdout_path=outputs.stdout,
            stderr_path=outputs.stderr,
            timeout_seconds=execute["timeout_seconds"],
            on_started=on_started,
        )

    def owner(self, pid: int | None = None) -> Owner:
        """Describe a process, this one by default."""
        return self._services.owner(pid)

    @contextlib.contextmanager
    def heartbeat(self, beat: Callable[[], None]) -> Iterator[None]:
        """Renew the lease while the block runs."""
        keeper = Heartbeat(beat, self._services.settings.heartbeat_seconds)
        keeper.start()
        try:
            yield
        finally:
            keeper.stop()
