"""`radii convert`: what is written reads back as what it was."""

from __future__ import annotations

import csv
import gzip
import json
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from radii import statistics
from radii.cli import main
from radii.datasets import load, read
from radii.errors import DataError, ExperimentError, StoreError
from radii.networks import load_network
from radii.problem import Grid
from radii.runs import Experiment, prepare, values_of_file
from radii.statistics import Distribution, find_experiment, write_verona_folder
from radii.store import Store
from radii.vnnlib import read_problem


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["convert", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_network_with_its_normalisation(
    linear_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "net.onnx.gz"
    packed.write_bytes(gzip.compress(linear_file.read_bytes()))
    out = tmp_path / "made" / "plain.onnx"
    printed = told(capsys, "network", packed, "--mean", "0.5", "--std", "0.25", "--out", out)
    network = load_network(out, domain=(0, 1))
    assert network.fingerprint[:12] in printed
    x = np.array([[0.75, 0.25]], np.float32)
    np.testing.assert_allclose(network.replay(x), (x - 0.5) / 0.25)
    content = out.read_bytes()
    assert main(["convert", "network", str(out), "--mean", "0.5", "--out", str(out)]) == 2
    assert out.read_bytes() == content
    packed.write_bytes(b"\x1f\x8bnothing")
    assert main(["convert", "network", str(packed), "--out", str(out)]) == 2


def test_data_to_pictures_tables_and_arrays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = load("digits").first(12)
    for name in ("pictures", "table.csv", "arrays.npz"):
        told(capsys, "data", "digits:test[0:12]", "--out", tmp_path / name)
        again = read(tmp_path / name)
        assert sorted(again.labels.tolist()) == sorted(digits.labels.tolist())
    table = read(tmp_path / "table.csv")
    np.testing.assert_array_equal(table.images, digits.images.reshape(12, -1))
    first = read(tmp_path / "pictures").images[0]
    assert first.shape == (1, 8, 8)
    assert np.abs(digits.images - first).max(axis=(1, 2, 3)).min() <= 0.5 / 255 + 1e-6
    for bad in ("pictures", "data.xlsx"):  # not empty; no such form
        assert main(["convert", "data", "digits:test", "--out", str(tmp_path / bad)]) == 2
    assert main(["convert", "data", "digits", "--out", str(tmp_path / "two.csv")]) == 2


def test_vnnlib_states_the_queries(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Radii are 0.1 and 0.25; two of the four points are misclassified and left out."""
    out = tmp_path / "bench"
    flags = ["--network", linear_file, "--data", points_file, "--domain", "0:1", "--timeout", "9"]
    printed = told(capsys, "vnnlib", *flags, "--eps", "0.05,1/5", "--out", out)
    assert "4 instances" in printed
    assert "2 misclassified" in printed
    with (out / "instances.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert [row[2] for row in rows] == ["9"] * 4
    network = load_network(out / rows[0][0], domain=(0, 1))
    broken = []
    for row in rows:
        problem = read_problem(out / row[1])
        low, high = problem.specifications((2,))[0].region.box()
        corners = np.array(
            [[a, b] for a in (low[0], high[0]) for b in (low[1], high[1])], np.float32
        )
        broken.append(
            any(problem.is_solved_by(x, network.replay(x[None])[0]) for x in corners.astype(float))
        )
    assert broken == [False, True, False, False]
    assert main(["convert", "vnnlib", *map(str, flags), "--eps", "1", "--out", str(out)]) == 2
    elsewhere = str(tmp_path / "other")
    for bad in (["--eps", "soon"], ["--eps", "0.1", "--norm", "l2"]):
        assert main(["convert", "vnnlib", *map(str, flags), *bad, "--out", elsewhere]) == 2
        assert not Path(elsewhere).exists()
    alike = ["--eps", "0.1234561,0.1234562", "--out", str(tmp_path / "alike")]
    on_a_file = ["--eps", "0.1", "--out", str(points_file)]
    for bad in (alike, on_a_file):
        assert main(["convert", "vnnlib", *map(str, flags), *bad]) == 2


@pytest.fixture
def verona(linear_file: Path, tmp_path: Path) -> Path:
    """Two images of an experiment in VERONA's layout; radii 0.08 and 0.2."""
    folder = tmp_path / "experiment"
    for name in ("networks", "images"):
        (folder / "data" / name).mkdir(parents=True)
    linear_file.rename(folder / "data" / "networks" / "linear.onnx")
    for number, image in ((26, [0.58, 0.42]), (7, [0.7, 0.3])):
        torch.save(torch.tensor(image), folder / "data" / "images" / f"points_{number}.pt")
    labels = ",image,label\n0,points_26.pt,0\n1,points_7.pt,0\n"
    (folder / "data" / "image_labels.csv").write_text(labels)
    run = folder / "results" / "run_01-01-2026+10_00"
    (run / "results").mkdir(parents=True)
    (run / "configuration.json").write_text('{"epsilon_list": ["0.05", "0.1", "0.15"]}')
    row = "0,/x/linear.onnx,points_26,0,0.05,0.1,1.5\n"
    header = ",network_path,image_id,original_label,epsilon_value,smallest_sat_value,total_time\n"
    (run / "results" / "result_df.csv").write_text(header + row)
    return folder


def test_a_verona_experiment_runs_with_radii(
    verona: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made" / "experiment.toml"
    printed = told(capsys, "verona", verona, "--domain", "0:1", "--out", out)
    assert "radii import" in printed
    assert 'grid = "0.05:0.2:0.05"' in out.read_text()
    results = tmp_path / "results"
    with Store.create_or_open(results) as store:
        prepare(Experiment.from_options(values_of_file(out))).run(store)
        found = Distribution.from_store(store)
    assert found.column("input").tolist() == [7, 26]
    assert found.lower.tolist() == [0.15, 0.05]

    back = tmp_path / "back"
    assert "2 results" in told(capsys, "results", results, "--out", back)
    again = statistics.read(back).brackets
    order = np.argsort(again.column("input"))
    assert again.column("input")[order].tolist() == [7, 26]
    assert again.lower[order].tolist() == [0.15, 0.05]
    assert again.upper[order].tolist() == [np.inf, 0.1]
    table = pd.read_csv(back / "results" / "result_df.csv", index_col=0)
    assert table.original_label.tolist() == [0, 0]
    with pytest.raises(StoreError, match="not empty"):
        write_verona_folder(back, found, grid=Grid.parse("0.05:0.2:0.05"), split="")


def test_an_input_of_which_nothing_is_known_is_not_lost(tmp_path: Path) -> None:
    brackets = Distribution.from_arrays(
        np.array([0.0, 0.1]), np.array([np.inf, 0.2]), input=np.array([3, 5]), network="net"
    )
    write_verona_folder(tmp_path / "as", brackets, grid=Grid(0.1, 0.4, 0.1), split="test")
    again = statistics.read(tmp_path / "as").brackets
    assert again.column("input").tolist() == [3, 5]
    assert again.lower.tolist() == [0.0, 0.1]
    assert again.upper.tolist() == [np.inf, 0.2]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="no folder"):
        write_verona_folder(tmp_path / "file", brackets, grid=Grid(0.1, 0.4, 0.1), split="test")


def test_the_results_of_an_experiment_are_found_within_it(verona: Path) -> None:
    read_again = statistics.read(verona).brackets
    assert (read_again.lower[0], read_again.upper[0]) == (0.05, 0.1)
    assert read_again.column("input").tolist() == [26]
    second = verona / "results" / "second" / "results"
    second.mkdir(parents=True)
    (second / "result_df.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match="2 runs; name one"):
        statistics.read(verona)


def test_uneven_epsilons_are_a_list(verona: Path) -> None:
    configuration = next(verona.glob("**/configuration.json"))
    configuration.write_text('{"epsilon_list": [0.001, 0.005, 0.01]}')
    found = find_experiment(verona)
    assert found.grid == Grid.of_values([0.001, 0.005, 0.01])
    assert 'grid = "0.001,0.005,0.01"' in found.as_toml(domain="0:1", beside=verona)
    configuration.write_text("[]")
    with pytest.raises(DataError, match="nor a configuration or table of VERONA"):
        find_experiment(verona)


def test_what_is_missing_from_an_experiment_is_named(verona: Path, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no such folder"):
        find_experiment(tmp_path / "absent")
    listed = verona / "data" / "networks" / "networks.csv"
    listed.write_text("architecture,network_type\nelsewhere/linear.onnx,onnx\n")
    assert find_experiment(verona).networks == (listed.parent / "linear.onnx",)
    listed.write_text("architecture,network_type\nx.pt,pytorch\n")
    with pytest.raises(ExperimentError, match="no network in ONNX"):
        find_experiment(verona)
    (verona / "data" / "image_labels.csv").write_text(",image,label\n0,points_7.pt,0\n")
    with pytest.raises(DataError, match=r"no label for 'points_26\.pt'"):
        read(verona / "data")
    (verona / "data" / "image_labels.csv").unlink()
    with pytest.raises(ExperimentError, match="no images"):
        find_experiment(verona)


def test_tensors_that_are_none_are_refused(verona: Path) -> None:
    """A pickle of anything else than a tensor is not even looked into."""
    image = verona / "data" / "images" / "points_7.pt"
    for content in (b"", b"not a tensor"):
        image.write_bytes(content)
        with pytest.raises(DataError, match="points_7"):
            _ = read(verona / "data").images
    torch.save({"a": torch.zeros(2)}, image)
    with pytest.raises(DataError, match="does not hold a tensor"):
        _ = read(verona / "data").images
    for none in (torch.tensor([1j, 0]), torch.zeros(0), torch.zeros(2).to_sparse()):
        torch.save(none, image)
        with pytest.raises(DataError, match="tensor"):
            _ = read(verona / "data").images
    torch.save(torch.zeros(3), image)
    with pytest.raises(DataError, match="bring all images to one size"):
        _ = read(verona / "data").images
    torch.save(torch.tensor([0.5, 0.25], dtype=torch.bfloat16), image)
    np.testing.assert_array_equal(read(verona / "data").images[0], [0.5, 0.25])
    (verona / "data" / "image_labels.csv").write_text("image,label\npoints_7.pt," + "9" * 30)
    with pytest.raises(DataError, match="table of labels"):
        read(verona / "data")


def test_an_experiment_file_says_what_verona_said(verona: Path) -> None:
    """Rounding of numpy.arange is no uneven grid, names may be any text, comments are comments."""
    configuration = next(verona.glob("**/configuration.json"))
    noisy = np.arange(0.001, 0.4, 0.002).tolist()
    assert 0.009000000000000001 in noisy
    configuration.write_text(json.dumps({"epsilon_list": noisy}))
    assert find_experiment(verona).grid == Grid.parse("0.001:0.401:0.002")
    configuration.write_text(json.dumps({"epsilon_list": [0.1]}))
    alone = find_experiment(verona).grid
    assert alone is not None
    assert list(alone) == [0.1]
    configuration.write_text(json.dumps({"epsilon_list": ["0.1\nnorm = 'l2'", 0.7]}))
    with pytest.raises(DataError, match="nor a configuration"):
        find_experiment(verona)
    configuration.unlink()
    smiling = verona.rename(verona.with_name("smile \U0001f600"))
    text = find_experiment(smiling).as_toml(domain="0:1", beside=verona.parent)
    assert tomllib.loads(text)["data"] == "smile \U0001f600/data"
    out = verona.parent / "mine.toml"
    out.write_text("precious")
    for domain in ("junk", "0:1"):
        assert main(["convert", "verona", str(smiling), "--domain", domain, "--out", str(out)]) == 2
    assert out.read_text() == "precious"
    listed = smiling / "data" / "networks" / "networks.csv"
    listed.write_text("network_type,architecture\nonnx\n")
    with pytest.raises(ExperimentError, match="no network in ONNX"):
        find_experiment(smiling)
