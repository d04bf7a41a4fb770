"""`radii check`: prove it again, without the code that proved it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import JOBS
from radii.cli._output import print_json
from radii.errors import InputError
from radii.problem import CheckOutcome
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.runs import EvidencePlace, FileCheck, StoreCheck

MOST_FAILURES = 20
"""Lines of failures; JSON has them all."""

DESCRIPTION = """Check everything that results say against what they cannot change.

Certificates are checked by radii_check, which shares no code with radii and reads the network's
file itself. Every input and counterexample runs again on ONNX Runtime, and inputs and labels are
compared with the data. What could not be checked is listed. The outcome is kept in the results,
where radii show, report, card and export read it."""

EPILOG = """examples:
  radii check results                        every proof and counterexample of a run
  radii check results --exact                without trusting any rounding (needs python-flint)
  radii check results --network net.onnx     if the network has moved since
  radii check results --data points.npz      if the data have moved since
  radii check results --require-checked      exit 1 unless all of it was checked
  radii check proof.cert --network net.onnx  one certificate
  radii check results --json

exit codes:
  0 nothing failed, whether or not all of it could be checked; 1 something does not hold, or, with
  --require-checked, something was not checked; 2 bad input, or the file of a certificate that
  cannot be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        nargs="+",
        type=Path,
        metavar="DIR|CERTIFICATE",
        help="the --out of a run; or files of certificates, or a folder of them",
    )
    add_network_flag(parser)
    add_data_flag(parser)
    parser.add_argument(
        "--exact", action="store_true", help="calculate exactly: trust no rounding at all"
    )
    parser.add_argument(
        "--require-checked",
        action="store_true",
        help="exit 1 also where something could not be checked",
    )
    JOBS.add_to(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead")


def add_network_flag(parser: argparse.ArgumentParser) -> None:
    """Where the networks are that certificates speak of, if not where they were."""
    parser.add_argument(
        "--network",
        action="append",
        type=Path,
        default=[],
        metavar="NET.onnx",
        help="where a network is, if it has moved; repeatable",
    )


def add_data_flag(parser: argparse.ArgumentParser) -> None:
    """Where inputs and labels are, if not where they were."""
    parser.add_argument(
        "--data",
        metavar="PLACE",
        help="where the data are now, if they have moved",
    )


def check_jobs(jobs: int | None) -> int:
    """How many processes check: as asked, or one a core; 0 is this process."""
    from radii.processes import has_workers
    from radii.runs import default_jobs

    if not has_workers():
        return 0
    return default_jobs() if jobs is None else jobs


def run(args: argparse.Namespace) -> int:
    from radii.cli._progress import ProgressBar
    from radii.runs import StoreVerdict, check_files, check_store
    from radii.store import STORE_FILE

    stores = [place for place in args.places if (place / STORE_FILE).is_file()]
    if stores and len(args.places) > 1:
        raise InputError(f"give {stores[0]} alone: results are checked one at a time")
    jobs = check_jobs(args.jobs)
    if not stores:
        with ProgressBar() as bar:
            files = check_files(
                args.places,
                networks=args.network,
                exact=args.exact,
                jobs=jobs,
                on_progress=bar.counted,
            )
        print_json(_files_object(files)) if args.json else _print_files(files)
        codes = set(map(_exit_code, files))
        return next(code for code in (1, 2, 0) if code in codes)
    with ProgressBar() as bar:
        outcome = check_store(
            stores[0],
            networks=args.network,
            data=args.data,
            exact=args.exact,
            jobs=jobs,
            on_progress=bar.counted,
        )
    print_json(store_check_object(outcome)) if args.json else _print_store(outcome)
    if outcome.not_kept:
        note(f"the outcome is not kept in the results: {outcome.not_kept}")
    is_enough = outcome.verdict is StoreVerdict.HOLDS or not args.require_checked
    return 0 if is_enough and not outcome.failed else 1


# --- of a store


def store_check_object(outcome: StoreCheck) -> dict[str, Any]:
    """What scripts read: the counts, and every failure."""
    return {
        "outcome": outcome.verdict.value,
        "not_checked": list(outcome.unchecked),
        "proofs": outcome.proofs,
        "checked": outcome.checked,
        "failed": [
            {**_place_object(one.place), "kind": one.kind.value, "reason": one.reason}
            for one in outcome.failed
        ],
        "unreadable": [
            {**_place_object(one.place), "reason": one.reason} for one in outcome.unreadable
        ],
        "witnesses": outcome.witnesses,
        "replayed": outcome.replayed,
        "instances": outcome.instances,
        "compared": outcome.compared,
        "without_certificate": outcome.without_certificate,
        "believed": [_place_object(place) for place in outcome.believed],
        "checker": outcome.checker,
        "numbers": outcome.numbers,
        "replayed_on": list(outcome.replayed_on),
        "networks": [
            {
                "network": one.name,
                "fingerprint": one.network.fingerprint,
                "file": None if one.file is None else str(one.file),
            }
            for one in outcome.networks
        ],
        "seconds": round(outcome.seconds, 3),
    }


def _place_object(place: EvidencePlace) -> dict[str, Any]:
    return {
        "network": place.network,
        "input": place.input,
        "target": place.target,
        "eps": place.eps,
        "by": place.by,
    }


def _print_store(outcome: StoreCheck) -> None:
    for known in outcome.networks:
        file: Path | str = known.file or "the results themselves"
        if isinstance(file, Path) and file.is_relative_to(Path.cwd()):
            file = file.relative_to(Path.cwd())
        fingerprint = known.network.fingerprint[:12]
        say(f"network {known.name} (fingerprint {fingerprint}): read from {file}")
    say(_proof_line(outcome), _witness_line(outcome))
    if outcome.instances:
        say(
            f"{outcome.instances} instances: outputs calculated again, "
            f"{outcome.compared} inputs and labels compared with the data"
        )
    else:
        say("no inputs")
    for one in outcome.failed[:MOST_FAILURES]:
        say(f"FAILED {one}")
    if len(outcome.failed) > MOST_FAILURES:
        say(f"and {len(outcome.failed) - MOST_FAILURES} more; --json lists them all")
    for clause in outcome.unchecked:
        say(f"NOT CHECKED: {clause}")
    say(f"{_verdict_words(outcome)}; {outcome.seconds:.1f} s")


def _proof_line(outcome: StoreCheck) -> str:
    from radii.runs import EvidenceKind

    if not outcome.proofs:
        return "no proofs"
    numbers = "" if outcome.numbers == "float64" else " in exact arithmetic"
    wrong = sum(one.kind is EvidenceKind.PROOF for one in outcome.failed)
    counts = {
        "REFUSED": wrong,
        "not readable": len(outcome.unreadable),
        "believed": outcome.without_certificate,
    }
    parts = [f"{outcome.checked} checked by {outcome.checker}{numbers}"]
    parts += [f"{count} {word}" for word, count in counts.items() if count]
    return f"{outcome.proofs} proofs: {', '.join(parts)}"


def _witness_line(outcome: StoreCheck) -> str:
    from radii.runs import EvidenceKind

    if not outcome.witnesses:
        return "no counterexamples"
    lost = sum(one.kind is EvidenceKind.WITNESS for one in outcome.failed)
    engines = " and ".join(outcome.replayed_on)
    broken = f", {lost} DO NOT REPLAY" if lost else ""
    return f"{outcome.witnesses} counterexamples: {outcome.replayed} replayed on {engines}{broken}"


def _verdict_words(outcome: StoreCheck) -> str:
    if outcome.failed:
        return "NOT all of it holds"
    if not outcome.unchecked:
        return "all of it holds"
    return "what was checked holds" if outcome.instances else "nothing was checked"


# --- of files


def _files_object(files: Sequence[FileCheck]) -> dict[str, Any]:
    reasons: dict[CheckOutcome, list[dict[str, str]]] = {each: [] for each in CheckOutcome}
    for one in files:
        reasons[one.check.outcome].append({"file": str(one.path), "reason": one.check.reason})
    return {
        "proofs": len(files),
        "checked": len(reasons[CheckOutcome.ACCEPTED]),
        "failed": reasons[CheckOutcome.REFUSED],
        "unreadable": reasons[CheckOutcome.UNREADABLE],
        "witnesses": 0,
        "replayed": 0,
        "without_certificate": 0,
        "believed": [],
        "checker": files[0].check.checker,
        "numbers": files[0].check.numbers,
        "certificates": [
            {
                "file": str(one.path),
                "accepted": one.check.is_accepted,
                "outcome": one.check.outcome.value if one.is_usable else "unusable",
                "reason": one.check.reason,
                "claim": None if one.claim is None else dict(one.claim),
                "nodes": one.check.nodes,
                "lemmas": one.check.lemmas,
                "margin": one.check.margin,
                "seconds": round(one.check.seconds, 3),
            }
            for one in files
        ],
    }


def _print_files(files: Sequence[FileCheck]) -> None:
    for one in files:
        known = one.check
        if known.is_accepted:
            effort = f"{known.nodes} nodes, {known.lemmas} lemmas, {known.seconds:.2f} s"
            say(f"{one.path}: accepted: {_claim_words(one.claim or {})}; {effort}")
        else:
            is_read = one.check.outcome is CheckOutcome.REFUSED
            word = ("REFUSED" if is_read else "not readable") if one.is_usable else "not usable"
            say(f"{one.path}: {word}: {one.check.reason}")
    accepted = sum(one.check.is_accepted for one in files)
    if len(files) > 1:
        say(f"{accepted} of {len(files)} accepted by {files[0].check.checker}")


def _claim_words(claim: Any) -> str:
    """What a certificate claims, as half a sentence."""
    from radii.problem import Arithmetic

    wanted = claim["requirement"]
    stays = {
        "one-to-any": "the class stays {label}",
        "one-to-one": "class {target} stays below class {label}",
        "become": "it is not taken for class {target}",
        "violations": "no output violates what is required",
        "probabilities": "all probabilities stay within their bounds",
    }[wanted["kind"]].format(**wanted)
    where = (
        "in the box" if claim["norm"] == "box" else f"within {claim['eps']:g} in {claim['norm']}"
    )
    return f"{stays} {where}, {Arithmetic.parse(claim['arithmetic']).scope}"


def _exit_code(one: FileCheck) -> int:
    if one.check.is_accepted:
        return 0
    return 1 if one.is_usable and one.check.outcome is CheckOutcome.REFUSED else 2
