"""Do something in a child that kills itself right before one of its steps. Holds no test."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from tachograph.infra.lmdb_environment import Environment

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = (
    "open",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.mkdir",
    "shutil.rmtree",
    "fcntl.flock",
    "tachograph.commit",
    "tachograph.committed",
)
"""Audit events (see sys.addaudithook) of everything that changes files, and each commit."""


def die_at(step: int) -> None:
    """Let this process kill itself right before its n-th step."""
    seen = 0

    def hook(event: str, _arguments: Any) -> None:
        nonlocal seen
        if event in STEPS:
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    update = Environment.update

    def audited(self: Environment, *arguments: Any) -> Any:
        sys.audit("tachograph.commit")
        try:
            return update(self, *arguments)
        finally:
            sys.audit("tachograph.committed")

    setattr(Environment, "update", audited)  # noqa: B010  # a patch, for this child alone


def in_a_child(work: Callable[[], object], step: int) -> int:
    """Work in a child that is killed before a step (0: never); return how the child ended."""
    child = os.fork()
    if not child:
        code = 1
        try:
            die_at(step)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
