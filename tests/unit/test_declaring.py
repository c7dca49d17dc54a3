"""What a job declares is complete: the command, the folder, and the files as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from tachograph import declaring
from tachograph.domain.errors import InvalidValueError
from tachograph.domain.recovery import Recovery
from tachograph.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

SHOW = """
from tachograph.declaring import by_this_command
print(ascii(by_this_command(auto_resume=True).command))
"""
CHDIR = f"import os; os.chdir('/'); {SHOW}"
DECLARE = """
import json
from tachograph.declaring import by_this_command
print(json.dumps(by_this_command(auto_resume=True).to_fields()))
"""
REFUSED = """
from tachograph.declaring import by_this_command
from tachograph.domain.errors import InvalidValueError
try:
    by_this_command(auto_resume=True)
except InvalidValueError as error:
    print(error)
"""


def run(*words: str, folder: Path, stdin: str | None = None) -> str:
    """Return what a program prints."""
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    command = [sys.executable, *words]
    printed: str = subprocess.check_output(command, cwd=folder, text=True, **given)
    return printed.strip()


def test_the_command_starts_the_program_as_it_was_started(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SHOW)
    words = ["-X", "utf8", "-Wignore", str(script), "one two", "--n=3"]

    assert run(*words, folder=tmp_path) == ascii([sys.executable, *words])


def test_a_program_that_is_a_module_too(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SHOW)
    words = ["-um", "job", "one"]

    assert run(*words, folder=tmp_path) == ascii([sys.executable, *words])


def test_a_program_that_is_code_too(tmp_path: Path) -> None:
    words = ["-X", "utf8", "-c", SHOW, "one"]

    assert run(*words, folder=tmp_path) == ascii([sys.executable, *words])


def test_a_value_of_an_option_of_python_is_not_taken_for_the_script(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SHOW)
    words = ["--check-hash-based-pycs", "always", "-W", "ignore", "--", str(tmp_path / "job.py")]

    assert run(*words, folder=tmp_path) == ascii([sys.executable, *words])


@pytest.mark.parametrize("script", ["job.py", "./job.py", "../{name}/job.py"])
def test_a_relative_script_is_found_from_anywhere(script: str, tmp_path: Path) -> None:
    """Python notes its absolute path before the program changes the folder."""
    (tmp_path / "job.py").write_text(CHDIR)
    script = script.format(name=tmp_path.name)

    assert run(script, "a/b.csv", folder=tmp_path) == ascii(
        [sys.executable, f"{tmp_path}/{script}", "a/b.csv"]
    )


def test_a_folder_with_a_main_file_is_a_script(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "__main__.py").write_text(CHDIR)

    assert run("job", folder=tmp_path) == ascii([sys.executable, str(tmp_path / "job")])


@pytest.mark.parametrize("words", [("job.py",), ("-m", "job"), ("-c", "import job")])
def test_the_folder_is_that_of_the_start(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "job.py").write_text(f"import tachograph.declaring, os; os.chdir('other'){DECLARE}")

    assert json.loads(run(*words, folder=tmp_path))["working_folder"] == str(tmp_path)


@pytest.mark.parametrize("words", [("job.py",), ("-m", "job")])
def test_the_folder_is_known_when_it_was_changed_early(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(f"import os; os.chdir('/'){DECLARE}")

    assert json.loads(run(*words, folder=tmp_path))["working_folder"] == str(tmp_path)


def test_a_script_is_compared_and_other_programs_have_no_file(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(DECLARE)
    size, sha256 = measure(script)
    declared = [
        json.loads(run(*words, folder=tmp_path)) for words in (["job.py", "one"], ["-c", DECLARE])
    ]

    assert declared[0] == {
        "command": [sys.executable, str(script), "one"],
        "working_folder": str(tmp_path),
        "auto_resume": True,
        "traces": [{"path": str(script), "size": size, "sha256": sha256, "what": "code"}],
    }
    assert "traces" not in declared[1]


@pytest.mark.parametrize(
    "words", [("-",), (), ("-", "one"), ("-u",), ("/dev/stdin",), ("-W", "ignore")]
)
def test_a_program_that_python_reads_from_stdin_cannot_be_started_again(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    told = run(*words, folder=tmp_path, stdin=REFUSED)

    assert told.startswith("auto_resume is True: nothing can start it again, since ")
    assert "with recovery=Recovery(command=[" in told


def test_an_interactive_session_cannot_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a notebook's kernel: a module that puts another `__main__` in its place."""
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "kernel"])
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))

    with pytest.raises(InvalidValueError, match="interactive session"):
        declaring.by_this_command(auto_resume=True)


def test_a_child_of_multiprocessing_cannot_be_started_again(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        f"""import multiprocessing
def work():{REFUSED.replace(chr(10), chr(10) + "    ")}
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
"""
    )

    assert "multiprocessing has started this process" in run("job.py", folder=tmp_path)


def test_a_script_that_was_removed_cannot_be_started_again(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(f"import os; os.unlink('job.py'){REFUSED}")

    assert f"there is no file {tmp_path}/job.py" in run("job.py", folder=tmp_path)


def test_a_folder_that_was_deleted_cannot_be_started_in(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.rmdir(os.getcwd()){REFUSED}"

    assert "the folder that it was started in was deleted" in run("-c", code, folder=gone)


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
