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
from radii_check._format import Unreadable, read_certificate


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="radii-check", description="Check certificates.")
    parser.add_argument("certificates", nargs="+", metavar="CERTIFICATE", type=Path)
    parser.add_argument("--network", required=True, metavar="NET.onnx", action="append")
    parser.add_argument("--exact", action="store_true", help="in ball arithmetic, by python-flint")
    parser.add_argument("--json", action="store_true", help="one object for each certificate")
    parser.add_argument("--memory", type=int, default=2048, metavar="MB", help="default: 2048")
    given = parser.parse_args(arguments)
    if arguments is None:
        _limit_memory(given.memory << 20)
    codes = {_checked(path, given) for path in given.certificates}
    return next(code for code in (1, 2, 0) if code in codes)


def _limit_memory(more: int) -> None:
    """So that nothing exceeds it, whatever was forgotten; where the system has such a limit."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))


@functools.cache
def _loaded(network: str) -> tuple[str, bytes]:
    """The model in a file, and the name that certificates have for it."""
    model = onnx.load(network).SerializeToString(deterministic=True)
    return hashlib.sha256(model).hexdigest(), model


def _checked(path: Path, given: Any) -> int:
    """The exit code for one certificate, once its result is printed."""
    result: dict[str, Any] = {"certificate": str(path), "accepted": False, "outcome": "unusable"}
    try:
        content, memory = path.read_bytes(), given.memory << 20
        models = dict(map(_loaded, given.network))
        model = models.get(_named(content, memory), next(iter(models.values())))
        report = check(content, model, exact=given.exact, memory_bytes=memory)
        result |= dataclasses.asdict(report) | {"accepted": report.accepted}
        if not math.isfinite(report.smallest_margin):
            result["smallest_margin"] = None
    except Exception as error:  # one sentence, whatever it is
        result["reason"] = next(iter(str(error).strip().splitlines()), type(error).__name__)
    told = result["reason"] or "{nodes} nodes, {lemmas} lemmas, {seconds:.2f} s".format(**result)
    print(json.dumps(result) if given.json else f"{path}: {result['outcome']}: {told}")
    return {"accepted": 0, "refused": 1}.get(result["outcome"], 2)


def _named(content: bytes, memory: int) -> str:
    """The network that a certificate is about; empty where this checker cannot read that."""
    try:
        return str(read_certificate(content, memory).claim["network"])
    except Unreadable:
        return ""


if __name__ == "__main__":
    sys.exit(main())
