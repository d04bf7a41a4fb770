"""The results that a command is given: runs of radii, published files, folders of VERONA."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.cli._options import OF_EXPERIMENT
from radii.errors import DataError
from radii.terminal import note

if TYPE_CHECKING:
    from radii.statistics import Distribution, Run
    from radii.store import CertifiedStatement, PartChoice


SELECTION_COLUMNS = {
    "network": "network",
    "class": "label",
    "target": "target",
    "split": "split",
    "training": "training",
}
"""What `--only` chooses by, and the column that holds it."""


def add_places(parser: argparse.ArgumentParser) -> None:
    """The results that a command is given."""
    parser.add_argument(
        "places", nargs="+", type=Path, metavar="DIR", help="the --out of a run, or a results file"
    )


def add_claim_flags(group: Any) -> None:
    """What published files leave open."""
    group.add_argument(
        "--split", default="", help="split of the inputs, where the results do not name it"
    )
    group.add_argument(
        "--distrust", action="store_true", help="drop published proofs that their row refutes"
    )


def add_only_flag(group: Any) -> None:
    """Which of the rows of results count: see `selected`."""
    group.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="network, class, target, split or training; repeat for more",
    )


def add_part_flags(parser: Any) -> None:
    """Which brackets are meant of a study that holds those of several questions."""
    group = parser.add_argument_group("of results that have grown")
    helps = {
        "property": "only brackets of this property",
        "norm": "only those in this norm",
        "arithmetic": "only proofs that hold in this arithmetic",
    }
    for name, text in helps.items():
        OF_EXPERIMENT[name].add_to(group, help=text)


def part_choice(args: argparse.Namespace) -> PartChoice:
    """The part of a study that the flags mean."""
    from radii.store import PartChoice

    asked = args.property
    text = None if asked is None else OF_EXPERIMENT["property"].form.write(asked)
    return PartChoice(text, args.norm, args.arithmetic)


def brackets_of(runs: Iterable[Run]) -> Distribution:
    """All brackets of several runs."""
    from radii.statistics import Distribution

    return Distribution.union(map(Distribution.from_run, runs))


def read_runs(
    places: Sequence[Path],
    *,
    split: str = "",
    distrust: bool = False,
    joins_splits: bool = True,
    choice: PartChoice | None = None,
    accepted: Mapping[Path, Collection[CertifiedStatement]] | None = None,
) -> list[Run]:
    """The results in several places; what cannot be taken at its word goes to standard error.

    Networks of the same name in several places carry the place's name too, unless they are one
    network on several splits, which only `joins_splits` takes for one. `split` names the inputs of
    places that do not name it themselves. With `accepted`, only proofs count that one of a place's
    certificates shows.
    """
    from radii.statistics import check_distinct, read, with_distinct_names

    check_distinct(places)
    shown = accepted or {}
    runs = [
        read(place, distrust=distrust, choice=choice, accepted=shown.get(place)) for place in places
    ]
    for sentence in (sentence for run in runs for sentence in run.notes):
        note(sentence)
    if split:
        splits = ([name or split for name in run.columns["split"].tolist()] for run in runs)
        runs = [run.labelled(split=names) for run, names in zip(runs, splits, strict=True)]
    return with_distinct_names(runs, joins_splits=joins_splits)


def selected(distribution: Distribution, only: list[str]) -> Distribution:
    """The rows that have one of the wanted values of every name, as in `class=3`."""
    import numpy as np

    wanted: dict[str, list[str]] = {}
    for text in only:
        name, sign, value = text.partition("=")
        if name not in SELECTION_COLUMNS or not sign:
            raise DataError(
                f"--only {text}: write one of {', '.join(SELECTION_COLUMNS)}, =, and a value"
            )
        wanted.setdefault(name, []).append(value)
    for name, values in wanted.items():
        column = distribution.column(SELECTION_COLUMNS[name]).astype(np.str_)
        if name == "network":  # results leave the ending out
            values = [v if v in column else v.removesuffix(".onnx") for v in values]
        absent = [value for value in values if value not in column]
        if absent:
            known = ", ".join(dict.fromkeys(column.tolist()))
            raise DataError(f"--only {name}={absent[0]}: the results have {known}")
        distribution = distribution.select(np.isin(column, values))
    return distribution


def note_published(distribution: Distribution) -> None:
    """Say on standard error that published files leave out what their networks misclassify."""
    claimed = [
        name
        for name, part in distribution.by_network().items()
        if part.correct.all() and not any(part.column("fingerprint"))
    ]
    if claimed:
        note(
            f"{', '.join(claimed)}: published results without misclassified inputs, "
            "so shares are of correctly classified ones"
        )


def note_arithmetics(distribution: Distribution) -> None:
    """Say on standard error that the proofs of networks hold in different arithmetics."""
    from radii.statistics import weakest_arithmetic

    names: dict[str, list[str]] = {}
    for name, part in distribution.by_network().items():
        if (weakest := weakest_arithmetic(part)) is not None:
            names.setdefault(weakest.scope, []).append(name)
    if len(names) > 1:
        parts = "; ".join(f"those of {', '.join(those)} {scope}" for scope, those in names.items())
        note(f"proofs hold in different arithmetics: {parts}")


def note_checks(distribution: Distribution) -> None:
    """Say on standard error which networks have proofs that no checker has accepted or can."""
    from radii.problem import ProofStatus
    from radii.statistics import proof_checks, proof_statuses

    fine = {ProofStatus.CHECKED, ProofStatus.UNCHECKED}
    for name, part in distribution.by_network().items():
        if proof_statuses(part).keys() - fine:
            note(f"{name}: {proof_checks(part)}")
