"""Served directories, for tests: a server in a thread, and stores that grow as a run makes them."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from radii.problem import Domain, Instance, Norm, OneToAny, Proof, Result, Verdict, Witness
from radii.store import Store
from radii.strategy import Question, QuestionKind
from radii.views import Gate, LiveServer

TOKEN = "the-token-of-these-tests"
HOSTILE = "<img src=x onerror=alert(1)></script><b>&amp;"
GRID = "0.01:0.5:0.01"
EXPERIMENT = {
    "property": "one-to-any",
    "norm": "linf",
    "grid": GRID,
    "search": "attack-guided",
    "verifier": "milp",
    "budget": None,
    "domain": ["0.0:1.0"],
    "source": "digits:test[0:9]",
    "split": "test",
}
NETWORK = "0" * 64


def instance(place: int, pixels: int = 64) -> Instance:
    side = int(np.sqrt(pixels))
    picture = np.random.default_rng(place).uniform(0.3, 0.7, (1, side, side)).astype(np.float32)
    return Instance(
        network=NETWORK,
        index=place,
        input=picture,
        label=place % 3,
        outputs=np.eye(3)[place % 3],
        property=OneToAny(),
        norm=Norm.LINF,
        domain=Domain(np.float64(0), np.float64(1)),
    )


def begin(directory: Path, count: int = 4, *, name: str = "net", **more: object) -> list[Instance]:
    """A new experiment without any answer."""
    made = [instance(place) for place in range(count)]
    with Store.create_or_open(directory) as store:
        store.begin({**EXPERIMENT, **more}, {NETWORK: (name, "/nets/n.onnx")}, made)
    return made


def broken(made: Instance, distance: float) -> tuple[str, Question, Result]:
    """An attack found a counterexample."""
    rival = (made.label + 1) % 3
    witness = Witness(
        (made.input + distance).astype(np.float32), distance, rival, np.eye(3)[rival], "test 1"
    )
    result = Result(Verdict.NOT_ROBUST, 0.49, "minimum-norm", "1", 0.1, witness=witness)
    return made.key, Question(QuestionKind.ATTACK, 0.49), result


def proven(made: Instance, eps: float) -> tuple[str, Question, Result]:
    result = Result(Verdict.ROBUST, eps, "milp", "1", 0.2, proof=Proof(eps, 1e-6))
    return made.key, Question(QuestionKind.PROVE, eps), result


def failed(made: Instance, eps: float, message: str) -> tuple[str, Question, Result]:
    result = Result(Verdict.ERROR, eps, "milp", "1", 0.2, message=message)
    return made.key, Question(QuestionKind.PROVE, eps), result


@dataclass
class Served:
    """A server that runs, and how to ask it."""

    server: LiveServer

    def ask(
        self, path: str, *, method: str = "GET", token: str | None = TOKEN, **more: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """The path goes out exactly as given; nothing normalises it."""
        headers = more.pop("headers", {})
        query = {**({} if token is None else {"token": token}), **more}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.putrequest(method, f"{path}?{urlencode(query)}", skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def state(self, **more: Any) -> dict[str, Any]:
        status, _, body = self.ask("/state.json", **more)
        assert status == 200, body
        told: dict[str, Any] = json.loads(body)
        return told


@contextmanager
def serving(*places: Path, port: int = 0, experiments: Path | None = None) -> Iterator[Served]:
    server = LiveServer(places, Gate(TOKEN, "127.0.0.1"), port, experiments=experiments)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Served(server)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
