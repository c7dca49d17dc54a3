"""Who waits for work is woken by a word, by a write, or by the time; never too late."""

from __future__ import annotations

import threading

from tachograph.infra.log_sleeper import LogSleeper


class Log:
    """A log whose number of transactions the test sets."""

    def __init__(self) -> None:
        self.number = 1

    def last_transaction(self) -> int:
        return self.number


def test_a_write_before_the_wait_is_not_missed() -> None:
    log = Log()
    sleeper = LogSleeper(log.last_transaction)
    mark = sleeper.mark()
    log.number = 2
    sleeper.wait(1_000_000.0, mark)

    assert sleeper.mark() != mark


def test_a_word_before_the_wait_is_not_missed() -> None:
    sleeper = LogSleeper(Log().last_transaction)
    mark = sleeper.mark()
    sleeper.wake()
    sleeper.wait(1_000_000.0, mark)

    assert sleeper.mark() != mark


def test_a_word_wakes_all() -> None:
    sleeper = LogSleeper(Log().last_transaction)
    mark = sleeper.mark()
    threads = [threading.Thread(target=sleeper.wait, args=(1_000_000.0, mark)) for _ in range(3)]
    for thread in threads:
        thread.start()
    sleeper.wake()
    for thread in threads:
        thread.join()

    assert not any(thread.is_alive() for thread in threads)


def test_without_either_the_time_ends_it() -> None:
    sleeper = LogSleeper(Log().last_transaction)
    mark = sleeper.mark()
    sleeper.wait(0.0, mark)
    sleeper.wait(0.01, mark)

    assert sleeper.mark() == mark
