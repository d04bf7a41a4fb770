"""`radii audit`: claims with known answers, files that replay without radii, resuming."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conftest import SHARED_DATA, in_this_process, needs_shared_data, write_linear, write_points
from radii import demo
from radii.cli import main
from radii.store import Store

pytestmark = pytest.mark.usefixtures("without_workers")

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "audit.md"

HEADER = "image_id,epsilon_value,smallest_sat_value,total_time,network_path,original_label\n"

CLAIMS = (
    "0,0.09,0.11,1.5,nets/linear.onnx,0\n"  # true: the radius is 0.1
    "1,0.4,0.41,3600,nets/linear.onnx,1\n"  # wrong: the radius is 0.25
    "0,0,0,3600,nets/linear.onnx,0\n"  # claims nothing
    "7,0.1,0.2,1.5,nets/linear.onnx,0\n"  # an image that is not there
    "0,0.1,0.2,1.5,nets/absent.onnx,0\n"  # a network that is not there
)


def replay_script() -> str:
    """The script that the documentation shows."""
    (script,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENTATION.read_text(), re.M | re.S)
    return str(script)


def replayed(audit: Path, networks: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", replay_script(), str(audit), str(networks)],
        capture_output=True,
        text=True,
    )


def write_claims(folder: Path, rows: str = CLAIMS) -> Path:
    path = folder / "published.csv"
    path.write_text(HEADER + rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network, its points and a table of claims."""
    place = tmp_path_factory.mktemp("claims")
    write_linear(place)
    write_points(place)
    write_claims(place)
    return place


def flags(folder: Path, out: Path) -> list[str]:
    return [
        *("audit", str(folder / "published.csv"), "--networks", str(folder)),
        *("--data", str(folder / "points.npz"), "--domain", "0:1", "--out", str(out)),
        *("--jobs", "1"),
    ]


@pytest.fixture(scope="module")
def audited(folder: Path) -> Path:
    with in_this_process():
        assert main(flags(folder, folder / "audit")) == 0
    return folder / "audit"


def test_the_wrong_claim_is_refuted_and_the_true_one_stands(audited: Path) -> None:
    frame = pd.read_csv(audited / "audit.csv")
    assert frame["status"].tolist() == ["stands", "refuted"]
    assert frame["closest"].tolist() == pytest.approx([0.1, 0.25], rel=1e-4)
    assert frame["claimed"].tolist() == [0.09, 0.4]
    refuted = frame.iloc[1]
    assert refuted["ratio"] == pytest.approx(0.625, rel=1e-4)
    assert refuted["witness_class"] == 0
    # Further out the wrong class leads by more: 2 (0.4 - 0.25) at the claimed radius, were it not
    # for the edge of the domain.
    assert 0.2 < refuted["margin"] <= 0.3 + 1e-6
    assert 0.25 < refuted["witness_distance"] <= 0.4


def test_a_witness_holds_all_that_is_needed(audited: Path) -> None:
    (file,) = (audited / "witnesses").iterdir()
    saved = np.load(file)
    assert str(saved["network"]) == "linear.onnx"
    assert (saved["input"], saved["label"], saved["target"]) == (1, 1, -1)
    assert saved["image"].tolist() == [[0.25, 0.75]]
    assert saved["witness"].dtype == np.float32
    assert saved["witness"].min() >= 0
    assert saved["witness"].max() <= 1
    assert np.abs(saved["witness"].astype(np.float64) - saved["image"]).max() == saved["distance"]
    assert str(saved["norm"]) == "linf"


def test_witnesses_replay_in_ten_lines_without_radii(audited: Path, folder: Path) -> None:
    done = replayed(audited, folder)
    assert done.returncode == 0, done.stderr
    assert "claimed 0.4, but 1 becomes 0" in done.stdout
    assert "radii" not in replay_script()
    lines = [line for line in replay_script().splitlines() if line and "import" not in line]
    assert len(lines) <= 10


def test_the_script_notices_a_witness_that_is_none(
    audited: Path, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(audited, tmp_path / "audit")
    (file,) = (copy / "witnesses").iterdir()
    saved = dict(np.load(file))
    np.savez(file, **{**saved, "witness": saved["image"]})
    assert replayed(copy, folder).returncode != 0
    np.savez(file, **{**saved, "claimed": 0.01})
    assert replayed(copy, folder).returncode != 0


def test_running_again_attacks_nothing_again(
    audited: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (audited / "audit.csv").read_text()
    with Store.open(audited) as store:
        asked = sum(len(told) for told in store.results().values())
    assert main([*flags(folder, audited), "--json"]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["networks"] == [{"network": "linear", "claims": 2, "refuted": 1, "stands": 1}]
    assert [claim["status"] for claim in told["claims"]] == ["stands", "refuted"]
    assert "not among the images" in captured.err
    assert "no file absent" in captured.err
    with Store.open(audited) as store:
        assert sum(len(told) for told in store.results().values()) == asked
    assert (audited / "audit.csv").read_text() == before
    assert main(["show", str(audited)]) == 0


def test_targets_and_normalisation_on_digits(tmp_path: Path) -> None:
    """One-to-one claims on a network that is given as trained on centred pixels."""
    from radii import datasets

    labels = datasets.load("digits", split="test").first(2).labels.tolist()
    rows = [
        f"image_{image},{eps},,1,mlp-standard,{label},{target}\n"
        for image, label in enumerate(labels)
        for target, eps in (((label + 1) % 10, 0.9), ((label + 2) % 10, 0.001))
    ]
    table = tmp_path / "targeted.csv"
    table.write_text(HEADER.strip() + ",target_class\n" + "".join(rows))
    out = tmp_path / "audit"
    path = demo.network_path("mlp-standard")
    flags = ["--networks", str(path), "--data", "digits:test[0:2]", "--domain", "0:1"]
    unit = ["--mean", "0", "--std", "1"]
    assert main(["audit", str(table), *flags, *unit, "--out", str(out), "--jobs", "1"]) == 0
    frame = pd.read_csv(out / "audit.csv")
    assert frame["status"].tolist() == ["refuted", "stands", "refuted", "stands"]
    assert set(frame["target"] - frame["label"]) <= {1, 2, -9, -8}
    done = replayed(out, out / "networks")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("claimed 0.9") == 2


@pytest.mark.parametrize(
    ("rows", "changes", "sentence"),
    [
        ("0,0.09,0.11,1,linear,1\n", [], "has label 1 in the results but 0"),
        ("9,0.09,0.11,1,linear,1\n", [], "nothing to audit: 1 of 1 claims are not audited"),
        ("0,0.09,0.11,1,absent,0\n", [], "no file absent"),
        ("0,0,0,1,linear,0\n", [], "no row claims a proof"),
        (CLAIMS, ["--networks", "nowhere"], "nowhere: no such file or folder"),
        (CLAIMS, ["--data", "nothing.npz"], "nothing.npz"),
        (CLAIMS, ["--domain", "none"], "domain 'none'"),
        (CLAIMS, ["--split", "test"], "split 'test' is not one of the results'"),
        (CLAIMS, ["--attack", "guess"], "attack 'guess'"),
        (CLAIMS, ["--jobs", "0"], "--jobs 0"),
    ],
)
def test_bad_input_is_one_sentence(
    linear_file: Path,
    points_file: Path,
    tmp_path: Path,
    rows: str,
    changes: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_claims(tmp_path, rows)
    assert main([*flags(tmp_path, tmp_path / "audit"), *changes]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err.splitlines()[-1]
    assert "Traceback" not in captured.err


def test_other_images_refute_nothing(
    linear_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inputs that are wrong as they stand point to other images, not to wrong proofs."""
    images = np.array([[0.3, 0.5], [0.75, 0.25]], np.float32)
    np.savez(tmp_path / "points.npz", images=images, labels=np.array([0, 1]))
    write_claims(tmp_path, "0,0.09,0.11,1,linear,0\n1,0.2,0.3,1,linear,1\n")
    assert main(flags(tmp_path, tmp_path / "audit")) == 2
    assert "misclassifies 2 of 2 inputs that claims are about" in capsys.readouterr().err


def test_results_of_several_splits_need_a_choice(
    linear_file: Path, points_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_claims(tmp_path, "")
    rows = "0,0.09,0.11,1,linear,0,train\n1,0.2,0.3,1,linear,1,test\n"
    table.write_text(HEADER.strip() + ",split\n" + rows)
    assert main(flags(tmp_path, tmp_path / "audit")) == 2
    assert "choose that of the data with --split" in capsys.readouterr().err


@needs_shared_data
def test_published_claims_are_refuted(tmp_path: Path) -> None:
    """Image 0 of mnist-net_256x4: claimed 0.067, in more than 3,100 s; broken below 0.048."""
    place = SHARED_DATA / "jair"
    out = tmp_path / "audit"
    flags = [
        *("--networks", str(place / "networks" / "mnist-net_256x4.onnx")),
        *("--data", f"{place / 'mnist_train_0_49.npz'}[0:1]", "--domain", "0:1", "--jobs", "1"),
    ]
    published = str(place / "published_results.csv")
    assert main(["audit", published, *flags, "--out", str(out)]) == 0
    frame = pd.read_csv(out / "audit.csv")
    assert frame["status"].tolist() == ["refuted"]
    assert frame["claimed"].tolist() == [0.067]
    assert frame["closest"][0] < 0.05
    assert frame["margin"][0] > 1e-2
    assert frame["published_seconds"][0] > 3100
    assert replayed(out, place / "networks").returncode == 0


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    assert "radii audit published.csv" in capsys.readouterr().out
