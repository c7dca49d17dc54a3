"""A policy file is read strictly, and every refusal names the file, the rule and the reason."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tachograph.bootstrap import open_store, policy_in_force
from tachograph.domain.default_policy import default_policy
from tachograph.domain.errors import PolicyError, SettingError
from tachograph.infra import policies, policy_file
from tachograph.infra.policies import policy_of

if TYPE_CHECKING:
    from pathlib import Path

HEAD = 'id = "mine"\nversion = 3\n'
RULE = """
[[rules]]
id = "too-few"
when = ["outputs >= 1", "unaccounted >= 1"]
outcome = "failed"
reason_code = "too_few"
text = "only {outputs} of {work}"
"""
LAST = """
[[rules]]
id = "last"
outcome = "partial"
reason_code = "last"
text = "nothing else fits"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.toml"


@pytest.fixture
def store(store_path: Path) -> str:
    open_store(str(store_path), create=True).close()
    return str(store_path)


def ids(path: Path) -> list[str]:
    return [rule.id for rule in policy_of(str(path)).rules]


DEFAULT = [rule.id for rule in default_policy().rules]


class TestFiles:
    def test_without_a_file_it_is_the_default_policy(self) -> None:
        assert policy_of(None) is default_policy()

    def test_own_rules_come_before_those_of_the_default_policy(self, path: Path) -> None:
        path.write_text(HEAD + RULE)
        policy = policy_of(str(path))

        assert ids(path) == ["too-few", *DEFAULT]
        assert (policy.id, policy.version, policy.rules[0].version) == ("mine", 3, 1)
        assert policy.rules[0].otherwise is None

    def test_rules_of_the_default_policy_can_be_left_out(self, path: Path) -> None:
        path.write_text(HEAD + 'without = ["fewer-outputs", "faults-seen"]\n' + RULE)

        assert ids(path) == [
            "too-few",
            *(rule for rule in DEFAULT if rule not in ("fewer-outputs", "faults-seen")),
        ]

    def test_or_be_replaced_by_ones_own_of_the_same_id(self, path: Path) -> None:
        path.write_text(HEAD + RULE.replace("too-few", "fewer-outputs"))

        assert ids(path) == [
            "fewer-outputs",
            *(rule for rule in DEFAULT if rule != "fewer-outputs"),
        ]

    def test_a_policy_can_stand_alone(self, path: Path) -> None:
        path.write_text(HEAD + 'extends = "nothing"\n' + RULE + LAST)

        assert ids(path) == ["too-few", "last"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("id = ", "it is not TOML: "),
            ("version = 1\n" + RULE, "id: Field required"),
            ('id = "mine"\n' + RULE, "version: Field required"),
            ('id = "mine"\nversion = 0\n' + RULE, "version: Input should be greater than or equal"),
            ('id = "mine"\nversion = "1"\n' + RULE, "version: Input should be a valid integer"),
            ('id = "My Own"\nversion = 1\n' + RULE, "id: String should match pattern"),
            ('id = "default"\nversion = 1\n' + RULE, "the id 'default' belongs to the policy of"),
            (HEAD, "rules: Field required"),
            (HEAD + "rules = []\n", "rules: List should have at least 1 item"),
            (HEAD + "rule = 1\n" + RULE, "rule: Extra inputs are not permitted"),
            (
                HEAD + 'extends = "other"\n' + RULE,
                "extends: Input should be 'default' or 'nothing'",
            ),
            (HEAD + 'without = ["many"]\n' + RULE, "the default policy has no rule 'many': it has"),
            (
                HEAD + 'extends = "nothing"\nwithout = ["no-input"]\n' + RULE,
                "it extends nothing, so there is nothing to go without",
            ),
            (
                HEAD + 'extends = "nothing"\n' + RULE,
                "the last rule has to be one without conditions",
            ),
            (
                HEAD + RULE.replace("outputs >= 1", "output >= 1"),
                "rule 'too-few': there is no fact",
            ),
            (HEAD + RULE.replace("failed", "bad"), "rule 'too-few': 'bad' is no outcome"),
            (
                HEAD + RULE.replace("{work}", "{works}"),
                "rule 'too-few': the text 'only {outputs} of",
            ),
            (HEAD + RULE + RULE, "rule 'too-few' occurs twice"),
            (HEAD + RULE + 'mood = "x"\n', "rule 'too-few', mood: Extra inputs are not permitted"),
            (HEAD + RULE.replace('"too_few"', '"Too few"'), "rule 'too-few', reason_code: String"),
            (HEAD + RULE.replace('id = "too-few"', ""), "rule 'number 1', id: Field required"),
            (
                HEAD + RULE.replace('"only {outputs} of {work}"', '""'),
                "rule 'too-few', text: String",
            ),
            (HEAD + "rules = [3]\n", "rule 'number 1': Input should be"),
            (HEAD + LAST + RULE, "rule 'last' has no condition, so no later rule is ever reached"),
        ],
    )
    def test_a_file_that_makes_no_sense_says_where_and_why(
        self, path: Path, text: str, problem: str
    ) -> None:
        path.write_text(text)

        with pytest.raises(PolicyError) as caught:
            policy_of(str(path))

        assert str(caught.value).startswith(f"The gate policy {path} cannot be used: ")
        assert problem in str(caught.value)

    def test_a_file_that_is_no_text_is_refused(self, path: Path) -> None:
        path.write_bytes(b"\xff\xfe")

        with pytest.raises(PolicyError, match="it is not TOML: 'utf-8' codec can't decode"):
            policy_of(str(path))

    def test_a_file_that_is_not_there_is_refused(self, path: Path) -> None:
        with pytest.raises(PolicyError, match="it cannot be read: No such file"):
            policy_of(str(path))


class TestCache:
    def test_a_file_is_parsed_once(
        self, path: Path, store: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path.write_text(HEAD + RULE)
        first = policy_of(str(path), store)
        monkeypatch.setattr(policy_file, "parse", None)

        assert policy_of(str(path), store).digest == first.digest

    def test_a_changed_file_is_read_again(self, path: Path, store: str) -> None:
        path.write_text(HEAD + RULE)
        before = policy_of(str(path), store)
        path.write_text(HEAD + RULE.replace("unaccounted >= 1", "unaccounted >= 2"))

        assert policy_of(str(path), store).digest != before.digest

    def test_what_is_kept_holds_for_this_default_policy_alone(
        self, path: Path, store: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A later Tachograph brings other rules, which the file extends."""
        path.write_text(HEAD + RULE)
        policy_of(str(path), store)
        monkeypatch.setattr(policies, "_READ_AS", b"later\n")
        monkeypatch.setattr(policy_file, "parse", lambda path, _content: {"id": path})

        with pytest.raises(KeyError):
            policy_of(str(path), store)

    def test_a_damaged_cache_is_not_missed(self, path: Path, store: str) -> None:
        path.write_text(HEAD + RULE)
        first = policy_of(str(path), store)
        (cache,) = (path.parent / "store" / "views").glob(policies.CACHE)
        cache.write_bytes(b"\x93")

        assert policy_of(str(path), store).digest == first.digest


class TestInForce:
    def test_without_a_setting_it_is_that_of_the_package(self, store_environment: Path) -> None:
        policy, origin = policy_in_force()

        assert (policy, origin) == (default_policy(), "package")

    def test_the_environment_names_it(
        self, path: Path, store_environment: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path.write_text(HEAD + RULE)
        monkeypatch.chdir(path.parent)
        monkeypatch.setenv("TACHO_POLICY", path.name)

        policy, origin = policy_in_force()

        assert (policy.id, origin) == ("mine", str(path))

    def test_the_store_names_one_beside_its_own_settings(
        self, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "store" / "rules.toml").write_text(HEAD + RULE)
        (tmp_path / "store" / "config").write_text('policy = "rules.toml"\n')
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        services = open_store(store)

        assert services.policy().id == "mine"
        services.close()

    def test_a_setting_that_is_no_path_is_refused(self, store: str, tmp_path: Path) -> None:
        (tmp_path / "store" / "config").write_text("policy = 3\n")

        with pytest.raises(SettingError, match="policy"):
            policy_in_force(store)


def test_the_schema_of_a_file_describes_every_key() -> None:
    schema = policy_file.json_schema()

    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {"id", "version", "extends", "without", "rules"}
    rule = schema["$defs"]["RuleModel"]
    assert all("description" in field for field in rule["properties"].values())
    assert "success" in rule["properties"]["outcome"]["enum"]


def test_a_pipe_in_the_place_of_a_policy_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.toml")

    with pytest.raises(PolicyError, match="it is no regular file"):
        policy_of(str(tmp_path / "policy.toml"))
