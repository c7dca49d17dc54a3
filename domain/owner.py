"""Who does the work of a run: a process, or nobody in particular. No I/O."""

from __future__ import annotations

from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROCESS = "process"
UNOWNED = "unowned"


class Owner(_Fields):
    """The process that owns an attempt, told apart from every other process there ever was.

    `started` is the start time of the process in a unit of the platform's choice: it is only
    ever compared for equality, and tells a process from a later one with the same pid.
    `pid_namespace` says among which processes the pid counts; None where there is one set only.
    `kind` is "process", or "unowned" when no process stands for the attempt, as with a shell
    script whose commands come from short-lived shells. What is not known is None.
    """

    __slots__ = ("boot_id", "host", "kind", "pid", "pid_namespace", "started")

    def __init__(
        self,
        host: str | None,
        boot_id: str | None = None,
        pid: int | None = None,
        started: int | None = None,
        pid_namespace: str | None = None,
        kind: str = PROCESS,
    ) -> None:
        self.host = host
        self.boot_id = boot_id
        self.pid = pid
        self.started = started
        self.pid_namespace = pid_namespace
        self.kind = kind

    def __str__(self) -> str:
        """Name the owner for people.

        >>> str(Owner("ada", pid=17)), str(Owner("ada", kind="unowned"))
        ('process 17 on ada', 'nobody in particular on ada')
        """
        who = f"process {self.pid}" if self.kind == PROCESS else "nobody in particular"
        return f"{who} on {self.host}" if self.host else who

    def to_fields(self) -> dict[str, object]:
        """Return plain values to store in an event; what is not known is left out.

        >>> Owner("ada", pid=17).to_fields()
        {'kind': 'process', 'host': 'ada', 'pid': 17}
        """
        names = ("kind", "host", "boot_id", "pid", "started", "pid_namespace")
        fields = {name: getattr(self, name) for name in names}
        return {name: value for name, value in fields.items() if value is not None}

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> Owner:
        """Return the owner stored in an event; absent fields are None, unknown ones ignored.

        A field of the wrong type counts as absent: a log is readable whatever wrote it (G9).

        >>> Owner.from_fields({"pid": 17, "colour": "red"})
        Owner(boot_id=None, host=None, kind='process', pid=17, pid_namespace=None, started=None)
        """
        return cls(
            _text(fields.get("host")),
            _text(fields.get("boot_id")),
            _whole(fields.get("pid")),
            _whole(fields.get("started")),
            _text(fields.get("pid_namespace")),
            UNOWNED if fields.get("kind") == UNOWNED else PROCESS,
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
