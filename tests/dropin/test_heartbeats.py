"""The section of HEARTBEAT.md is put in, refreshed and taken out; nothing else changes."""

from __future__ import annotations

import pytest

from tachograph.dropin.heartbeats import block, find, patched, section_of, without
from tachograph.dropin.places import Workspace

SECTION = b"## Task Recovery Check\nRun:\n\n```bash\npython3 watch.py\n```\n\nMore.\n"
CRLF = SECTION.replace(b"\n", b"\r\n")
OLD = b"## Task Runtime Recovery Check\nold text\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"# HEARTBEAT.md\n\n" + SECTION),
        (b"", SECTION),
        (b"\xef\xbb\xbf", b"\xef\xbb\xbf" + SECTION),
        (b"# H\n", b"# H\n\n" + SECTION),
        (b"# H\n\n", b"# H\n\n" + SECTION),
        (b"# H", b"# H\n\n" + SECTION),
        (b"# H\r\nx\r\n", b"# H\r\nx\r\n\r\n" + CRLF),
        (b"# H\n\xff\xfe\n", b"# H\n\xff\xfe\n\n" + SECTION),
        (b"a\n\n" + OLD, b"a\n\n" + SECTION),
        (b"a\n\n" + OLD + b"\n\n## Next\nz", b"a\n\n" + SECTION + b"\n\n## Next\nz"),
        (b"a\n" + OLD + b"# Top\nz\n", b"a\n" + SECTION + b"# Top\nz\n"),
        (OLD.rstrip(), SECTION.rstrip()),
        (b"\xef\xbb\xbf" + OLD + b"\n## B\n", b"\xef\xbb\xbf" + SECTION + b"\n## B\n"),
        (
            b"## Task Recovery Check  \n```\n## not a heading\n```\nend\n## Next\n",
            SECTION + b"## Next\n",
        ),
        (b"## Task Recovery Check\n### sub\nx\n## Next\n", SECTION + b"## Next\n"),
        (
            b"```\n## Task Recovery Check\n```\n",
            b"```\n## Task Recovery Check\n```\n\n" + SECTION,
        ),
        (b"a\n~~~~\n## b\n", b"a\n~~~~\n## b\n~~~~\n\n" + SECTION),
        (
            b"a\r\n## Task Runtime Recovery Check\r\nold\r\n\r\n## B\r\n",
            b"a\r\n" + CRLF + b"\r\n## B\r\n",
        ),
    ],
)
def test_only_the_section_changes(before: bytes | None, after: bytes) -> None:
    done = patched(before, SECTION)

    assert done == after
    assert patched(done, SECTION) == done


def test_a_fence_is_closed_by_its_own_kind_only() -> None:
    text = b"````\n```\n## Task Recovery Check\n````\n"

    assert find(text) == (None, None)


def test_what_was_in_the_section_is_known() -> None:
    assert section_of(b"a\n" + OLD + b"\n## B\n") == OLD
    assert section_of(b"a\n") is None


@pytest.mark.parametrize(
    "rest", [b"# H\n", b"# H\r\nx\r\n", b"# H\n\nlast line\n", b"x\n", b"# H\n\n## B\ny\n"]
)
def test_what_is_put_in_can_be_taken_out(rest: bytes) -> None:
    assert without(patched(rest, SECTION)) == rest


def test_a_section_in_the_middle_is_taken_out_alone() -> None:
    assert without(b"a\n\n" + SECTION + b"\n## B\nz") == b"a\n\n## B\nz"
    assert without(b"a\n" + SECTION + b"## B\n", OLD) == b"a\n" + OLD + b"## B\n"
    assert without(b"nothing\n") == b"nothing\n"


def test_the_command_is_good_for_a_path_with_spaces(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("a b")

    assert f"'{root}/scripts/task_runtime_watch.py' --auto-resume" in block(root).decode()
    assert Workspace(root).heartbeat.name == "HEARTBEAT.md"
