"""Every figure draws, in every format and width, for published, measured and degenerate results."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import radii
from conftest import SHARED_DATA, needs_shared_data
from radii.errors import InputError
from radii.statistics import CATALOGUE, Distribution, read
from radii.views import (
    COLUMN_WIDTH,
    FIGURE_KINDS,
    TEXT_WIDTH,
    FigureOptions,
    figure_kind,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN = FigureOptions(
    by=None,
    eps=(0.02, 0.05),
    sort="minimum",
    confidence=0.95,
    turnbull=True,
    families=None,
    width=COLUMN_WIDTH,
)
TEXT = FigureOptions(
    by=None, eps=(), sort="none", confidence=None, turnbull=False, families=None, width=TEXT_WIDTH
)


def check_nothing_is_cut_or_covered(figure: Figure) -> None:
    """Lay out; all is on the page, no legend lies on axes, no two names of an axis overlap."""
    figure.draw_without_rendering()
    page = figure.bbox.padded(3)
    titles = [t for t in map(vars(figure).get, ("_suptitle", "_supxlabel", "_supylabel")) if t]
    around = [axes.get_tightbbox() for axes in figure.axes]
    for box in [*around, *(t.get_window_extent() for t in [*titles, *figure.legends])]:
        assert page.x0 <= box.x0 and box.x1 <= page.x1, "cut off at a side"
        assert page.y0 <= box.y0 and box.y1 <= page.y1, "cut off at the top or the bottom"
    for outside in (*figure.legends, *titles):
        for box in around:
            assert not outside.get_window_extent().padded(-2).overlaps(box), "covered"
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
            labels = [t.label1 for t in shown if t.label1.get_text()]
            boxes = [t.get_window_extent() for t in labels if not t.get_rotation()]
            for one, two in pairwise(boxes):
                assert not one.padded(-1).overlaps(two.padded(-1)), "two names of an axis overlap"


def many(seed: int = 0) -> Distribution:
    """Two networks on the same 60 inputs of three classes, both splits, some misclassified."""
    rng = np.random.default_rng(seed)
    label = np.tile(np.repeat([0, 1, 2], 20), 2)
    lower = 0.002 * np.floor(rng.lognormal(2.7 + 0.2 * label, 0.4))
    upper = lower + 0.002 * rng.integers(1, 4, 120)
    upper[rng.random(120) < 0.1] = math.inf
    return Distribution.from_arrays(
        lower,
        upper,
        network=np.repeat(["a-network", "another_network"], 60),
        input=np.tile(np.arange(60), 2),
        label=label,
        correct=rng.random(120) > 0.1,
        split=np.tile(["train", "test"], 60),
        seconds=rng.lognormal(1, 2, 120),
        witness_class=(label + 1) % 3,
    )


def one_to_one() -> Distribution:
    """Two networks, four classes, each input towards each other class."""
    rows = [
        (network, 4 * label + place, label, target)
        for network in ("a", "b")
        for label in range(4)
        for place in range(4)
        for target in range(4)
        if target != label
    ]
    network, index, label, target = zip(*rows, strict=True)
    lower = np.random.default_rng(1).uniform(0.01, 0.2, len(rows))
    return Distribution.from_arrays(
        lower,
        lower + 0.01,
        network=list(network),
        input=list(index),
        label=list(label),
        target=list(target),
        property="one-to-one",
        seconds=1.0,
    )


def figure_of(kind: str, distribution: Distribution, options: FigureOptions) -> Figure:
    return figure_kind(kind).draw(distribution, options)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("options", [COLUMN, TEXT], ids=["column", "text"])
@pytest.mark.parametrize(
    "kind", [kind for kind in FIGURE_KINDS if kind not in ("targets", "claims")]
)
def test_measured_results(kind: str, options: FigureOptions) -> None:
    if kind in ("gains", "convergence") and not options.eps:
        pytest.skip("needs an eps")
    check_nothing_is_cut_or_covered(figure_of(kind, many(), options))


@pytest.mark.parametrize("options", [COLUMN, TEXT], ids=["column", "text"])
@pytest.mark.parametrize("kind", ["targets", "ecdf", "box", "scatter", "correlations"])
def test_one_to_one_results(kind: str, options: FigureOptions) -> None:
    if kind == "ecdf" and options.confidence:
        with pytest.raises(InputError, match="one bracket for each input"):
            figure_of(kind, one_to_one(), options)
        options = dataclasses.replace(options, confidence=None)
    check_nothing_is_cut_or_covered(figure_of(kind, one_to_one(), options))


def claimed_and_attacked() -> Distribution:
    """One network in two results, as `radii plot` names them."""
    both = many()
    names = {"a-network": "a-network (published)", "another_network": "a-network (attacked)"}
    return both.labelled(network=names)


SUITED = {"targets": one_to_one, "claims": claimed_and_attacked}


@pytest.mark.parametrize("options", [COLUMN, TEXT], ids=["column", "text"])
def test_claims_against_witnesses(options: FigureOptions) -> None:
    check_nothing_is_cut_or_covered(figure_of("claims", claimed_and_attacked(), options))


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "ecdf" else pytest.mark.slow) for kind in FIGURE_KINDS],
)
def test_files_in_every_format(kind: str, tmp_path: Path) -> None:
    figure = figure_of(kind, SUITED.get(kind, many)(), COLUMN)
    starts = {".pdf": b"%PDF", ".png": b"\x89PNG", ".svg": b"<?xml"}
    for suffix, start in starts.items():
        path = tmp_path / f"figure{suffix}"
        save_figure(figure, path)
        assert path.read_bytes().startswith(start)


@pytest.fixture(scope="module")
def published() -> Distribution:
    return read(SHARED_DATA / "jair" / "published_results.csv").brackets


@pytest.mark.slow
@needs_shared_data
@pytest.mark.parametrize(
    "kind", [kind for kind in FIGURE_KINDS if kind not in ("targets", "closest", "claims")]
)
def test_published_results(kind: str, published: Distribution) -> None:
    found = published
    if kind in ("leads", "gains", "convergence"):
        two = found.column("network") == "mnist_nn"
        found = found.select(two | (found.column("network") == "mnist-net_256x2"))
    check_nothing_is_cut_or_covered(figure_of(kind, found, COLUMN))


@pytest.fixture(scope="module")
def digits() -> Distribution:
    """Two networks of the demo on its first digits; few, and on a coarse grid."""
    from radii import demo

    data = radii.datasets.load("digits", split="test").first(3)
    return Distribution.union(
        radii.robustness_distribution(
            demo.load_network(name), data, grid="0.05:0.6:0.05", jobs=0
        ).labelled(network=name)
        for name in ("mlp-standard", "mlp-adversarial")
    )


@pytest.mark.parametrize(
    "kind", [kind for kind in FIGURE_KINDS if kind not in ("targets", "claims")]
)
def test_embedded_digits(kind: str, digits: Distribution) -> None:
    try:
        figure = figure_of(kind, digits, COLUMN)
    except InputError as error:
        assert kind in ("fit", "qq", "correlations", "scatter", "convergence"), (
            error
        )  # three inputs may be too few
        return
    check_nothing_is_cut_or_covered(figure)


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("options", [COLUMN, TEXT], ids=["column", "text"])
def test_every_statistic(name: str, options: FigureOptions) -> None:
    """Those that these results do not tell are refused in one sentence."""
    try:
        figure = figure_of(name, many(), options)
    except InputError as error:
        assert str(error) == f"'{name}' is not known of any of these results"
        assert name in ("critical", "queries", "missing", "timeouts", "memouts", "cpu_seconds")
        return
    check_nothing_is_cut_or_covered(figure)


def from_arrays(lower: list[float], upper: list[float], **columns: object) -> Distribution:
    return Distribution.from_arrays(lower, upper, **{"label": 0, "seconds": 0.0, **columns})


DEGENERATE = {
    "one instance": from_arrays([0.1], [0.2]),
    "one misclassified instance": from_arrays([0.0], [0.0], correct=False),
    "all misclassified": from_arrays([0.0] * 4, [0.0] * 4, correct=False, label=[0, 1, 2, 3]),
    "no witnesses": from_arrays([0.1, 0.2, 0.3], [math.inf] * 3, label=[0, 1, 2]),
    "nothing known": from_arrays([0.0] * 3, [math.inf] * 3),
    "single class": from_arrays([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]),
    "all the same": from_arrays([0.1] * 5, [0.1] * 5, label=[0, 0, 1, 1, 1]),
    "misclassified among them": from_arrays(
        [0.0, 0.1, 0.0, 0.2], [0.0, 0.2, 0.0, 0.4], correct=[False, True, False, True]
    ),
    "no labels, no times": Distribution.from_arrays([0.1, 0.2], [0.2, 0.3]),
    "two networks, no common input": from_arrays(
        [0.1, 0.2], [0.2, 0.3], network=["a", "b"], input=[0, 1]
    ),
    "long names": from_arrays(
        [0.1, 0.2, 0.1, 0.3],
        [0.2, 0.3, 0.2, 0.5],
        network=["a-network-with-quite-a-long-name_256x4", "mnist"] * 2,
        input=[0, 0, 1, 1],
        label=[3, 3, 5, 5],
    ),
}

ALWAYS = {"ecdf", "robust-accuracy", "satisfaction", "security"}


@pytest.mark.sampled(44)
@pytest.mark.parametrize("kind", FIGURE_KINDS)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if place % 2 else [])
        for place, case in enumerate(DEGENERATE)
    ],
)
def test_degenerate_results(case: str, kind: str) -> None:
    """Drawn without a warning, or refused in one sentence."""
    try:
        figure = figure_of(kind, DEGENERATE[case], COLUMN)
    except InputError as error:
        assert kind not in ALWAYS
        assert len(str(error)) > 10
        assert "\n" not in str(error)
        return
    check_nothing_is_cut_or_covered(figure)
