"""Features from the file to the store: scales, domains, identity, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import dense_model
from radii.cli import main
from radii.errors import DataError, InputError
from radii.runs import Experiment, experiment_text, inspect, prepare, values_of_file
from radii.statistics import named_witnesses, read_store
from radii.store import Store
from radii.testing import Sketch

pytestmark = pytest.mark.usefixtures("without_workers")

WEIGHTS = np.array([[0.01, 1.0, 0.5], [0.0, 0.0, 0.0]])
ROWS = [(100.0, 1.0, 2.0, 0), (300.0, -2.0, 4.0, 0), (-200.0, 1.0, -6.0, 1)]
"""a is worth 0.01, b 1 and c 0.5: scores 3, 3 and -4."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(dense_model((WEIGHTS, np.zeros(2))), "net.onnx")
    lines = ["a,b,c,kind", *(",".join(f"{v:g}" for v in row) for row in ROWS)]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    Path("f.csv").write_text("feature,low,high,scale\nc,-50,50,4\na,-1e3,1e3,100\nb,-9,9,0\n")
    Path("g.csv").write_text("feature\na\nb\n")
    return tmp_path


def described(**more: Any) -> Experiment:
    values = {"networks": ["net.onnx"], "data": "t.csv", "label": "kind", "grid": "0.1:2:0.1"}
    return Experiment.from_options({**values, **more})


def test_the_file_is_matched_by_names_and_gives_the_domain(folder: Path) -> None:
    plan = prepare(described(features="f.csv"))
    features = plan.settings.features
    assert features is not None
    assert features.names == ("a", "b", "c")
    assert features.scale.tolist() == [100, 0, 4]
    assert plan.networks[0].domain.low.tolist() == [-1000, -9, -50]


def test_radii_are_the_margin_over_weights_times_scales(folder: Path) -> None:
    plan = prepare(described(features="f.csv"))
    with Store.create_or_open(Path("out")) as store:
        plan.run(store)
    for m, margin in zip(read_store("out").measurements, (3, 3, 4), strict=True):
        radius = margin / (0.01 * 100 + 0.5 * 4)  # b stays
        assert m.bracket.lower < radius <= m.bracket.upper * (1 + 1e-6)
        assert m.bracket.width < 0.11
    for one in named_witnesses(Path("out")).values():
        assert {change.feature for change in one.changes} == {"a", "c"}
        assert one.fixed == ("b",)


def test_a_run_goes_on_and_other_scales_are_another_experiment(folder: Path) -> None:
    asked = ["run", "--network", "net.onnx", "--data", "t.csv", "--label", "kind"]
    asked += ["--grid", "0.1:2:0.1", "--out", "out", "--jobs", "1", "--features", "f.csv"]
    assert main(asked) == 0
    assert main(asked) == 0
    assert main([*asked, "--scale", "range"]) == 2


def test_names_are_kept_where_nothing_else_is_known_of_features(folder: Path) -> None:
    plan = prepare(described(domain="-1000:1000", grid="0.1:4:0.1"))
    assert plan.settings.features is None
    with Store.create_or_open(Path("out")) as store:
        plan.run(store)
    changes = [c.feature for one in named_witnesses(Path("out")).values() for c in one.changes]
    assert set(changes) == {"a", "b", "c"}


def scale_of(**more: Any) -> list[float]:
    features = prepare(described(**more)).settings.features
    assert features is not None
    return [float(value) for value in features.scale]


def test_scales_of_the_data_of_the_domain_and_by_number(folder: Path) -> None:
    whole = np.array(ROWS)[:, :3].std(axis=0)
    some = {"data": "t.csv[0:2]", "domain": "-1000:1000"}
    assert scale_of(scale="std", **some) == pytest.approx(whole.tolist())
    assert scale_of(scale="range", **some) == [2000, 2000, 2000]
    assert scale_of(scale="range", features="f.csv") == [2000, 0, 100]
    assert scale_of(scale="1,2,3", **some) == [1, 2, 3]
    assert scale_of(scale="f.csv", **some) == [100, 0, 4]
    assert scale_of(scale=[2.0], **some) == [2, 2, 2]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"scale": "wide", "domain": "-1e3:1e3"}, "scale 'wide' must be std, range, numbers"),
        ({"scale": "1,2", "domain": "-1e3:1e3"}, "2 numbers, but there are 3 features"),
        ({"scale": "std", "domain": "-1e3:1e3", "norm": "l2"}, "other scales need linf"),
        ({"features": "f.csv", "property": "lr:L=10"}, "in scales of features"),
        ({"features": "none.csv"}, "no such file of features"),
        ({"features": "g.csv", "domain": "-1e3:1e3"}, "feature 'c' is not described"),
        ({"domain": "-1e3:1e3", "label": "sort"}, "has no column 'sort'"),
        ({"domain": "-1e3:1e3", "threshold": 0.5}, "a threshold is for one"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    folder: Path, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        prepare(described(**more))
    assert "\n" not in str(caught.value)


def test_inputs_must_be_what_the_file_says(folder: Path) -> None:
    Path("f.csv").write_text("feature,kind,low,high\na,integer,-999,999\nb,,-9,9\nc,,-9,9\n")
    Path("t.csv").write_text("a,b,c,kind\n1.5,1,1,0\n")
    with pytest.raises(DataError, match=r"input 0: 'a' is an integer, and holds 1\.5"):
        prepare(described(features="f.csv"))


def test_an_experiment_file_finds_its_features_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ['networks = ["net.onnx"]', 'data = "t.csv"', 'label = "kind"', 'features = "f.csv"']
    Path("e.toml").write_text("\n".join(lines))
    monkeypatch.chdir("/")
    plan = prepare(Experiment.from_options(values_of_file(folder / "e.toml")))
    assert plan.settings.features is not None


def test_l2_keeps_features_that_stay(folder: Path) -> None:
    Path("f.csv").write_text("feature,kind,low,high\na,fixed,-999,999\nb,,-9,9\nc,,-9,9\n")
    plan = prepare(described(features="f.csv", norm="l2", grid="0.5:4:0.5"))
    with Store.in_memory() as store:
        plan.run(store)
        first = read_store(store).measurements[0]
    radius = 3 / np.hypot(1, 0.5)
    assert first.bracket.lower < radius <= first.bracket.upper * (1 + 1e-6)


# --- init


def image_network(path: Path, images: np.ndarray) -> np.ndarray:
    """A network of 4x4 pictures that was trained on them transposed, and its labels."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(3, 16))
    onnx.save(dense_model((weights, np.zeros(3))), path)
    flat = np.swapaxes(images, 1, 2).reshape(len(images), 16)
    return np.asarray((flat @ weights.T).argmax(axis=1))


def test_init_tries_pictures_with_rows_and_columns_exchanged(tmp_path: Path) -> None:
    images = np.random.default_rng(0).uniform(0, 1, (200, 4, 4)).astype(np.float32)
    labels = image_network(tmp_path / "net.onnx", images)
    np.savez(tmp_path / "d.npz", images=images, labels=labels)
    domain, (found,) = inspect([str(tmp_path / "net.onnx")], str(tmp_path / "d.npz"))
    assert found.best.preprocessing.layout == "cwh"
    assert found.best.accuracy == 1
    file = tmp_path / "e.toml"
    given = [str(tmp_path / "net.onnx")], str(tmp_path / "d.npz")
    file.write_text(experiment_text([found], *given, domain, file=file))
    plan = prepare(Experiment.from_options(values_of_file(file)))
    assert all(instance.correct for instance in plan.instances)


def test_init_chooses_nothing_where_nothing_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 1, (200, 4, 4)).astype(np.float32)
    image_network(Path("net.onnx"), images)
    np.savez("d.npz", images=images, labels=rng.integers(0, 3, 200))
    asked = ["init", "--network", "net.onnx", "--data", "d.npz", "--yes"]
    assert main(asked) == 2
    assert "none is chosen" in capsys.readouterr().err
    assert not Path("experiment.toml").exists()
    assert main([*asked, "--mean", "0", "--std", "1"]) == 0


def test_sequences_that_list_time_first(tmp_path: Path) -> None:
    """(N, length, channels) for a network of (channels, length)."""
    rng = np.random.default_rng(2)
    weights, series = rng.normal(size=(2, 12)), rng.normal(size=(100, 6, 2)).astype(np.float32)
    sketch = Sketch([1, 2, 6])
    scores = sketch.constant(weights.T.astype(np.float32))
    value = sketch.apply("MatMul", sketch.apply("Flatten", "x"), scores)
    network = sketch.network(value, domain=(-9.0, 9.0))
    (tmp_path / "net.onnx").write_bytes(network.onnx_bytes)
    flat = np.swapaxes(series, 1, 2).reshape(100, 12)
    labels = (flat @ weights.T).argmax(axis=1)
    np.savez(tmp_path / "d.npz", images=series, labels=labels)
    _, (found,) = inspect([str(tmp_path / "net.onnx")], str(tmp_path / "d.npz"))
    assert found.best.preprocessing.layout == "cwh"
    assert found.best.accuracy == 1
