"""The name of this machine or container. Nothing else: it is read at the start of every command."""

from __future__ import annotations

import os


def this_host() -> str:
    """Return the name this machine or container gives itself."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import socket

    return socket.gethostname()
