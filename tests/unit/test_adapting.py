"""A function is run as an adapter: one JSON object on stdout, and an exit code that is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tachograph.adapting import call, checkpoint_of

Done = subprocess.CompletedProcess[str]

VARIABLES = {"TACHO_STORE": "/data/store", "TACHO_RUN_ID": "job-1", "TACHO_EPOCH": "3"}


class Folder:
    """A working folder with one module, `job`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, code: str) -> None:
        (self.path / "job.py").write_text(code)

    def run(self, function: str = "job:resume", *arguments: str, **variables: str) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "tachograph.adapter_main", function, *arguments],
            cwd=self.path,
            env={**os.environ, **VARIABLES, **variables},
            capture_output=True,
            text=True,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_what_it_returns_is_the_reply(folder: Folder) -> None:
    folder.write("""
from pathlib import Path
def resume(resume):
    names = ["store", "run_id", "epoch", "checkpoint", "timeout_seconds"]
    told = [getattr(resume, name) for name in names]
    return {"artifacts": {"report": Path("out") / "r.pdf"}, "told": told}
""")
    arguments = ("--task-id", "job-1", "--timeout-seconds", "2.5")
    done = folder.run("job:resume", *arguments, TACHO_CHECKPOINT='{"page": 7}')

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "artifacts": {"report": "out/r.pdf"},
        "told": ["/data/store", "job-1", 3, {"page": 7}, 2.5],
    }


def test_what_was_not_told_is_none(folder: Folder) -> None:
    folder.write(
        "def resume(r): return {'told': [r.checkpoint, r.timeout_seconds, r.run_id, str(r)]}"
    )
    told = json.loads(folder.run().stdout)["told"]

    assert told == [None, None, "job-1", "Resume(run_id='job-1', epoch=3)"]


def test_nothing_returned_is_an_empty_reply(folder: Folder) -> None:
    folder.write("def resume(resume): pass")

    assert folder.run().stdout == "{}\n"


def test_a_coroutine_function_is_run_to_its_end(folder: Folder) -> None:
    folder.write("async def resume(resume): return {'ok': True}")

    assert json.loads(folder.run().stdout) == {"ok": True}


def test_a_method_can_be_named(folder: Folder) -> None:
    folder.write("class Job:\n    @staticmethod\n    def resume(resume): return {'ok': True}")

    assert json.loads(folder.run("job:Job.resume").stdout) == {"ok": True}


def test_all_that_is_printed_goes_to_stderr(folder: Folder) -> None:
    folder.write("""
import os
print("at import")
def resume(resume):
    print("by Python")
    os.system("echo by a program")
    return {"ok": True}
""")
    done = folder.run()

    assert json.loads(done.stdout) == {"ok": True}
    assert sorted(done.stderr.splitlines()) == ["at import", "by Python", "by a program"]


def test_an_exception_is_exit_code_1_with_its_traceback(folder: Folder) -> None:
    folder.write("def resume(resume): 1 / 0")
    done = folder.run()

    assert (done.returncode, done.stdout) == (1, "")
    assert 'job.py", line 1, in resume' in done.stderr
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("[1]", "job:resume returned list; return a dict, or None"),
        ("{'x': {1}}", "set has no form in JSON: {1}"),
        ("{'x': float('nan')}", "not JSON compliant"),
    ],
)
def test_what_is_no_json_object_is_exit_code_1(returned: str, problem: str, folder: Folder) -> None:
    folder.write(f"def resume(resume): return {returned}")
    done = folder.run()

    assert (done.returncode, done.stdout) == (1, "")
    assert problem in done.stderr


@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [("7", 7, ""), ("", 0, ""), ("'no disk'", 1, "no disk\n"), ("-1", 255, "")],
)
def test_it_can_choose_its_exit_code(stop: str, code: int, said: str, folder: Folder) -> None:
    folder.write(f"def resume(resume): raise SystemExit({stop})")
    done = folder.run()

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_an_interrupt_ends_it_as_one(folder: Folder) -> None:
    folder.write("def resume(resume): raise KeyboardInterrupt")

    assert folder.run().returncode == 130


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("nowhere:resume", "there is no module nowhere in "),
        ("job.inner:resume", "there is no module job.inner in "),
        ("job:nothing", "job has no nothing"),
        ("job:NUMBER", "it is no function but int"),
        ("job", "write module:function"),
    ],
)
def test_a_function_that_is_not_there_is_exit_code_2(
    function: str, problem: str, folder: Folder
) -> None:
    folder.write("NUMBER = 1")
    done = folder.run(function)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"Adapter {function} cannot be loaded: {problem}" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_import_that_fails_inside_is_told_with_its_place(folder: Folder) -> None:
    folder.write("import nowhere")
    done = folder.run()

    assert done.returncode == 2
    assert 'job.py", line 1' in done.stderr
    assert "No module named 'nowhere'" in done.stderr.splitlines()[-1]


def test_a_checkpoint_that_is_no_json_is_told(folder: Folder) -> None:
    folder.write("def resume(resume): pass")
    done = folder.run(TACHO_CHECKPOINT="{")

    assert done.returncode == 1
    assert "TACHO_CHECKPOINT is no JSON" in done.stderr


@pytest.mark.parametrize("value", [None, 7, "text", {"page": [1, 2]}])
def test_a_long_checkpoint_is_in_a_file(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(json.dumps(value))

    assert checkpoint_of({"TACHO_CHECKPOINT": f"@{path}"}) == value
    assert checkpoint_of({"TACHO_CHECKPOINT": json.dumps(value)}) == value


def test_without_a_checkpoint_there_is_none() -> None:
    assert checkpoint_of({}) is None


@pytest.mark.parametrize(
    ("code", "exit_code", "printed", "said"),
    [
        ("async def resume(r): print('x'); return {'n': r.epoch}", 0, '{"n": 3}\n', "x\n"),
        ("from pathlib import Path\ndef resume(r): return {'p': Path('a')}", 0, '{"p": "a"}\n', ""),
        ("def resume(r): pass", 0, "{}\n", ""),
        ("def resume(r): raise SystemExit('no')", 1, "", "no\n"),
        ("def resume(r): raise SystemExit", 0, "", ""),
        ("def resume(r): raise SystemExit(7)", 7, "", ""),
        ("def resume(r): raise KeyboardInterrupt", 130, "", ""),
        ("def resume(r): return 1", 1, "", "return a dict, or None\n"),
        ("def resume(r): return {'x': {1}}", 1, "", "set has no form in JSON: {1}\n"),
        ("resume = 1", 2, "", "it is no function but int.\n"),
        ("", 2, "", "adapter_code has no resume.\n"),
        ("import nowhere", 2, "", "No module named 'nowhere'.\n"),
    ],
)
def test_it_can_be_called_in_a_process_that_goes_on(
    code: str,
    exit_code: int,
    printed: str,
    said: str,
    folder: Folder,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Afterwards stdout is what it was."""
    (folder.path / "adapter_code.py").write_text(code)
    monkeypatch.chdir(folder.path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "adapter_code", raising=False)
    ended = call(["adapter_code:resume", "--task-id", "job-1"], VARIABLES)
    sys.modules.pop("adapter_code", None)
    os.write(1, b"later\n")
    written = capfd.readouterr()

    assert (ended, written.out) == (exit_code, f"{printed}later\n")
    assert written.err.endswith(said)


@pytest.mark.parametrize(
    ("name", "said"), [("job", "write module:function."), ("no.where:f", "no module no in ")]
)
def test_a_name_that_says_nothing_is_told(
    name: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call([name], {}) == 2
    assert said in capfd.readouterr().err
