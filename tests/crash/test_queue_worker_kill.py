"""Workers that are killed, asked to stop, or too slow: real processes, jobs and runs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from workers import STARTED, Project, is_gone, projects

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, store_path: Path) -> Iterator[Project]:
    yield from projects(tmp_path, store_path)


def wait_for(worker: subprocess.Popen[str], event: str) -> None:
    """Read what it tells until it tells of this."""
    assert worker.stderr is not None
    while f" {event}" not in worker.stderr.readline():
        assert worker.poll() is None


class TestAWorkerThatIsKilled:
    def test_the_next_one_takes_its_job_at_once_and_goes_on(self, project: Project) -> None:
        """G7: a dead owner's lease is free at once; the run goes on at its checkpoint (G10)."""
        job_id = project.enqueue("slow")
        worker = project.begin()
        project.wait_until_it_works()
        worker.kill()
        worker.wait()
        code, _, told = project.work()
        job = project.job(job_id)

        assert code == 0, told
        assert project.log() == ["sent", "from 5", "begun 1", "from 5", "done"]
        assert (job.status, job.attempts) == ("completed", 2)
        assert project.run(job_id).epoch == 2
        assert "recovered" in told

    def test_one_that_waits_takes_it_too(self, project: Project) -> None:
        job_id = project.enqueue("slow")
        worker = project.begin()
        project.wait_until_it_works()
        other = project.begin("--drain", "--poll", "100ms")
        worker.kill()
        worker.wait()
        written, _ = other.communicate()

        assert project.job(job_id).status in ("completed", "leased", "pending"), written
        assert project.work()[0] == 0
        assert project.job(job_id).status == "completed"
        assert project.log().count("sent") == 1

    def test_its_executable_does_not_work_beside_the_next(self, project: Project) -> None:
        project.script(
            f'echo "pid $$ $TACHO_JOB_ATTEMPT" >>log; [ $TACHO_JOB_ATTEMPT = 2 ] && exit 0; '
            f"{STARTED} sleep 1000; echo late >>log"
        )
        job_id = project.enqueue("shell")
        worker = project.begin()
        project.wait_until_it_works()
        worker.kill()
        worker.wait()
        left = int(project.log()[0].split()[1])
        lived = not is_gone(left)
        code, _, told = project.work()

        assert code == 0, told
        assert lived
        assert is_gone(left)
        assert project.job(job_id).status == "completed"
        assert "late" not in project.log()


class TestAWorkerThatIsAskedToStop:
    def test_it_lets_the_job_at_work_end_and_takes_no_other(self, project: Project) -> None:
        first, second = project.enqueue("slow"), project.enqueue("plain")
        worker = project.begin()
        project.wait_until_it_works()
        worker.terminate()
        wait_for(worker, "stopping")
        project.let_go()
        written, _ = worker.communicate()

        assert worker.returncode == 0
        assert "1 completed" in written
        assert project.job(first).status == "completed"
        assert project.job(second).status == "pending"

    def test_a_process_that_does_not_end_in_time_is_stopped_and_its_job_given_back(
        self, project: Project
    ) -> None:
        project.script(f"sleep 1000 & echo $! >>log; {STARTED} wait")
        job_id = project.enqueue("shell")
        worker = project.begin("--grace", "0s")
        project.wait_until_it_works()
        worker.terminate()
        written, told = worker.communicate()
        job = project.job(job_id)

        assert worker.returncode == 0, told
        assert "1 released" in written
        assert (job.status, job.attempts, job.error) == ("pending", 0, None)
        assert project.history(job_id)[-1][1]["code"] == "stopped"
        assert is_gone(int(project.log()[0]))
        assert project.run(job_id).outcome == "partial"

    def test_a_second_signal_ends_it_at_once(self, project: Project) -> None:
        project.script(f"trap '' TERM; echo $$ >>log; {STARTED} while :; do sleep 0.1; done")
        job_id = project.enqueue("shell")
        worker = project.begin("--grace", "1h")
        project.wait_until_it_works()
        worker.send_signal(signal.SIGINT)
        wait_for(worker, "stopping")
        worker.send_signal(signal.SIGINT)
        written, told = worker.communicate()

        assert worker.returncode == 0, told
        assert "1 released" in written
        assert project.job(job_id).attempts == 0
        assert is_gone(int(project.log()[0]))

    def test_a_function_that_does_not_end_is_left_and_its_job_is_free(
        self, project: Project
    ) -> None:
        job_id = project.enqueue("slow")
        worker = project.begin("--grace", "0s")
        project.wait_until_it_works()
        worker.terminate()
        _, told = worker.communicate()
        left = project.job(job_id).status
        code, _, _ = project.work()

        assert (worker.returncode, left, code) == (1, "leased", 0)
        assert job_id in told
        assert project.job(job_id).status == "completed"
        assert project.log().count("sent") == 1

    def test_an_idle_one_ends(self, project: Project) -> None:
        worker = project.begin("--poll", "60s")
        wait_for(worker, "started")
        worker.terminate()
        written, _ = worker.communicate()

        assert worker.returncode == 0
        assert written == "0 leases: 0 completed.\n"


class TestAnIdleWorker:
    def test_it_sees_a_new_job_long_before_it_polls(self, project: Project) -> None:
        worker = project.begin("--poll", "60s")
        wait_for(worker, "started")
        job_id = project.enqueue("slow")
        project.wait_until_it_works()
        project.let_go()
        wait_for(worker, "completed")
        worker.terminate()
        worker.communicate()

        assert project.job(job_id).status == "completed"


class TestATimeLimit:
    def test_it_ends_an_executable_and_all_it_has_started(self, project: Project) -> None:
        project.script("sleep 1000 & echo $! $$ >>log; wait")
        job_id = project.enqueue("brief", max_attempts=1)
        code, _, told = project.work()
        job = project.job(job_id)

        assert code == 1, told
        assert (job.status, job.error) == (
            "dead",
            "stopped at its time limit, killed by SIGTERM",
        )
        assert [is_gone(int(pid)) for pid in project.log()[0].split()] == [True, True]
        assert project.run(job_id).reason_code == "timeout"

    def test_it_ends_a_python_handler_and_all_it_has_started(self, project: Project) -> None:
        job_id = project.enqueue("limited", max_attempts=1)
        code, _, told = project.work()
        job = project.job(job_id)
        _, *pids = project.log()[0].split()

        assert code == 1, told
        assert job.status == "dead"
        assert str(job.error).startswith("stopped at its time limit")
        assert [is_gone(int(pid)) for pid in pids] == [True, True]
