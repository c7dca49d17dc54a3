"""How a command ended, as plain facts. No I/O: who ran it and how is not known here."""

from __future__ import annotations

from tachograph.domain.records import _Fields


class Ended(_Fields):
    """The end of a command.

    `exit_code` is its own, None when the `signal` of that number killed it. `seconds` is how
    long it ran, `output` the tail of what it printed and `output_bytes` the length of the
    whole. `timed_out` says that it was stopped at its time limit; `asked` names the signals
    that were meant for it on the way.
    """

    __slots__ = ("asked", "exit_code", "output", "output_bytes", "seconds", "signal", "timed_out")

    def __init__(
        self,
        exit_code: int | None,
        signal: int | None,
        seconds: float,
        output: bytes,
        output_bytes: int,
        *,
        timed_out: bool = False,
        asked: tuple[str, ...] = (),
    ) -> None:
        self.exit_code = exit_code
        self.signal = signal
        self.seconds = seconds
        self.output = output
        self.output_bytes = output_bytes
        self.timed_out = timed_out
        self.asked = asked

    @property
    def shell_code(self) -> int:
        """The exit code as a shell gives it: 128 and the signal for a killed command.

        >>> Ended(3, None, 0.1, b"", 0).shell_code, Ended(None, 9, 0.1, b"", 0).shell_code
        (3, 137)
        """
        return 128 + (self.signal or 0) if self.exit_code is None else self.exit_code
