"""Secrets are found by the names of variables, in URLs, and where the settings say (G13)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tachograph.domain.errors import SettingError
from tachograph.domain.redaction import MARKER
from tachograph.infra.secrets import collect, looks_secret, redactor


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN", "GITHUB_TOKEN", "github_token", "npm_config__authToken", "CLIENT_SECRET",
        "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "OPENAI_APIKEY", "SSH_PRIVATE_KEY",
        "DB_PASSWORD", "PGPASSWORD", "MYSQL_PASSWD", "SMTP_PASS", "GPG_PASSPHRASE",
        "REGISTRY_CREDENTIAL", "GOOGLE_APPLICATION_CREDENTIALS", "API_TOKENS", "GITHUB_PAT",
        "STRIPE_SECRET", "AZURE_STORAGE_KEY", "service.api-key",
    ],
)  # fmt: skip
def test_these_names_look_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "_", "PATH", "HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "XAUTHORITY",
        "TOKENIZERS_PARALLELISM", "TOKEN_FILE", "VAULT_TOKEN_PATH", "DB_PASSWORD_FILE", "API_URL",
        "AWS_ACCESS_KEY_ID", "KEYBOARD", "PRIMARY_KEY", "PUBLIC_KEY", "GIT_ASKPASS", "COMPASS",
        "SECRET_NAME", "PASSWORD_STORE_DIR", "TOKEN_TTL", "CREDENTIAL_HELPER",
    ],
)  # fmt: skip
def test_these_names_do_not(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    ("environment", "values"),
    [
        ({"API_TOKEN": "abcdef123"}, ["abcdef123"]),
        ({"API_TOKEN": " abcdef123\n"}, [" abcdef123\n", "abcdef123"]),
        ({"API_TOKEN": "short"}, []),
        ({"API_TOKEN": ""}, []),
        ({"MAX_TOKENS": "100000"}, []),
        ({"API_TOKENS": "abc,def"}, ["abc,def"]),
        ({"DB_PASSWORD": "12345678"}, ["12345678"]),
        ({"USE_AUTH_TOKEN": "Enabled"}, []),
        ({"A_TOKEN": "same-value", "B_TOKEN": "same-value"}, ["same-value"]),
        ({"PATH": "/usr/bin", "SSH_AUTH_SOCK": "/tmp/agent.sock"}, []),
        ({"DATABASE_URL": "postgres://me:s3cret!@host:5432/db?x=1"}, ["s3cret!"]),
        ({"DATABASE_URL": "postgres://me:s3cr%40et@host/db"}, ["s3cr%40et", "s3cr@et"]),
        ({"HTTP_PROXY": "http://host:3128", "SITE": "https://a@b/x:y@z"}, []),
        ({"URLS": "redis://:hunter22@a redis://:hunter33@b"}, ["hunter22", "hunter33"]),
        ({"GOOGLE_APPLICATION_CREDENTIALS": "/no/such/key.json"}, ["/no/such/key.json"]),
    ],
)
def test_secret_values_of_an_environment(environment: dict[str, str], values: list[str]) -> None:
    assert collect(environment) == values


def test_the_path_of_a_file_with_a_secret_is_no_secret(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text("{}")

    assert collect({"GOOGLE_APPLICATION_CREDENTIALS": str(key)}) == []


def test_named_variables_and_files_count_as_well(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "values").write_text("literal one\n\nliteral two\nshort\n", encoding="utf-8")
    environment = {"CUSTOMER": "ACME Corporation", "OTHER": "not this one"}

    values = collect(environment, ["CUSTOMER", "UNSET", "@~/values"])

    assert values == ["ACME Corporation", "literal one", "literal two"]


def test_a_missing_file_of_values_is_an_error(tmp_path: Path) -> None:
    """Going on would write secrets that the user asked to keep out."""
    with pytest.raises(SettingError, match=r"nowhere cannot be read: No such file"):
        collect({}, [f"@{tmp_path}/nowhere"])


def test_the_redactor_knows_what_was_collected() -> None:
    found = redactor({"API_TOKEN": "abcdef123", "CUSTOMER": "ACME Corp."}, ["CUSTOMER"])

    assert found is not None
    assert found.redact("abcdef123 for ACME Corp.") == f"{MARKER} for {MARKER}"
    assert found.touches(b"..abcdef123..")


def test_a_private_key_in_a_variable_does_not_stay() -> None:
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
    found = redactor({"SSH_PRIVATE_KEY": f"-----BEGIN KEY-----\n{line}\n-----END KEY-----\n"})

    assert found is not None
    assert found.redact(f"cannot parse {line}") == f"cannot parse {MARKER}"


def test_secrets_of_other_environments_are_known_too() -> None:
    """Those of processes that are to be started: named alike, they may differ in each."""
    one, two = {"API_TOKEN": "abcdef123"}, {"API_TOKEN": "ghijkl456", "CUSTOMER": "ACME Corp."}
    found = redactor({}, ["CUSTOMER"], one, two)

    assert found is not None
    assert found.redact("abcdef123 ghijkl456 ACME Corp.") == "[redacted] [redacted] [redacted]"
    assert redactor({}, ["CUSTOMER"], {}) is None
