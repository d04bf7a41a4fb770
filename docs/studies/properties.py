"""Makes the figures and tables of docs/studies/properties.md from what properties.sh left.

python docs/studies/properties.py results docs/studies/images
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from radii.cli import main
from radii.distributions import Distribution

DATA = ("fashion", "gtsrb")
CONSTRAINTS = ("standard", "scr", "sr", "lr")
REGIMES = ("standard", "augmentation-uniform", "augmentation-fgsm", "pgd", "sr", "scr", "lr")
EPS = 0.1
ATTACKED_AT = (0.02, 0.05, 0.1)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(head)} |\n| {' | '.join('---' for _ in head)} |")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def satisfaction(results: Path) -> None:
    """Table 1: proven shares, and what stayed undecided where something did."""
    rows = []
    for kind in ("cr", "sr", "lr"):
        row = [kind.upper()]
        for data in DATA:
            measured = Distribution.from_store(results / "proofs" / f"{data}-{kind}").by_network()
            for regime in CONSTRAINTS:
                share = measured[f"{data}-30-{regime}.onnx"].robust_accuracy(EPS)
                gap = share.not_refuted - share.proven
                row.append(f"{share.proven:.1%}" + (f" (+{gap:.1%} undecided)" if gap else ""))
        rows.append(row)
    table(["property", *(f"{data}, {regime}" for data in DATA for regime in CONSTRAINTS)], rows)


def accuracies(results: Path) -> None:
    """Table 3: accuracy on all test images, for both widths."""
    rows = []
    for regime in REGIMES:
        row = [regime]
        for data in DATA:
            for units in (30, 100):
                card = results / "nets" / f"{data}-{units}-{regime}" / "card.json"
                known = json.loads(card.read_text("utf-8")) if card.exists() else None
                row.append(f"{known['accuracy']:.1%}" if known else "")
        rows.append(row)
    table(["regime", *(f"{data}, {units} units" for data in DATA for units in (30, 100))], rows)


def security(results: Path, folder: Path) -> None:
    """Shares that no attack breaks: a figure a data set and property, and some of its values."""
    rows = []
    for data in DATA:
        for kind in ("sr", "scr", "lr"):
            place = results / "attacks" / f"{data}-{kind}"
            drawn = folder / f"security-{data}-{kind}.png"
            if main(["plot", str(place), "--kind", "security", "-o", str(drawn)]):
                sys.exit(f"{drawn} was not drawn")
            measured = Distribution.from_store(place).by_network()
            for eps in ATTACKED_AT:
                shares = (
                    measured[f"{data}-100-{regime}.onnx"].robust_accuracy(eps).not_refuted
                    for regime in REGIMES
                )
                rows.append([data, kind.upper(), f"{eps:g}", *(f"{share:.0%}" for share in shares)])
    table(["data", "attack", "eps", *REGIMES], rows)


if __name__ == "__main__":
    source, images = Path(sys.argv[1]), Path(sys.argv[2])
    images.mkdir(parents=True, exist_ok=True)
    accuracies(source)
    satisfaction(source)
    security(source, images)
