"""Handlers of jobs: how they are declared, found and told apart."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

import tachograph
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.handler_errors import (
    CodeNotFoundError,
    HandlerTakenError,
    HandlerUnusableError,
)
from tachograph.domain.queue_settings import JobType, QueuePlan, QueueSettings
from tachograph.infra.named_objects import load
from tachograph.queues import handlers
from tachograph.queues.handlers import Handler, Handlers, JobContext, collect, declared

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Handlers:
    """No test sees what another one has decorated."""
    made = Handlers()
    monkeypatch.setattr(handlers, "REGISTRY", made)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with modules; they are forgotten afterwards."""
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def work(job: JobContext) -> object:
    return job.payload


def other(job: JobContext) -> object:
    return job.id


def test_the_handler_of_a_queue_counts_before_a_general_one() -> None:
    found = Handlers()
    found.add(Handler("mail", work))
    found.add(Handler("mail", other, queue="summary"))

    assert found.find("memory", "mail") == Handler("mail", work)
    assert found.find("summary", "mail") == Handler("mail", other, queue="summary")
    assert found.find("memory", "post") is None
    assert len(found) == 2


def test_a_queue_has_the_types_of_its_own_handlers_and_of_general_ones() -> None:
    found = Handlers()
    found.add(Handler("a", work))
    found.add(Handler("b", work, queue="summary"))

    assert found.types("memory") == {"a"}
    assert found.types("summary") == {"a", "b"}


def test_a_second_handler_of_one_type_is_refused_with_the_names_of_both() -> None:
    found = Handlers()
    found.add(Handler("mail", work))
    found.add(Handler("mail", work))
    with pytest.raises(HandlerTakenError) as caught:
        found.add(Handler("mail", other))

    assert "'mail' jobs of all queues have a handler already" in str(caught.value)
    assert f"{__name__}.work: {__name__}.other cannot be" in str(caught.value)
    with pytest.raises(HandlerTakenError, match="jobs of queue 'memory' have"):
        for command in (["a"], ["b"]):
            found.add(Handler("mail", queue="memory", command=command))


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        (Handler("a b", work), InvalidValueError),
        (Handler("a", work, queue="a b"), InvalidValueError),
        (Handler("a"), HandlerUnusableError),
        (Handler("a", work, command=["x"]), HandlerUnusableError),
        (Handler("a", 3), HandlerUnusableError),  # type: ignore[arg-type]
    ],
)
def test_what_can_be_no_handler_is_refused(handler: Handler, error: type[Exception]) -> None:
    found = Handlers()
    with pytest.raises(error):
        found.add(handler)

    assert len(found) == 0


def test_the_decorator_leaves_the_function_as_it_is(registry: Handlers) -> None:
    made = tachograph.handler("mail", queue="memory", model="m:C")(work)

    assert made is work
    assert list(registry) == [Handler("mail", work, queue="memory", model="m:C")]


def test_a_function_may_do_several_types(registry: Handlers) -> None:
    @tachograph.handler("a")
    @tachograph.handler("b")
    def both(job: JobContext) -> None:
        """Do nothing."""

    assert registry.types("memory") == {"a", "b"}


MODULE = """
import tachograph

@tachograph.handler("decorated")
def one(job):
    return 1

class Worker:
    @staticmethod
    @tachograph.handler("within")
    def two(job):
        return 2

def three(job):
    return 3

HANDLERS = {"mapped": three}
"""


def test_a_module_offers_what_is_decorated_and_what_is_mapped(project: Path) -> None:
    (project / "work_here.py").write_text(MODULE)
    found = collect(load("work_here", str(project)))

    assert found.types("memory") == {"decorated", "within", "mapped"}
    handler = found.find("memory", "mapped")
    assert handler is not None
    assert str(handler) == "work_here.three"


def test_a_package_offers_what_the_modules_below_it_have_decorated(project: Path) -> None:
    package = project / "works"
    package.mkdir()
    (package / "__init__.py").write_text("from works import mail\n")
    (package / "mail.py").write_text(MODULE.replace("HANDLERS", "_"))
    (project / "elsewhere.py").write_text(MODULE.replace('("', '("x').replace("HANDLERS", "_"))
    load("elsewhere", str(project))
    collected = collect(load("works", str(project)))

    assert collected.types("memory") == {"decorated", "within"}


def test_a_module_without_handlers_is_refused() -> None:
    with pytest.raises(HandlerUnusableError, match=r"module empty is no handler of jobs: it has"):
        collect(ModuleType("empty"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nowhere", None, "No module named 'nowhere'"),
        ("work_there.py", "x = 1", "write the module's name, work_there"),
        ("broken", "1 / 0", "ZeroDivisionError: division by zero"),
        ("wrong", "def f(:", "SyntaxError: "),
        ("empty:work", "", "module 'empty' has no attribute 'work'"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_told_with_its_reason(
    name: str, content: str | None, words: str, project: Path
) -> None:
    if content is not None:
        (project / f"{name.partition(':')[0].removesuffix('.py')}.py").write_text(content)
    with pytest.raises(CodeNotFoundError) as caught:
        load(name, str(project))

    assert words in str(caught.value)
    assert f"looked for in {project}" in str(caught.value)


def queue(*types: JobType) -> QueuePlan:
    return QueuePlan({"memory": QueueSettings("memory", types={each.name: each for each in types})})


def test_declared_handlers_are_those_of_their_queue() -> None:
    plan = queue(
        JobType("a", handler="m:work", model="m:C", timeout_seconds=5),
        JobType("b", command=["tool"]),
        JobType("c", model="m:C"),
    )
    loaded: list[str] = []

    def noting(name: str) -> Any:
        loaded.append(name)
        return work

    found = declared(plan, noting)

    assert loaded == ["m:work"]
    assert list(found) == [
        Handler("a", work, queue="memory", model="m:C", timeout_seconds=5),
        Handler("b", queue="memory", command=["tool"]),
    ]
    assert [str(each) for each in found] == [f"{__name__}.work", "tool"]


def test_what_a_module_says_counts_before_what_is_declared() -> None:
    plan = queue(JobType("a", command=["tool"]), JobType("b", command=["tool"]))
    found = Handlers()
    found.add(Handler("a", work))
    found.add_missing(declared(plan, lambda _name: work))

    assert found.find("memory", "a") == Handler("a", work)
    assert found.find("memory", "b") == Handler("b", queue="memory", command=["tool"])
    assert len(found) == 2


def test_a_context_beats_when_it_is_told_to() -> None:
    beats: list[int] = []
    run: Any = object()
    job = JobContext(
        "id", "memory", "a", 3, attempt=1, max_attempts=2, run=run, beat=lambda: beats.append(1)
    )
    job.heartbeat()

    assert beats == [1]
    assert (job.id, job.queue, job.type, job.payload) == ("id", "memory", "a", 3)
    assert (job.attempt, job.max_attempts, job.run) == (1, 2, run)


def test_a_decorator_without_its_type_is_told() -> None:
    with pytest.raises(HandlerUnusableError, match=r'write @tachograph.handler\("type"\)'):
        handlers.handler(lambda job: None)  # type: ignore[arg-type]


def test_a_module_that_ends_the_program_is_no_end_of_it(tmp_path: Path) -> None:
    (tmp_path / "leaving_at_once.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(CodeNotFoundError, match="it ended the program, with 3"):
        load("leaving_at_once", str(tmp_path))
