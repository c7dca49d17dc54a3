"""`queue worker` as people call it: what it does, what it says, and how it ends."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from command_line import TACHO, here
from workers import Project, is_gone, projects

from tachograph.cli.worker_lines import text_of
from tachograph.queues.told import Told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Capture = pytest.CaptureFixture[str]
WORKER = ("queue", "worker", "--max-load", "0")


@pytest.fixture
def project(
    tmp_path: Path, store_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    made = projects(tmp_path, store_environment)
    project = next(made)
    monkeypatch.chdir(project.folder)
    monkeypatch.syspath_prepend(str(project.folder))
    yield project
    next(made, None)


def events(told: str) -> list[str]:
    """Return what happened, line by line."""
    return [line.split()[1] for line in told.splitlines() if line.startswith("2")]


class TestOnce:
    def test_it_does_one_job(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("plain", 3)
        project.enqueue("plain", 4)
        done = here(capsys, *WORKER, "--once", "--handlers", "worker_jobs")

        assert (done.returncode, done.stdout) == (0, "1 job: 1 completed.\n")
        assert events(done.stderr) == ["started", "begun", "completed", "stopped"]
        assert project.log() == ["plain 3"]
        assert project.history(job_id)[-1][1]["result"] == {"payload": 3}

    def test_it_says_when_there_is_none(self, project: Project, capsys: Capture) -> None:
        done = here(capsys, *WORKER, "memory", "--once", "--handlers", "worker_jobs")

        said = "No job of memory is due that this worker can do.\n"
        assert (done.returncode, done.stdout) == (0, said)

    def test_a_failed_job_is_exit_code_1(self, project: Project, capsys: Capture) -> None:
        project.enqueue("bad")
        done = here(capsys, *WORKER, "--once", "--handlers", "worker_jobs")

        assert (done.returncode, done.stdout) == (1, "1 job: 0 completed, 1 failed.\n")
        assert 'error="ValueError: no"' in done.stderr


class TestDrain:
    def test_it_ends_when_nothing_is_left(self, project: Project, capsys: Capture) -> None:
        jobs = [project.enqueue("plain", number) for number in range(5)]
        done = here(
            capsys, *WORKER, "--drain", "--concurrency", "2", "--handlers", "worker_jobs", "--json"
        )
        said = json.loads(done.stdout)

        assert done.returncode == 0
        assert (said["begun"], said["completed"], said["failing"]) == (5, 5, [])
        assert {project.job(each).status for each in jobs} == {"completed"}

    def test_a_dead_job_is_exit_code_1(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("bad", max_attempts=1)
        done = here(capsys, *WORKER, "--drain", "--handlers", "worker_jobs", "--json")
        said = json.loads(done.stdout)

        assert done.returncode == 1
        assert (said["failing"], said["dead"]) == ([job_id], 1)


class TestExecutables:
    def test_it_gets_the_job(self, project: Project, capsys: Capture) -> None:
        project.script(
            'cat >in; cp "$TACHO_JOB_PAYLOAD_FILE" file; echo "working"\n'
            'echo "$TACHO_JOB_QUEUE $TACHO_JOB_TYPE $TACHO_JOB_ATTEMPT" >names\n'
            'echo "{\\"id\\": \\"$TACHO_JOB_ID\\", \\"run\\": \\"$TACHO_RUN_ID\\"}"'
        )
        job_id = project.enqueue("shell", {"text": "ü"})
        done = here(capsys, *WORKER, "--drain")

        assert done.returncode == 0
        assert json.loads((project.folder / "in").read_text()) == {"text": "ü"}
        assert json.loads((project.folder / "file").read_text()) == {"text": "ü"}
        assert (project.folder / "names").read_text() == "memory shell 1\n"
        assert project.history(job_id)[-1][1]["result"] == {
            "id": job_id,
            "run": f"queue-memory-{job_id}",
        }

    def test_one_command_for_all_types(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("anything", queue="summary")
        done = here(capsys, *WORKER, "summary", "--drain", "--exec", "true")

        assert done.returncode == 0
        assert project.job(job_id).status == "completed"

    def test_it_is_run_in_the_folder_of_the_project(
        self, project: Project, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.script("pwd >where")
        project.enqueue("shell")
        (project.folder / "below").mkdir()
        monkeypatch.chdir(project.folder / "below")
        here(capsys, *WORKER, "--drain")

        assert (project.folder / "where").read_text().strip() == str(project.folder)

    def test_a_large_payload_and_a_large_output(self, project: Project, capsys: Capture) -> None:
        project.script("cat; cat $TACHO_JOB_PAYLOAD_FILE >&2; echo; echo '[1]'")
        job_id = project.enqueue("shell", {"text": "x" * 1_000_000})
        done = here(capsys, *WORKER, "--drain")

        assert done.returncode == 0
        assert project.history(job_id)[-1][1]["result"] == [1]

    def test_a_command_that_is_not_there(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("any", max_attempts=1)
        done = here(capsys, *WORKER, "--drain", "--exec", "./no-such-command")

        assert done.returncode == 2
        assert "'./no-such-command', which is no program" in done.stderr
        assert project.job(job_id).attempts == 0


class TestHandlersInAProcess:
    """A handler with a time limit is called in a process of its own."""

    def test_it_records_in_its_run(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("isolated", {1: b"bytes"})
        done = here(capsys, *WORKER, "--drain", "--handlers", "worker_jobs")
        _, pid, *_ = project.log()[0].split()

        assert done.returncode == 0, done.stderr
        assert project.history(job_id)[-1][1]["result"] == {"done": {1: b"bytes"}}
        assert project.run(job_id).progress["completed"] == 1
        assert is_gone(int(pid))

    def test_what_it_raises_means_the_same(self, project: Project, capsys: Capture) -> None:
        later, limit = project.enqueue("isolated", "later"), project.enqueue("isolated", "limit")
        for _ in range(2):
            here(capsys, *WORKER, "--once", "--handlers", "worker_jobs")

        assert project.job(later).error == "RetryLaterError: Not now: 3600"
        assert (project.job(later).available_us or 0) - (project.job(later).failed_us or 0) > 3.5e9
        assert project.job(limit).status == "dead"


class TestModels:
    def test_a_handler_is_given_an_instance_of_what_its_type_declares(
        self, project: Project, capsys: Capture
    ) -> None:
        (project.folder / "modelled_jobs.py").write_text(
            "import pydantic\n"
            "class Document(pydantic.BaseModel):\n"
            "    number: int\n"
            "def work(job):\n"
            "    return [type(job.payload).__name__, job.payload.number, job.max_attempts]\n"
        )
        (project.folder / "tachograph.toml").write_text(
            "[queues.memory]\nmax_attempts = 2\n"
            "[queues.memory.types.embed]\n"
            'model = "modelled_jobs:Document"\nhandler = "modelled_jobs:work"\n'
            '[queues.memory.types.slowly]\ntimeout = "60s"\n'
            'model = "modelled_jobs:Document"\nhandler = "modelled_jobs:work"\n'
        )
        jobs = [project.enqueue(kind, {"number": 7}) for kind in ("embed", "slowly")]
        refused = project.enqueue("embed", {"number": "x"})
        done = here(capsys, *WORKER, "--drain")

        assert done.returncode == 1
        assert [project.history(each)[-1][1]["result"] for each in jobs] == [["Document", 7, 2]] * 2
        assert project.job(refused).status == "dead"
        assert "PayloadError" in str(project.job(refused).error)


class TestSysExit:
    def test_a_handler_that_exits_fails_its_job_alone(
        self, project: Project, capsys: Capture
    ) -> None:
        text = "import sys\nHANDLERS = {'leave': lambda job: sys.exit(4)}\n"
        (project.folder / "leaving_jobs.py").write_text(text)
        job_id = project.enqueue("leave")
        done = here(capsys, *WORKER, "memory", "--handlers", "leaving_jobs", "--once")

        assert done.returncode == 1
        assert project.job(job_id).error == "SystemExit: 4"


class TestSweeps:
    def test_what_was_kept_for_long_enough_goes(self, project: Project, capsys: Capture) -> None:
        (project.folder / "tachograph.toml").write_text('[queues.memory]\nkeep_completed = "1ms"\n')
        job_id = project.enqueue("plain", 3)
        project.complete(job_id)
        done = here(capsys, *WORKER, "memory", "--once", "--handlers", "worker_jobs")

        assert project.job(job_id).status == "pruned"
        assert "swept 1 job(s): 1 completed" in done.stderr


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("--once", "--drain"), "--once and --drain exclude each other."),
            (("--concurrency", "0"), "--concurrency is 0: give 1 or more."),
            (("--once", "--concurrency", "2"), "--once does one job"),
            (("--grace", "soon"), "--grace: "),
            (("--poll", "0s"), "--poll is 0s: give a time above 0."),
            (("--max-load", "-1"), "--max-load is -1"),
            (("--exec", "'"), "--exec is"),
            (("--exec", ""), "--exec is empty"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, project: Project, capsys: Capture, arguments: tuple[str, ...], words: str
    ) -> None:
        done = here(capsys, "queue", "worker", *arguments)

        assert done.returncode == 2
        assert words in done.stderr

    def test_an_unknown_queue(self, project: Project, capsys: Capture) -> None:
        done = here(capsys, *WORKER, "memry", "--once", "--exec", "true")

        assert done.returncode != 0
        assert "Did you mean 'memory'?" in done.stderr

    def test_a_queue_that_nothing_here_does(self, project: Project, capsys: Capture) -> None:
        (project.folder / "tachograph.toml").write_text("[queues.memory]\n")
        done = here(capsys, *WORKER, "--once")

        assert done.returncode != 0
        assert "--handlers" in done.stderr
        assert "tachograph.toml" in done.stderr

    def test_a_module_that_is_not_there(self, project: Project, capsys: Capture) -> None:
        done = here(capsys, *WORKER, "--once", "--handlers", "no_such_module")

        assert done.returncode != 0
        assert "no_such_module" in done.stderr

    def test_a_time_limit_for_what_cannot_be_called_elsewhere(
        self, project: Project, capsys: Capture
    ) -> None:
        text = "HANDLERS = {'limited': lambda job: None}\n"
        (project.folder / "lambdas.py").write_text(text)
        done = here(capsys, *WORKER, "--once", "--handlers", "lambdas")

        assert done.returncode != 0
        assert "top level of a module" in done.stderr


class TestLines:
    def test_as_json(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("plain", 3)
        done = here(capsys, *WORKER, "--once", "--handlers", "worker_jobs", "--log-format", "json")
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        said = lines[2]

        assert [line["event"] for line in lines] == ["started", "begun", "completed", "stopped"]
        assert (said["job"], said["queue"], said["type"], said["attempt"]) == (
            job_id,
            "memory",
            "plain",
            1,
        )
        assert said["seconds"] >= 0
        assert said["time"].endswith("Z")

    def test_quiet_leaves_out_what_is_no_trouble(self, project: Project, capsys: Capture) -> None:
        project.enqueue("plain", 3)
        project.enqueue("bad", max_attempts=1)
        done = here(capsys, *WORKER, "--drain", "--handlers", "worker_jobs", "--quiet")

        assert events(done.stderr) == ["dead"]

    def test_an_error_of_several_lines_is_one_line(self) -> None:
        assert text_of(Told("error", error="a\n  b")) == 'error error="a b"'


class TestWatch:
    def test_without_a_terminal_lines_are_written(self, project: Project, capsys: Capture) -> None:
        done = here(capsys, *WORKER, "--once", "--watch", "--handlers", "worker_jobs")

        assert done.returncode == 0
        assert "--watch needs a terminal" in done.stderr

    def test_the_picture(self, project: Project) -> None:
        """Each job at work has a row, with its run's phase and progress."""
        from functools import partial

        from rich.console import Console

        from tachograph.bootstrap import open_store
        from tachograph.cli.worker_display import Watch
        from tachograph.cli.worker_running import _health
        from tachograph.queue_plans import plan_of
        from tachograph.queuekeeping import queues_of
        from tachograph.queues.handlers import Handler, Handlers, JobContext
        from tachograph.workerkeeping import Doing, worker_of

        job_id = project.enqueue("shown")
        console = Console(width=120, record=True, force_terminal=False)
        services = open_store(str(project.store))
        watch = Watch(partial(_health, services, plan_of(services), ["memory"]), console)
        seen: list[str] = []

        def work(job: JobContext) -> None:
            with job.run.phase("reading"):
                job.run.progress(3, 10, "pages")
                console.print(watch.picture(worker))
                seen.append(console.export_text())

        handlers = Handlers()
        handlers.add(Handler("shown", work))
        queueing = queues_of(services, plan_of(services).plan)
        worker = worker_of(
            services, queueing, ["memory"], Doing(handlers), max_load=0.0, tell=watch.tell
        )
        worker.work(once=True)
        watch.close()
        services.close()

        assert job_id in seen[0]
        assert "memory/shown" in seen[0]
        assert "reading, 3/10 pages" in seen[0]
        assert "l=1" in seen[0]
        assert "begun memory/shown" in seen[0]


class TestRunsOfJobs:
    def test_such_a_run_is_cancelled_with_its_job(self, project: Project, capsys: Capture) -> None:
        """Its process is a worker, which does other jobs, too: nothing signals that."""
        job_id = project.enqueue("bad")
        here(capsys, *WORKER, "--once", "--handlers", "worker_jobs")
        run_id = f"queue-memory-{job_id}"
        done = here(capsys, "run", "cancel", run_id, "--reason", "no use")

        assert done.returncode == 2
        assert f"tacho queue cancel --ids {job_id}" in done.stderr

    def test_explain_leads_to_the_job(self, project: Project, capsys: Capture) -> None:
        job_id = project.enqueue("bad")
        here(capsys, *WORKER, "--once", "--handlers", "worker_jobs")
        done = here(capsys, "run", "explain", f"queue-memory-{job_id}")

        assert f"tacho queue show {job_id}" in done.stdout


class TestForks:
    def test_a_child_that_a_handler_forks_is_no_worker(
        self, project: Project, capsys: Capture
    ) -> None:
        """It would end the job, and take others, in the name of its parent."""
        text = "import os\nHANDLERS = {'fork': lambda job: os.fork() and {'parent': True}}\n"
        (project.folder / "forking_jobs.py").write_text(text)
        jobs = [project.enqueue("fork") for _ in range(3)]
        command = [*TACHO, *WORKER, "memory", "--handlers", "forking_jobs", "--drain"]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60)

        assert done.returncode == 0, done.stderr
        ended = [project.history(job_id)[-1][1] for job_id in jobs]
        assert [each["result"] for each in ended] == [{"parent": True}] * 3
        assert [each["epoch"] for each in ended] == [1, 1, 1]
