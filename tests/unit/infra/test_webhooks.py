"""A webhook is signed, tried again only where that can help, and gives no secret away."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from email.utils import formatdate
from typing import Any

import pytest
from loopback import DROP, Answer, Loopback

from tachograph.infra.sinks import SinkDownError, SinkFailure, deliver
from tachograph.infra.webhooks import LONGEST_WAIT_SECONDS, RefusedError, Webhook, ping

SIGNAL: dict[str, Any] = {"id": "s1", "kind": "alert", "task_id": "job-1", "message": "größer"}
SECRET = "correct horse"


class Waits:
    """Takes the place of sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def test_a_signal_is_posted_as_json_with_its_id_as_key() -> None:
    with Loopback() as server:
        assert deliver([SIGNAL], [Webhook(f"{server.url}/hook?x=1")]) == []
    (request,) = server.requests

    assert (request.path, json.loads(request.body)) == ("/hook?x=1", SIGNAL)
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Idempotency-Key"] == "s1"
    assert request.headers["X-Tachograph-Signature"] is None


def test_the_receiver_can_check_the_signature() -> None:
    with Loopback() as server:
        Webhook(server.url, SECRET, now=lambda: 1_700_000_000.9).send(SIGNAL)
    (request,) = server.requests
    stamp = request.headers["X-Tachograph-Timestamp"]
    expected = hmac.new(SECRET.encode(), f"{stamp}.".encode() + request.body, hashlib.sha256)

    assert stamp == "1700000000"
    assert request.headers["X-Tachograph-Signature"] == f"sha256={expected.hexdigest()}"


@pytest.mark.parametrize("answer", [500, 503, 429, DROP])
def test_what_may_pass_is_tried_again_under_the_same_key(answer: int, waits: Waits) -> None:
    with Loopback(answer, answer) as server:
        Webhook(server.url, sleep=waits).send(SIGNAL)

    assert [request.headers["Idempotency-Key"] for request in server.requests] == ["s1"] * 3
    assert 1.0 <= waits.seconds[0] <= 1.5
    assert 2.0 <= waits.seconds[1] <= 3.0


@pytest.mark.parametrize("answer", [400, 401, 404, 410, 302])
def test_a_final_answer_is_not_asked_for_again(answer: int, waits: Waits) -> None:
    with Loopback((answer, {"Location": "/elsewhere"})) as server:
        with pytest.raises(RefusedError, match=f"it answered {answer}"):
            Webhook(server.url, sleep=waits).send(SIGNAL)

    assert (server.paths(), waits.seconds) == (["/"], [])


def test_after_three_attempts_it_is_down(waits: Waits) -> None:
    with Loopback(500, 502, 503) as server:
        with pytest.raises(SinkDownError, match="it answered 503 Service Unavailable"):
            Webhook(server.url, sleep=waits).send(SIGNAL)

    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("86400", LONGEST_WAIT_SECONDS),
        (formatdate(0, usegmt=True), 0.0),
        (formatdate(4e9, usegmt=True), LONGEST_WAIT_SECONDS),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_receiver_may_say_when_to_come_again(
    status: int, asked: str, waited: float, waits: Waits
) -> None:
    answer: Answer = (status, {"Retry-After": asked})
    with Loopback(answer) as server:
        Webhook(server.url, sleep=waits).send(SIGNAL)

    assert waits.seconds == [waited]
    assert len(server.requests) == 2


def test_a_wish_that_is_not_understood_is_none(waits: Waits) -> None:
    with Loopback((503, {"Retry-After": "soon"})) as server:
        Webhook(server.url, sleep=waits).send(SIGNAL)

    assert 1.0 <= waits.seconds[0] <= 1.5


def nobody_listens() -> str:
    """Return a URL at which nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_receiver_that_is_away_is_given_up_for_all_signals_at_once(waits: Waits) -> None:
    url = nobody_listens()
    (failure,) = deliver([SIGNAL, {"id": "s2"}], [Webhook(f"{url}/T0/token", sleep=waits)])

    assert failure.error.startswith("no answer: ")
    assert failure.signals == ["s1", "s2"]
    assert len(waits.seconds) == 2


def test_a_refused_signal_does_not_keep_the_next_one_back() -> None:
    with Loopback(403, 200) as server:
        failures = deliver([SIGNAL, {"id": "s2"}], [Webhook(server.url)])

    assert [(failure.error, failure.signals) for failure in failures] == [
        ("RefusedError: it answered 403 Forbidden", ["s1"])
    ]
    assert [request.headers["Idempotency-Key"] for request in server.requests] == ["s1", "s2"]


@pytest.mark.parametrize("url", ["ftp://host/x", "nonsense", "http://[::1"])
def test_a_url_that_cannot_be_used_is_told_at_once(url: str, waits: Waits) -> None:
    failures = deliver([SIGNAL], [Webhook(url, sleep=waits)])

    assert len(failures) == 1
    assert waits.seconds == []


def test_no_message_gives_a_secret_away(waits: Waits) -> None:
    url = nobody_listens().replace("//", "//ada:pass@") + "/services/t0ken?key=k3y"
    (failure,) = deliver([SIGNAL], [Webhook(url, SECRET, sleep=waits)])

    assert [word for word in ("pass", "t0ken", "k3y", SECRET) if word in repr(failure)] == []


def test_connections_are_closed(no_open_files_left: None) -> None:
    with Loopback() as server:
        failures = deliver([SIGNAL], [Webhook(server.url)])

    assert failures == []


def test_a_ping_goes_where_the_event_says() -> None:
    with Loopback() as server:
        for url in (f"{server.url}/ping/x/?key=1", f"{server.url}/y"):
            assert ping(url, "start") is None
            assert ping(url, "success", "2 stale") is None
            assert ping(url, "fail", "naïve") is None

    assert server.paths() == [
        "/ping/x/start?key=1",
        "/ping/x/?key=1",
        "/ping/x/fail?key=1",
        "/y/start",
        "/y",
        "/y/fail",
    ]
    assert [request.body.decode() for request in server.requests[:3]] == ["", "2 stale", "naïve"]


def test_a_ping_is_tried_again_but_a_start_is_not(waits: Waits) -> None:
    with Loopback(500, 500) as server:
        started = ping(server.url, "start", sleep=waits)
        succeeded = ping(server.url, "success", sleep=waits)

    assert started is not None
    assert "500" in started.error
    assert succeeded is None
    assert server.paths() == ["/start", "/", "/"]


def test_a_ping_that_fails_is_returned_not_raised(waits: Waits) -> None:
    with Loopback(404) as server:
        failure = ping(f"{server.url}/secret", "fail", sleep=waits)

    assert failure == SinkFailure(f"ping {server.url}", "it answered 404 Not Found", ["fail"])


def test_a_ping_is_never_longer_than_services_take() -> None:
    with Loopback() as server:
        ping(server.url, "fail", "x" * 1_000_000)

    assert len(server.requests[0].body) == 10_000


@pytest.mark.parametrize("url", ["nonsense", "http://[::1"])
def test_a_ping_to_nowhere_raises_nothing(url: str) -> None:
    assert ping(url, "start") is not None
