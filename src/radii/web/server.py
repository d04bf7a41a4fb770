"""The HTTP server of the live page: a handful of addresses, none of them a path of the disk."""

from __future__ import annotations

import json
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from radii.errors import InputError
from radii.report import render_live_page
from radii.terminal import say
from radii.web.access import Gate, Refusal
from radii.web.finding import check_places
from radii.web.snapshots import Snapshots
from radii.web.watching import Watch

__all__ = ["LiveServer"]

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address has the token in it
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
NOTHING = "default-src 'none'; sandbox"
JSON, BYTES, TEXT = "application/json", "application/octet-stream", "text/plain; charset=utf-8"

Answered = tuple[bytes, str]
"""A body and its kind."""

Route = Callable[[], Answered]

IDLE_SECONDS = 20.0
"""After so long without a request, or with half of one, a connection is closed."""


class LiveServer(ThreadingHTTPServer):
    """Serves the live page of what is below `places` to whoever has the gate's token."""

    daemon_threads = True

    def __init__(self, places: Sequence[Path], gate: Gate, port: int) -> None:
        self.gate = gate
        self.watch = Watch(check_places(places))
        self.snapshots = Snapshots(self.watch)
        self.address_family = socket.AF_INET6 if ":" in gate.host else socket.AF_INET
        super().__init__((gate.host, port), Handler)

    @property
    def address(self) -> str:
        """What to open, with the token."""
        unspecified = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}
        host = unspecified.get(self.gate.host, self.gate.host)
        named = f"[{host}]" if ":" in host else host
        return f"http://{named}:{self.server_port}/?token={self.gate.token}"

    @cached_property
    def page(self) -> tuple[bytes, str]:
        """The page and its policy: the same for everybody."""
        text, policy = render_live_page()
        return text.encode(), f"{policy}; frame-ancestors 'none'"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is no error; anything else is told in a line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            say("".join(traceback.format_exception_only(error)).strip(), file=sys.stderr)


class Handler(BaseHTTPRequestHandler):
    """Answers one request. Without the token, nothing but a refusal."""

    server: LiveServer
    server_version = "radii"
    sys_version = ""
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:
        self._answer({"/": self._page, **self._readings})

    def do_POST(self) -> None:
        self._answer({"/pause": self._pause, "/resume": self._resume})

    def _answer(self, known: dict[str, Route]) -> None:
        target = self.server.gate.admit(self.path, self.headers)
        if isinstance(target, Refusal):
            self._send(target.status, target.reason.encode(), TEXT)
            return
        route = known.get(target.path)
        if route is None:
            self._send(HTTPStatus.NOT_FOUND, b"There is nothing under that name.", TEXT)
            return
        self._query = {name: values[-1] for name, values in target.query.items()}
        try:
            body, kind = route()
        except (InputError, ValueError) as error:
            self._send(HTTPStatus.CONFLICT, " ".join(str(error).split()).encode(), TEXT)
        except Exception as error:
            told = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
            say(f"radii: {told}", file=sys.stderr)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, told.encode(), TEXT)
        else:
            self._send(HTTPStatus.OK, body, kind)

    @property
    def _readings(self) -> dict[str, Route]:
        snapshots = self.server.snapshots
        return {
            "/state.json": self._state,
            "/facts.json": lambda: (snapshots.facts(self._list("show")), JSON),
            "/columns.bin": lambda: (snapshots.columns(self._text("snapshot")), BYTES),
            "/pictures.json": lambda: (
                snapshots.pictures(self._text("snapshot"), self._number("input")),
                JSON,
            ),
        }

    def _page(self) -> Answered:
        return self.server.page[0], "text/html; charset=utf-8"

    def _state(self) -> Answered:
        seen = {}
        for part in self._list("seen"):
            id_, generation, number = part.split(":")
            seen[id_] = (generation, int(number))
        told = self.server.watch.state(self._list("show"), seen)
        return json.dumps(told, allow_nan=False, separators=(",", ":")).encode(), JSON

    def _pause(self) -> Answered:
        self.server.watch.set_paused(self._text("experiment"), True)
        return b"asked to pause", TEXT

    def _resume(self) -> Answered:
        self.server.watch.set_paused(self._text("experiment"), False)
        return b"resumed", TEXT

    def _text(self, name: str) -> str:
        return self._query.get(name, "")

    def _list(self, name: str) -> list[str]:
        return [part for part in self._text(name).split(",") if part]

    def _number(self, name: str) -> int:
        return int(self._text(name))

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        is_page = kind.startswith("text/html")
        with suppress(ConnectionError, TimeoutError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", self.server.page[1] if is_page else NOTHING)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a request's address holds the token."""
