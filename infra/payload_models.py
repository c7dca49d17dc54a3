"""Check payloads by the pydantic models of their job types. Imports pydantic where there is one."""

from __future__ import annotations

from tachograph.domain.handler_errors import CodeNotFoundError
from tachograph.domain.queue_errors import PayloadError
from tachograph.infra.named_objects import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pydantic import TypeAdapter, ValidationError

    from tachograph.domain.queue_settings import QueueSettings

_MOST_TOLD = 3
"""Problems of a payload that a message names."""


class PayloadModels:
    """The models of a project; each is imported when it is first needed."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._adapters: dict[Any, TypeAdapter[Any]] = {}

    def check(self, queue: QueueSettings, kind: str, payload: Any) -> None:
        """Require a payload that the model of its job type takes; without one, any is right.

        Raises PayloadError, and CodeNotFoundError where there is no such model.
        """
        model = queue.job_type(kind).model
        if model is not None:
            self.load(model, payload, kind=kind, queue=queue.name)

    def load(self, model: Any, payload: Any, *, kind: str = "?", queue: str = "?") -> Any:
        """Return a payload as an instance of a model, given as such or as `module:Class`.

        Raises PayloadError with each place that is wrong, and CodeNotFoundError.
        """
        from pydantic import ValidationError

        adapter = self._adapter(model)
        try:
            return adapter.validate_python(payload)
        except ValidationError as error:
            found = _as_json(adapter, payload)
            if found:
                return found[0]
            raise PayloadError(kind, queue, _name(model), _told(error)) from error

    def _adapter(self, model: Any) -> TypeAdapter[Any]:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        found = self._adapters.get(model)
        if found is None:
            kind = load(model, self._folder) if isinstance(model, str) else model
            try:
                found = self._adapters[model] = TypeAdapter(kind)
            except PydanticUserError as error:
                why = f"pydantic cannot check a payload by {kind!r}"
                raise CodeNotFoundError(_name(model), why, self._folder or ".") from error
        return found


def checker(folder: str | None = None) -> Callable[[QueueSettings, str, Any], None]:
    """Return what requires payloads to be as the models of a project's queues say.

    Models are imported from `folder` too, where the project's file is.
    """
    return PayloadModels(folder).check


def load_payload(model: Any, payload: Any, folder: str | None = None) -> Any:
    """Return a payload as an instance of a model. Raises PayloadError, CodeNotFoundError."""
    return PayloadModels(folder).load(model, payload)


def plain(payload: Any) -> Any:
    """Return a payload that is an instance of a model as plain values, any other as it is."""
    dump = getattr(payload, "model_dump", None)
    return payload if dump is None or isinstance(payload, type) else dump(mode="json")


def _as_json(adapter: TypeAdapter[Any], payload: Any) -> tuple[Any] | tuple[()]:
    """Return a payload as a strict model reads it from JSON, which knows no date and no tuple."""
    from json import dumps

    from pydantic import ValidationError

    try:
        return (adapter.validate_json(dumps(payload, allow_nan=False)),)
    except (TypeError, ValueError, RecursionError, ValidationError):
        return ()


def _told(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    told = [f"{_place(each['loc'])}{each['msg']}" for each in problems[:_MOST_TOLD]]
    more = len(problems) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "") + "."


def _place(loc: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, loc))}: " if loc else ""


def _name(model: Any) -> str:
    return model if isinstance(model, str) else getattr(model, "__name__", repr(model))
