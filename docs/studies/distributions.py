"""Makes the figures and tables of docs/studies/distributions.md.

radii attack ... --out witnesses          (the command is on the page)
python docs/studies/distributions.py ../shared/data/jair witnesses docs/studies/images
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from radii.cli import main
from radii.distributions import (
    FAMILIES,
    Distribution,
    compare_all,
    compare_sides,
    fit_all,
    goodness_of_fit,
    quality,
    read_results,
    sample_stability,
    spearman_matrix,
    summary,
)

NETWORKS = ("mnist-net_256x4", "mnist_relu_6_100")

FIGURES = {
    "box": "--kind box --sort minimum --eps 0.012,0.04",
    "ecdf": "--kind ecdf --eps 0.012,0.04",
    "confidence": "--kind ecdf --confidence 0.95 --turnbull --only network=mnist_relu_3_50",
    "leads": "--kind leads " + " ".join(f"--only network={name}" for name in NETWORKS),
    "fit": "--kind fit --family lognormal,weibull,gamma --width column",
    "qq": "--kind qq",
    "correlations": "--kind correlations",
    "scatter": "--kind scatter",
    "classes": "--kind classes",
    "fairness": "--kind fairness --width text",
    "ks-networks": "--kind ks --by network",
    "gaps": "--kind gaps",
    "times": "--kind times",
}


def draw_figures(published: Path, witnesses: Path, folder: Path) -> None:
    for name, flags in FIGURES.items():
        draw([published], flags, folder / f"{name}.png")
    draw([witnesses], "--kind closest", folder / "closest.png")
    draw(
        [published, witnesses], "--kind claims --split train --width column", folder / "claims.png"
    )


def draw(places: list[Path], flags: str, path: Path) -> None:
    if main(["plot", *map(str, places), *flags.split(), "-o", str(path)]):
        sys.exit(f"{path} was not drawn")


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def head(*names: str) -> None:
    print()
    row(*names)
    row(*("---" for _ in names))


def print_tables(published: Distribution, witnesses: Distribution) -> None:
    parts = published.by_network()
    head("network", "count", "lowest", "mean", "median, proven–witnessed", "deviation")
    for name, part in parts.items():
        told = summary(part)
        row(
            name,
            told.correct,
            f"{told.lowest[0]:.3f}",
            f"{told.mean[0]:.6f}",
            f"{told.median[0]:.3f}–{told.median[1]:.3f}",
            f"{told.deviation:.3f}",
        )
    head("network", "mean gap", "largest gap", "mean s", "total h")
    for name, part in parts.items():
        found = quality(part)
        row(
            name,
            f"{found.mean_gap:.4f}",
            f"{found.largest_gap:.3f}",
            f"{found.mean_seconds:.0f}",
            f"{found.total_seconds / 3600:.1f}",
        )
    head("network", "t-test p", "Kolmogorov-Smirnov p")
    for name, part in parts.items():
        row(name, *(f"{test.p_value:.3f}" for test in compare_sides(part)))
    pairs, adjusted = compare_all(parts)
    head("pair", "p, image by image", "after Holm")
    for pair, p_value in zip(pairs, adjusted, strict=True):
        row(", ".join(pair.names), f"{pair.permutation.p_value:.4f}", f"{p_value:.4f}")
    head("network", "best by AIC", *(f"{FAMILIES[f].title}: KS p, MC p" for f in FAMILIES))
    for name, part in parts.items():
        best = fit_all(part)[0]
        tests = [goodness_of_fit(part, family) for family in FAMILIES]
        cells = [
            f"{'invalid' if t.ks_p_value is None else f'{t.ks_p_value:.3f}'}, {t.p_value:.3f}"
            for t in tests
        ]
        row(name, f"{FAMILIES[best.family].title} ({best.aic:.1f})", *cells)
    correlations = spearman_matrix(published)
    print(
        f"\nmean Spearman coefficient {correlations.mean:.2f}; adjusted p at most "
        f"{np.nanmax(correlations.adjusted):.4f}"
    )
    for size in (50, 100, 400):
        print(f"{size}: {sample_stability(parts['mnist_relu_3_50'], [size])[0]}")
    print_refutations(published, witnesses)


def print_refutations(published: Distribution, witnesses: Distribution) -> None:
    """Published proofs at or beyond the distance of a replayed witness, row by row."""
    seconds, refuted = [], []
    head("network", "rows", "refuted", "largest claim over witness", "fastest refuted row, s")
    for name, part in published.by_network().items():
        known = witnesses.only(network=f"{name}.onnx")
        closest = dict(zip(known.column("input").tolist(), known.upper.tolist(), strict=True))
        distance = np.array([closest[place] for place in part.column("input").tolist()])
        is_refuted = part.lower >= distance
        took = part.column("seconds")
        seconds.extend(took)
        refuted.extend(is_refuted)
        if is_refuted.any():
            ratio = float((part.lower / distance)[is_refuted].max())
            row(
                name,
                len(part),
                int(is_refuted.sum()),
                f"{ratio:.2f}",
                f"{took[is_refuted].min():.0f}",
            )
        else:
            row(name, len(part), 0, "", "")
    took, wrong = np.array(seconds), np.array(refuted)
    print(
        f"\n{wrong.sum()} of {len(wrong)} rows refuted; of {np.sum(took > 3100)} rows above "
        f"3100 s {wrong[took > 3100].sum()}; of the others {wrong[took <= 3100].sum()}"
    )


if __name__ == "__main__":
    data, store, images = map(Path, sys.argv[1:4])
    csv = data / "published_results.csv"
    images.mkdir(parents=True, exist_ok=True)
    print_tables(read_results(csv).distribution, Distribution.from_store(store))
    draw_figures(csv, store, images)
