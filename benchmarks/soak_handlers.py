"""Handlers of the soak: what they do goes down a pipe at once, so that no kill can take it back.

Each line is written by one call: monotonic time, process, what, number of the job, its attempt.
"""

from __future__ import annotations

import os
import time

import tachograph

PIPE = int(os.environ["SOAK_PIPE"])
BEGIN, EFFECT, END = "begin", "effect", "end"


@tachograph.handler("keyed")
def keyed(context: tachograph.JobContext) -> None:
    """Do something that must happen once: it has a key in the job's run."""
    say(BEGIN, context)
    context.run.effect("deliver", say, EFFECT, context)
    say(END, context)


@tachograph.handler("plain")
def plain(context: tachograph.JobContext) -> None:
    """Do something that may be repeated."""
    say(BEGIN, context)
    say(EFFECT, context)
    say(END, context)


def say(what: str, context: tachograph.JobContext) -> None:
    """Tell the world, which forgets nothing."""
    words = time.monotonic_ns(), os.getpid(), what, context.payload, context.attempt
    os.write(PIPE, f"{' '.join(map(str, words))}\n".encode())
