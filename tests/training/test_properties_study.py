"""The study of the properties paper on tiny images, what its balls are, and its committed page."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from conftest import work_in_this_process
from radii.cli import main
from radii.datasets import from_arrays
from radii.distributions import Distribution
from radii.errors import DataError
from radii.experiments import Settings, plan
from radii.networks import from_torch
from radii.store import Store
from radii.training import parse_regime
from radii.training.papers import _running
from radii.training.papers._steps import ClaimVerdict, StudyClaim, StudyScale, StudySettings
from radii.training.papers.properties import _accuracy, _augmentation, _networks
from radii.training.papers.properties._data import (
    FASHION,
    GTSRB,
    SIGNS,
    BallRegion,
    read_images,
)
from radii.training.papers.properties._measures import CURVE_EPS, Measures, Satisfaction, Spread
from radii.training.papers.properties._networks import (
    ALL_TRAININGS,
    BASELINE,
    LR,
    SIZES,
    NetworkKind,
    StudySizes,
)
from radii.training.papers.properties._study import PROPERTIES, withheld
from radii.training.papers.properties._verdicts import CaseFinding, judged

TINY = StudySizes(
    seeds=2,
    fashion_images={30: 30, 100: 30, 0: 10},
    epochs={FASHION: 1, GTSRB: 1},
    batch={FASHION: 16, GTSRB: 16},
    rate=1e-2,
    steps=1,
    proven=2,
    proof_seconds=0.05,
    attacked=2,
    attack_eps=(0.1,),
    sampled=2,
    samples=2,
    sampled_eps=(0.1,),
    deep="resnet:1/2-1/2-1-1-1-1-1-1-1",
    deep_epochs=1,
    deep_batch=16,
    deep_rate=1e-3,
    deep_attacked=2,
)


class Silent:
    def step(self, heading: str, done: int, total: int) -> None: ...
    def inside(self) -> None: ...


def write_images(path: Path, labels: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """A bright row of each image tells its class."""
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for split, count in (("train", 30), ("test", 10)):
        classes = np.arange(count) % len(labels)
        images = rng.integers(0, 60, (count, *shape)).astype(np.uint8)
        images[np.arange(count), classes] = 230
        arrays |= {f"x_{split}": images, f"y_{split}": np.array(labels)[classes]}
    np.savez(path, allow_pickle=False, **arrays)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("images")
    write_images(made / "fashion.npz", tuple(range(10)), (10, 10))
    write_images(made / "gtsrb.npz", SIGNS, (10, 10, 3))
    return made


def study(folder: Path, out: Path, patch: pytest.MonkeyPatch) -> Path:
    """The command on the tiny images; figures are drawn, and saved as empty files."""
    work_in_this_process(patch)
    patch.setitem(SIZES, StudyScale.SMALL, TINY)
    patch.setattr(_running, "save_figure", lambda _figure, path: path.write_bytes(b""))
    command = ["study", "properties", "--data", str(folder), "--out", str(out), "--jobs", "1"]
    assert main([*command, "--page", str(out / "page.md")]) == 0
    return out


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study: every network trained, proven, attacked and sampled."""
    with pytest.MonkeyPatch.context() as patch:
        return study(folder, tmp_path_factory.mktemp("study"), patch)


@pytest.fixture(scope="module")
def laid_out(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study with measurements that were drawn at random: its layout alone is looked at."""
    rng = np.random.default_rng(0)

    def satisfaction(_: Measures, *about: Any) -> dict[str, list[Satisfaction]]:
        return {how.name: [Satisfaction(0.2, 0.4), Satisfaction(0.5, 0.5)] for how in about[-1]}

    def security(_: Measures, *about: Any) -> dict[str, Spread]:
        return {how.name: Spread(rng.random((2, len(CURVE_EPS)))) for how in about[-1]}

    def accuracy(_: Measures, *about: Any) -> dict[str, tuple[Spread, Spread]]:
        return {how.name: (Spread(rng.random((2, 1))),) * 2 for how in about[-1]}

    with pytest.MonkeyPatch.context() as patch:
        for measure in (satisfaction, security, accuracy):
            patch.setattr(Measures, measure.__name__, measure)
        for module in (_accuracy, _augmentation):
            patch.setattr(module, "card_of", lambda *_: SimpleNamespace(accuracy=rng.random()))
        return study(folder, tmp_path_factory.mktemp("layout"), patch)


def test_every_step_is_on_the_page_and_small_networks_settle_no_claim(laid_out: Path) -> None:
    lines = (laid_out / "page.md").read_text().splitlines()
    assert "Not made yet." not in lines
    for step in PROPERTIES.steps:
        assert f"### {step.heading}" in lines
    start = lines.index("## What holds")
    claims = lines[start + 4 : lines.index("", start + 4)]
    assert len(claims) == 18
    assert all(line.split(" | ")[2] == "open" for line in claims)


def test_verdicts_are_given_at_other_scales() -> None:
    claim = judged("c", "p", {"a": CaseFinding(True, "1")})
    assert withheld([claim], StudyScale.MACHINE) == [claim]
    (small,) = withheld([claim], StudyScale.SMALL)
    assert isinstance(small, StudyClaim) and small.verdict is ClaimVerdict.OPEN


@pytest.mark.slow
def test_networks_and_measurements_are_kept(made: Path) -> None:
    """30 units on both kinds of balls, 100 on clipped ones, and the deep network with one seed."""
    (networks,) = (made / "networks").iterdir()
    names = [path.name for path in networks.iterdir()]
    assert len(names) == 2 * 2 * (4 + 3) + 2 * 2 * len(ALL_TRAININGS) + len(ALL_TRAININGS)
    assert all((networks / name / "card.json").exists() for name in names)
    for kept in ("proofs", "attacks", "samples"):
        assert any((made / kept).iterdir())


@pytest.mark.slow
def test_whole_balls_prove_no_more_than_clipped_ones(made: Path) -> None:
    """Of the same networks: what holds on a whole ball holds on the part that is valid."""
    tables = {}
    for name in ("clipped", "crossed"):
        with (made / "tables" / f"table-1-{name}.csv").open() as stream:
            rows = [row for row in csv.DictReader(stream) if row["of seeds"] == "mean"]
        tables[name] = [
            float(row[f"{title}: {how}"])
            for row in rows
            for title in ("Fashion-MNIST", "GTSRB")
            for how in ("baseline", "SCR", "SR", "LR")
        ]
    # Two images a network: one that a time limit left undecided counts 50 points.
    assert all(c >= w - 50 for c, w in zip(tables["clipped"], tables["crossed"], strict=True))
    assert len(tables["clipped"]) == 24


def test_measures_of_two_networks(folder: Path, tmp_path: Path) -> None:
    """Proofs, attacks and samples agree with each other, and are the same when read again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SIZES, StudyScale.SMALL, TINY)
        settings = StudySettings(StudyScale.SMALL, folder, tmp_path / "step", 1, Silent())
        measures = Measures(read_images(folder), settings)
        kind, trainings = NetworkKind(FASHION, 4), (BASELINE, LR)
        found = []
        for _ in range(2):
            proven = measures.satisfaction(kind, "SR", BallRegion.WHOLE, trainings)
            secure = measures.security(kind, "SR", BallRegion.WHOLE, trainings)
            sampled = measures.accuracy(kind, "SR", BallRegion.WHOLE, trainings)
            found.append((proven, secure["lr"].values.tolist(), sampled["lr"][0].values.tolist()))
        assert found[0] == found[1]
    place = CURVE_EPS.tolist().index(0.1)
    for how in trainings:
        for seed, each in enumerate(proven[how.name]):
            assert each.proven <= secure[how.name].values[seed, place]
            assert each.proven <= sampled[how.name][0].values[seed, 0]
    kept = {path.name for path in tmp_path.glob("networks/*/*")}
    assert kept == {f"fashion-4-clipped-{name}-{s}" for name in ("baseline", "lr") for s in (0, 1)}


@pytest.mark.parametrize(("region", "proven"), [("clipped", 1.0), ("whole", 0.0)])
def test_a_whole_ball_reaches_beyond_valid_images(region: str, proven: float) -> None:
    """f = (x + 0.05, 0) at x = 0: class 0 for all valid x, class 1 below x = -0.05."""
    layer = nn.Linear(1, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0], [0.0]]))
        layer.bias.copy_(torch.tensor([0.05, 0.0]))
    domain = BallRegion(region).domain(0.1)
    network = from_torch(layer, input_shape=(1,), domain=domain, name="net")
    data = from_arrays(np.zeros((1, 1), np.float32), np.zeros(1, np.int64))
    chosen = plan([network], data, Settings.from_options({"eps": 0.1, "property": "cr"}))
    with Store.in_memory() as store:
        chosen.run(store)
        found = Distribution.from_store(store)
    share = found.robust_accuracy(0.1)
    assert (share.proven, share.not_refuted) == (proven, proven)
    ball = chosen.instances[0].ball(0.1)
    assert (ball.box()[0] < -0.099).all() == (region == "whole")


def test_balls_larger_than_the_domain_are_refused() -> None:
    with pytest.raises(DataError, match="balls would be cut off"):
        BallRegion.WHOLE.domain(1.0)


def test_the_papers_regimes() -> None:
    """Every training parses, at the paper's eps where it has one."""
    for how in ALL_TRAININGS:
        regime = parse_regime(how.regime.format(steps=3))
        assert regime.radius in (None, 0.1)
    assert dataclasses.asdict(_networks.FULL)["rate"] == 1e-4


def test_verdicts_follow_from_cases() -> None:
    yes, no = CaseFinding(True, "1"), CaseFinding(False, "2")
    assert judged("c", "p", {"a": yes, "b": yes}).verdict is ClaimVerdict.CONFIRMED
    assert judged("c", "p", {"a": no}).verdict is ClaimVerdict.REFUTED
    mixed = judged("c", "p", {"a": yes, "b": no})
    assert mixed.verdict is ClaimVerdict.DEPENDS and mixed.found == "a: 1 (holds); b: 2 (does not)"
    assert judged("c", "p", {}).verdict is ClaimVerdict.OPEN


def test_spread_over_seeds() -> None:
    spread = Spread.of([0.1, 0.2, 0.3])
    assert spread.percent == pytest.approx(20)
    assert spread.percent_range == "10.0–30.0"
    assert Spread.of([0.5, 0.5]).percent_range == "50.0"


def test_signs_are_ten_classes_of_grey_images(folder: Path) -> None:
    images = read_images(folder)
    signs = images.sets[GTSRB]
    assert signs.train.shape == (1, 48, 48) and set(signs.train.labels.tolist()) == set(range(10))
    assert [path.name for path in images.files] == ["fashion.npz", "gtsrb.npz"]
    with pytest.raises(DataError, match="no such folder"):
        read_images(folder / "nowhere")
