"""A real HTTP server on the loopback interface that answers as a test tells it. Holds no test."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from email.message import Message

Answer = tuple[int, dict[str, str]]
DROP = 0
"""Instead of a status: end the connection without an answer."""


class Request:
    """What was asked of the server."""

    def __init__(self, path: str, headers: Message, body: bytes) -> None:
        self.path = path
        self.headers = headers
        self.body = body


class Loopback:
    """Answers each request with the next of `answers`, and with 200 when they are used up."""

    def __init__(self, *answers: int | Answer) -> None:
        self.requests: list[Request] = []
        self._arrived = arrived = threading.Condition()
        left = list(answers)
        seen = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                request = Request(self.path, self.headers, self.rfile.read(length))
                with arrived:
                    seen.append(request)
                    arrived.notify_all()
                answer = left.pop(0) if left else 200
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                if status == DROP:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def until(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self.requests) >= count)

    def paths(self) -> list[str]:
        """Return what was asked for, in order."""
        return [request.path for request in self.requests]
