"""radii-check CERTIFICATE... --network NET.onnx [--network ANOTHER.onnx]

Each certificate is checked on the network that it is about. Exits with 0 if all are accepted, with
1 if one is rejected, and with 2 for what is no certificate, or one of another network.
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
from radii_check._format import read_certificate


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
    return max(_checked(path, given) for path in given.certificates)


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
    result: dict[str, Any] = {"certificate": str(path), "accepted": False}
    try:
        content, memory = path.read_bytes(), given.memory << 20
        named = read_certificate(content, memory).claim["network"]
        models = dict(map(_loaded, given.network))
        model = models.get(named, next(iter(models.values())))
        report = check(content, model, exact=given.exact, memory_bytes=memory)
        result |= dataclasses.asdict(report)
        code, word = (0, "accepted") if report.accepted else (1, "rejected")
        if not math.isfinite(report.smallest_margin):
            result["smallest_margin"] = None
    except Exception as error:  # one sentence, whatever it is
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        result["reason"], code, word = first, 2, "not checked"
    told = result["reason"] or "{nodes} nodes, {lemmas} lemmas, {seconds:.2f} s".format(**result)
    print(json.dumps(result) if given.json else f"{path}: {word}: {told}")
    return code


if __name__ == "__main__":
    sys.exit(main())
