"""Find the fenced blocks of a document and run them. Knows nothing of any one document."""

from __future__ import annotations

import doctest
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FENCE = re.compile(r"(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>[\w+-]*)[^`]*")
NOT_RUN = re.compile(r" *<!-- not run: *(?P<reason>.*?) *-->")
EXPECTED_EXIT = re.compile(r"# exit (\d+)$")

# After each command of a console block bash prints its exit status on a line of its own.
AFTER_EACH = r"printf '\n--- end of command: %d\n' $?" + "\n"
END_OF_COMMAND = re.compile(r"\n--- end of command: (\d+)\n")


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is that of its first line of content, counted from 1."""

    path: Path
    line: int
    language: str
    text: str
    reason_not_run: str | None

    def __str__(self) -> str:
        """Say where it is, as editors understand it."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a console block, and what the document shows after it."""

    text: str
    shown: str

    @property
    def expected_exit(self) -> int:
        """Return the status in a closing `# exit N`, or 0."""
        match = EXPECTED_EXIT.search(self.text)
        return int(match[1]) if match else 0


class SnippetError(Exception):
    """A block of a document did not do what the document says."""


def blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a document in order."""
    reason: str | None = None
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    for number, line in lines:
        opening = FENCE.fullmatch(line)
        if opening:
            content = list(_until_closed(lines, opening))
            text = "".join(f"{one.removeprefix(opening['indent'])}\n" for one in content)
            yield Block(path, number + 1, opening["language"], text, reason)
            reason = None
        elif mark := NOT_RUN.fullmatch(line):
            reason = mark["reason"]
        elif line.strip() and reason is not None:
            raise SnippetError(f"{path}:{number}: a block must follow the mark `not run`")
    if reason is not None:
        raise SnippetError(f"{path}: a block must follow the mark `not run`")


def _until_closed(lines: Iterator[tuple[int, str]], opening: re.Match[str]) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == opening["fence"]:
            return
        yield line
    raise SnippetError(f"the last block of the document, `{opening[0]}`, is not closed")


def run_python(block: Block, namespace: dict[str, Any]) -> None:
    """Run a Python block in `namespace`; one that starts with >>> is a doctest."""
    if not block.text.startswith(">>> "):
        # The empty lines make a traceback name the line of the document.
        code = compile("\n" * (block.line - 1) + block.text, str(block.path), "exec")
        exec(code, namespace)
        return
    test = doctest.DocTestParser().get_doctest(
        block.text, namespace, block.path.name, str(block.path), block.line - 1
    )
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    if runner.run(test, out=report.append, clear_globs=False).failed:
        raise SnippetError("".join(report))
    namespace.update(test.globs)


def run_bash(block: Block, folder: Path) -> None:
    """Run a block as one script; it fails at the first command that fails."""
    run = _bash(f"set -euo pipefail\n{block.text}", folder)
    if run.returncode:
        raise SnippetError(f"{block}: exit status {run.returncode}\n{run.stdout}")


def run_console(block: Block, folder: Path) -> None:
    """Run the commands of a block in one shell, and compare what it prints with what is shown."""
    commands = list(commands_of(block))
    script = "".join(f"{command.text}\n{AFTER_EACH}" for command in commands)
    ended = list(_printed_and_status(_bash(script, folder).stdout))
    for command, (printed, status) in zip(commands, ended, strict=False):
        if status != command.expected_exit:
            raise SnippetError(f"{block}: `{command.text}`: exit status {status}\n{printed}")
        if command.shown and not matches(command.shown, printed):
            raise SnippetError(
                f"{block}: `{command.text}`\nprinted:\n{printed}\nshown:\n{command.shown}"
            )
    if len(ended) < len(commands):
        raise SnippetError(f"{block}: the shell ended in `{commands[len(ended)].text}`")


def commands_of(block: Block) -> Iterator[Command]:
    """Split a block at its prompts. A command goes on after a backslash, and at a `> `."""
    if not block.text.startswith("$ "):
        raise SnippetError(f"{block}: a console block starts with a command, after `$ `")
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        while lines and (command.endswith("\\") or lines[0].startswith("> ")):
            command += "\n" + lines.pop(0).removeprefix("> ")
        yield Command(command, "\n".join(lines))


def _printed_and_status(output: str) -> Iterator[tuple[str, int]]:
    start = 0
    for end in END_OF_COMMAND.finditer(output):
        yield output[start : end.start()], int(end[1])
        start = end.end()


def matches(shown: str, printed: str) -> bool:
    """Compare line by line without trailing space; `...` stands for anything, lines included."""
    pattern = ".*".join(map(re.escape, _stripped(shown).split("...")))
    return re.fullmatch(pattern, _stripped(printed), re.DOTALL) is not None


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
