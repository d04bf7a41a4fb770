"""`radii serve` as a user starts and ends it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from radii.cli import main

CODE = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell's &
    "from radii.cli import main; sys.exit(main(sys.argv[1:]))"
)


def test_it_prints_an_address_and_ends_with_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = [sys.executable, "-c", CODE, "serve", str(tmp_path), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stdout
        address = re.fullmatch(
            r"radii serve: (http://127\.0\.0\.1:\d+/\?token=\w{40})\n", process.stdout.readline()
        )
        assert address
        with urlopen(address[1], timeout=60) as page:
            assert b"<title>radii</title>" in page.read()
        with pytest.raises(HTTPError, match="403"):
            urlopen(address[1].partition("?")[0], timeout=60)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert error == "radii: the page is closed; runs go on\n"


def refused(flags: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["serve", *flags]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere: is not a directory" in refused([str(tmp_path / "nowhere")], capsys)
    assert "--port 70000 must be" in refused([str(tmp_path), "--port", "70000"], capsys)
    assert "cannot be listened on" in refused([str(tmp_path), "--host", "no.such.host."], capsys)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = refused([str(tmp_path), "--port", str(port)], capsys)
    assert f"127.0.0.1:{port}: cannot be listened on (Address already in use)" in error
