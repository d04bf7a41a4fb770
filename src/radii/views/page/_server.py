"""Reports as they were at a moment: a page asks for the parts of one in several requests."""

from __future__ import annotations

import itertools
import json
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from radii.errors import InputError, StoreError
from radii.statistics import Run, with_distinct_names
from radii.terminal import note, say
from radii.views.page._access import Gate, Refusal
from radii.views.page._live import ExperimentWatcher, check_places
from radii.views.page._page import render_live_page
from radii.views.page._payload import Payload, payload_of, pictures_of
from radii.views.page._starts import ExperimentStarter

SNAPSHOTS_KEPT = 4
"""How many are kept: pages that show different experiments, and the one before of each."""

REST_FACTOR = 10.0
"""A new one is made only after this many times as long as the last one took to make."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    name: str
    wanted: tuple[str, ...]
    revision: str
    runs: tuple[Run, ...]
    payload: Payload
    next_at: float

    def facts(self) -> dict[str, Any]:
        return {**self.payload.facts, "snapshot": self.name, "revision": self.revision}


class Snapshots:
    """The latest reports, made when a page asks and there is news. Safe in several threads."""

    def __init__(self, watch: ExperimentWatcher) -> None:
        self._watch = watch
        self._kept: dict[str, Snapshot] = {}
        self._numbers = itertools.count(1)
        self._start = f"{time.time_ns():x}"  # a page may ask for one of a server that is gone

    def facts(self, wanted: Sequence[str]) -> bytes:
        """The facts of the report as it is now, or was a moment ago."""
        with self._watch.lock:
            return json.dumps(self._latest(tuple(wanted)).facts(), allow_nan=False).encode()

    def columns(self, name: str) -> bytes:
        return self._named(name).payload.columns

    def pictures(self, name: str, number: int) -> bytes:
        """Of one input, by its number in the report."""
        return json.dumps(pictures_of(self._named(name).runs, number), allow_nan=False).encode()

    def _named(self, name: str) -> Snapshot:
        found = self._kept.get(name)
        if found is None:
            raise StoreError("that report is not kept any more: the page asks for a newer one")
        return found

    def _latest(self, wanted: tuple[str, ...]) -> Snapshot:
        shown = [one for one in self._watch.chosen(wanted) if one.revision]
        ensembles = self._watch.chosen_ensembles(wanted)
        revisions = [one.revision for one in shown] + [one.revision for one in ensembles]
        revision = ";".join(revisions)
        for known in reversed(self._kept.values()):
            if known.wanted == wanted:
                if known.revision == revision or time.monotonic() < known.next_at:
                    return known
                break
        began = time.monotonic()
        runs = tuple(with_distinct_names([one.run() for one in shown]))
        results = [read for one in ensembles if (read := one.results()) is not None]
        if not runs and not results:
            raise StoreError("there is nothing to show yet")
        payload = payload_of(runs, ensembles=results, picture_bytes=None)
        ended = time.monotonic()
        made = Snapshot(
            f"{self._start}-{next(self._numbers)}",
            wanted,
            revision,
            runs,
            payload,
            ended + REST_FACTOR * (ended - began),
        )
        self._kept[made.name] = made
        for name in list(self._kept)[:-SNAPSHOTS_KEPT]:
            del self._kept[name]
        return made


# The HTTP server of the live page: a handful of addresses, none of them a path of the disk.


HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address has the token in it
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
SANDBOX_POLICY = "default-src 'none'; sandbox"
JSON, BYTES, TEXT = "application/json", "application/octet-stream", "text/plain; charset=utf-8"

Response = tuple[bytes, str]
"""A body and its kind."""

Route = Callable[[], Response]

IDLE_SECONDS = 20.0
"""A connection is closed after this time without a request, or with half of one."""


class LiveServer(ThreadingHTTPServer):
    """Serves the live page of what is below `places` to whoever has the gate's token.

    With `experiments`, the page can start the experiment files below that folder; their results go
    below the first of the places.
    """

    daemon_threads = True

    def __init__(
        self, places: Sequence[Path], gate: Gate, port: int, *, experiments: Path | None = None
    ) -> None:
        self.gate = gate
        roots = check_places(places)
        self.watch = ExperimentWatcher(roots)
        self.starter = None if experiments is None else ExperimentStarter(experiments, roots[0])
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

    def server_close(self) -> None:
        """Runs that the page started end with it."""
        super().server_close()
        if self.starter is not None:
            self.starter.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away is not an error; anything else is reported in a line."""
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
        watch, starter = self.server.watch, self.server.starter
        orders = {
            "/pause": self._order("asked to pause", watch.pause, "experiment"),
            "/resume": self._order("resumed", watch.resume, "experiment"),
        }
        if starter is not None:
            orders["/start"] = self._order("started", starter.start, "file")
            orders["/stop"] = self._order("asked to stop", starter.stop, "file")
        self._answer(orders)

    def _order(self, answer: str, act: Callable[[str], None], subject: str) -> Route:
        """Acts on the experiment or file that the request names."""

        def route() -> Response:
            act(self._text(subject))
            return answer.encode(), TEXT

        return route

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
            message = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
            note(message)
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, message.encode(), TEXT)
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
                snapshots.pictures(self._text("snapshot"), int(self._text("input"))),
                JSON,
            ),
        }

    def _page(self) -> Response:
        return self.server.page[0], "text/html; charset=utf-8"

    def _state(self) -> Response:
        seen = {}
        for part in self._list("seen"):
            id_, generation, number = part.split(":")
            seen[id_] = (generation, int(number))
        state = self.server.watch.state(self._list("show"), seen)
        starter = self.server.starter
        state["files"] = None if starter is None else starter.listed()
        return json.dumps(state, allow_nan=False, separators=(",", ":")).encode(), JSON

    def _text(self, name: str) -> str:
        return self._query.get(name, "")

    def _list(self, name: str) -> list[str]:
        return [part for part in self._text(name).split(",") if part]

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        is_page = kind.startswith("text/html")
        with suppress(ConnectionError, TimeoutError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header(
                "Content-Security-Policy", self.server.page[1] if is_page else SANDBOX_POLICY
            )
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a request's address holds the token."""
