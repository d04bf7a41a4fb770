"""`radii gate`: does every network meet the requirements? The exit code says it, for CI."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._check import check_jobs
from radii.cli._options import add_json_flag
from radii.cli._output import print_json
from radii.cli._sources import add_part_flags, part_choice
from radii.errors import DataError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.distributions import Distribution, Judgement
    from radii.experiments import StoreCheck


DESCRIPTION = "Hold the networks of one or more results against requirements."

EPILOG = """requirements:
  robust_accuracy(0.02) >= 0.90                 proven for 90 % of these inputs
  robust_accuracy(8/255) >= 90% @ 95%           90 % of all, with 95 % confidence
  not_refuted robust_accuracy(0.02) >= 0.90     no counterexamples get it below
  robust_recall(class=3, 0.02) >= 0.85          of one class
  worst_recall(0.02) >= 0.80                    of every class
  recall_spread(0.02) <= 0.1                    between best and worst class
  accuracy >= 0.95, median >= 0.03, quantile(0.05) >= 0.01, mean >= 0.04, min > 0
  mean_gap <= 0.004                             how wide brackets are

examples:
  radii gate results --require "robust_accuracy(0.02) >= 0.90 @ 95%"
  radii gate results --require "worst_recall(0.02) >= 0.8" --require "accuracy >= 0.97"
  radii gate results --require "robust_accuracy(0.02) >= 0.95" --checked --json

confidence:
  several statements with a confidence (@ 95%), of requirements or networks, share
  the error that it permits, so that all which are met hold together with it;
  --uncorrected gives each its own

exit codes:
  0 every network meets every requirement, 1 one does not (and why), 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="the --out of a run, or a results file"
    )
    parser.add_argument(
        "--require",
        action="append",
        required=True,
        metavar="REQUIREMENT",
        help="what must hold; repeat for more",
    )
    parser.add_argument(
        "--uncorrected",
        action="store_true",
        help="each confidence is its own: do not correct for several statements",
    )
    parser.add_argument(
        "--checked",
        action="store_true",
        help="only proofs count whose certificate is accepted",
    )
    add_part_flags(parser)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.cli._sources import note_published, read_distributions
    from radii.distributions import check_all, parse_requirement, proof_scope, weakest_arithmetic

    requirements = [parse_requirement(text) for text in args.require]
    checks = _checks(args) if args.checked else {}
    accepted = {place: check.accepted for place, check in checks.items()}
    distribution = read_distributions(args.places, choice=part_choice(args), accepted=accepted)
    refuse_unfinished(distribution)
    note_published(distribution)
    judgement = check_all(requirements, distribution, is_corrected=not args.uncorrected)
    if args.json:
        weakest = weakest_arithmetic(distribution)
        print_json(
            {
                "passed": judgement.is_met,
                "arithmetic": None if weakest is None else str(weakest),
                "outcomes": [dataclasses.asdict(outcome) for outcome in judgement.outcomes],
                "confidence": _confidence(judgement),
                "checked": [_check_object(check) for check in checks.values()] or None,
            }
        )
    else:
        _print_judgement(judgement, proof_scope(distribution))
        for check in checks.values():
            say(_check_words(check))
    return 0 if judgement.is_met else 1


def _checks(args: argparse.Namespace) -> dict[Path, StoreCheck]:
    """What checkers say of the certificates of each place; those not checked yet are checked."""
    from radii.cli._progress import ProgressBar
    from radii.experiments import check_store
    from radii.store import STORE_FILE

    for place in args.places:
        if place.exists() and not (place / STORE_FILE).is_file():
            raise DataError(
                f"{place}: --checked needs the --out of a run; what others publish has no "
                "certificates"
            )
    checks = {}
    for place in args.places:
        with ProgressBar() as bar:
            checks[place] = check_store(
                place, jobs=check_jobs(None), replays=False, only_new=True, on_progress=bar.counted
            )
    return checks


def _check_words(check: StoreCheck) -> str:
    others = check.proofs - check.checked
    text = f"{check.checked} of {check.proofs} proofs count: their certificates were checked by "
    text += " and ".join(check.checkers) or check.checker
    refused = f"; certificates that were REFUSED: {len(check.failed)}" if check.failed else ""
    return f"{text}, the other {others} do not{refused}" if others else f"{text}{refused}"


def _check_object(check: StoreCheck) -> dict[str, Any]:
    return {
        "place": str(check.place),
        "checker": " and ".join(check.checkers) or check.checker,
        "proofs": check.proofs,
        "checked": check.checked,
        "failed": [str(one) for one in check.failed],
        "without_certificate": check.without_certificate,
    }


def _confidence(judgement: Judgement) -> dict[str, Any] | None:
    """How sure all statements are together; None if none speaks with a confidence."""
    if judgement.together is None:
        return None
    return {
        "statements": judgement.statements,
        "corrected": judgement.is_corrected,
        "together": judgement.together,
        "sentence": str(judgement),
    }


def refuse_unfinished(distribution: Distribution) -> None:
    """An input that nobody tried to break is not refuted, which would prove nothing of it."""
    import numpy as np

    untried = (
        (distribution.column("fingerprint") != "")
        & (distribution.column("queries") == 0)
        & (distribution.lower == 0)
        & np.isinf(distribution.upper)
    )
    if untried.any():
        raise DataError(
            f"{distribution.network[untried][0]}: {untried.sum()} of {len(distribution)} brackets "
            "were not measured yet; finish the run first (radii run again continues it)"
        )


def _print_judgement(judgement: Judgement, scope: str) -> None:
    outcomes = judgement.outcomes
    for text in dict.fromkeys(outcome.requirement for outcome in outcomes):
        say(text)
        for outcome in outcomes:
            if outcome.requirement == text:
                say(f"  {'met    ' if outcome.is_met else 'NOT MET'}  {outcome.reason}")
    missed = sum(not outcome.is_met for outcome in outcomes)
    result = f"{missed} of {len(outcomes)} not met" if missed else "all requirements are met"
    say(f"{result}; {scope}" if scope else result)
    if str(judgement):
        say(str(judgement))
