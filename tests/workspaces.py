"""A workspace with the scripts installed, and its programs run as users run them. Holds no test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tachograph.bootstrap import open_store
from tachograph.dropin import installing
from tachograph.dropin.callers import Caller
from tachograph.dropin.opening import open_services
from tachograph.dropin.places import Workspace
from tachograph.dropin.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

Card = dict[str, Any]
Done = subprocess.CompletedProcess[str]


def plain_python(folder: Path) -> Path:
    """Make a folder with a `python3` that has the standard library only; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "python3"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


class Bench:
    """A workspace on disk, and what users do in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root)

    def install(self) -> None:
        installing.install(self.workspace)

    def tasks(self) -> Tasks:
        """Open the tasks for somebody who belongs to no attempt; close the services after."""
        return Tasks(open_services(self.workspace), self.workspace, Caller.outside())

    # Programs, as processes of their own.

    def words(self, program: str, *arguments: str) -> list[str]:
        return ["python3", str(self.root / "scripts" / f"task_{program}.py"), *arguments]

    def program(self, program: str, *arguments: str, **options: Any) -> Done:
        return subprocess.run(
            self.words(program, *arguments),
            cwd=self.root,
            capture_output=True,
            text=True,
            **options,
        )

    def runtime(self, *arguments: str) -> Card:
        """Run a manager command that has to succeed, and return its answer."""
        done = self.program("runtime", *arguments)
        assert done.returncode == 0, done.stderr
        answer: Card = json.loads(done.stdout)
        return answer

    def refused(self, *arguments: str) -> tuple[int, str]:
        """Run a manager command that has to be refused; return its exit code and error."""
        done = self.program("runtime", *arguments)
        assert done.stdout == ""
        answer = json.loads(done.stderr)
        assert answer["ok"] is False
        return done.returncode, answer["error"]

    def create(self, task_id: str = "job", *arguments: str) -> Card:
        """Create a task from a process that ends at once, so that nobody is known to work."""
        words = self.words("runtime", "create", "--task-id", task_id, "--task-type", "report")
        words += ["--title", "A report", *arguments]
        script = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
        run = subprocess.run(
            [sys.executable, "-c", script, *words], cwd=self.root, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        answer: Card = json.loads(run.stdout)["task"]
        return answer

    def watch(self, *arguments: str) -> Card:
        done = self.program("runtime_watch", *arguments)
        assert done.returncode == 0, done.stderr
        report: Card = json.loads(done.stdout)
        return report

    def resume(self, task_id: str = "job", *arguments: str) -> tuple[int, Card]:
        """Run the dispatcher, and return its exit code and answer."""
        done = self.program("runtime_resume", "--task-id", task_id, *arguments)
        text = done.stdout if done.returncode == 0 else done.stderr
        answer: Card = json.loads(text[text.index("{") :])
        return done.returncode, answer

    # What is there.

    def path(self, task_id: str = "job") -> Path:
        return self.workspace.card_file(task_id)

    def card(self, task_id: str = "job") -> Card:
        """Return what is in a card's file."""
        found: Card = json.loads(self.path(task_id).read_text(encoding="utf-8"))
        return found

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def topics(self, run_id: str = "job") -> list[str]:
        """Return the topics of a run's events without their common beginning."""
        services = open_store(str(self.workspace.store), read_only=True)
        try:
            return [r.topic.removeprefix("run.") for r in services.log.read_stream(run_id)]
        finally:
            services.close()

    def fields(self, topic: str, run_id: str = "job") -> list[Card]:
        """Return the fields of a run's events of one topic."""
        services = open_store(str(self.workspace.store), read_only=True)
        try:
            records = services.log.read_stream(run_id)
            return [services.repository.fields(r) for r in records if r.topic == f"run.{topic}"]
        finally:
            services.close()


class Job:
    """A process that works on a task as it is told to by lines, and tells what came of each.

    A line is the arguments of a manager command; `python` runs code with `runtime` imported.
    """

    SCRIPT = """
import json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import task_runtime as runtime
print("ready", flush=True)
for line in sys.stdin:
    words = json.loads(line)
    if words[0] == "python":
        try:
            exec(words[1])
            print(json.dumps([0, ""]), flush=True)
        except runtime.TaskRuntimeError as error:
            print(json.dumps([type(error).__name__, str(error)]), flush=True)
        continue
    command = ["python3", runtime.__file__, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout or done.stderr]), flush=True)
"""

    def __init__(self, bench: Bench) -> None:
        self.process = subprocess.Popen(
            ["python3", "-c", self.SCRIPT, str(bench.workspace.scripts)],
            cwd=bench.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._hear() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, *words: str) -> tuple[Any, str]:
        """Give a command, and return its exit code (or error) and what it printed."""
        self.say(*words)
        return self.hear()

    def say(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def hear(self) -> tuple[Any, str]:
        code, text = json.loads(self._hear())
        return code, text

    def create(self, task_id: str = "job", *arguments: str) -> None:
        code, text = self.ask(
            "create", "--task-id", task_id, "--task-type", "report", "--title", "R", *arguments
        )
        assert code == 0, text

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def _hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


ADAPTER = """
import argparse, json, os, sys
from pathlib import Path

def discover(start):
    for base in [start, *start.parents]:
        if (base / "AGENTS.md").exists():
            return base

explicit = os.environ.get("OPENCLAW_WORKSPACE")
WORKSPACE = Path(explicit) if explicit else discover(Path(__file__).resolve().parent)
if str(WORKSPACE / "scripts") not in sys.path:
    sys.path.insert(0, str(WORKSPACE / "scripts"))

from task_runtime import append_history, load_card, now_iso, save_card

def finish(card):
    artifacts = card.get("artifacts") if isinstance(card.get("artifacts"), dict) else {}
    source = artifacts.get("source")
    if not source:
        raise RuntimeError("missing artifacts.source")
    artifacts["result"] = str(source)
    card["artifacts"] = artifacts
    card["phase"] = "render_complete"
    card["status"] = "done"
    card["last_checkpoint_at"] = now_iso()
    card["updated_at"] = card["last_checkpoint_at"]
    append_history(card, "render-resumed", phase=card.get("phase"), status=card.get("status"))
    save_card(card)
    return {"task_id": card.get("id"), "ok": True, "artifacts": artifacts}

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task-id", required=True)
    parser.add_argument("--timeout-seconds", type=int, default=180)
    args = parser.parse_args()
    try:
        card = load_card(args.task_id)
        if card.get("phase") not in {"render", "finalize"}:
            raise RuntimeError("no safe handler for phase " + str(card.get("phase")))
        result = finish(card)
    except Exception as error:
        print(json.dumps({"ok": False, "error": str(error)}), file=sys.stderr)
        return 2
    print(json.dumps(result))
    return 0

if __name__ == "__main__":
    raise SystemExit(main())
"""
"""An adapter as users wrote them for the published scripts."""

ARTICLE_ADAPTER = """
import argparse, datetime, json, sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from task_runtime import load_run_card, update_run_card, RunCard

def collect(run_card: RunCard):
    last = run_card.artifacts.get("phase_collect", {}).get("partial")
    start = int(Path(last).read_text()) if last and Path(last).exists() else 0
    new = Path(__file__).with_name("partial.txt")
    new.write_text(str(start + 100))
    run_card.artifacts.setdefault("phase_collect", {})["partial"] = str(new)
    run_card.phase = "analyze"
    run_card.last_checkpoint_at = datetime.datetime.utcnow().isoformat() + "Z"
    update_run_card(run_card.task_id, run_card)
    return {"resumed_to": start + 100, "next_phase": run_card.phase}

def analyze(run_card):
    source = run_card.artifacts.get("phase_collect", {}).get("partial")
    if not source or not Path(source).exists():
        run_card.status = "failed"
        run_card.metadata["error"] = "missing input"
        update_run_card(run_card.task_id, run_card)
        return {"error": "missing input"}
    run_card.status = "completed"
    update_run_card(run_card.task_id, run_card)
    return {"status": "analysis_completed"}

def report(run_card):
    run_card.status = "needs_attention"
    update_run_card(run_card.task_id, run_card)
    return {"action": "paused"}

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task-id", required=True)
    parser.add_argument("--timeout-seconds", type=int, default=300)
    args = parser.parse_args()
    run_card = load_run_card(args.task_id)
    if not run_card:
        print(json.dumps({"error": "not found"}), file=sys.stderr)
        sys.exit(1)
    phases = {"collect": collect, "analyze": analyze, "report": report}
    print(json.dumps(phases[run_card.phase](run_card)))

if __name__ == "__main__":
    main()
"""
"""An adapter as the article about the scripts shows them."""


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, none where there is none."""
    if path.exists():
        yield from path.read_text(encoding="utf-8").splitlines()
