"""`radii verify`: decide a VNN-LIB file, or a VNN-COMP list of them, and answer as its tools do."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import OUT, add_options, given
from radii.cli._output import write_file
from radii.errors import InputError, NetworkError, RadiiError, SpecificationError
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.networks import Network
    from radii.vnnlib import ListedInstance, Problem, ResultRow, Verification


FIRST = "timeout out instances json"

DESCRIPTION = """Is there an input that, with the network's output, satisfies the VNN-LIB file?

The first line says sat, unsat, unknown or timeout. After sat follows the counterexample:
((X_0 value) ... (Y_0 value) ...), inputs in row-major order, outputs as ONNX Runtime gives them.
Every one of these answers exits with 0; bad input exits with 2.

With --instances, every line of a VNN-COMP list (onnx,vnnlib,timeout) is decided, and --out gets a
line of results for each: category, onnx, vnnlib, prepare time, result, run time. Run it again to go
on. A line that cannot be used gets the result error, and the exit code is 2."""

EPILOG = """examples:
  radii verify net.onnx property.vnnlib
  radii verify net.onnx property.vnnlib.gz --timeout 300 --out result.txt
  radii verify net.onnx property.vnnlib --json
  radii verify net.onnx property.vnnlib --arithmetic real     of the network without its rounding
  radii verify net.onnx property.vnnlib --certificate proof.cert   what shows unsat
  radii verify --instances bench/instances.csv --out bench/results.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "network", nargs="?", type=Path, metavar="NET.onnx", help="ONNX file, may be gzipped"
    )
    parser.add_argument(
        "property",
        nargs="?",
        type=Path,
        metavar="PROP.vnnlib",
        help="VNN-LIB 1.0 or 2.0, may be gzipped",
    )
    parser.add_argument(
        "--instances", type=Path, metavar="LIST.csv", help="instead: a VNN-COMP list of instances"
    )
    parser.add_argument(
        "--category",
        metavar="NAME",
        help="with a list: its category in the results (the name of its folder)",
    )
    add_options(
        parser,
        "device",
        "tool",
        "arithmetic",
        timeout="wall seconds for all, reading included (none); of a list, at most",
        verifier={"default": "native", "help": "what proves (native)"},
        memory="of each process that proves, such as 500M or 2G (no limit)",
        seed={"default": 0, "help": "of the attack (0)"},
    )
    OUT.add_to(
        parser, metavar="FILE", help="write the answer here too; for a list, its results.csv"
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="write what shows unsat, for radii check; of several proofs, FILE-1, FILE-2, ...",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead")


def run(args: argparse.Namespace) -> int:
    started = time.monotonic()
    allowed = math.inf if args.timeout is None else args.timeout
    if args.instances is not None:
        if args.network is not None:
            raise InputError(f"give {args.network} or --instances, not both")
        if args.certificate is not None:
            raise InputError(f"--certificate {args.certificate} is for one property, not a list")
        return _run_instances(args)
    if args.property is None or args.category is not None:
        missing = "--category is for --instances" if args.category else "a property is missing"
        raise InputError(f"{missing}: radii verify NET.onnx PROP.vnnlib, or --instances LIST.csv")
    _check_writable(args.out, "--out")
    _check_writable(args.certificate, "--certificate")

    is_limited = args.memory is not None or allowed < math.inf
    result = (decide_in_time if is_limited else decide)(args, started, allowed)
    if result.message and result.replayed_on is None:
        note(result.message)
    text = str(result.verification)
    if args.out is not None:
        write_file(args.out, text + "\n")
    written = _write_certificates(args.certificate, result)
    if args.json:
        facts = _result_object(args, result, time.monotonic() - started)
        text = json.dumps({**facts, "certificates": list(map(str, written))})
    say(*text.split("\n"))
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class VerifyResult:
    """What travels between processes: to read it, nothing heavy needs to be imported."""

    verification: Verification
    verifier: str
    message: str = ""
    replayed_on: str | None = None
    arithmetic: str | None = None
    reading_seconds: float = 0.0
    """Of the property."""
    certificates: tuple[bytes | None, ...] = ()
    """Of each proof that `unsat` needs, in order."""


def decide(args: argparse.Namespace, started: float, seconds: float) -> VerifyResult:
    """Read the property, load the network, decide. Limits hold as far as solvers look at them."""
    from radii.vnnlib import read_problem

    began = time.monotonic()
    problem = read_problem(args.property)  # before the slow imports: most mistakes are here
    reading_seconds = time.monotonic() - began

    from radii import verifiers
    from radii.verifiers import decide_problem

    options = given(args, ("device", "tool"))
    if args.device is not None:
        verifiers.check_device(args.device)
    if args.certificate is not None:
        if not verifiers.has_option(args.verifier, "certificates"):
            raise SpecificationError(
                f"verifier '{args.verifier}' writes no certificates; native does"
            )
        options["certificates"] = True
    verifier = verifiers.get(args.verifier, arithmetic=args.arithmetic, **options)
    network = _network_of_problem(args.network, problem)
    limits = verifiers.Limits(seconds, args.memory, started=started)
    decision = decide_problem(network, problem, verifier=verifier, limits=limits, seed=args.seed)
    return VerifyResult(
        decision.verification,
        f"{verifier.name} {verifier.version}",
        decision.message,
        decision.witness.replayed_on if decision.witness is not None else None,
        None if decision.arithmetic is None else str(decision.arithmetic),
        reading_seconds,
        decision.certificates,
    )


def decide_in_time(args: argparse.Namespace, started: float, seconds: float) -> VerifyResult:
    """`decide` in a process that is ended at its limits, whatever it is doing then."""
    from radii.processes import Ending, StoppedCall, call_guarded
    from radii.vnnlib import Outcome, Verification

    work = (args, started, seconds)
    result = call_guarded(decide, *work, until=started + seconds, memory_bytes=args.memory)
    if not isinstance(result, StoppedCall):
        return result
    if result.ending in (Ending.TIME_LIMIT, Ending.CPU_LIMIT):
        return VerifyResult(Verification(Outcome.TIMEOUT), args.verifier)
    return VerifyResult(Verification(Outcome.UNKNOWN), args.verifier, result.message)


def _network_of_problem(path: Path, problem: Problem) -> Network:
    """The network; its domain is the smallest box around all inputs of the problem."""
    import numpy as np

    from radii.networks import Network, compare_with_replay, read_model, signature
    from radii.problem import Domain

    model = read_model(path)
    shape = signature(model, path.name).input_shape
    boxes = [specification.region.box() for specification in problem.specifications(shape)]
    domain = Domain(np.zeros(shape), np.zeros(shape))
    if boxes:
        low, high = zip(*boxes, strict=True)
        domain = Domain(np.minimum.reduce(low), np.maximum.reduce(high))
    name = path.name.removesuffix(".gz").removesuffix(".onnx")
    network = Network.from_bytes(model.SerializeToString(), domain=domain, name=name)
    compare_with_replay(network)
    return network


def _result_object(
    args: argparse.Namespace, result: VerifyResult, seconds: float
) -> dict[str, Any]:
    decided = result.verification
    counterexample = None
    if result.replayed_on and decided.inputs is not None and decided.outputs is not None:
        counterexample = {
            "X": decided.inputs.tolist(),
            "Y": decided.outputs.tolist(),
            "replayed_on": result.replayed_on,
        }
    return {
        "network": str(args.network),
        "property": str(args.property),
        "verdict": decided.outcome.value,
        "counterexample": counterexample,
        "verifier": result.verifier,
        "arithmetic": result.arithmetic,
        "seconds": round(seconds, 3),
        "message": result.message,
    }


def _check_writable(path: Path | None, flag: str) -> None:
    """Fail before the work instead of after it."""
    if path is None:
        return
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SpecificationError(
            f"{flag} {path} cannot be written; choose a file in a directory that can"
        )


def _write_certificates(path: Path | None, result: VerifyResult) -> list[Path]:
    """A file for each proof of `unsat`; without all of them nothing is shown, and that is said."""
    from radii.vnnlib import Outcome

    if path is None:
        return []
    kept = result.certificates
    if result.verification.outcome is not Outcome.UNSAT:
        note(f"{path} is not written: only unsat has a certificate")
        return []
    if None in kept:
        lost = sum(one is None for one in kept)
        which = "its proof has" if len(kept) == 1 else f"{lost} of its {len(kept)} proofs have"
        note(f"{path} is not written: {which} no certificate, so unsat is {result.verifier}'s word")
        return []
    if not kept:
        note(f"{path} is not written: the property allows no input, which needs no proof")
    paths = [path]
    if len(kept) != 1:
        paths = [path.with_name(f"{path.stem}-{n}{path.suffix}") for n in range(1, len(kept) + 1)]
    for file, content in zip(paths, kept, strict=True):
        write_file(file, content or b"")
    return paths


def _run_instances(args: argparse.Namespace) -> int:
    """Exit code 2 if a line of the list could not be used: its result is `error`."""
    from radii.vnnlib import ResultTable, counterexample_names, read_instances

    listed = read_instances(args.instances, args.timeout)
    category = args.category or args.instances.resolve().parent.name
    rows = ResultTable(
        args.out or Path("results.csv"), [(each.onnx, each.vnnlib) for each in listed]
    )
    names = counterexample_names(listed)
    stream = sys.stderr if args.json else sys.stdout
    waiting = [place for place in range(len(listed)) if rows[place] is None]
    if len(waiting) < len(listed):
        say(f"{rows.path}: {len(listed) - len(waiting)} results are kept", file=stream)
    for place in waiting:
        row, message = _decide_instance(args, listed[place], category, rows.folder / names[place])
        rows.put(place, row)
        same = (rows[other] for other, name in enumerate(names) if name == names[place])
        if not any(each is not None and each.result == "sat" for each in same):
            _forget(rows.folder / names[place])
        shown = f"[{place + 1}/{len(listed)}] {row.onnx} {row.vnnlib}: {row.result}"
        say(f"{shown}, {row.run_seconds:.2f} s", file=stream, flush=True)
        if message:
            note(f"line {listed[place].line}: {message}")
    rows.close()
    counts = Counter(row.result for row in rows.all())
    if args.json:
        say(json.dumps({"results": [row.as_object() for row in rows.all()]}))
    else:
        say(f"{rows.path}: " + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    return 2 if counts["error"] else 0


def _decide_instance(
    args: argparse.Namespace, listed: ListedInstance, category: str, counterexample: Path
) -> tuple[ResultRow, str]:
    """One instance's row, and what there is to say about it. Preparing is reading the property."""
    from radii.vnnlib import ResultRow

    started = time.monotonic()
    outcome, message, preparing = "error", listed.wrong, 0.0
    try:
        if not message:
            folder = args.instances.parent
            network = _existing(folder / listed.onnx, NetworkError)
            property_ = _existing(folder / listed.vnnlib, SpecificationError)
            one = argparse.Namespace(**{**vars(args), "network": network, "property": property_})
            result = decide_in_time(one, started, listed.seconds)
            outcome, preparing = result.verification.outcome.value, result.reading_seconds
            message = "" if result.replayed_on else result.message
            _keep(result, counterexample)
    except RadiiError as error:
        message = " ".join(str(error).split())
    running = time.monotonic() - started - preparing
    return ResultRow(category, listed.onnx, listed.vnnlib, preparing, outcome, running), message


def _keep(result: VerifyResult, path: Path) -> None:
    """The values alone, as VNN-COMP's checker reads them."""
    word, _, values = str(result.verification).partition("\n")
    if word != "sat" or not values:
        return
    try:
        path.write_bytes(gzip.compress((values + "\n").encode(), mtime=0))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be written: {error}") from None


def _forget(path: Path) -> None:
    """A counterexample of an earlier run, where no instance of its name is sat any more."""
    with suppress(OSError, ValueError):  # where no file can be, there is none
        path.unlink()


def _existing(path: Path, error: type[InputError]) -> Path:
    """The file, or the gzipped one beside it, as benchmarks are shipped."""
    with suppress(OSError):  # names that are too long
        for place in (path, Path(f"{path}.gz")):
            if place.is_file():
                return place
    raise error(f"{path} does not exist")
