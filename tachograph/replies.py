"""Read what an adapter printed as its reply. Never raises: a bad reply is told, not lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, StrictBool, StrictStr, ValidationError

if TYPE_CHECKING:
    from typing import Any


class Reply(BaseModel):
    """What an adapter said at its end; fields that are not known here are kept.

    `raw_stdout` is what it printed where that is no proper reply, and `problem` says why not.
    An adapter that sets `problem` itself has one as well.
    """

    model_config = ConfigDict(extra="allow")

    ok: StrictBool | None = None
    status: StrictStr | None = None
    phase: StrictStr | None = None
    artifacts: dict[StrictStr, StrictStr] | None = None
    message: StrictStr | None = None
    error: StrictStr | None = None
    needs_attention: StrictStr | None = None
    raw_stdout: StrictStr | None = None
    problem: StrictStr | None = None

    def to_fields(self) -> dict[str, Any]:
        """Return what was said, as plain values to store; what was not said is left out."""
        return self.model_dump(exclude_none=True)


def read_reply(data: bytes) -> Reply:
    """Return the reply in the stdout of an adapter; nothing printed is a reply that says nothing.

    A field of the wrong type is left out and named in `problem`; the others stand.

    >>> read_reply(b'{"ok": true, "rows": 3}').to_fields()
    {'ok': True, 'rows': 3}
    >>> read_reply(b"done!").problem
    'stdout is no JSON: Expecting value: line 1 column 1 (char 0)'
    """
    text = data.decode("utf-8-sig", "replace")
    if not text.strip():
        return Reply()
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Reply(raw_stdout=text, problem=f"stdout is no JSON: {error}")
    if not isinstance(value, dict):
        kind = type(value).__name__
        return Reply(raw_stdout=text, problem=f"stdout is JSON, but a {kind} and no object")
    return _validated(value, text)


def _validated(value: dict[str, Any], text: str) -> Reply:
    try:
        return Reply.model_validate(value)
    except ValidationError as error:
        wrong = {
            str(item["loc"][0]): _describe(item["loc"], item["msg"]) for item in error.errors()
        }
    rest = {name: field for name, field in value.items() if name not in wrong}
    problem = "; ".join(wrong.values())
    return Reply.model_validate({**rest, "raw_stdout": text, "problem": problem})


def _describe(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place))}: {message}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")
