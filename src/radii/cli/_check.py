"""`radii check`: prove it again, without the code that proved it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import JOBS
from radii.cli._output import print_json
from radii.errors import InputError
from radii.terminal import note, say

if TYPE_CHECKING:
    from radii.experiments import EvidencePlace, FileCheck, StoreCheck
    from radii.verdicts import CertificateCheck

MOST_FAILURES = 20
"""Lines of failures; JSON has them all."""

DESCRIPTION = """Check every certificate, and replay every counterexample.

Certificates are checked by radii_check, which shares no code with radii: it reads the network's
file itself. What has no certificate is believed, and said to be. What a check of results found is
kept in them, so that radii show, report, card, export and gate --checked know it."""

EPILOG = """examples:
  radii check results                        every proof and counterexample of a run
  radii check results --exact                without trusting any rounding (needs python-flint)
  radii check results --network net.onnx     if the network has moved since
  radii check proof.cert --network net.onnx  one certificate
  radii check results --json

exit codes:
  0 all of it holds, 1 something does not (what is printed), 2 bad input
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
    parser.add_argument(
        "--exact", action="store_true", help="calculate exactly: trust no rounding at all"
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
        help="the network that certificates are about, if it has moved; repeat for several",
    )


def check_jobs(jobs: int | None) -> int:
    """How many processes check: as asked, or one a core; 0 is this process."""
    from radii.experiments import default_jobs
    from radii.processes import has_workers

    if not has_workers():
        return 0
    return default_jobs() if jobs is None else jobs


def run(args: argparse.Namespace) -> int:
    from radii.cli._progress import ProgressBar
    from radii.experiments import check_files, check_store
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
        return max(_exit_code(one) for one in files)
    with ProgressBar() as bar:
        outcome = check_store(
            stores[0],
            networks=args.network,
            exact=args.exact,
            jobs=jobs,
            on_progress=bar.counted,
        )
    print_json(store_check_object(outcome)) if args.json else _print_store(outcome)
    if outcome.not_kept:
        note(f"what was found is not kept in the store: {outcome.not_kept}")
    return 1 if outcome.failed else 0


# --- of a store


def store_check_object(outcome: StoreCheck) -> dict[str, Any]:
    """What scripts read: the counts, and every failure."""
    return {
        "proofs": outcome.proofs,
        "checked": outcome.checked,
        "failed": [
            {
                **_place_object(one.place),
                "kind": "proof" if one.is_proof else "witness",
                "reason": one.reason,
            }
            for one in outcome.failed
        ],
        "witnesses": outcome.witnesses,
        "replayed": outcome.replayed,
        "without_certificate": outcome.without_certificate,
        "believed": [_place_object(place) for place in outcome.believed],
        "checker": outcome.checker,
        "numbers": outcome.numbers,
        "replayed_on": list(outcome.replayed_on),
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
    numbers = "" if outcome.numbers == "float64" else " in exact arithmetic"
    wrong = sum(one.is_proof for one in outcome.failed)
    parts = [f"{outcome.checked} checked by {outcome.checker}{numbers}"]
    parts += [f"{wrong} REFUSED"] if wrong else []
    parts += [f"{outcome.without_certificate} believed"] if outcome.without_certificate else []
    say(f"{outcome.proofs} proofs: {', '.join(parts)}" if outcome.proofs else "no proofs")
    if outcome.believed:
        words = ", ".join(f"{who} ({count})" for who, count in outcome.believed_by.items())
        say(f"lower bounds that rest on a word alone: {words}")
    lost = outcome.witnesses - outcome.replayed
    engines = " and ".join(outcome.replayed_on)
    broken = f", {lost} DO NOT REPLAY" if lost else ""
    counted = f"{outcome.witnesses} counterexamples"
    if outcome.witnesses:
        counted += f": {outcome.replayed} replayed on {engines}{broken}"
    say(counted if outcome.witnesses else "no counterexamples")
    for one in outcome.failed[:MOST_FAILURES]:
        say(f"FAILED {one}")
    if len(outcome.failed) > MOST_FAILURES:
        say(f"and {len(outcome.failed) - MOST_FAILURES} more; --json lists them all")
    say(
        f"{'NOT all of it holds' if outcome.failed else 'all of it holds'}; {outcome.seconds:.1f} s"
    )


# --- of files


def _files_object(files: Sequence[FileCheck]) -> dict[str, Any]:
    failed = [one for one in files if not one.check.is_accepted]
    return {
        "proofs": len(files),
        "checked": len(files) - len(failed),
        "failed": [{"file": str(one.path), "reason": one.check.reason} for one in failed],
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
        if one.check.is_accepted:
            say(f"{one.path}: accepted: {_claim_words(one.claim or {})}; {_effort(one.check)}")
        else:
            say(f"{one.path}: {'REFUSED' if one.is_usable else 'not usable'}: {one.check.reason}")
    accepted = sum(one.check.is_accepted for one in files)
    if len(files) > 1:
        say(f"{accepted} of {len(files)} accepted by {files[0].check.checker}")


def _claim_words(claim: Any) -> str:
    """What a certificate claims, as half a sentence."""
    from radii.verdicts import Arithmetic

    wanted = claim["requirement"]
    stays = {
        "one-to-any": "the class stays {label}",
        "one-to-one": "class {target} stays below class {label}",
        "become": "it is not taken for class {target}",
        "violations": "no output violates what is required",
    }[wanted["kind"]].format(**wanted)
    where = (
        "in the box" if claim["norm"] == "box" else f"within {claim['eps']:g} in {claim['norm']}"
    )
    return f"{stays} {where}, {Arithmetic.parse(claim['arithmetic']).scope}"


def _effort(check: CertificateCheck) -> str:
    return f"{check.nodes} nodes, {check.lemmas} lemmas, {check.seconds:.2f} s"


def _exit_code(one: FileCheck) -> int:
    if one.check.is_accepted:
        return 0
    return 1 if one.is_usable else 2
