"""`radii gate`: does every network meet the requirements? The exit code says it, for CI."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._check import add_data_flag, add_network_flag, check_jobs
from radii.cli._options import add_json_flag
from radii.cli._output import print_json
from radii.cli._sources import (
    add_part_flags,
    add_places,
    brackets_of,
    note_published,
    part_choice,
    read_runs,
)
from radii.errors import DataError
from radii.terminal import say

if TYPE_CHECKING:
    from radii.runs import StoreCheck
    from radii.statistics import Distribution, Judgement


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
  several statements with a confidence (@ 95%) share the error that it permits,
  so that all which are met hold together; --uncorrected gives each its own

exit codes:
  0 every network meets every requirement, 1 one does not (and why), 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_places(parser)
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
        help="do not correct for several statements",
    )
    parser.add_argument(
        "--checked",
        action="store_true",
        help="check the results; count only checked proofs",
    )
    add_network_flag(parser)
    add_data_flag(parser)
    add_part_flags(parser)
    add_json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from radii.statistics import check_all, parse_requirement, proof_statuses, weakest_arithmetic

    requirements = [parse_requirement(text) for text in args.require]
    checks = _checks(args) if args.checked else {}
    accepted = {place: check.accepted for place, check in checks.items()}
    runs = read_runs(args.places, choice=part_choice(args), accepted=accepted)
    distribution = brackets_of(runs)
    refuse_unfinished(distribution)
    note_published(distribution)
    judgement = check_all(requirements, distribution, is_corrected=not args.uncorrected)
    if args.json:
        weakest = weakest_arithmetic(distribution)
        print_json(
            {
                "passed": judgement.is_met,
                "arithmetic": None if weakest is None else str(weakest),
                "proofs": {str(one): count for one, count in proof_statuses(distribution).items()},
                "outcomes": judgement.outcomes,
                "confidence": _confidence(judgement),
                "checked": [_check_object(check) for check in checks.values()] or None,
            }
        )
    else:
        _print_judgement(judgement, distribution)
        for check in checks.values():
            say(*_check_lines(check))
    return 0 if judgement.is_met else 1


def _checks(args: argparse.Namespace) -> dict[Path, StoreCheck]:
    """A check of everything in each place, made now: what the results keep of earlier checks is
    their own word. A DataError if anything but a proof does not hold, or is not known to."""
    from radii.cli._progress import ProgressBar
    from radii.runs import check_store
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
                place,
                networks=args.network,
                data=args.data,
                jobs=check_jobs(None),
                on_progress=bar.counted,
            )
        _refuse_untrue(checks[place])
    return checks


def _refuse_untrue(check: StoreCheck) -> None:
    """Refused certificates only leave lower sides out. Inputs, labels and counterexamples that are
    not what the results say change every figure."""
    from radii.runs import EvidenceKind

    untrue = [one for one in check.failed if one.kind is not EvidenceKind.PROOF]
    if untrue:
        raise DataError(
            f"{check.place}: {len(untrue)} of its statements do not hold ({untrue[0]}); "
            "radii check lists them"
        )
    if check.compared < check.instances:
        why = next(iter(check.without_data.values()), "")
        raise DataError(
            f"{check.place}: its inputs and labels cannot be compared with the data ({why}); "
            "--data PLACE says where they are"
        )


def _check_lines(check: StoreCheck) -> list[str]:
    others = check.proofs - check.checked
    text = f"{check.checked} of {check.proofs} proofs count: their certificates were checked by "
    text += f"{check.checker}, the other {others} do not" if others else check.checker
    text += f"; REFUSED: {len(check.failed)}" if check.failed else ""
    return [text, *(f"NOT CHECKED: {clause}" for clause in check.unchecked)]


def _check_object(check: StoreCheck) -> dict[str, Any]:
    return {
        "place": str(check.place),
        "outcome": check.verdict.value,
        "not_checked": list(check.unchecked),
        "checker": check.checker,
        "proofs": check.proofs,
        "checked": check.checked,
        "failed": [str(one) for one in check.failed],
        "unreadable": [str(one) for one in check.unreadable],
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


def _print_judgement(judgement: Judgement, distribution: Distribution) -> None:
    from radii.statistics import proof_checks, proof_scope

    outcomes = judgement.outcomes
    for text in dict.fromkeys(outcome.requirement for outcome in outcomes):
        say(text)
        for outcome in outcomes:
            if outcome.requirement == text:
                say(f"  {'met    ' if outcome.is_met else 'NOT MET'}  {outcome.reason}")
    missed = sum(not outcome.is_met for outcome in outcomes)
    result = f"{missed} of {len(outcomes)} not met" if missed else "all requirements are met"
    say("; ".join(filter(None, (result, proof_scope(distribution), proof_checks(distribution)))))
    if str(judgement):
        say(str(judgement))
