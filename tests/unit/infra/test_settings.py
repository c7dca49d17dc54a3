"""Each setting has one value and one origin; what is unknown or not allowed is refused."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tachograph.domain.errors import SettingError
from tachograph.infra import settings_file
from tachograph.infra.settings import SETTINGS, Settings, resolve, user_file
from tachograph.infra.store_folder import create_store

Resolve = Callable[..., Settings]
DEFAULTS = {
    "snapshot_every": 500,
    "lease_seconds": 30,
    "heartbeat_seconds": 10,
    "blob_threshold_bytes": 16_384,
    "time_format": "auto",
    "policy": "",
    "artifacts": "",
    "redact": [],
}


@pytest.fixture
def configured(home: Path, store_path: Path) -> Resolve:
    """Resolve with the given content of the files, environment and flags."""
    create_store(str(store_path))
    user = home / ".config/tachograph/config.toml"
    user.parent.mkdir(parents=True)

    def look(
        *, user_text: str = "", store_text: str = "", flags: Any = None, **variables: str
    ) -> Settings:
        user.write_text(user_text, encoding="utf-8")
        (store_path / "config").write_text(store_text, encoding="utf-8")
        return resolve(str(store_path), variables, flags=flags)

    return look


def values(settings: Settings) -> dict[str, object]:
    return {name: getattr(settings, name) for name in SETTINGS}


def test_without_any_configuration_there_are_defaults(home: Path) -> None:
    settings = resolve(None, {})

    assert values(settings) == DEFAULTS
    assert set(settings.origins.values()) == {"default"}


def test_empty_files_set_nothing(configured: Resolve, store_path: Path) -> None:
    settings = configured(user_text="\n", store_text="  \n")

    assert values(settings) == DEFAULTS
    assert not (store_path / "views/settings.cache").exists()


def test_the_nearest_source_counts(configured: Resolve, home: Path, store_path: Path) -> None:
    user, store = str(home / ".config/tachograph/config.toml"), str(store_path / "config")
    sources: dict[str, Any] = {
        "user_text": "snapshot_every = 1",
        "store_text": "snapshot_every = 2",
        "TACHO_SNAPSHOT_EVERY": "3",
        "flags": {"snapshot_every": 4},
    }
    found = []
    while sources:
        settings = configured(**sources)
        found.append((settings.snapshot_every, settings.origins["snapshot_every"]))
        sources.popitem()

    assert found == [
        (4, "--snapshot-every"),
        (3, "environment variable TACHO_SNAPSHOT_EVERY"),
        (2, store),
        (1, user),
    ]


def test_each_setting_has_its_own_source(configured: Resolve, store_path: Path) -> None:
    settings = configured(
        user_text='time_format = "iso"\nlease_seconds = 60',
        store_text='redact = ["CUSTOMER", "@~/values"]\nlease_seconds = 90.5',
        TACHO_BLOB_THRESHOLD_BYTES="1024",
        flags={"snapshot_every": 5, "time_format": None},
    )

    assert values(settings) == DEFAULTS | {
        "time_format": "iso",
        "lease_seconds": 90.5,
        "redact": ["CUSTOMER", "@~/values"],
        "blob_threshold_bytes": 1024,
        "snapshot_every": 5,
    }
    assert settings.origins["lease_seconds"] == str(store_path / "config")
    assert settings.origins["heartbeat_seconds"] == "default"


def test_a_path_counts_from_the_file_that_names_it(
    configured: Resolve, home: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    settings = configured(store_text='artifacts = "tree"\npolicy = "~/gate.toml"')
    assert settings.artifacts_folder == str(store_path / "tree")
    assert settings.policy_file == str(home / "gate.toml")

    assert configured(TACHO_ARTIFACTS="tree").artifacts_folder == str(home / "tree")
    assert configured(TACHO_ARTIFACTS="/tree").artifacts_folder == "/tree"
    assert configured().artifacts_folder is None
    assert configured().policy_file is None


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("snapshot_every", "100", 100),
        ("lease_seconds", "45", 45),
        ("lease_seconds", "45.5", 45.5),
        ("time_format", " raw ", "raw"),
        ("redact", "A, B,@/x,", ["A", "B", "@/x"]),
    ],
)
def test_the_environment_and_flags_are_texts(
    configured: Resolve, name: str, text: str, value: object
) -> None:
    by_variable = configured(**{f"TACHO_{name.upper()}": text})
    by_flag = configured(flags={name: text})

    assert getattr(by_variable, name) == getattr(by_flag, name) == value


def test_an_empty_variable_is_not_set(configured: Resolve) -> None:
    assert configured(TACHO_LEASE_SECONDS="").origins["lease_seconds"] == "default"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("snapshot_every = 0", "snapshot_every cannot be 0. Allowed is a whole number from 1"),
        ("snapshot_every = 1.5", "snapshot_every cannot be 1.5"),
        ("snapshot_every = true", "snapshot_every cannot be True"),
        ("snapshot_every = '5'", "snapshot_every cannot be '5'"),
        ("lease_seconds = 0.5", "lease_seconds cannot be 0.5. Allowed is a number from 1"),
        ("lease_seconds = nan", "lease_seconds cannot be nan"),
        ("lease_seconds = inf", "lease_seconds cannot be inf"),
        ("time_format = 'unix'", "Allowed is one of auto, relative, iso, raw"),
        ("redact = 'A'", "redact cannot be 'A'. Allowed is a list of names"),
        ("redact = ['A', 1]", "redact cannot be ['A', 1]"),
        ("blob_threshold_bytes = 99999999999", "blob_threshold_bytes cannot be 99999999999"),
        ("snapshot-every = 5", "no setting 'snapshot-every'. Did you mean snapshot_every?"),
        ("[section]\nkey = 1", "no setting 'section'. There are snapshot_every, lease_seconds"),
        ("snapshot_every 5", "it is not TOML: "),
        ("snapshot_every = 5\nsnapshot_every = 6", "it is not TOML: "),
    ],
)
def test_a_mistake_in_a_file_names_file_key_and_what_is_allowed(
    configured: Resolve, store_path: Path, line: str, problem: str
) -> None:
    with pytest.raises(SettingError) as caught:
        configured(store_text=f"# settings\n{line}\n")

    assert problem in str(caught.value)
    assert str(caught.value).startswith(f"{store_path / 'config'}: ")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_mistake_is_found_in_the_user_file_too(configured: Resolve, home: Path) -> None:
    with pytest.raises(SettingError, match=r"config\.toml: snapshot_every cannot be 0"):
        configured(user_text="snapshot_every = 0", store_text="snapshot_every = 5")


def test_a_file_that_is_not_text_is_refused(configured: Resolve, store_path: Path) -> None:
    configured()
    (store_path / "config").write_bytes(b"\xff\xfe")

    with pytest.raises(SettingError, match="it is not TOML"):
        resolve(str(store_path), {})


def test_a_file_that_cannot_be_read_is_an_error(configured: Resolve, store_path: Path) -> None:
    """Going on with defaults would not redact what the user asked for."""
    (store_path / "config").mkdir()

    with pytest.raises(SettingError, match=r"config: it cannot be read"):
        resolve(str(store_path), {})


@pytest.mark.parametrize(
    ("variables", "flags", "problem"),
    [
        ({"TACHO_SNAPSHOT_EVERY": "many"}, {}, "TACHO_SNAPSHOT_EVERY: snapshot_every cannot be"),
        ({"TACHO_SNAPSHOT_EVERY": "5.5"}, {}, "cannot be 5.5. Allowed is a whole number"),
        ({"TACHO_LEASE_SECONDS": "nan"}, {}, "lease_seconds cannot be nan"),
        ({"TACHO_TIME_FORMAT": "unix"}, {}, "cannot be 'unix'. Allowed is one of auto, relative"),
        ({}, {"lease_seconds": -1}, "--lease-seconds: lease_seconds cannot be -1"),
        ({}, {"redact": ("A",)}, "--redact: redact cannot be"),
        ({}, {"colour": "red"}, "flags: there is no setting 'colour'"),
    ],
)
def test_a_mistake_elsewhere_is_named(
    configured: Resolve, variables: dict[str, str], flags: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SettingError) as caught:
        configured(flags=flags, **variables)

    assert problem in str(caught.value)


def test_the_heartbeat_follows_a_short_lease(configured: Resolve) -> None:
    assert configured(flags={"lease_seconds": 6}).heartbeat_seconds == 2
    assert configured(flags={"lease_seconds": 600}).heartbeat_seconds == 10


def test_a_heartbeat_must_fit_the_lease_twice(configured: Resolve) -> None:
    with pytest.raises(SettingError, match=r"cannot be 20 when lease_seconds is 30 \(default\)"):
        configured(TACHO_HEARTBEAT_SECONDS="20")

    assert configured(TACHO_HEARTBEAT_SECONDS="15").heartbeat_seconds == 15


@pytest.mark.parametrize("folder", [None, "", "relative"])
def test_the_user_file_is_below_home(home: Path, folder: str | None) -> None:
    environment = {} if folder is None else {"XDG_CONFIG_HOME": folder}

    assert user_file(environment) == str(home / ".config/tachograph/config.toml")


def test_the_user_file_is_where_xdg_says() -> None:
    assert user_file({"XDG_CONFIG_HOME": "/cfg"}) == "/cfg/tachograph/config.toml"


# The table and the model


values_of_any_kind = (
    st.none()
    | st.booleans()
    | st.integers(-5, 2_000_000)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["iso", "raw"])
    | st.lists(st.text(max_size=3) | st.integers(), max_size=3)
)


@given(st.sampled_from(sorted(SETTINGS)), values_of_any_kind)
def test_the_table_and_the_model_accept_the_same_values(name: str, value: object) -> None:
    try:
        settings_file.model().model_validate({name: value})
    except ValueError:
        accepted = False
    else:
        accepted = True

    assert SETTINGS[name].accepts(value) == accepted


def test_every_default_is_allowed_and_explained() -> None:
    for setting in SETTINGS.values():
        assert setting.accepts(setting.default)
        assert setting.meaning.endswith(".")


def test_the_schema_tells_editors_what_is_allowed() -> None:
    schema = settings_file.json_schema()

    assert sorted(schema["properties"]) == sorted(SETTINGS)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["time_format"]["enum"] == ["auto", "relative", "iso", "raw"]
    assert json.dumps(schema)


# The cache


def imported(store: Path, environment: dict[str, str]) -> tuple[str, set[str]]:
    """Resolve in a new process; return what it found and which heavy modules it imported."""
    code = (
        "import os, sys; from tachograph.infra.settings import resolve;"
        "print(resolve(sys.argv[1], os.environ).snapshot_every);"
        "print(*sorted({'pydantic', 'tomllib'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(store)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    value, modules = run.stdout.splitlines()
    return value, set(modules.split())


def test_a_file_is_parsed_once_and_again_when_it_changes(store_path: Path, home: Path) -> None:
    create_store(str(store_path))
    without = imported(store_path, {})
    (store_path / "config").write_text("snapshot_every = 7")
    first, second = imported(store_path, {}), imported(store_path, {})
    (store_path / "config").write_text("snapshot_every = 8")
    changed = imported(store_path, {})

    assert without == ("500", set())
    assert first == ("7", {"pydantic", "tomllib"})
    assert second == ("7", set())
    assert changed == ("8", {"pydantic", "tomllib"})


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x90", b"\x80"])
def test_a_damaged_cache_is_made_anew(
    configured: Resolve, store_path: Path, content: bytes
) -> None:
    configured(store_text="snapshot_every = 7")
    (store_path / "views/settings.cache").write_bytes(content)

    assert configured(store_text="snapshot_every = 7").snapshot_every == 7
    assert imported(store_path, {})[1] == set()


def test_without_views_files_are_parsed_each_time(configured: Resolve, store_path: Path) -> None:
    (store_path / "views").rmdir()

    assert configured(store_text="snapshot_every = 7").snapshot_every == 7
    assert not (store_path / "views").exists()


def test_the_cache_keeps_only_what_is_in_use(configured: Resolve, store_path: Path) -> None:
    sizes = []
    for number in (1, 2, 3):
        configured(store_text=f"snapshot_every = {number}")
        sizes.append((store_path / "views/settings.cache").stat().st_size)

    assert len(set(sizes)) == 1
    assert [path.name for path in (store_path / "views").iterdir()] == ["settings.cache"]
