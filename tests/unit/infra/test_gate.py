"""The gate: nobody moves the map while a transaction is open."""

from __future__ import annotations

import threading

from tachograph.infra.gate import Gate


def run(work: object) -> threading.Thread:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_closing_waits_until_nobody_is_inside() -> None:
    gate = Gate()
    order: list[str] = []
    gate.enter()

    def close() -> None:
        gate.close()
        order.append("closed")
        gate.open()

    closer = run(close)
    while not gate._closed_by:
        pass
    order.append("left")
    gate.leave()
    closer.join()

    assert order == ["left", "closed"]


def test_entering_waits_until_the_gate_is_open() -> None:
    gate = Gate()
    order: list[str] = []
    gate.close()

    def enter() -> None:
        gate.enter()
        order.append("entered")
        gate.leave()

    enterer = run(enter)
    while not gate._waiting:
        pass
    order.append("opened")
    gate.open()
    enterer.join()

    assert order == ["opened", "entered"]


def test_a_thread_inside_may_enter_again_while_the_gate_closes() -> None:
    """Its closer waits for it: making it wait would be a deadlock."""
    gate = Gate()
    gate.enter()

    def close() -> None:
        gate.close()
        gate.open()

    closer = run(close)
    while not gate._closed_by:
        pass

    gate.enter()
    gate.leave()
    gate.leave()
    closer.join()

    assert not gate.is_inside()


def test_the_thread_that_closed_the_gate_may_enter() -> None:
    gate = Gate()
    gate.close()

    gate.enter()

    assert gate.is_inside()
    gate.leave()
    gate.open()


def test_closing_gives_up_when_its_time_is_over() -> None:
    gate = Gate()
    gate.enter()
    results: list[bool] = []

    run(lambda: results.append(gate.close(0))).join()

    assert results == [False]
    gate.leave()
    assert gate.close(0)


def test_closing_gives_up_when_another_keeps_the_gate_closed() -> None:
    gate = Gate()
    gate.close()
    results: list[bool] = []

    run(lambda: results.append(gate.close(0))).join()

    assert results == [False]


def test_only_who_closed_the_gate_opens_it() -> None:
    gate = Gate()
    gate.close()

    run(gate.open).join()

    assert gate._closed_by
    gate.open()
    assert not gate._closed_by


def test_two_closers_take_turns() -> None:
    gate = Gate()
    inside = [0]
    highest = [0]

    def work() -> None:
        for _ in range(200):
            gate.close()
            inside[0] += 1
            highest[0] = max(highest[0], inside[0])
            inside[0] -= 1
            gate.open()

    threads = [run(work) for _ in range(4)]
    for thread in threads:
        thread.join()

    assert highest == [1]
