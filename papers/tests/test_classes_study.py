"""The study of the per-class paper on a tiny excerpt, its parts by hand, and its committed page."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import SHARED_DATA, dense_model, needs_shared_data, work_in_this_process
from radii.cli import main
from radii.datasets import Dataset
from radii.errors import DataError
from radii.statistics import Distribution
from radii_papers import _running
from radii_papers._evidence import CaseOutcome, ClaimVerdict
from radii_papers._steps import (
    Part,
    StudyFigure,
    StudyScale,
    StudySettings,
)
from radii_papers._tables import Beside
from radii_papers.classes import _brackets, _clusters, _numbers, _retraining, _targets
from radii_papers.classes._brackets import merged, tightened
from radii_papers.classes._clusters import ClusterRow
from radii_papers.classes._differences import (
    Differences,
    differences,
    groups_differ,
    lead_p_value,
    networks_differ,
    splits_alike,
    targets_differ,
)
from radii_papers.classes._fairness import unequal_case, unfairness
from radii_papers.classes._leads import class_leads, crossing_claim
from radii_papers.classes._modes import (
    count_modes,
    dip,
    dip_power,
    modes_of,
    silverman_p_value,
)
from radii_papers.classes._networks import _accuracy
from radii_papers.classes._networks import accuracy_claim as recall_claim
from radii_papers.classes._one_to_any import accuracy_case, accuracy_claim, one_split_differs
from radii_papers.classes._source import ClassSource, read_source

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "classes.md"

SIDE = 4
"""Images of the excerpt are so wide and high."""


@pytest.fixture(scope="module")
def excerpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two linear networks on ten classes, an image of which lights a pixel of its own."""
    folder = tmp_path_factory.mktemp("jair")
    (folder / "networks").mkdir()
    rng = np.random.default_rng(0)
    for name in ("mnist-net", "mnist-net_256x4"):
        weights = 0.05 * rng.standard_normal((10, SIDE * SIDE))
        weights[np.arange(10), np.arange(10)] += 1.0
        onnx.save(dense_model((weights, np.zeros(10))), folder / "networks" / f"{name}.onnx")
    arrays: dict[str, Any] = {}
    for split in ("train", "test"):
        labels = np.tile(np.arange(10), 2)
        images = rng.uniform(0.0, 0.2, (20, SIDE * SIDE))
        images[np.arange(20), labels] += rng.uniform(0.4, 0.7, 20)
        arrays[f"x_{split}"] = images.reshape(20, 1, SIDE, SIDE).astype(np.float32)
        arrays[f"y_{split}"] = labels
    np.savez(folder / "mnist.npz", **arrays)
    _write_public(folder / "public", rng)
    return folder


def _write_public(folder: Path, rng: np.random.Generator) -> None:
    """Rows of the paper's three networks; one has a label that its image has not."""
    folder.mkdir()
    header = "image_id,epsilon_value,total_time,smallest_sat_value,network_path,split,training"
    with (folder / "results_JAIR_fomlas.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*header.split(","), "original_label"])
        for name in _numbers.NETWORKS:
            for split in ("train", "test"):
                for image in range(20):
                    low = round(0.001 + 0.002 * int(rng.integers(1, 20)), 3)
                    label = 5 if (name, split, image) == ("mnist-net", "train", 0) else image % 10
                    row = (image, low, 9.5, round(low + 0.002, 3), f"{name}.onnx", split, "any")
                    writer.writerow([*row, label])


def make(excerpt: Path, out: Path, patch: pytest.MonkeyPatch) -> None:
    """The whole study of the excerpt, with few images and short trainings."""
    work_in_this_process(patch)
    sizes = _brackets.SampleSizes(2, 1, 0.3, 1, 1, 0.3)
    patch.setitem(_brackets.SIZES, StudyScale.SMALL, sizes)
    patch.setitem(_clusters.DRAWS, StudyScale.SMALL, 19)
    short = _retraining.TrainingSizes(20, 20, 1, 20, 1, 0.3)
    patch.setitem(_retraining.SIZES, StudyScale.SMALL, short)
    command = ["study", "classes", "--data", str(excerpt), "--out", str(out)]
    assert main([*command, "--page", str(out / "page.md")]) == 0


def by_closed_form(
    source: ClassSource, images: Dataset, _: Path, __: StudySettings, options: dict[str, Any]
) -> Distribution:
    """What linear networks have for radii, but for the domain: no attack, no proof."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("network", "input", "label", "target", "upper", "property")
    }
    asked = options.get("property", "one-to-any")
    for name, path in source.networks.items():
        for index, label, image in zip(images.indices, images.labels, images.images, strict=True):
            radii = linear_radii(path, image, int(label))
            targets = {-1: min(radii.values())} if asked == "one-to-any" else radii
            for target, radius in targets.items():
                spec = asked if target < 0 else f"{asked}:{target}"
                for column, value in zip(
                    rows, (name, index, label, target, radius, spec), strict=True
                ):
                    rows[column].append(value)
    upper = np.maximum(rows.pop("upper"), 1e-3)
    lower = 0.0 * upper if "search" in options else 0.9 * upper
    return Distribution.from_arrays(lower, upper, correct=True, critical=0, **rows)


def linear_radii(path: Path, image: np.ndarray, label: int) -> dict[int, float]:
    """By target: the margin by the sum of absolute differences of weights."""
    weights, bias = (onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer)
    weights = weights if weights.shape[0] == 10 else weights.T
    margins = outputs_of(weights, bias, image, label)
    spans = np.abs(weights - weights[label]).sum(axis=1)
    return {k: float(margins[k] / spans[k]) for k in range(10) if k != label}


def outputs_of(weights: np.ndarray, bias: np.ndarray, image: np.ndarray, label: int) -> np.ndarray:
    outputs = weights @ image.ravel() + bias
    return np.asarray(outputs[label] - outputs)


@pytest.fixture(scope="module")
def made(excerpt: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study with closed forms in place of attacks and proofs, and without drawing."""
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_brackets, "_measured", by_closed_form)
        patch.setattr("radii_papers._running.save_figure", lambda _, path: path.touch())
        written = _running._written

        def without_drawing(part: Part, folder: Path) -> Part:
            if isinstance(part, StudyFigure):
                part = dataclasses.replace(part, draw=lambda: None)  # type: ignore[arg-type,return-value]
            return written(part, folder)

        patch.setattr(_running, "_written", without_drawing)
        make(excerpt, out, patch)
    return out


@pytest.fixture(scope="module")
def measured(excerpt: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study as it is, attacks, proofs and figures included."""
    out = tmp_path_factory.mktemp("measured")
    with pytest.MonkeyPatch.context() as patch:
        make(excerpt, out, patch)
    return out


def layout(page: Path) -> list[str]:
    """Headings, titles and columns of tables, and figures, in their order."""
    return layout_of(page.read_text().splitlines())


def layout_of(lines: list[str]) -> list[str]:
    found = []
    for place, line in enumerate(lines):
        if line.startswith("| ---"):
            found.append(lines[place - 1])
        elif line.startswith(("#", "**", "![")):
            found.append(re.sub(r"\([^)]*/([\w-]+\.png)\)", r"(\1)", line))
    return found


def claims(page: Path) -> list[tuple[str, ...]]:
    """What the paper says and where, of each claim."""
    text = page.read_text().partition("## What holds")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [tuple(row[1:3]) for row in rows[2:]]


def steps_of(page: Path) -> dict[str, list[str]]:
    """By the heading of each step, its layout; nothing for one that the page says is not made."""
    found: dict[str, list[str]] = {}
    for text in page.read_text().split("\n### ")[1:]:
        heading, _, rest = text.partition("\n")
        if rest.strip().startswith("Not made yet."):
            continue
        lines = rest.partition("\n## ")[0].splitlines()
        found[heading] = layout_of(lines)
    return found


def test_the_committed_page_is_what_the_command_writes(made: Path) -> None:
    """Headings, tables, figures and claims of the page are the command's: none is added by hand."""
    whole, page = steps_of(made / "page.md"), steps_of(PAGE)
    assert page and page == {heading: whole[heading] for heading in page}
    headings = [
        [line for line in layout(path) if line.startswith("#")] for path in (made / "page.md", PAGE)
    ]
    assert headings[0] == headings[1]
    assert set(claims(PAGE)) <= set(claims(made / "page.md"))
    if len(page) == len(whole):
        assert claims(PAGE) == claims(made / "page.md")


def test_the_first_lines_say_when_where_how_long_and_at_which_scale() -> None:
    first = PAGE.read_text().splitlines()[2]
    assert re.match(r"\d{4}-\d\d-\d\d, \d+ cores of .+, .* of the CPU\), scale `machine`", first)


def test_a_study_goes_on_where_it_was(made: Path, excerpt: Path) -> None:
    """Nothing is measured again: every step is kept."""
    kept = {path: path.stat().st_mtime_ns for path in made.glob("steps/*.json")}
    assert len(kept) == 18
    assert main(["study", "classes", "--data", str(excerpt), "--out", str(made)]) == 0
    assert kept == {path: path.stat().st_mtime_ns for path in made.glob("steps/*.json")}


def test_a_public_row_with_the_label_of_another_image_is_left_out(made: Path) -> None:
    with (made / "tables" / "published.csv").open() as stream:
        rows = {row["network"]: int(row["rows"]) for row in csv.DictReader(stream)}
    assert rows == {"mnist-net": 39, "mnist-net_256x4": 40, "mnist_relu_4_1024": 40}


@pytest.mark.slow
def test_radii_of_the_excerpt_are_those_of_its_linear_networks(
    measured: Path, excerpt: Path
) -> None:
    """Balls are clipped, so that radii are at least those of the closed form."""
    stores = [f"small-test-proven-{name}" for name in _numbers.NETWORKS[:2]]
    found = Distribution.union(
        Distribution.from_store(measured / "figure-1" / name) for name in stores
    )
    images = np.load(excerpt / "mnist.npz")["x_test"]
    for row in found:
        path = excerpt / "networks" / f"{row.network.removesuffix('.onnx')}.onnx"
        radius = min(linear_radii(path, images[row.input], row.label).values())
        assert row.bracket.upper >= radius - 1e-6
        assert row.bracket.lower >= radius - 0.003 or row.bracket.upper > radius + 0.003
    drawn = len(list((measured / "figures").glob("*.pdf")))
    assert drawn == sum(line.startswith("![") for line in layout(measured / "page.md"))


@pytest.mark.slow
def test_the_measured_study_has_the_same_layout(measured: Path, made: Path) -> None:
    assert layout(measured / "page.md") == layout(made / "page.md")
    assert claims(measured / "page.md") == claims(made / "page.md")


def test_what_is_implied_tightens_brackets() -> None:
    """one-to-any <= one-to-one <= become: proofs rise, witnesses fall, each with its class."""
    columns = {"network": "n", "input": 7, "label": 9, "split": "test"}
    any_class = Distribution.from_arrays([0.1], [0.3], **columns)
    targets = Distribution.from_arrays(
        [0.05, 0.15, 0.0], [0.5, 0.6, 0.4],
        property=["one-to-one:3", "one-to-one:4", "become:3"], target=[3, 4, 3],
        witness_class=[8, 8, 3], **columns,
    )  # fmt: skip
    found = tightened(targets, any_class)
    assert found.lower.tolist() == [0.1, 0.15, 0.1]
    assert found.upper.tolist() == [0.4, 0.6, 0.4]
    assert found.column("witness_class").tolist() == [3, 8, 3]


def test_a_proof_of_one_definition_against_a_witness_of_the_other_is_no_bracket() -> None:
    """Nothing within 0.2 reaches the target, and something at 0.1 becomes it: one is wrong."""
    columns = {"network": "n", "input": 7, "label": 9, "split": "test", "target": 3}
    any_class = Distribution.from_arrays([0.0], [0.3], network="n", input=7, label=9, split="test")
    targets = Distribution.from_arrays(
        [0.2, 0.0], [0.5, 0.1], property=["one-to-one:3", "become:3"], **columns
    )
    with pytest.raises(DataError, match="lower <= upper"):
        tightened(targets, any_class)


def test_a_target_without_a_counterexample_keeps_its_proof() -> None:
    """Attacks may find no image of the domain that becomes the target: [0.1, inf), and a box."""
    columns = {"network": "n", "input": 7, "label": 9, "split": "test", "correct": True}
    any_class = Distribution.from_arrays([0.1], [0.3], **columns)
    targets = Distribution.from_arrays(
        0.0, [0.4, np.inf], property=["one-to-one:3", "become:3"], target=3,
        witness_class=[3, -1], **columns,
    )  # fmt: skip
    found = tightened(targets, any_class)
    assert found.lower.tolist() == [0.1, 0.1] and found.upper.tolist() == [0.4, np.inf]
    _targets._boxes(_brackets.definition_of(found, "become"))


def test_proofs_of_some_images_join_attacks_on_all() -> None:
    columns = {"network": "n", "label": 1}
    quick = Distribution.from_arrays(
        [0, 0, 0], [0.5, 0.4, 0.3], input=[1, 2, 3], witness_class=[5, 6, 7], **columns
    )
    slow = Distribution.from_arrays(
        [0.2, 0.1], [0.45, 0.6], input=[1, 2], witness_class=[8, 8], **columns
    )
    found = merged(slow, quick)
    assert found.lower.tolist() == [0.2, 0.1, 0.0]
    assert found.upper.tolist() == [0.45, 0.4, 0.3]
    assert found.column("witness_class").tolist() == [8, 6, 7]
    assert _brackets.given_to_verifier(found).column("input").tolist() == [1, 2]


def test_modes_are_counted() -> None:
    rng = np.random.default_rng(0)
    sizes = ((0.0, 40), (0.5, 25), (1.3, 15))
    three = np.concatenate([rng.normal(middle, 0.05, size) for middle, size in sizes])
    assert count_modes(three, 0.06) == 3 and count_modes(three, 2.0) == 1
    assert modes_of(three, 99)[0] == 3
    two = np.concatenate([rng.normal(middle, 0.05, 40) for middle in (0.0, 0.4)])
    assert modes_of(two, 99)[0] == 2
    assert modes_of(rng.normal(0, 1, 90), 99)[0] == 1
    assert modes_of(np.full(10, 0.3), 19)[0] == 1
    assert modes_of(np.array([]), 19) == (1, 1.0)


def test_equal_clusters_are_told_from_one_with_enough_images() -> None:
    """Silverman's test alone would miss them: smoothed to one mode, they are flat on top."""
    rng = np.random.default_rng(0)
    three = rng.normal(0, 1, 78) + 6 * np.repeat([0, 1, 2], 26)
    assert silverman_p_value(three, 1, 99, rng) > 0.05 and modes_of(three, 99)[0] == 3
    assert dip_power(78) > 0.95 and dip_power(16) < 0.5


def by_linear_programs(values: np.ndarray) -> float:
    """The dip: for each mode, the closest function that is convex before it and concave after."""
    from scipy.optimize import linprog

    at, n = np.sort(values), len(values)
    return min(
        float(linprog(np.eye(n + 2)[-1], *_constraints(at, mode), bounds=[(0, 1)] * (n + 2)).fun)
        for mode in range(n)
    )


def _constraints(at: np.ndarray, mode: int) -> tuple[np.ndarray, list[float]]:
    """On a function's values at `at`, its left limit at the mode, and its distance, in this order.

    It may jump at its mode alone.
    """
    n, unit = len(at), np.eye(len(at) + 2)
    limit = [unit[n if place == mode else place] for place in range(n)]
    rows, ends = [limit[mode] - unit[mode]], [0.0]
    for place in range(n):
        rows += [-unit[place] - unit[-1], limit[place] - unit[-1]]
        ends += [-(place + 1) / n, place / n]
    for place in range(n - 1):
        rows.append(unit[place] - limit[place + 1])
        ends.append(0.0)
    for place in range(1, n - 1):
        before = (limit[place] - unit[place - 1]) / (at[place] - at[place - 1])
        after = (limit[place + 1] - unit[place]) / (at[place + 1] - at[place])
        if place != mode:
            rows.append(before - after if place < mode else after - before)
            ends.append(0.0)
    return np.array(rows), ends


def test_the_dip_is_that_of_linear_programs() -> None:
    rng = np.random.default_rng(0)
    for spread in (0.0, 3.0) * 6:
        values = rng.normal(0, 1, int(rng.integers(3, 12)))
        values += spread * rng.integers(0, 3, len(values))
        assert dip(values) == pytest.approx(by_linear_programs(values), abs=1e-9)
    assert dip(np.array([0.0, 0.0, 1.0, 1.0])) == pytest.approx(0.25)  # a coin: as far as can be


def _row(modes: tuple[int, int], images: int = 80, network: str = "mnist-net") -> ClusterRow:
    return ClusterRow(network, _numbers.CLUSTERED_TARGET, images, modes, (0.5, 0.5), 0.4, 0.5)


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([_row((3, 3))], ClaimVerdict.CONFIRMED),
        ([_row((3, 1))], ClaimVerdict.OPEN),
        ([_row((1, 1)), _row((1, 1), network="mnist_relu_4_1024")], ClaimVerdict.OPEN),
        ([_row((3, 3), images=5)], ClaimVerdict.OPEN),
    ],
)
def test_one_mode_is_no_proof_that_there_are_no_clusters(
    rows: list[ClusterRow], verdict: ClaimVerdict
) -> None:
    assert _clusters._there_are_clusters(rows).verdict is verdict


def test_best_and_worst_class_are_chosen_on_other_images_than_they_are_compared_on() -> None:
    """Ten classes that are alike: the largest of 45 differences is large, and shows nothing."""
    rng = np.random.default_rng(0)
    count = 60
    columns = {
        "label": np.tile(np.repeat(np.arange(10), count), 2),
        "split": np.repeat(["train", "test"], 10 * count),
        "input": np.arange(20 * count),
    }
    alike = Distribution.from_arrays(0.0, rng.uniform(0.0, 0.1, 20 * count), **columns)
    case = unequal_case("mnist-net", alike, 1)
    assert case.n == count and case.outcome is not CaseOutcome.HOLDS
    weak = np.where(columns["label"] == 3, 0.02, 0.08) + rng.uniform(0.0, 0.01, 20 * count)
    case = unequal_case("mnist-net", alike.labelled(upper=weak), 1)
    assert case.outcome is CaseOutcome.HOLDS and "less 3 at" in case.shows
    one = alike.select(alike.column("split") == "test")
    assert unequal_case("mnist-net", one, 1).outcome is CaseOutcome.UNCLEAR


def test_unfairness_by_hand() -> None:
    """Class 0 breaks at 0.1, class 1 at 0.3: between them robust recall is 0 and 1."""
    found = Distribution.from_arrays(0.0, [0.1, 0.1, 0.3, 0.3], label=[0, 0, 1, 1])
    measure = unfairness(found)
    assert (measure.spread, measure.worst, measure.best) == (1.0, 0, 1)
    assert measure.ratio == pytest.approx(1 / 3)
    assert measure.entropy == pytest.approx(0.5 * 0.1**2 / 0.2**2)
    alike = unfairness(found.labelled(upper=0.2))
    assert (alike.spread, alike.ratio, alike.entropy) == (0.0, 1.0, 0.0)


def test_differences_are_counted_by_part_of_the_matrix() -> None:
    """Classes 0 and 1 differ among training images alone; class 1 between its splits."""
    low, high = np.linspace(0.01, 0.02, 20), np.linspace(0.11, 0.12, 20)
    found = Distribution.from_arrays(
        0.0, np.concatenate([low, high, low, low]), label=np.repeat([0, 1, 0, 1], 20),
        split=np.repeat(["train", "train", "test", "test"], 20), input=np.arange(80),
    )  # fmt: skip
    counted = differences(found, "class")
    assert counted is not None
    assert [counted.differ(part) for part in ("train", "test", "splits")] == [1, 0, 1]
    assert [counted.tested(part) for part in ("train", "test", "splits")] == [1, 1, 2]
    assert counted.keys_that_differ() == (1,)
    assert differences(found.only(label=0), "class") is None


def test_no_networks_no_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "classes", "--out", str(tmp_path / "out"), "--data"]
    assert main([*command, str(tmp_path / "nowhere")]) == 2
    assert "no such folder of the paper's networks" in capsys.readouterr().err
    assert main([*command, str(tmp_path)]) == 2
    assert "has none of the paper's networks" in capsys.readouterr().err


@pytest.mark.slow
@needs_shared_data
def test_the_papers_recalls_are_reached() -> None:
    """Table 1: every recall of both networks at hand, on all of MNIST, to the last digit."""
    from radii.networks import load_network
    from radii_papers.classes._networks import _rows

    source = read_source(SHARED_DATA / "jair")
    if source.without_labels:
        pytest.skip(source.without_labels)
    for name, path in source.networks.items():
        for row in _rows(name, load_network(path, domain=(0, 1)), source)[:-1]:
            assert all(isinstance(cell, Beside) and cell.agrees for cell in row[2:4]), row


def test_no_labels_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADII_DATA", str(tmp_path))
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "mnist-net.onnx").write_bytes(b"")
    source = read_source(tmp_path)
    assert source.images("train") is None and "radii data get mnist" in source.without_labels
    with pytest.raises(DataError, match="no labelled images"):
        _brackets._joined([])


def paired(shift: float, images: int) -> Distribution:
    """Two networks on the same images; the second is better by so much on each."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 0.5, images)
    noise = np.where(np.arange(images) % 2, 0.01, -0.01)
    upper = np.concatenate([base, base + shift + noise])
    names = np.repeat(["a", "b"], images)
    columns = {"label": 1, "split": "test", "input": np.tile(np.arange(images), 2)}
    return Distribution.from_arrays(0.0, upper, network=names, **columns)


def test_networks_are_compared_image_by_image() -> None:
    """A difference far smaller than radii vary is seen in pairs, if it is more than attacks may be
    off; few images decide nothing."""
    (clear,) = networks_differ({"test": paired(0.1, 100)})
    assert clear.name == "test, a and b" and clear.n == 100
    assert clear.counted is CaseOutcome.HOLDS
    (none,) = networks_differ({"test": paired(0.0, 100)})
    assert none.counted is CaseOutcome.UNCLEAR
    (small,) = networks_differ({"test": paired(0.005, 100)})
    assert small.counted is CaseOutcome.UNCLEAR
    (few,) = networks_differ({"test": paired(0.1, 20)})
    assert few.outcome is CaseOutcome.HOLDS and few.counted is CaseOutcome.UNCLEAR


def split_matrices(shift: float, groups: int) -> Differences:
    """So many classes, each with 40 images of either split, apart by so much."""
    base = np.linspace(0.1, 0.2, 40)
    found = Distribution.from_arrays(
        0.0, np.tile(np.concatenate([base, base + shift]), groups),
        label=np.repeat(np.arange(groups), 80), input=np.arange(80 * groups),
        split=np.tile(np.repeat(["train", "test"], 40), groups),
    )  # fmt: skip
    matrix = differences(found, "class")
    assert matrix is not None
    return matrix


def test_that_no_difference_is_found_holds_by_each_test_alone() -> None:
    """Three differences that each test finds, and Holm's correction does not, support nothing."""

    def outcomes(shift: float) -> set[CaseOutcome]:
        cases = splits_alike({"a": split_matrices(shift, 3)}, 40)
        return {case.counted for case in cases}

    some = split_matrices(0.031, 3).p_values("splits")
    assert all(0.05 / 3 < p < 0.05 for p in some)
    assert outcomes(0.0) == {CaseOutcome.HOLDS}
    assert outcomes(0.031) == {CaseOutcome.UNCLEAR}
    assert outcomes(0.08) == {CaseOutcome.FAILS}


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (0.001, 0.6, "confirmed"),
        (0.7, 0.6, "open"),
        (0.001, 0.001, "in part"),
        (0.03, 0.03, "open"),  # 0.06 after Holm: neither a difference nor none
    ],
)
def test_splits_of_one_network_differ(first: float, second: float, verdict: str) -> None:
    p_values = {"mnist-net": first, "mnist-net_256x4": second, "another": 0.0}
    assert one_split_differs(p_values, 90).verdict.value == verdict


def test_a_printed_accuracy_is_contradicted_only_from_afar() -> None:
    """Its sample is of other images, and nobody knows of which split."""

    def outcome(low: float, high: float) -> CaseOutcome:
        return accuracy_case("a", 99, (low, high), 40.4).outcome

    assert outcome(39.0, 43.0) is CaseOutcome.HOLDS
    assert outcome(20.0, 60.0) is outcome(41.0, 44.0) is outcome(36.0, 40.0) is CaseOutcome.UNCLEAR
    assert outcome(46.0, 50.0) is outcome(20.0, 35.0) is CaseOutcome.FAILS


def test_accuracies_are_of_both_splits_and_of_the_smaller_sample() -> None:
    """All training images stand at 0.012, and no testing image: the limits have room for either."""
    split = np.repeat(["train", "test"], 40)
    upper = np.where(split == "train", 0.5, 0.001)
    found = Distribution.from_arrays(
        0.0, upper, network="mnist-net", split=split, input=np.arange(80)
    )
    claim = accuracy_claim(found, found.select(np.arange(0, 80, 8)))
    assert claim.claim == "Robust accuracy of mnist-net is 94.8 % at 0.012 and 40.4 % at 0.04"
    assert [case.name for case in claim.cases] == ["mnist-net at 0.012", "mnist-net at 0.04"]
    assert [case.n for case in claim.cases] == [5, 5]
    assert {case.outcome for case in claim.cases} == {CaseOutcome.UNCLEAR}


def test_a_file_contradicts_an_accuracy_and_its_absence_does_not() -> None:
    """No accuracy exceeds all recalls: 0.996 cannot be, and 0.990 and 0.941 can."""
    printed = {name: _numbers.TABLE_1["all", name][1] for name in _numbers.NETWORKS}
    without = {name: Beside(None, paper) for name, paper in printed.items()}
    claim = recall_claim(without)
    fails, unclear = CaseOutcome.FAILS, CaseOutcome.UNCLEAR
    assert [case.outcome for case in claim.cases] == [fails, unclear, unclear]
    assert claim.verdict is ClaimVerdict.REFUTED
    other = recall_claim({"mnist-net_256x4": Beside(0.976, printed["mnist-net_256x4"])})
    assert other.verdict is ClaimVerdict.REFUTED


def test_images_that_are_not_all_of_mnist_say_nothing_of_its_accuracy(excerpt: Path) -> None:
    rows: list[tuple[Any, ...]] = [("mnist-net", "all", None, Beside(0.5, "0.996"))]
    assert _accuracy(rows, "mnist-net", ClassSource(excerpt)).ours is None


def test_a_lead_of_a_tenth_may_be_the_attacks() -> None:
    base = np.linspace(0.1, 0.5, 60)
    assert lead_p_value(1.1 * base, base) == lead_p_value(base, 1.1 * base) == 1.0
    assert lead_p_value(1.2 * base, base) == lead_p_value(base, 1.2 * base) < 1e-9


def test_targets_of_the_same_images_are_compared_within_images() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 0.5, 40)
    upper = np.concatenate([base, base + 0.01, base + 0.02])
    columns = {"input": np.tile(np.arange(40), 3), "target": np.repeat([1, 2, 3], 40)}
    found = Distribution.from_arrays(0.0, upper, split="test", label=9, **columns)
    (case,) = targets_differ({"a": found})
    assert case.n == 40 and case.counted is CaseOutcome.HOLDS
    (alike,) = targets_differ({"a": found.labelled(upper=np.tile(base, 3))})
    assert alike.counted is CaseOutcome.UNCLEAR


def test_groups_of_different_images() -> None:
    """Holm over both parts: 0.03 twice is not enough."""
    rng = np.random.default_rng(1)
    label = np.repeat([0, 1], 40)
    far = Distribution.from_arrays(0.0, rng.uniform(size=80) + label, label=label, split="test")
    near = Distribution.from_arrays(0.0, rng.uniform(size=80), label=label, split="test")
    cases = groups_differ({"far": far, "near": near}, "class", "upper")
    assert [case.counted for case in cases] == [CaseOutcome.HOLDS, CaseOutcome.UNCLEAR]
    assert [case.n for case in cases] == [40, 40]


def test_a_network_leads_although_most_images_tie() -> None:
    """30 of 50 images have the same radius on the grid; the second network leads on all others."""
    base = np.full(50, 0.1)
    one = Distribution.from_arrays(0.0, base, network="a", label=0, input=np.arange(50))
    better = base + np.where(np.arange(50) < 20, 0.02, 0.0)
    two = Distribution.from_arrays(0.0, better, network="b", label=0, input=np.arange(50))
    (lead,) = class_leads(one, two)
    assert lead.difference == 0.0 and lead.leader == "b"


def test_leads_are_found_image_by_image() -> None:
    """In class 0 network a is better on every image, in class 1 b; in class 2 neither."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 0.2, 120)
    change = np.repeat([0.02, -0.02, 0.0], 40) + np.where(np.arange(120) % 2, 0.005, -0.005)
    columns = {"label": np.repeat([0, 1, 2], 40), "input": np.arange(120)}
    one = Distribution.from_arrays(0.0, base + change, network="a", **columns)
    two = Distribution.from_arrays(0.0, base, network="b", **columns)
    leads = class_leads(one, two)
    assert [lead.leader for lead in leads] == ["a", "b", "neither"]
    assert [lead.images for lead in leads] == [40, 40, 40]
    assert crossing_claim({("a", "b"): leads}, "hand").verdict is ClaimVerdict.CONFIRMED
    assert crossing_claim({("a", "b"): leads[:1]}, "hand").verdict is ClaimVerdict.OPEN
    weak = [dataclasses.replace(lead, p_value=0.01) for lead in leads[:2]]
    assert crossing_claim({("a", "b"): weak}, "hand").verdict is ClaimVerdict.CONFIRMED
    several = dict.fromkeys((("a", "b"), ("a", "c"), ("b", "c")), weak)
    assert crossing_claim(several, "hand").verdict is ClaimVerdict.OPEN  # one of six at 0.01
    few = [dataclasses.replace(lead, images=20) for lead in leads]
    assert crossing_claim({("a", "b"): few}, "hand").verdict is ClaimVerdict.OPEN
