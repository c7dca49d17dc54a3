"""Signals and pings by HTTP: signed, and tried again where that can help. Follows no redirect."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from tachograph.infra.sinks import SinkDownError, SinkFailure, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    import httpx
    import tenacity

    from tachograph.infra.sinks import Signal

ATTEMPTS = 3
TIMEOUT_SECONDS = 10.0
"""For each of connecting, sending and waiting for the answer."""
BACKOFF_SECONDS = 1.0
"""Before the second attempt; twice as long before each further one, and up to half more."""
LONGEST_WAIT_SECONDS = 30.0
"""Most that a Retry-After is obeyed: the watchdog has other things to do."""
PING_BYTES = 10_000
"""Most that a ping carries; services for it keep no more."""
_SUFFIXES = {"start": "/start", "success": "", "fail": "/fail"}
"""What a ping's path ends with, for each event."""
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


class Webhook:
    """Posts each signal as JSON.

    `Idempotency-Key` is the id of the signal, the same at every attempt. With a secret,
    `X-Tachograph-Signature` is `sha256=` and the HMAC-SHA256, in hex, of `X-Tachograph-Timestamp`,
    a dot and the body. `sleep` and `now` are for tests.
    """

    def __init__(
        self,
        url: str,
        secret: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = f"webhook {public(url)}"
        self.receiver = f"webhook {url}"
        self._secret = secret
        self._now = now
        self._caller = _Caller(url, ATTEMPTS, sleep)

    def send(self, signal: Signal) -> None:
        """Post a signal. Raises SinkDownError, or RefusedError for an answer that is final."""
        body = to_json(signal)
        key = str(signal.get("id", ""))
        self._caller.post(body, lambda: self._headers(body, key))

    def _headers(self, body: bytes, key: str) -> dict[str, str]:
        stamp = str(int(self._now()))
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            "X-Tachograph-Timestamp": stamp,
        }
        if self._secret is not None:
            headers["X-Tachograph-Signature"] = f"sha256={signature(self._secret, stamp, body)}"
        return headers

    def close(self) -> None:
        """Close its connections."""
        self._caller.close()


def ping(
    url: str,
    event: Literal["start", "success", "fail"],
    body: str = "",
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> SinkFailure | None:
    """Tell a dead-man service that the watchdog lives; return what failed, raise nothing.

    `/start` and `/fail` are appended to the path of the URL, a success is the URL itself. A
    start is tried once only: the success after it says more.
    """
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    try:
        caller = _Caller(ping_url(url, event), 1 if event == "start" else ATTEMPTS, sleep)
        try:
            caller.post(body.encode("utf-8", "replace")[:PING_BYTES], lambda: headers)
        finally:
            caller.close()
    except Exception as error:  # noqa: BLE001  # the watchdog goes on whatever it is
        return SinkFailure(f"ping {public(url)}", str(error), [event])
    return None


def ping_url(url: str, event: str) -> str:
    """Return where to send an event.

    >>> ping_url("https://hc.example/ping/x?key=1", "fail")
    'https://hc.example/ping/x/fail?key=1'
    """
    suffix = _SUFFIXES[event]
    if not suffix:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + suffix))


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature that a receiver computes to compare it."""
    import hashlib
    import hmac

    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def public(url: str) -> str:
    """Return a URL without what may be secret in it: often the path alone lets one post.

    >>> public("https://ada:pw@hooks.example:8443/T0/B0/token?x=1")
    'https://hooks.example:8443'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "of no valid URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class RefusedError(Exception):
    """The receiver refuses this signal, and would at every attempt."""


class _TransientError(SinkDownError):
    """The next attempt may succeed."""

    def __init__(self, text: str, wait_seconds: float | None = None) -> None:
        super().__init__(text)
        self.wait_seconds = wait_seconds


class _Caller:
    """Posts to one URL, again where that can help."""

    def __init__(self, url: str, attempts: int, sleep: Callable[[float], None]) -> None:
        self._url = url
        self._attempts = attempts
        self._sleep = sleep
        self._client: httpx.Client | None = None

    def post(self, body: bytes, headers: Callable[[], Mapping[str, str]]) -> None:
        """Post until it is taken. `headers` are those of one attempt."""
        import tenacity

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._attempts),
            retry=tenacity.retry_if_exception_type(_TransientError),
            wait=_wait_seconds,
            sleep=self._sleep,
            reraise=True,
        )
        retrying(self._once, body, headers)

    def _once(self, body: bytes, headers: Callable[[], Mapping[str, str]]) -> None:
        import httpx

        if self._client is None:
            self._client = httpx.Client(timeout=TIMEOUT_SECONDS)
        try:
            answer = self._client.post(self._url, content=body, headers=dict(headers()))
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise SinkDownError(f"the URL cannot be used: {error}") from error
        except httpx.TransportError as error:
            text = str(error) or type(error).__name__
            raise _TransientError(f"no answer: {text}") from error
        _judge(answer)

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _judge(answer: httpx.Response) -> None:
    if answer.is_success:
        return
    text = f"it answered {answer.status_code} {answer.reason_phrase}".rstrip()
    if answer.status_code == TOO_MANY_REQUESTS or answer.status_code >= SERVER_ERROR:
        raise _TransientError(text, _retry_after(answer.headers.get("Retry-After", "")))
    raise RefusedError(text)


def _wait_seconds(state: tenacity.RetryCallState) -> float:
    """Return how long to wait before the next attempt."""
    import random

    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.wait_seconds if isinstance(error, _TransientError) else None
    if asked is not None:
        return asked
    backoff: float = BACKOFF_SECONDS * 2 ** (state.attempt_number - 1)
    return backoff * random.uniform(1.0, 1.5)


def _retry_after(text: str) -> float | None:
    """Return the seconds that the receiver asks for, within bounds; None when it asks nothing."""
    seconds: float | None = None
    if text.strip().isdecimal():
        seconds = float(text)
    elif text:
        from email.utils import mktime_tz, parsedate_tz

        moment = parsedate_tz(text)
        seconds = None if moment is None else mktime_tz(moment) - time.time()
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)
