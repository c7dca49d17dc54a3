"""A held process is signalled or nobody is; both ways of holding one behave the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from tachograph.infra import holding
from tachograph.infra.processes import process_start

NOBODY = 2**22 + 1
"""More than any pid."""


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its standard input is closed."""
    code = "import sys; sys.stdout.write('up\\n'); sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()


@pytest.fixture(params=["pidfd", "no pidfd", "pidfd is forbidden"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a machine may offer."""

    def refuse(pid: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "no pidfd":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    elif request.param == "pidfd is forbidden":
        monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    elif not hasattr(os, "pidfd_open"):
        pytest.skip("this machine has no pidfd")
    return str(request.param)


def hold(pid: int) -> holding.Held:
    held = holding.hold(pid, process_start(pid))
    assert held is not None
    return held


def test_a_held_process_is_signalled_until_it_has_ended(
    way: str, child: subprocess.Popen[bytes]
) -> None:
    held = hold(child.pid)
    before = held.ended()
    sent = held.send(signal.SIGTERM)
    child.wait()
    after = (held.ended(), held.send(signal.SIGTERM))
    held.close()

    assert (before, sent, after) == (False, True, (True, False))


def test_one_that_waits_to_be_reaped_has_ended(way: str, child: subprocess.Popen[bytes]) -> None:
    held = hold(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert held.ended()
    held.close()


def test_the_end_is_waited_for(way: str, child: subprocess.Popen[bytes]) -> None:
    held = hold(child.pid)
    held.send(signal.SIGTERM)
    holding.wait([held], 3600)

    assert held.ended()
    held.close()


def test_when_the_time_is_up_the_wait_is_over(way: str, child: subprocess.Popen[bytes]) -> None:
    held = hold(child.pid)
    start = time.monotonic()
    holding.wait([held], 0.01)

    assert time.monotonic() - start >= 0.01
    assert not held.ended()
    held.close()


@pytest.mark.parametrize("started", [None, -1, 1])
def test_another_start_time_is_another_process(
    way: str, child: subprocess.Popen[bytes], started: int | None
) -> None:
    assert holding.hold(child.pid, started) is None


def test_nobody_is_held_where_there_is_no_process(way: str) -> None:
    assert holding.hold(NOBODY, 1) is None


def test_nobody_descends_from_a_process_that_is_gone() -> None:
    assert holding.children_of(NOBODY) == []
    assert not holding.is_in_group(NOBODY, NOBODY)


@pytest.mark.parametrize("platform", [sys.platform, "freebsd14"])
def test_we_descend_from_our_parents(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parents = [parent.pid for parent in psutil.Process().parents()]
    monkeypatch.setattr(sys, "platform", platform)

    assert list(holding.ourselves()) == [os.getpid(), *parents]


@pytest.mark.parametrize("platform", [sys.platform, "freebsd14"])
def test_a_parent_that_is_gone_ends_the_line(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getppid", lambda: NOBODY)
    monkeypatch.setattr(sys, "platform", platform)

    assert list(holding.ourselves()) == [os.getpid(), NOBODY]


@pytest.mark.parametrize("error", [ProcessLookupError(), PermissionError()])
def test_a_signal_that_the_system_refuses_was_not_sent(
    child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    if not hasattr(os, "pidfd_open"):
        pytest.skip("this machine has no pidfd")

    def refuse(descriptor: int, number: int) -> None:
        raise error

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    held = hold(child.pid)
    sent = held.send(signal.SIGTERM)
    held.close()

    assert not sent
