"""Which code does the work of which type of job. Runs none of it, and imports none by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tachograph.domain.handler_errors import HandlerTakenError, HandlerUnusableError
from tachograph.domain.queued_job import check_name
from tachograph.domain.records import _Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType
    from typing import Any

    from tachograph.domain.queue_settings import QueuePlan
    from tachograph.recording import Recording

    Function = Callable[["JobContext"], Any]

F = TypeVar("F", bound="Callable[..., Any]")

MAPPING = "HANDLERS"
"""Name of the mapping by which a module may name its handlers: type to function."""
_MARK = "__tachograph_handlers__"


class JobContext:
    """What a handler is given: the job, its payload, and the recording of its run."""

    __slots__ = ("_beat", "attempt", "id", "max_attempts", "payload", "queue", "run", "type")

    def __init__(
        self,
        job_id: str,
        queue: str,
        kind: str,
        payload: Any,
        *,
        attempt: int,
        max_attempts: int,
        run: Recording,
        beat: Callable[[], None],
    ) -> None:
        self.id = job_id
        self.queue = queue
        self.type = kind
        self.payload = payload
        """An instance of the job type's model, where one is declared."""
        self.attempt = attempt
        """1 for the first attempt since it was enqueued or requeued."""
        self.max_attempts = max_attempts
        self.run = run
        """Where phases, batches, checkpoints and effects of the job are recorded."""
        self._beat = beat

    def heartbeat(self) -> None:
        """Say that the handler is at work, so that the job is given to nobody else.

        The worker says so by itself while the handler runs; call this in code that keeps Python
        from switching threads for longer than the lease. Raises LeaseLostError when the job was
        given to another one.
        """
        self._beat()


class Handler(_Fields):
    """What does the work of one type of job: a function, or a command."""

    __slots__ = ("command", "function", "kind", "model", "queue", "timeout_seconds")

    def __init__(
        self,
        kind: str,
        function: Function | None = None,
        *,
        queue: str | None = None,
        command: Sequence[str] | None = None,
        model: Any = None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.kind = kind
        self.function = function
        self.queue = queue
        """The only queue whose jobs it takes; None: of every queue."""
        self.command = None if command is None else list(command)
        self.model = model
        """A pydantic model, or `module:Class` of one: what the payload is given as."""
        self.timeout_seconds = timeout_seconds

    def __str__(self) -> str:
        if self.command is not None:
            return " ".join(self.command)
        name = getattr(self.function, "__qualname__", None) or repr(self.function)
        return f"{getattr(self.function, '__module__', '?')}.{name}"


class Handlers:
    """The handlers that there are, by queue and type; the one of a queue before a general one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str], Handler] = {}

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def add(self, handler: Handler) -> None:
        """Add a handler. Raises HandlerTakenError, HandlerUnusableError, InvalidValueError."""
        check_name("type", handler.kind)
        if handler.queue is not None:
            check_name("queue", handler.queue)
        if (handler.function is None) == (handler.command is None):
            raise HandlerUnusableError(repr(handler.kind), "give either a function or a command")
        if handler.function is not None and not callable(handler.function):
            raise HandlerUnusableError(repr(handler.function), "it cannot be called")
        key = (handler.queue, handler.kind)
        other = self._known.setdefault(key, handler)
        if not _same(other, handler):
            queue = "all queues" if handler.queue is None else f"queue {handler.queue!r}"
            raise HandlerTakenError(handler.kind, queue, str(other), str(handler))
        self._known[key] = handler

    def add_missing(self, others: Handlers) -> None:
        """Add those of `others` whose type has no handler here that takes their jobs."""
        for handler in others:
            taken = {(handler.queue, handler.kind), (None, handler.kind)}
            if not taken & self._known.keys():
                self._known[handler.queue, handler.kind] = handler

    def find(self, queue: str, kind: str) -> Handler | None:
        """Return what does jobs of a type of a queue; None when nothing does."""
        return self._known.get((queue, kind)) or self._known.get((None, kind))

    def types(self, queue: str) -> frozenset[str]:
        """Return the types of jobs of a queue that can be done."""
        return frozenset(kind for of, kind in self._known if of is None or of == queue)


REGISTRY = Handlers()
"""Every handler that `handler` has decorated in this process."""


def handler(kind: str, queue: str | None = None, model: Any = None) -> Callable[[F], F]:
    """Let the decorated function do the work of jobs of a type.

    The function is called with a `JobContext`; what it returns is the job's result. A
    TerminalJobError makes the job dead at once, a RetryLaterError lets it wait, and any other
    exception lets it be tried again after a while. `queue` bounds it to one queue, `model` is a
    pydantic model that the payload is given as. Raises HandlerTakenError for a second one.
    """
    if not isinstance(kind, str):  # the decorator was written without its type
        raise HandlerUnusableError(repr(kind), 'write @tachograph.handler("type") above it')

    def decorate(function: F) -> F:
        made = Handler(kind, function, queue=queue, model=model)
        REGISTRY.add(made)
        marks = getattr(function, _MARK, ())
        setattr(function, _MARK, (*marks, made))
        return function

    return decorate


def collect(module: ModuleType) -> Handlers:
    """Return the handlers of a module: what is decorated in it, or in modules below it.

    Its mapping HANDLERS, type to function, counts too. Raises HandlerUnusableError where it has
    neither, and what `Handlers.add` raises.
    """
    found = Handlers()
    for value in list(vars(module).values()):
        for each in getattr(value, _MARK, ()) if callable(value) else ():
            found.add(each)
    for each in REGISTRY:
        home = str(getattr(each.function, "__module__", ""))
        if home == module.__name__ or home.startswith(f"{module.__name__}."):
            found.add(each)
    mapping = getattr(module, MAPPING, None)
    for kind, function in mapping.items() if isinstance(mapping, dict) else ():
        found.add(Handler(kind, function))
    if not len(found):
        raise HandlerUnusableError(
            f"module {module.__name__}",
            f'it has no function decorated with @tachograph.handler("type"), and no {MAPPING}',
        )
    return found


def declared(plan: QueuePlan, load: Callable[[str], Any]) -> Handlers:
    """Return the handlers that are declared with the queues; `load` finds `module:function`.

    Raises HandlerUnusableError, and what `load` raises.
    """
    found = Handlers()
    for queue in plan.queues.values():
        for each in queue.types.values():
            if each.handler is None and each.command is None:
                continue
            function = None if each.handler is None else load(each.handler)
            found.add(
                Handler(
                    each.name,
                    function,
                    queue=queue.name,
                    command=each.command,
                    model=each.model,
                    timeout_seconds=each.timeout_seconds,
                )
            )
    return found


def _same(one: Handler, other: Handler) -> bool:
    """Say whether two are one: a module that is imported twice makes its functions anew."""
    if one.command is not None or other.command is not None:
        return one.command == other.command
    names = ("__module__", "__qualname__")
    return one.function is other.function or all(
        getattr(one.function, name, one) == getattr(other.function, name, other) for name in names
    )
