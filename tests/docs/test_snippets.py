"""What runs the documents notices when one of them is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from snippets import (
    Block,
    SnippetError,
    blocks,
    commands_of,
    matches,
    run_bash,
    run_console,
    run_python,
)

if TYPE_CHECKING:
    from pathlib import Path


def block(language: str, text: str, path: Path) -> Block:
    return Block(path / "guide.md", 1, language, text, None)


def test_blocks_are_found_with_their_language_line_and_mark(tmp_path: Path) -> None:
    document = tmp_path / "guide.md"
    document.write_text(
        "text\n\n```python\nx = 1\n```\n\n"
        "<!-- not run: needs a network -->\n\n"
        "  ```bash\n  make test\n  ```\n````text\n```\n````\n"
    )

    found = [(one.language, one.line, one.text, one.reason_not_run) for one in blocks(document)]

    assert found == [
        ("python", 4, "x = 1\n", None),
        ("bash", 10, "make test\n", "needs a network"),
        ("text", 13, "```\n", None),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nx = 1\n", "not closed"),
        ("<!-- not run: slow machine -->\ntext\n```bash\n```\n", "must follow"),
        ("<!-- not run: slow machine -->\n", "must follow"),
    ],
)
def test_a_broken_document_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    document = tmp_path / "guide.md"
    document.write_text(text)

    with pytest.raises(SnippetError, match=complaint):
        list(blocks(document))


def test_python_blocks_share_a_namespace(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    run_python(block("python", "x = 1\n", tmp_path), namespace)
    run_python(block("python", ">>> x + 1\n2\n>>> y = x + 2\n", tmp_path), namespace)

    assert (namespace["x"], namespace["y"]) == (1, 3)


def test_a_wrong_doctest_fails(tmp_path: Path) -> None:
    with pytest.raises(SnippetError, match="Got"):
        run_python(block("python", ">>> 1 + 1\n3\n", tmp_path), {})


def test_a_python_error_names_the_line_of_the_document(tmp_path: Path) -> None:
    wrong = Block(tmp_path / "guide.md", 40, "python", "x = 1\n1 / 0\n", None)

    with pytest.raises(ZeroDivisionError) as raised:
        run_python(wrong, {})

    assert raised.traceback[-1].lineno + 1 == 41


def test_console_commands_go_on_after_a_backslash_or_a_second_prompt(tmp_path: Path) -> None:
    text = "$ echo a \\\n    b\na b\n$ cat <<EOF\n> c\n> EOF\nc\n"

    found = [(one.text, one.shown) for one in commands_of(block("console", text, tmp_path))]

    assert found == [("echo a \\\n    b", "a b"), ("cat <<EOF\nc\nEOF", "c")]


def test_console_commands_share_a_shell_and_a_folder(tmp_path: Path) -> None:
    text = "$ x=1; touch made\n$ echo $x\n1\n$ printf 'no newline'\nno newline\n$ ls\nmade\n"

    run_console(block("console", text, tmp_path), tmp_path)

    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("$ echo a\nb\n", "printed"),
        ("$ false\n", "exit status 1"),
        ("$ true  # exit 3\n", "exit status 0"),
        ("$ exit 0\n$ echo never\n", "the shell ended in `exit 0`"),
        ("echo a\n", "starts with a command"),
    ],
)
def test_a_console_block_that_is_wrong_fails(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SnippetError, match=complaint):
        run_console(block("console", text, tmp_path), tmp_path)


def test_an_announced_exit_status_is_right(tmp_path: Path) -> None:
    run_console(block("console", "$ (exit 3)  # exit 3\n$ touch after\n", tmp_path), tmp_path)

    assert (tmp_path / "after").exists()


def test_a_bash_block_stops_at_the_first_failure(tmp_path: Path) -> None:
    with pytest.raises(SnippetError, match="exit status 1"):
        run_bash(block("bash", "false\ntouch after\n", tmp_path), tmp_path)

    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("run ... done", "run 12 of 12 done", True),
        ("first\n...\nlast", "first\na\nb\nlast", True),
        ("a  \nb", "a\nb   \n", True),
        ("a.c", "abc", False),
        ("a", "a\nb", False),
    ],
)
def test_shown_output_may_leave_parts_out(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) is same
