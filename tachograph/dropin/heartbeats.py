"""The section of HEARTBEAT.md that runs the watchdog: found, refreshed, taken out again.

Works on bytes: whatever else is in the file stays as it is, byte for byte.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "## Task Recovery Check"
NEW_FILE = b"# HEARTBEAT.md\n\n"
BOM = b"\xef\xbb\xbf"

_HEADING = re.compile(rb" {0,3}## +Task (?:Runtime )?Recovery Check *#*\s*")
_END = re.compile(rb" {0,3}##?(?:[ \t]|\r?\n|$)")
_FENCE = re.compile(rb" {0,3}(?P<marks>`{3,}|~{3,})(?P<rest>.*)", re.DOTALL)

BLOCK = """{title}
Run:

```bash
{command}
```

Tell the user briefly about what is in `alerts`, `recoveries` or `needs_attention`:
- `alerts`: a task has gone silent
- `recoveries`: a task was resumed, and got further since
- `needs_attention`: a person has to look; the entry says why
When all three are empty, go on without a word about it.
"""


class Section:
    """Where the section is in a file: `start` to `end`, without the empty lines after it."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


def block(workspace: Path) -> bytes:
    """Return the section for a workspace, with plain line ends."""
    script = shlex.quote(str(workspace / "scripts" / "task_runtime_watch.py"))
    command = f"python3 {script} --auto-resume"
    return BLOCK.format(title=TITLE, command=command).encode("utf-8", "surrogateescape")


def patched(content: bytes | None, section: bytes) -> bytes:
    """Return the content with the section in it, refreshed in its place or added at the end."""
    if content is None:
        return NEW_FILE + section
    end_of_line = line_end(content)
    section = section.replace(b"\n", end_of_line)
    found, open_fence = find(content)
    if found is not None:
        body = section if _ends_a_line(content[: found.end]) else section.rstrip(b"\r\n")
        return content[: found.start] + body + content[found.end :]
    if open_fence is not None:  # one that nothing closes would swallow what comes after it
        content += (b"" if _ends_a_line(content) else end_of_line) + open_fence + end_of_line
    return content + _gap(content, end_of_line) + section


def without(content: bytes, former: bytes | None = None) -> bytes:
    """Return the content with the section taken out, or as it was before."""
    found, _ = find(content)
    if found is None:
        return content
    if former is not None:
        return content[: found.start] + former + content[found.end :]
    before, after = content[: found.start], content[found.end :]
    if not after.strip():
        return before.rstrip(b"\r\n") + (line_end(content) if before.strip() else b"")
    return before + after.lstrip(b"\r\n")


def section_of(content: bytes) -> bytes | None:
    """Return the section as it is in a file, None when there is none."""
    found, _ = find(content)
    return None if found is None else content[found.start : found.end]


def find(content: bytes) -> tuple[Section | None, bytes | None]:
    """Return where the section is, and the marks of a fence that nothing closes.

    What looks like a heading inside a code fence is none.
    """
    start: int | None = None
    filled = place = 0
    fence: bytes | None = None
    for line in content.splitlines(keepends=True):
        text = line.removeprefix(BOM) if place == 0 else line
        if fence is None and start is not None and _END.match(text):
            return Section(start, filled), None
        if fence is None and start is None and _HEADING.fullmatch(text):
            start = place + len(line) - len(text)
        fence = _fence(text, fence)
        place += len(line)
        if text.strip():
            filled = place
    section = None if start is None else Section(start, filled)
    return section, fence


def line_end(content: bytes) -> bytes:
    """Return the line end that a file uses: that of its first line."""
    first = content.find(b"\n")
    return b"\r\n" if first > 0 and content[first - 1 : first] == b"\r" else b"\n"


def _fence(line: bytes, fence: bytes | None) -> bytes | None:
    """Return the marks of the fence that is open after a line."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return fence
    marks, rest = found["marks"], found["rest"]
    if fence is None:
        is_inline = marks[:1] == b"`" and b"`" in rest
        return None if is_inline else marks
    closes = marks[:1] == fence[:1] and len(marks) >= len(fence) and not rest.strip()
    return None if closes else fence


def _ends_a_line(content: bytes) -> bool:
    return content.endswith((b"\n", b"\r"))


def _gap(content: bytes, end_of_line: bytes) -> bytes:
    """Return what makes the section a paragraph of its own after the content."""
    if not content.removeprefix(BOM).strip():
        return b""
    gap = b"" if _ends_a_line(content) else end_of_line
    lines = content.splitlines()
    return gap + (end_of_line if lines[-1].strip() else b"")
