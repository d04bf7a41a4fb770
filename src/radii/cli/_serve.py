"""`radii serve`: the report's page, live, while runs go on."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from radii.cli._options import add_open_flag
from radii.errors import ExperimentError
from radii.runs import Option, whole
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.views import LiveServer

HOST = "127.0.0.1"
PORT = 8765
NEIGHBOURS = 20
"""How many ports after the usual one are tried when others have it."""

PORTS = Option(
    name="port",
    form=whole(least=0, below=2**16),
    help=f"port to listen on ({PORT}, or the next that is free; 0: any that is free)",
)

DESCRIPTION = "Serve the report's page for all experiments below the directories, live."

EPILOG = """examples:
  radii serve results                 one run, or all runs below a directory
  radii serve standard adversarial    several side by side
  radii serve . --open                also opens the page in a browser
  radii serve results --experiments .   the page starts the .toml files of that folder, too

It prints an address with a token in it; nothing is answered without. The page shows progress, the
brackets as they close, failures as they happen, ensembles, what was asked when, and can pause and
resume a run. Ctrl-C ends it; runs go on, but for those that the page started: what they found is
kept.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="a run, or a folder where runs are or will be",
    )
    PORTS.add_to(parser)
    parser.add_argument(
        "--host",
        default=HOST,
        metavar="ADDRESS",
        help=f"address to listen on ({HOST}: only this machine can connect)",
    )
    parser.add_argument(
        "--experiments",
        type=Path,
        metavar="DIR",
        help="let the page start the experiment files (.toml) below this folder",
    )
    add_open_flag(parser)


def run(args: argparse.Namespace) -> int:
    server = _start(args)
    say(f"radii serve: {server.address}", flush=True)
    if args.host not in (HOST, "localhost", "::1"):
        can = "watch, pause and start runs" if args.experiments else "watch and pause the runs"
        note(f"whoever has this address and reaches this machine can {can}")
    if args.open:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        note("the page is closed; runs go on")
    finally:
        server.server_close()
    return 0


def _start(args: argparse.Namespace) -> LiveServer:
    from radii.views import Gate, LiveServer, token_for

    gate = Gate(token_for(args.places), args.host)
    ports = range(PORT, PORT + NEIGHBOURS) if args.port is None else [args.port]
    for port in ports:
        try:
            return LiveServer(args.places, gate, port, experiments=args.experiments)
        except OSError as error:
            reason = error
            if error.errno != errno.EADDRINUSE:
                break
    why = os.strerror(reason.errno) if reason.errno and reason.errno > 0 else reason.strerror
    raise ExperimentError(f"{args.host}:{port}: cannot be listened on ({why}); try another --port")
