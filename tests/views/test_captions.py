"""Captions beside figures: every kind has one, with its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from radii.cli import main
from radii.statistics import Distribution
from radii.views import FigureSource, caption, class_table, draw_classes, draw_ks_matrix
from radii.views.figures._style import PAGE_HEIGHT


def measured(networks: int, classes: int, split: str | list[str] = "test") -> Distribution:
    """Every network on the same six inputs of each class; one input is wrong."""
    rng = np.random.default_rng(0)
    inputs = 6 * classes
    lower = rng.uniform(0.01, 0.1, networks * inputs)
    upper = lower + 0.005
    upper[0] = lower[0] = 0
    return Distribution.from_arrays(
        lower,
        upper,
        network=np.repeat([f"net-{place}" for place in range(networks)], inputs),
        input=np.tile(np.arange(inputs), networks),
        label=np.tile(np.arange(inputs) % classes, networks),
        split=split if isinstance(split, str) else np.tile(split, networks * inputs // 2),
    )


def test_caption_tells_inputs_data_and_what_was_chosen() -> None:
    source = FigureSource(data=("digits:test[0:18]",), norms=("linf",))
    told = caption("ecdf", measured(2, 3), source=source, eps=(0.05,), confidence=0.9)
    assert "n = 18 each, digits:test[0:18]; L-infinity distance" in told
    assert "ε = 0.05" in told and "90 % confidence" in told
    assert "1 of 36 results" in told
    assert "0.05" not in caption("ks", measured(2, 3), eps=(0.05,)), "it has no use for an eps"
    assert "recall" in caption("classes", measured(2, 3), eps=(0.05,))


def test_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.csv"
    measured(2, 3).to_pandas().to_csv(results, index=False)
    target = tmp_path / "figures"
    assert main(["plot", str(results), "--kind", "classes,box", "-o", str(target)]) == 0
    assert "net-0, net-1; n = 18 each" in (target / "classes.txt").read_text()
    assert main(["plot", str(results), "-o", str(tmp_path / "one.svg")]) == 0
    assert "broken within the radius" in (tmp_path / "one.txt").read_text()


@pytest.mark.parametrize(
    ("split", "title"),
    [
        ("", "KS statistic of every two classes"),
        ("test", "KS statistic of every two classes, testing inputs"),
        ("train", "KS statistic of every two classes, training inputs"),
        (["train", "test"], "KS statistic; training below the diagonal, testing above"),
    ],
)
def test_ks_speaks_of_training_only_where_there_is_some(split: str | list[str], title: str) -> None:
    (legend,) = draw_ks_matrix(measured(1, 3, split)).legends
    assert legend.get_title().get_text() == title


@pytest.mark.parametrize("width", [3.4, 6.0])
@pytest.mark.parametrize(("networks", "classes"), [(1, 3), (4, 10), (6, 10), (12, 4)])
def test_ks_fits_a_page(networks: int, classes: int, width: float) -> None:
    if width < 4 and networks * classes > 40:
        pytest.skip("six matrices of ten classes do not fit into a column")
    assert draw_ks_matrix(measured(networks, classes), width=width).get_figheight() <= PAGE_HEIGHT


def test_classes_tell_their_number_of_inputs() -> None:
    table = class_table(measured(2, 3))
    assert table.counts.tolist() == [[5, 6], [6, 6], [6, 6]], "one input of class 0 is wrong"
    axes = draw_classes(measured(2, 3)).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["0 (n = 5–6)", "1 (n = 6)", "2 (n = 6)"]
    recall = draw_classes(measured(2, 3), eps=0.05).axes[0].get_yticklabels()
    assert recall[0].get_text() == "0 (n = 6)", "recall counts misclassified inputs"
