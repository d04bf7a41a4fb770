"""radii-check CERTIFICATE... --network NET.onnx [--network ANOTHER.onnx]

Each certificate is checked on the network that it is about. Exits with 0 if all are accepted; else
with 1 if one is refused, as it does not show its claim; else with 2: a file is not a certificate,
is about another network, or this checker does not know what it would have to read.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import onnx

from radii_check._check import check
from radii_check._errors import Unreadable
from radii_check._format import read_certificate

EXIT_CODES = {"accepted": 0, "refused": 1}
OTHER_EXIT_CODE = 2
SEVEREST_FIRST = (1, 2, 0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="radii-check", description="Check certificates.")
    parser.add_argument("certificates", nargs="+", metavar="CERTIFICATE", type=Path)
    parser.add_argument("--network", required=True, metavar="NET.onnx", action="append")
    parser.add_argument("--exact", action="store_true", help="in ball arithmetic, by python-flint")
    parser.add_argument("--json", action="store_true", help="one object for each certificate")
    parser.add_argument("--memory", type=int, default=2048, metavar="MB", help="default: 2048")
    options = parser.parse_args(arguments)
    if arguments is None:
        _limit_memory(options.memory << 20)
    codes = {_check_file(path, options) for path in options.certificates}
    return next(code for code in SEVEREST_FIRST if code in codes)


def _limit_memory(additional_bytes: int) -> None:
    """Where the system has such a limit, so that nothing exceeds it, whatever was overlooked."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + additional_bytes, resource.RLIM_INFINITY))


@functools.cache
def _load_model(network: str) -> tuple[str, bytes]:
    """The name that certificates have for the model in a file, and the model."""
    model = onnx.load(network).SerializeToString(deterministic=True)
    return hashlib.sha256(model).hexdigest(), model


def _check_file(path: Path, options: Any) -> int:
    """The exit code for one certificate, once its result is printed."""
    result: dict[str, Any] = {"certificate": str(path), "accepted": False, "outcome": "unusable"}
    try:
        content, memory = path.read_bytes(), options.memory << 20
        models = dict(map(_load_model, options.network))
        first = next(iter(models.values()))
        model = models.get(_network_of(content, memory), first)
        report = check(content, model, exact=options.exact, memory_bytes=memory)
        result |= dataclasses.asdict(report) | {"accepted": report.accepted}
        if not math.isfinite(report.smallest_margin):
            result["smallest_margin"] = None
    except Exception as error:  # one sentence, whatever it is
        result["reason"] = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if options.json:
        print(json.dumps(result))
    else:
        numbers = "{nodes} nodes, {lemmas} lemmas, {seconds:.2f} s"
        print(f"{path}: {result['outcome']}: {result['reason'] or numbers.format(**result)}")
    return EXIT_CODES.get(result["outcome"], OTHER_EXIT_CODE)


def _network_of(content: bytes, memory: int) -> str:
    """The network that a certificate is about; empty where this checker cannot read that."""
    try:
        return str(read_certificate(content, memory).claim["network"])
    except Unreadable:
        return ""


if __name__ == "__main__":
    sys.exit(main())
