"""Payloads and the models of their types."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict

from tachograph.domain.handler_errors import CodeNotFoundError
from tachograph.domain.queue_errors import PayloadError
from tachograph.domain.queue_settings import JobType, QueueSettings
from tachograph.infra.payload_models import PayloadModels, checker, load_payload, plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Mail(BaseModel):
    to: str
    copies: int = 1
    at: dt.datetime | None = None


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    day: dt.date
    pair: tuple[int, int] = (0, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path = list(sys.path)
    (tmp_path / "mail_models.py").write_text(
        "from pydantic import BaseModel\n\nclass Mail(BaseModel):\n    to: str\n"
    )
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("mail_models", None)


def queue(model: str | None) -> QueueSettings:
    return QueueSettings("memory", types={"mail": JobType("mail", model=model)})


def test_a_payload_is_checked_by_the_model_of_its_type(folder: Path) -> None:
    check = checker(str(folder))
    settings = queue("mail_models:Mail")

    check(settings, "mail", {"to": "ada"})
    check(settings, "other", 3)
    with pytest.raises(PayloadError) as caught:
        check(settings, "mail", {"to": 3})

    assert str(caught.value) == (
        "The payload of a 'mail' job for 'memory' is refused by mail_models:Mail: to: Input "
        "should be a valid string."
    )


def test_every_payload_is_right_where_there_is_no_model() -> None:
    checker()(queue(None), "mail", object())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mail_models:Male", "has no attribute 'Male'"),
        ("nowhere:Mail", "No module named 'nowhere'"),
        ("sys:path", "pydantic cannot check a payload by ["),
    ],
)
def test_a_model_that_is_not_there_is_told(name: str, words: str, folder: Path) -> None:
    with pytest.raises(CodeNotFoundError) as caught:
        checker(str(folder))(queue(name), "mail", {})

    assert words in str(caught.value)


def test_three_problems_are_told_and_the_others_counted() -> None:
    with pytest.raises(PayloadError) as caught:
        load_payload(list[int], ["a", "b", 3, "c", "d"])

    words = str(caught.value)
    assert [f"{place}: Input should be" in words for place in (0, 1, 3, 4)] == [True] * 3 + [False]
    assert words.endswith("; and 1 more.")


def test_a_problem_of_the_whole_has_no_place() -> None:
    with pytest.raises(PayloadError, match="is refused by Mail: Input should be a valid dict"):
        load_payload(Mail, None)


def test_a_handler_gets_an_instance() -> None:
    assert load_payload(Mail, {"to": "ada"}) == Mail(to="ada")


@pytest.mark.parametrize(
    "payload",
    [
        {"day": "2026-03-01", "pair": [1, 2]},
        {"day": dt.date(2026, 3, 1), "pair": (1, 2)},
    ],
)
def test_a_strict_model_takes_what_json_can_say_and_what_python_can(payload: Any) -> None:
    assert load_payload(Strict, payload) == Strict(day=dt.date(2026, 3, 1), pair=(1, 2))


@pytest.mark.parametrize("payload", [{"day": 3}, {"day": object()}, {"day": float("nan")}])
def test_a_strict_model_refuses_what_neither_can(payload: Any) -> None:
    with pytest.raises(PayloadError, match="day: Input should be a valid date"):
        load_payload(Strict, payload)


def test_an_instance_becomes_plain_values_and_comes_back() -> None:
    mail = Mail(to="ada", at=dt.datetime(2026, 3, 1, tzinfo=dt.UTC))
    said = plain(mail)

    assert said == {"to": "ada", "copies": 1, "at": "2026-03-01T00:00:00Z"}
    assert PayloadModels().load(Mail, said) == mail
    assert plain({"to": 3}) == {"to": 3}
    assert plain(Mail) is Mail
