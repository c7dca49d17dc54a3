"""tachograph.toml: where it is found, what it can say, and how it is told what is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

import pytest

from tachograph.domain import maintenance_plan
from tachograph.domain.errors import ProjectFileError, ProjectFileNotFoundError
from tachograph.domain.maintenance_plan import Gate
from tachograph.infra import project_file, project_models
from tachograph.infra.project_file import load, parse
from tachograph.infra.project_place import NAME, find

WHOLE = """
[maintenance]
max_runtime = "90m"
rate_limit_max_retries = 3
cooldown = 5
auto_resume = true

[maintenance.guards]
distill = "10h"

[[maintenance.steps]]
name = "reflect"
tier = "nightly"
guard = "5d"
llm = "maintenance"
depends_on = ["distill"]
gate = { env = "REFLECT", equals = "yes" }
timeout = "10m"
command = ["tool", "reflect"]
working_folder = "work"
environment = { LEVEL = "1" }
expect_output = ["out.txt"]

[[maintenance.steps]]
name = "distill"
tier = "nightly"
guard = "20h"
job = "jobs:distill"

[[maintenance.steps]]
name = "once"
tier = "cycle"
once = true
gate = false

[schedules.nightly]
cron = "30 2 * * *"
timezone = "Europe/Berlin"
maintenance = "nightly"

[schedules.report]
cron = "0 6 * * mon"
command = ["make", "report"]
catch_up = true
"""


def said(text: str) -> Any:
    return parse("/srv/project/tachograph.toml", text.encode())


def wrong(text: str) -> str:
    with pytest.raises(ProjectFileError) as caught:
        said(text)
    message = str(caught.value)
    assert message.startswith("/srv/project/tachograph.toml: ")
    return message.removeprefix("/srv/project/tachograph.toml: ").removesuffix(" Correct it there.")


def test_it_becomes_plain_objects() -> None:
    found = said(WHOLE)
    plan = found.maintenance
    reflect, once = plan.step("reflect"), plan.step("once")

    assert plan.names == ["distill", "reflect", "once"]
    assert (plan.max_runtime_seconds, plan.rate_limit_max_retries) == (5400, 3)
    assert (plan.cooldown_seconds, plan.auto_resume) == (5, True)
    assert plan.step("distill").guard_us == 10 * 3_600_000_000
    assert (reflect.guard_us, reflect.llm, reflect.timeout_seconds) == (
        432_000_000_000,
        *(
            "maintenance",
            600,
        ),
    )
    assert reflect.gate == Gate(variable="REFLECT", equals="yes")
    assert reflect.working_folder == "/srv/project/work"
    assert (reflect.environment, reflect.expect_output) == ({"LEVEL": "1"}, ["out.txt"])
    assert (once.gate, once.once, once.has_runner) == (Gate(opened=False), True, False)
    assert once.working_folder == "/srv/project"
    assert list(found.schedules) == ["nightly", "report"]
    assert (found.schedules["nightly"].job, found.schedules["report"].job) == (
        "maintenance-nightly",
        "report",
    )
    assert found.schedules["report"].catch_up


def test_a_file_that_says_nothing_declares_nothing() -> None:
    found = said("")

    assert (found.maintenance.steps, found.schedules) == ([], {})
    assert (found.maintenance.rate_limit_max_retries, found.maintenance.cooldown_seconds) == (2, 30)


def test_a_byte_order_mark_is_no_content() -> None:
    assert parse("/x/t.toml", b"\xef\xbb\xbf[maintenance]\n").schedules == {}


STEP = '[[maintenance.steps]]\nname = "a"\ntier = "cycle"\n'
SCHEDULE = '[schedules.s]\ncron = "0 0 * * *"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("maintenance = [", "it is not TOML: "),
        ("[maintenence]\n", "maintenence: there is no 'maintenence'. Did you mean 'maintenance'?"),
        ("[tasks]\n", "tasks: there is no 'tasks'. There are maintenance, schedules, queues, "),
        ("[maintenance]\nmaxruntime = 1", "Did you mean 'max_runtime'?"),
        (
            STEP + 'gard = "5h"',
            "maintenance.steps[1] (a).gard: there is no 'gard'. Did you mean 'guard'?",
        ),
        (STEP + 'guard = "5 parsecs"', "'5 parsecs' is no length of time such as \"20h\""),
        (STEP + "guard = true", 'give a length of time such as "20h", or seconds.'),
        (STEP + "guard = -5", "give seconds from 0 on"),
        (STEP + "timeout = 0", "steps[1] (a).timeout: Input should be greater than 0"),
        ('[maintenance]\nmax_runtime = "0s"', "max_runtime: Input should be greater than 0"),
        (STEP + 'gate = "yes"', "steps[1] (a).gate: Give true, false, or a table such as { env"),
        (STEP + "gate = {}", "steps[1] (a).gate.env: Field required"),
        (STEP + 'gate = { env = "A=B" }', "gate.env: 'A=B' is no name of an environment variable"),
        (STEP + 'gate = { env = " " }', "gate.env: ' ' is no name of an environment variable"),
        (STEP + 'environment = { "A=B" = "1" }', "'A=B' is no name of an environment variable"),
        (STEP + 'environment = { A = "1\\u0000" }', "(a).environment.A: it holds a NUL character"),
        (STEP + 'command = ["a\\u0000b"]', "(a).command[1]: it holds a NUL character"),
        (STEP + 'command = ["  "]', "(a).command: its first word has to be a program"),
        (STEP + 'working_folder = "a\\u0000"', "(a).working_folder: it holds a NUL character"),
        (STEP + 'job = "m:f\\u0000"', "(a).job: it holds a NUL character"),
        (STEP + 'expect_output = [""]', "(a).expect_output[1]: String should have at least 1"),
        (STEP + 'expect_output = ["\\u0000"]', "(a).expect_output[1]: it holds a NUL character"),
        (STEP + "timeout = 1e10", "give seconds from 0 on, at most 100 years of them"),
        (STEP + "timeout = nan", "give seconds from 0 on, at most 100 years of them"),
        (STEP + 'guard = "40000d"', "'40000d' is longer than 100 years"),
        (
            SCHEDULE + 'maintenance = "full"\n[schedules.t]\ncron = "0 6 * * *"\n'
            'maintenance = "full"',
            "Schedule 't': its job is called 'maintenance-full', as that of schedule 's'",
        ),
        (
            SCHEDULE + 'maintenance = "full"\n[schedules.maintenance-full]\ncron = "0 6 * * *"\n'
            'command = ["x"]',
            "its job is called 'maintenance-full', as that of schedule 's'",
        ),
        (STEP + 'gate = { env = "X", equal = "1" }', "gate.equal: there is no 'equal'. Did you"),
        (STEP + 'llm = "huge"', "steps[1] (a).llm: Input should be 'none', 'local'"),
        (STEP + 'command = "rm -rf"', "steps[1] (a).command: Input should be a valid list"),
        (STEP + "command = []", "steps[1] (a).command: List should have at least 1 item"),
        (STEP + "depends_on = ['b']", "depends on 'b', which is no step."),
        (STEP + STEP, "there are 2 steps named 'a'."),
        (STEP + 'command = ["x"]\njob = "m:f"', "a command and a job"),
        ('[[maintenance.steps]]\ntier = "cycle"', "maintenance.steps[1].name: Field required."),
        ('[[maintenance.steps]]\nname = "a b"\ntier = "cycle"', "should match pattern"),
        (
            "[maintenance.guards]\ndistil = 1\n" + STEP.replace('"a"', '"distill"'),
            "maintenance.guards: 'distil' is no step. Did you mean 'distill'?",
        ),
        ("[maintenance]\nrate_limit_max_retries = 0", "rate_limit_max_retries: Input should be"),
        ("[maintenance]\nrate_limit_max_retries = '2'", "should be a valid integer"),
        (SCHEDULE, "Schedule 's': give either a command or maintenance."),
        (SCHEDULE + 'maintenance = "full"\ncommand = ["x"]', "give either a command or"),
        (SCHEDULE + 'maintenance = "weekly"', "schedules.s.maintenance: Input should be 'cycle'"),
        (SCHEDULE + 'maintenance = "full"\ntimezone = "Mars"', "there is no time zone 'Mars'"),
        ('[schedules.s]\ncron = "61 * * * *"\ncommand = ["x"]', "bad minute."),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, words: str) -> None:
    assert words in wrong(text)


def test_what_is_no_text_is_told() -> None:
    with pytest.raises(ProjectFileError, match="it is not TOML: 'utf-8' codec"):
        parse("/x/t.toml", b"\xff")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProjectFileError, match="it cannot be read"):
        load(str(tmp_path))


def test_editors_get_a_schema() -> None:
    properties = project_file.json_schema()["properties"]

    assert set(properties) == {"maintenance", "schedules", "queues", "health", "repair"}


# Where it is.


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """A file in every place where one is looked for."""
    found = {}
    for name in ("flag", "variable", "here", "beside"):
        folder = tmp_path / name
        (folder / "deep" / "deeper").mkdir(parents=True)
        found[name] = folder / NAME
        found[name].touch()
    (tmp_path / "beside" / ".tachograph").mkdir()
    return found


@pytest.mark.parametrize("first", range(4))
def test_the_first_place_counts(first: int, places: dict[str, Path]) -> None:
    names = list(places)
    for name in names[:first]:
        places[name].unlink()
    environment = {"TACHO_CONFIG": str(places["variable"])} if first < 2 else {}
    found = find(
        str(places["flag"]) if first < 1 else None,
        environment,
        str(places["here"].parent / "deep" / "deeper"),
        str(places["beside"].parent / ".tachograph"),
    )

    assert found == str(places[names[first]])


def test_a_relative_path_counts_from_here(places: dict[str, Path]) -> None:
    here = str(places["flag"].parent / "deep")

    assert find("../tachograph.toml", {}, here, None) == str(places["flag"])


@pytest.mark.parametrize("named", ["flag", "variable"])
def test_one_that_is_named_and_not_there_is_not_replaced_by_another(
    named: str, places: dict[str, Path]
) -> None:
    environment = {"TACHO_CONFIG": "gone.toml"} if named == "variable" else {}
    with pytest.raises(ProjectFileNotFoundError, match=r"gone.toml: looked there, as it was named"):
        find(
            "gone.toml" if named == "flag" else None, environment, str(places["here"].parent), None
        )


def test_where_it_was_looked_for_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProjectFileNotFoundError) as caught:
        find(None, {}, str(tmp_path), str(tmp_path / "store"))

    assert f"looked in {tmp_path} and the folders above, and beside the store" in str(caught.value)
    assert "--config or TACHO_CONFIG" in str(caught.value)


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tachograph.toml")

    with pytest.raises(ProjectFileError, match="it is no regular file"):
        load(str(tmp_path / "tachograph.toml"))


def test_the_tiers_of_a_file_are_those_of_the_domain() -> None:
    assert get_args(project_models.LlmTier) == maintenance_plan.LLM_TIERS
    assert get_args(project_models.Tier) == (maintenance_plan.CYCLE, maintenance_plan.NIGHTLY)
