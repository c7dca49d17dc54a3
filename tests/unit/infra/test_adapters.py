"""An adapter is found by what the run names, without running any of it."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING

import pytest

from tachograph.domain.errors import AdapterNotFoundError, AdapterUnusableError
from tachograph.infra.adapters import AdapterCommand, arguments, resolve

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = [sys.executable, "-P", "-m", "tachograph.adapter_main"]
NOISY = "raise SystemExit('this module must not be imported to be found')\n"


def found(adapter: str, folder: Path, **variables: str) -> AdapterCommand:
    return resolve(adapter, str(folder), {**os.environ, **variables})


def offer(folder: Path, distribution: str, line: str) -> None:
    """Install a package that offers one entry point."""
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tachograph.adapters]\n{line}\n")


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_function_of_a_module_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text(NOISY)
    (tmp_path / "tools" / "again.py").write_text(NOISY)
    command = found("tools.again:Report.resume", tmp_path)

    assert command == AdapterCommand(
        "function",
        "tools.again:Report.resume",
        [*RUNNER, "tools.again:Report.resume"],
        str(tmp_path / "tools" / "again.py"),
    )


def test_a_function_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text(NOISY)

    assert found("tools:again", tmp_path).code_path == str(tmp_path / "tools" / "__init__.py")


def test_a_function_on_the_path_of_the_variables(tmp_path: Path) -> None:
    (tmp_path / "lib" / "space").mkdir(parents=True)
    (tmp_path / "lib" / "space" / "again.py").write_text(NOISY)
    command = found("space.again:resume", tmp_path, PYTHONPATH=str(tmp_path / "lib"))

    assert command.code_path == str(tmp_path / "lib" / "space" / "again.py")


def test_a_function_without_code_that_could_be_read(tmp_path: Path) -> None:
    assert found("time:sleep", tmp_path).code_path is None


@pytest.mark.parametrize("name", ["nowhere:f", "nowhere.at_all:f", "time.inner:f", "os.inner:f"])
def test_a_module_that_is_not_there_is_told_with_where_it_was_looked_for(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(AdapterNotFoundError, match="looked for a module") as caught:
        found(name, tmp_path)

    assert str(tmp_path) in str(caught.value)
    assert name.partition(":")[0] in str(caught.value)


def test_an_entry_point_is_the_function_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, "reports", "nightly-report = again:resume")
    (tmp_path / "again.py").write_text(NOISY)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert found("nightly-report", tmp_path) == AdapterCommand(
        "entry_point", "nightly-report", [*RUNNER, "again:resume"], str(tmp_path / "again.py")
    )


def test_an_entry_point_that_two_packages_offer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, "one", "nightly = one:resume")
    offer(tmp_path, "two", "nightly = two:resume")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(AdapterUnusableError, match="one:resume, two:resume"):
        found("nightly", tmp_path)


def test_an_entry_point_without_a_function_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(tmp_path, "one", "nightly = one")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(AdapterUnusableError, match="its entry point one names no function"):
        found("nightly", tmp_path)


def test_a_python_file_is_run_by_this_python_executable_or_not(tmp_path: Path) -> None:
    path = program(tmp_path / "skills" / "mail" / "task_resume.py", 0o644)

    assert found("skills/mail/task_resume.py", tmp_path) == AdapterCommand(
        "executable", "skills/mail/task_resume.py", [sys.executable, str(path)], str(path)
    )


def test_any_other_file_is_run_itself(tmp_path: Path) -> None:
    path = program(tmp_path / "resume")

    assert found("resume", tmp_path).argv == [str(path)]
    assert found(str(path), tmp_path / "elsewhere").argv == [str(path)]


def test_home_and_variables_are_expanded(tmp_path: Path) -> None:
    path = program(tmp_path / "a b" / "resume")
    variables = {"HOME": str(tmp_path), "WHERE": "a b"}

    assert found("~/${WHERE}/resume", tmp_path / "none", **variables).argv == [str(path)]
    assert found("$HOME/$WHERE/resume", tmp_path / "none", **variables).argv == [str(path)]


def test_without_a_folder_a_path_counts_from_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path / "resume")
    monkeypatch.chdir(tmp_path)

    assert resolve("./resume", None, {}).argv == [str(path)]


def test_a_home_that_is_not_set_is_that_of_the_user(tmp_path: Path, home: Path) -> None:
    path = program(home / "resume")

    assert resolve("~/resume", None, {}).argv == [str(path)]


@pytest.mark.parametrize(
    ("name", "looked"), [("again", "an entry point, and "), ("bin/again", "looked for /")]
)
def test_a_program_that_is_not_there_is_told_with_where_it_was_looked_for(
    name: str, looked: str, tmp_path: Path
) -> None:
    with pytest.raises(AdapterNotFoundError, match=looked) as caught:
        found(name, tmp_path)

    assert str(tmp_path / name) in str(caught.value)


def test_a_file_that_may_not_be_run_is_refused(tmp_path: Path) -> None:
    program(tmp_path / "resume", 0o644)
    with pytest.raises(AdapterUnusableError, match=r"not executable; chmod \+x"):
        found("./resume", tmp_path)


def test_a_folder_is_no_adapter(tmp_path: Path) -> None:
    with pytest.raises(AdapterUnusableError, match="is no file"):
        found(".", tmp_path)


def test_every_adapter_gets_the_same_arguments() -> None:
    assert arguments("job-1", 2e6) == ["--task-id", "job-1", "--timeout-seconds", "2000000"]
    assert arguments("job-1", 0.5) == ["--task-id", "job-1", "--timeout-seconds", "1"]
    assert arguments("job-1", None) == ["--task-id", "job-1"]


@pytest.mark.parametrize("error", [AdapterNotFoundError("a", "b"), AdapterUnusableError("a", "b")])
def test_its_errors_survive_pickling(error: Exception) -> None:
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
