"""Read the files that a run of a cron job has left, whoever wrote them. Changes none of them."""

from __future__ import annotations

import errno
import json
import os
import re
from typing import TYPE_CHECKING, Any

from tachograph.domain.cron_log import CUT
from tachograph.domain.exit_ledger import EXECUTION_REASON
from tachograph.domain.exit_report import Unexplained
from tachograph.domain.text_lines import text_lines
from tachograph.infra.cron_files import EXIT, KNOWN, SUMMARY, VALIDATION
from tachograph.infra.guarded_reading import open_guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_READ = 64 << 20
"""Bytes of a file that are read: of a longer one the two ends, and that is told."""
HEAD_BYTES = 1 << 20
"""How much of that is its beginning."""
ENDS_BYTES = 2 << 20
"""Bytes of a log that are read where its text decides nothing."""
BEGINNING_BYTES = 4096


class CronFiles:
    """Reads what a run has left, and notes what is odd about it."""

    def __init__(self) -> None:
        self.left: list[Unexplained] = []
        """What was found and has no rule."""

    def text(self, path: str, *, may_be_missing: bool = False) -> str | None:
        """Return the text of a file, None when there is none that can be read: that is noted.

        The middle of a long one is not read, which a line of the text says.
        """
        return self._text(path, MOST_READ, may_be_missing=may_be_missing, tell_cut=True)

    def ends(self, path: str) -> str | None:
        """Return the beginning and the end of a file, None when it cannot be read."""
        return self._text(path, ENDS_BYTES, may_be_missing=False, tell_cut=False)

    def beginning(self, path: str) -> str:
        """Return how a file begins, nothing when it cannot be read: `text` notes that."""
        try:
            with open_guarded(path, follow_links=True) as file:
                return file.read(BEGINNING_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def _text(self, path: str, most: int, *, may_be_missing: bool, tell_cut: bool) -> str | None:
        try:
            data, cut = _ends_of(path, most)
        except OSError as error:
            if error.errno != errno.ENOENT or not may_be_missing:
                self.left.append(Unexplained("file", path, f"it cannot be read: {error.strerror}"))
            return None
        if cut and tell_cut:
            self.left.append(Unexplained("file", path, f"{cut} bytes in it were not read"))
        return data.decode("utf-8", "replace")

    def json(self, path: str) -> Any:
        """Return what a JSON file holds, None when it cannot be read or is none: that is noted."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            self.left.append(Unexplained("summary", path, f"it is no JSON: {error}"))
            return None

    def note_others(self, exit_path: str, named: Sequence[str | None]) -> None:
        """Note the files of the run that no rule knows, and those that hold nothing."""
        known = {os.path.realpath(path) for path in named if path}
        for path in beside(exit_path):
            text = None
            if not path.endswith(KNOWN) and os.path.realpath(path) not in known:
                text = "no rule knows this file"
            elif path.endswith((SUMMARY, VALIDATION)) and not os.path.getsize(path):
                text = "it is empty"
            if text is not None:
                self.left.append(Unexplained("file", path, text))


def _ends_of(path: str, most: int) -> tuple[bytes, int]:
    """Return a file, or of a longer one its ends; and how many bytes were left out."""
    with open_guarded(path, follow_links=True) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            return file.read(most), 0
        head = file.read(min(HEAD_BYTES, most // 2))
        file.seek(size - (most - len(head)))
        tail = file.read(most - len(head))
    cut = size - len(head) - len(tail)
    return head + f"\n{CUT.format(cut)}\n".encode() + tail, cut


def has_good_rows(path: str, required: Sequence[str]) -> bool:
    """Say whether the ledger on disk has a row with exit=0 for each step, as a grep would.

    Knows nothing of the validator, on purpose: it is the second look before a guard is written.
    The last row of a step counts; `NAME-skipped` stands in for a row of NAME. No row above the
    one that begins an execution counts.
    """
    with open_guarded(path, follow_links=True) as file:
        lines = text_lines(file.read().decode("utf-8", "replace"))
    codes: dict[str, str] = {}
    for line in lines:
        row = re.match(r"\S+[ \t]+(?:step=)?(\S+)[ \t]+exit=(-?\d+)(?:\s|$)", line)
        if row is None:
            continue
        name, code = row.groups()
        if line.rstrip().endswith(f" reason={EXECUTION_REASON}"):
            codes.clear()
        codes[name] = codes[name.removesuffix("-skipped")] = code
    return all(codes.get(name) == "0" for name in required)


def stem_of(exit_path: str) -> str:
    """Return the name of a run's files without their endings."""
    name = os.path.basename(exit_path)
    return name.removesuffix(EXIT).removesuffix(".txt").removesuffix(".exit")


def day_of(stem: str) -> str | None:
    """Return the day in the name of a run, as its folder is called; None when there is none."""
    found = re.search(r"-(\d{8})(?:T|\.)", stem) or re.search(r"-(\d{4})-(\d\d)-(\d\d)T", stem)
    return "".join(found.groups()) if found else None


def summary_of(exit_path: str) -> str | None:
    """Return the summary of a run, beside its exit file or in the folder of its day."""
    return next((path for path in _places(exit_path, SUMMARY) if os.path.isfile(path)), None)


def beside(exit_path: str) -> Iterator[str]:
    """Yield every file that has the name of the run, where its files are."""
    stem = stem_of(exit_path)
    for folder in dict.fromkeys(map(os.path.dirname, _places(exit_path, ""))):
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name.lstrip(".").startswith(f"{stem}.") and os.path.isfile(path):
                yield path


def _places(exit_path: str, ending: str) -> list[str]:
    folder, stem = os.path.dirname(exit_path), stem_of(exit_path)
    day = day_of(stem)
    names = [os.path.join(folder, stem + ending)]
    return names if day is None else [*names, os.path.join(folder, day, stem + ending)]
