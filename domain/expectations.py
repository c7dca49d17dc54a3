"""What a run is measured by, said before it is done."""

from __future__ import annotations

from tachograph.domain import checks
from tachograph.domain.errors import InvalidValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Expectations:
    """What is expected of a run; None and the empty list stand for what is not declared.

    `inputs` items there are to work on, `extracted` items found before any filter,
    `minimum_fraction` the share of them that has to come out (0 to 1), `files` paths that have to
    be made, `traces` what each of them was when it was declared (size, time of change and inode;
    None where there was none), `deadline_us` when work has to stop (microseconds since 1970 in
    UTC).
    """

    __slots__ = ("deadline_us", "extracted", "files", "inputs", "minimum_fraction", "traces")

    def __init__(
        self,
        *,
        inputs: int | None = None,
        extracted: int | None = None,
        minimum_fraction: float | None = None,
        files: Sequence[str] = (),
        traces: Mapping[str, list[int] | None] | None = None,
        deadline_us: int | None = None,
    ) -> None:
        self.inputs = inputs
        self.extracted = extracted
        self.minimum_fraction = minimum_fraction
        self.files = list(files)
        self.traces = dict(traces or {})
        self.deadline_us = deadline_us

    def check(self) -> None:
        """Raise InvalidValueError for what makes no sense."""
        for what in ("inputs", "extracted", "deadline_us"):
            if getattr(self, what) is not None:
                checks.whole(what, getattr(self, what), 0)
        for path in self.files:
            checks.text("expected file", path)
        fraction = self.minimum_fraction
        if fraction is not None:
            checks.at_least("minimum fraction", fraction, 0)
            if fraction > 1:
                raise InvalidValueError("minimum fraction", fraction, "it is a share, from 0 to 1")

    def to_fields(self) -> dict[str, Any]:
        """Return the stored form: what is declared, and nothing else."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value not in (None, [], {})}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any] | None) -> Expectations:
        """Return the expectations of a stored form; what this version does not know is ignored."""
        known = {name: value for name, value in (fields or {}).items() if name in cls.__slots__}
        return cls(**known)

    def over(self, earlier: Expectations) -> Expectations:
        """Return what these say, and for the rest what was said earlier."""
        return Expectations.from_fields({**earlier.to_fields(), **self.to_fields()})
