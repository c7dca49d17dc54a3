"""Leader and followers: who commits for whom, and what each of them learns."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tachograph.domain.errors import StoreFullError, VersionConflictError
from tachograph.infra.group_commit import GroupCommit, Request

if TYPE_CHECKING:
    from collections.abc import Callable


class Store:
    """What a commit writes to; `run` is what an environment's `update` is."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.commits: list[list[Any]] = []
        self.before: Callable[[], None] = lambda: None

    def run(self, apply: Callable[[Any], None], committed: Callable[[], None]) -> None:
        txn: list[Any] = []
        self.before()
        apply(txn)
        self.written += txn
        self.commits.append(txn)
        committed()


class Write(Request):
    def __init__(self, value: object, refuse: bool = False) -> None:
        super().__init__()
        self.value = value
        self.refuse = refuse
        self.durable = False

    def apply(self, txn: Any) -> None:
        if self.refuse:
            raise VersionConflictError("a", 1, 1)
        txn.append(self.value)

    def committed(self) -> None:
        self.durable = True


class Crowd:
    """Threads that submit while a first one is held inside its commit."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.group = GroupCommit(store.run)
        self.errors: dict[object, BaseException] = {}
        self._entered = threading.Event()
        self._go_on = threading.Event()
        self._threads: list[threading.Thread] = []

    def hold_first(self, request: Write) -> None:
        """Start a leader and return when it is inside its commit."""

        def wait_once() -> None:
            self.store.before = lambda: None
            self._entered.set()
            self._go_on.wait()

        self.store.before = wait_once
        self.start(request)
        self._entered.wait()

    def start(self, request: Write) -> None:
        thread = threading.Thread(target=self._submit, args=(request,))
        thread.start()
        self._threads.append(thread)

    def wait_for_queue(self, length: int) -> None:
        while len(self.group._queue) < length:
            pass

    def release(self) -> None:
        self._go_on.set()

    def join(self) -> None:
        self.release()
        for thread in self._threads:
            thread.join()

    def _submit(self, request: Write) -> None:
        try:
            self.group.submit(request)
        except BaseException as error:
            self.errors[request.value] = error


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def crowd(store: Store) -> Crowd:
    return Crowd(store)


def test_a_thread_alone_commits_by_itself(store: Store) -> None:
    group = GroupCommit(store.run)
    threads: list[int] = []
    store.before = lambda: threads.append(threading.get_ident())
    requests = [Write(number) for number in range(3)]

    for request in requests:
        group.submit(request)

    assert store.commits == [[0], [1], [2]]
    assert set(threads) == {threading.get_ident()}
    assert all(request.durable for request in requests)


def test_those_who_came_during_a_commit_share_the_next(store: Store, crowd: Crowd) -> None:
    crowd.hold_first(Write("first"))
    for number in range(9):
        crowd.start(Write(number))
    crowd.wait_for_queue(9)

    crowd.join()

    assert [len(commit) for commit in store.commits] == [1, 9]
    assert sorted(store.commits[1]) == list(range(9))
    assert crowd.errors == {}


def test_a_refusal_concerns_only_its_own_request(store: Store, crowd: Crowd) -> None:
    crowd.hold_first(Write("first"))
    good, bad = [Write("x"), Write("y")], Write("bad", refuse=True)
    for request in (good[0], bad, good[1]):
        crowd.start(request)
    crowd.wait_for_queue(3)

    crowd.join()

    assert sorted(store.written) == ["first", "x", "y"]
    assert {value: type(error) for value, error in crowd.errors.items()} == {
        "bad": VersionConflictError
    }
    assert (good[0].durable, bad.durable, good[1].durable) == (True, False, True)


def test_a_failed_commit_gives_every_thread_an_error_of_its_own(crowd: Crowd, store: Store) -> None:
    """Threads that raise one object would overwrite its traceback."""
    crowd.hold_first(Write("first"))
    for number in range(3):
        crowd.start(Write(number))
    crowd.wait_for_queue(3)

    def fail() -> None:
        raise StoreFullError("/store", "no space") from OSError(28, "no space")

    store.before = fail
    crowd.join()

    assert sorted(map(str, crowd.errors)) == ["0", "1", "2"]
    assert {error.args for error in crowd.errors.values()} == {("/store", "no space")}
    assert len({id(error) for error in crowd.errors.values()}) == 3
    assert all(isinstance(error.__cause__, OSError) for error in crowd.errors.values())


def test_an_error_of_another_kind_reaches_every_thread(crowd: Crowd, store: Store) -> None:
    crowd.hold_first(Write("first"))
    crowd.start(Write("second"))
    crowd.wait_for_queue(1)

    def fail() -> None:
        raise ZeroDivisionError

    store.before = fail
    crowd.join()

    assert {value: type(error) for value, error in crowd.errors.items()} == {
        "second": ZeroDivisionError
    }


def test_the_next_submit_works_after_a_failed_commit(store: Store) -> None:
    group = GroupCommit(store.run)

    def fail() -> None:
        store.before = lambda: None
        raise StoreFullError("/store", "no space")

    store.before = fail
    with pytest.raises(StoreFullError):
        group.submit(Write(1))
    group.submit(Write(2))

    assert store.written == [2]


def test_followers_are_served_when_their_leader_is_interrupted(store: Store, crowd: Crowd) -> None:
    """Ctrl-C in the thread that commits for others must not leave them waiting."""
    crowd.hold_first(Write("first"))
    for number in range(3):
        crowd.start(Write(number))
    crowd.wait_for_queue(3)

    def interrupt() -> None:
        store.before = lambda: None
        raise KeyboardInterrupt

    store.before = interrupt
    crowd.join()

    assert [type(error) for error in crowd.errors.values()] == [KeyboardInterrupt]
    assert sorted(map(str, [*store.written, *crowd.errors])) == ["0", "1", "2", "first"]


def test_followers_learn_of_a_commit_whose_leader_was_interrupted_after_it(
    store: Store, crowd: Crowd
) -> None:
    crowd.hold_first(Write("first"))
    requests = [Write(number) for number in range(3)]
    for request in requests:
        crowd.start(request)
    crowd.wait_for_queue(3)

    def run(apply: Callable[[Any], None], committed: Callable[[], None]) -> None:
        store.run(apply, committed)
        raise KeyboardInterrupt

    crowd.group._run = run
    crowd.join()

    assert sorted(map(str, store.written)) == ["0", "1", "2", "first"]
    assert all(request.durable for request in requests)
    assert [type(error) for error in crowd.errors.values()] == [KeyboardInterrupt]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pthread_kill")
def test_a_follower_that_is_interrupted_takes_its_request_back(store: Store, crowd: Crowd) -> None:
    crowd.hold_first(Write("first"))
    interrupted = threading.Event()

    def note(_number: int, _frame: object) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    def interrupt() -> None:
        crowd.wait_for_queue(1)
        # Again until it is seen: a signal just before the wait begins does not end the wait.
        while not interrupted.wait(0.01):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, note)
    try:
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            crowd.group.submit(Write("withdrawn"))
        interrupter.join()
    finally:
        signal.signal(signal.SIGINT, before)
    crowd.join()
    crowd.group.submit(Write("after"))

    assert store.written == ["first", "after"]


def test_a_request_may_be_applied_again_before_it_is_committed(store: Store) -> None:
    """As when the map had to grow: only the last time counts."""

    def run_twice(apply: Callable[[Any], None], committed: Callable[[], None]) -> None:
        apply([])
        store.run(apply, committed)

    group = GroupCommit(run_twice)
    request = Write("x")

    group.submit(request)

    assert store.written == ["x"]
    assert request.durable


def test_many_threads_lose_nothing(store: Store) -> None:
    group = GroupCommit(store.run)
    start = threading.Barrier(8)

    def work(thread: int) -> None:
        start.wait()
        for number in range(200):
            group.submit(Write((thread, number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(store.written) == [(t, n) for t in range(8) for n in range(200)]
    for number in range(8):
        own = [n for t, n in store.written if t == number]
        assert own == sorted(own)
