"""What a job declares is complete: the command, the folder, and the files as they are."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tachograph import declaring
from tachograph.domain.recovery import Recovery
from tachograph.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

SHOW = "from tachograph.declaring import this_command; print(ascii(this_command()))"


def test_the_command_starts_the_program_as_it_was_started(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SHOW)
    words = [sys.executable, "-X", "utf8", str(script), "one two", "--n=3"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ascii(words)


def test_a_program_that_is_a_module_too(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SHOW)
    words = [sys.executable, "-m", "job", "one"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ascii(words)


def test_what_a_python_program_declares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "job.py"
    script.write_text("pass")
    monkeypatch.setattr(sys, "argv", [str(script), "one"])
    monkeypatch.setattr(sys, "orig_argv", ["python", str(script), "one"])
    monkeypatch.chdir(tmp_path)
    size, sha256 = measure(script)

    assert declaring.by_this_command(auto_resume=True) == Recovery(
        command=[sys.executable, str(script), "one"],
        working_folder=str(tmp_path),
        auto_resume=True,
        traces=[{"path": str(script), "size": size, "sha256": sha256, "what": "code"}],
    )


@pytest.mark.parametrize("argv", [[], ["-c"], [""], ["/no/such/script"]])
def test_a_program_without_a_file_has_no_code_to_compare(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", argv)

    assert declaring.by_this_command(auto_resume=False).traces == []


def test_files_are_added_to_those_that_are_known(tmp_path: Path) -> None:
    code, data = tmp_path / "job.py", tmp_path / "data.csv"
    code.write_text("1")
    data.write_text("22")
    first = declaring.traced(Recovery(adapter="a:b"), code=[str(code)])
    both = declaring.traced(first, inputs=[str(data)])

    assert [(each["what"], each["path"], each["size"]) for each in both.traces] == [
        ("code", str(code), 1),
        ("input", str(data), 2),
    ]
    assert (both.adapter, len(first.traces)) == ("a:b", 1)


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resume may look at it from another folder."""
    (tmp_path / "data.csv").write_text("1")
    monkeypatch.chdir(tmp_path)

    assert declaring.traced(Recovery(), inputs=["data.csv"]).traces[0]["path"] == str(
        tmp_path / "data.csv"
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        declaring.traced(Recovery(), inputs=[str(tmp_path / "none")])
