"""What the server answers, and above all what it does not."""

from __future__ import annotations

import json
import os
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from live_runs import HOSTILE, TOKEN, Served, begin, broken, failed, proven, serving

from radii.errors import StoreError
from radii.store import STORE_FILE, PauseFlag, Store
from radii.views import token_for
from radii.views.page._live import READ_SECONDS

READINGS = ("/", "/state.json", "/facts.json", "/columns.bin", "/pictures.json")


@pytest.fixture(autouse=True)
def always_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert READ_SECONDS > 0
    monkeypatch.setattr("radii.views.page._live.READ_SECONDS", 0.0)
    monkeypatch.setattr("radii.views.page._live.WALK_SECONDS", 0.0)
    monkeypatch.setattr("radii.views.page._live.WALK_REST_FACTOR", 0.0)
    monkeypatch.setattr("radii.views.page._server.REST_FACTOR", 0.0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "served"
    made = begin(place / "run")
    with Store.create_or_open(place / "run") as store:
        store.record([broken(made[0], 0.105), proven(made[0], 0.1)])
    return place


@pytest.fixture
def served(root: Path) -> Iterator[Served]:
    with serving(root) as running:
        yield running


@pytest.mark.parametrize("path", READINGS)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "ünlikely"])
def test_nothing_without_the_token(served: Served, path: str, token: str | None) -> None:
    status, headers, body = served.ask(path, token=token)
    assert status == 403
    assert b"token" in body
    assert b"run" not in body.replace(b"radii serve prints", b"")
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("what", ["/pause", "/resume"])
def test_nothing_changes_without_the_token(served: Served, root: Path, what: str) -> None:
    (run,) = served.state()["experiments"]
    if what == "/resume":
        PauseFlag(root / "run").raise_()
    for token in (None, "wrong"):
        assert served.ask(what, method="POST", token=token, experiment=run["id"])[0] == 403
    assert served.ask(what, method="GET", experiment=run["id"])[0] == 404, "reading changes nothing"
    assert PauseFlag(root / "run").is_raised == (what == "/resume")


def test_the_token_in_a_header(served: Served) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert served.ask("/state.json", token=None, headers=headers)[0] == 200
    assert served.ask("/state.json", token=None, headers={"Authorization": TOKEN})[0] == 403
    assert served.ask("/state.json", token=None, headers={"Cookie": f"token={TOKEN}"})[0] == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:9000", 200),  # through a tunnel
        ("LocalHost", 200),
        ("[::1]:80", 200),
        ("[::1]", 200),
        ("192.0.2.7:65535", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8765", 403),
        ("localhost.evil.example", 403),
        ("127.1", 403),
        ("2130706433", 403),
        ("", 400),
        ("[::1", 400),
        ("::1", 400),
        ("[::1]x", 400),
        ("[127.0.0.1:80", 400),
        ("[evil.example]", 400),
        ("[fe80::1%25eth0]", 400),
        ("[]", 400),
        ("evil.com@127.0.0.1", 400),
        ("evil.com:80@127.0.0.1:80", 400),
        ("@localhost", 400),
        ("localhost:", 400),
        ("localhost:65536", 400),
        ("localhost:99999", 400),
        ("localhost:123456", 400),
        ("localhost:-1", 400),
        ("localhost:+1", 400),
        ("localhost:80:80", 400),
        ("localhost:8_0", 400),
        ("localhost/", 400),
        ("localhost?x", 400),
        ("localhost#x", 400),
        ("http://localhost", 400),
        ("localhost, localhost", 400),
        ("local\\host", 400),
        ("lo\tcalhost", 400),
        (":80", 400),
        ("/", 400),
        ("%6cocalhost", 400),
        (b"l\xf6calhost", 400),
        (b"localhost:\xb2", 400),
        (b"\xe2\x84\xaa", 400),
        (b"\xff\xfe", 400),
    ],
)
def test_foreign_names_for_this_machine(served: Served, host: str | bytes, status: int) -> None:
    assert served.ask("/state.json", headers={"Host": host})[0] == status


def raw(served: Served, lines: list[bytes]) -> bytes:
    """The answer to a request of exactly these lines."""
    with socket.create_connection(("127.0.0.1", served.server.server_port), timeout=10) as stream:
        stream.sendall(b"\r\n".join([*lines, b"", b""]))
        stream.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: stream.recv(1 << 16), b""))


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("/state.json", []),  # no Host
        ("/state.json", ["Host: localhost", "Host: localhost"]),
        ("/state.json", ["Host: localhost", "host: evil.example"]),
        ("/state.json", ["Host: localhost", "Origin: http://localhost", "Origin: null"]),
        ("//[", ["Host: localhost"]),
        ("http://[::1", ["Host: localhost"]),
        ("http://localhost/state.json", ["Host: localhost"]),
        ("*", ["Host: localhost"]),
        ("state.json", ["Host: localhost"]),
    ],
)
@pytest.mark.parametrize("token", [TOKEN, "wrong"])
def test_malformed_requests_are_refused_and_raise_nothing(
    served: Served,
    capsys: pytest.CaptureFixture[str],
    target: str,
    lines: list[str],
    token: str,
) -> None:
    request = f"GET {target}?token={token} HTTP/1.1"
    answer = raw(served, [line.encode() for line in (request, *lines)])
    # The path that `//[` is normalised to is a path, though none of this server's.
    expected = (b" 404 " if token == TOKEN else b" 403 ") if target == "//[" else b" 400 "
    assert expected in answer.split(b"\r\n")[0]
    assert b"experiments" not in answer
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://",
        "http://[",
        "http://[::1",
        "http://[evil]",
        "//127.0.0.1:{port}",
        "127.0.0.1:{port}",
        "ftp://127.0.0.1:{port}",
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}?x",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:port",
        "http://evil.com@127.0.0.1:{port}",
        "http://127.0.0.1:{port}@evil.com",
        "http://127.0.0.1:{port}.evil.com",
        "http://127.0.0.1:{port} http://evil.com",
        "http://127.0.0.1",
        "http://localhost:{port}",
        "http://xn--\u00df:{port}",
        "http://127.0.0.1\u2488:{port}",
    ],
)
def test_a_foreign_or_malformed_origin_is_refused(
    served: Served, capsys: pytest.CaptureFixture[str], origin: str
) -> None:
    port = served.server.server_port
    headers = {"Host": f"127.0.0.1:{port}", "Origin": origin.format(port=port).encode()}
    assert served.ask("/state.json", headers=headers)[0] == 403
    assert capsys.readouterr().err == ""


def test_other_pages_may_not_ask(served: Served) -> None:
    own = f"127.0.0.1:{served.server.server_port}"
    own_origins = [(f"http://{own}", 200), (f"HTTP://{own}", 200), (f"https://{own}", 200)]
    for origin, status in (*own_origins, ("http://127.0.0.1:1", 403)):
        got, headers, _ = served.ask("/state.json", headers={"Host": own, "Origin": origin})
        assert got == status
        assert not [name for name in headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/run/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%252e%252e/secret.txt",
        "//secret.txt",
        "/run/radii.sqlite",
        "/run",
        "/.",
        "/secret.txt%00",
        "secret.txt",
        "/etc/passwd",
        "file:///etc/passwd",
        "/state.json/",
    ],
)
def test_no_path_leads_to_the_disk(served: Served, root: Path, path: str) -> None:
    (root.parent / "secret.txt").write_text("secret")
    (root / "secret.txt").write_text("secret")
    status, _, body = served.ask(path)
    assert status in (400, 404)
    assert b"secret" not in body.replace(path.encode(), b"")


@pytest.mark.parametrize("id_", ["../run", "/etc", "%2e%2e", "..", "", "0" * 16, "a\x00b"])
def test_experiments_are_named_by_ids_only(served: Served, root: Path, id_: str) -> None:
    status, _, body = served.ask("/pause", method="POST", experiment=id_)
    assert (status, body) == (409, b"there is no such experiment here")
    assert not list(root.parent.rglob(".pause"))
    assert served.ask("/facts.json", show=id_ or "x")[0] == 409


def test_links_lead_nowhere(tmp_path: Path) -> None:
    begin(tmp_path / "outside" / "private")
    root = tmp_path / "served"
    (root / "copy").mkdir(parents=True)
    (root / "linked").symlink_to(tmp_path / "outside" / "private")
    (root / "copy" / STORE_FILE).symlink_to(tmp_path / "outside" / "private" / STORE_FILE)
    begin(root / "own")
    target = tmp_path / "outside" / "target"
    (root / "own" / ".pause").symlink_to(target)
    with serving(root) as served:
        (run,) = served.state()["experiments"]
        assert run["name"] == "own"
        assert served.ask("/pause", method="POST", experiment=run["id"])[0] == 200
        assert not target.exists()
        PauseFlag(root / "own").hold()
        assert not target.exists()


def test_headers_of_the_page(served: Served) -> None:
    status, headers, body = served.ask("/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert "frame-ancestors 'none'" in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert TOKEN.encode() not in body


def test_bad_questions_are_refused_in_a_sentence(served: Served) -> None:
    for path, query in (
        ("/state.json", {"seen": "nonsense"}),
        ("/columns.bin", {"snapshot": "gone"}),
        ("/pictures.json", {"snapshot": "gone", "input": "x"}),
    ):
        status, _, body = served.ask(path, **query)
        assert status == 409
        assert body.count(b"\n") == 0
    with socket.create_connection(("127.0.0.1", served.server.server_port), timeout=10) as raw:
        raw.sendall(b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 501 " in raw.recv(200)


def test_progress_and_changes_since(served: Served, root: Path) -> None:
    first = served.state()
    (run,) = first["experiments"]
    assert (run["state"], run["done"], run["total"]) == ("stopped", 1, 4)
    assert run["brackets"]["lower"] == [0.1, 0, 0, 0]
    assert run["brackets"]["upper"] == [0.105, None, None, None]
    had = run["brackets"]
    seen = f"{run['id']}:{had['generation']}:{had['number']}"
    again = served.state(seen=seen)
    assert again["revision"] == first["revision"]
    assert again["experiments"][0]["brackets"]["rows"] == []
    with Store.create_or_open(root / "run") as store:
        made = begin(root.parent / "same", 4)
        store.record([broken(made[2], 0.2), failed(made[2], 0.19, "the solver fell over")])
        (now,) = served.state(seen=seen)["experiments"]
        assert now["state"] == "running"
        PauseFlag(root / "run").raise_()
        assert served.state()["experiments"][0]["state"] == "pausing"
        PauseFlag(root / "run").hold()
        assert served.state()["experiments"][0]["state"] == "paused"
    assert now["brackets"]["rows"] == [[2, 0, 0.2]]
    assert now["failure_count"] == 1
    assert "the solver fell over" in now["failures"][0]["text"]
    assert "net, input 2: not robust; counterexample at 0.2 (minimum-norm, 0.1 s)" in [
        answer["text"] for answer in now["answers"]
    ]


def test_pause_and_resume(served: Served, root: Path) -> None:
    (run,) = served.state()["experiments"]
    flag = PauseFlag(root / "run")
    assert served.ask("/pause", method="POST", experiment=run["id"])[0] == 200
    assert flag.is_raised
    assert served.ask("/resume", method="POST", experiment=run["id"])[0] == 200
    assert not flag.is_raised


def test_a_directory_that_cannot_be_written(served: Served, root: Path) -> None:
    (run,) = served.state()["experiments"]
    (root / "run" / ".pause").mkdir()
    status, _, body = served.ask("/resume", method="POST", experiment=run["id"])
    assert status == 409
    assert b".pause: cannot be changed" in body


def test_disagreements_are_told(served: Served, root: Path) -> None:
    made = begin(root.parent / "same", 4)
    with Store.create_or_open(root / "run") as store:
        store.record([broken(made[1], 0.2), proven(made[1], 0.25)])
    (run,) = served.state()["experiments"]
    (told,) = run["disagreements"]
    assert (told["network"], told["input"]) == ("net", 1)
    assert "milp 1 claims a proof at eps 0.25" in told["text"]


def test_the_report_is_that_of_the_store(served: Served, root: Path) -> None:
    served.state()
    facts = json.loads(served.ask("/facts.json")[2])
    assert facts["experiments"][0]["place"] == str(root / "run")
    status, _, block = served.ask("/columns.bin", snapshot=facts["snapshot"])
    assert status == 200
    entry = facts["arrays"]["columns"]["lower"]
    lower = np.frombuffer(zlib.decompress(block), "<f8", entry["length"], entry["at"])
    assert lower.tolist() == [0.1, 0, 0, 0]
    status, _, body = served.ask("/pictures.json", snapshot=facts["snapshot"], input=0)
    pictures = json.loads(body)
    assert pictures["shape"] == [8, 8, 1]
    assert [row for row, _, _ in pictures["differences"]] == [0]
    assert served.ask("/pictures.json", snapshot=facts["snapshot"], input=99)[0] == 409


def test_an_experiment_that_was_begun_anew(served: Served, root: Path) -> None:
    before = served.state()["experiments"][0]["brackets"]
    for file in (root / "run").iterdir():
        file.unlink()
    made = begin(root / "run", 2, grid="0.01:0.3:0.01")
    (run,) = served.state(seen=f"x:{before['generation']}:2")["experiments"]
    assert (run["total"], run["done"]) == (2, 0)
    with Store.create_or_open(root / "run") as store:
        store.record([broken(made[1], 0.2)])
    now = served.state()["experiments"][0]["brackets"]
    assert now["generation"] != before["generation"]
    assert now["upper"] == [None, 0.2]


def test_what_is_found_and_shown(tmp_path: Path) -> None:
    for name in ("old", "deep/er", ".hidden", f"{HOSTILE.replace('/', '')}"):
        begin(tmp_path / name)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / STORE_FILE).write_text("no database")
    os.utime(tmp_path / "broken" / STORE_FILE, (0, 0))
    newest = tmp_path / "deep" / "er" / STORE_FILE
    os.utime(newest, (2e9, 2e9))
    with serving(tmp_path) as served:
        told = {run["name"]: run for run in served.state()["experiments"]}
        assert set(told) == {"old", "deep/er", HOSTILE.replace("/", ""), "broken"}
        assert [name for name, run in told.items() if run["is_shown"]] == ["deep/er"]
        assert told["broken"]["state"] == "unreadable"
        assert "is not a radii store" in told["broken"]["advice"]
        wanted = ",".join((told["old"]["id"], "unknown"))
        chosen = served.state(show=wanted)["experiments"]
        assert [run["name"] for run in chosen if run["is_shown"]] == ["old"]
        begin(tmp_path / "later")
        assert "later" in [run["name"] for run in served.state()["experiments"]]
    with serving(tmp_path / "old", tmp_path / "deep" / "er") as served:
        assert [run["name"] for run in served.state()["experiments"]] == ["old", "er"]
        assert all(run["is_shown"] for run in served.state()["experiments"])


def test_an_empty_directory_is_served(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        told = served.state()
        assert (told["experiments"], told["revision"]) == ([], "")
        assert served.ask("/facts.json")[0] == 409
    with pytest.raises(StoreError, match="is not a directory"), serving(tmp_path / "nowhere"):
        pass


def test_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    token = token_for([tmp_path])
    assert token == token_for([tmp_path]), "a page survives a restart"
    assert token != token_for([tmp_path / "other"])
    secret = tmp_path / "state" / "radii" / "serve-secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert len(token) == 40
    secret.chmod(0o644)
    assert token_for([tmp_path]) != token, "what others could read is not used"
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert token_for([tmp_path]) != token_for([tmp_path]), "new every time"
