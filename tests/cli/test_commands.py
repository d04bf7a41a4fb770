"""The command line as scripts see it: contracts, exit codes, one sentence for bad input."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest

from conftest import in_this_process, make_older, write_linear, write_points
from radii.cli import main
from radii.cli._output import writing
from radii.errors import InputError, StoreError
from radii.statistics import read
from radii.store import STORE_FILE

pytestmark = pytest.mark.usefixtures("without_workers")


def linear_flags(network: Path, data: Path) -> list[str]:
    return [
        *("--network", str(network), "--data", str(data)),
        *("--domain", "0:1", "--grid", "0.01:0.5:0.02", "--jobs", "1"),
    ]


@pytest.fixture
def flags(linear_file: Path, points_file: Path) -> list[str]:
    return linear_flags(linear_file, points_file)


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Path:
    """The results of `run` with `flags`, in a directory of the test's own."""
    return shutil.copytree(finished, tmp_path / "results")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    flags = linear_flags(write_linear(place), write_points(place))
    with in_this_process():
        assert main(["run", *flags, "--out", str(place / "out")]) == 0
    return place / "out"


def test_show_json_keeps_its_contract(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(results), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["disagreements"] == []
    (network,) = shown["networks"]
    assert network["network"] == "linear.onnx"
    assert len(network["fingerprint"]) == 64
    first, second, wrong, tie = network["instances"]
    assert list(first) == [
        *("input", "label", "predicted", "correct", "target", "lower", "upper"),
        *("witness_class", "seconds", "cpu_seconds", "queries", "missing", "cancelled"),
        *("arithmetic", "proof", "checked_by", "certificate", "unanswered"),
    ]
    assert network["arithmetic"] == "float"
    assert [m["arithmetic"] for m in network["instances"]] == ["float", "float", None, None]
    assert (first["lower"], first["witness_class"]) == (0.09, 1)
    assert first["upper"] == pytest.approx(0.1, abs=1e-5)
    assert (second["lower"], second["correct"]) == (0.23, True)
    for radius_zero in (wrong, tie):
        assert (radius_zero["lower"], radius_zero["upper"]) == (0, 0)
        assert not radius_zero["correct"]


def test_show_prints_every_bracket(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(results), "--instances"]) == 0
    assert "0.09" in capsys.readouterr().out
    assert main(["show", str(results)]) == 0
    assert " linear " in capsys.readouterr().out


def test_show_says_what_proofs_hold_for(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ([], ["--instances"]):
        assert main(["show", str(results), *flag]) == 0
        told = capsys.readouterr().out
        assert "proofs hold for floating point" in told
        assert "real" not in told


def test_an_old_store_shows_real_proofs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_older(results, 3)
    assert main(["show", str(results)]) == 0
    assert "proofs hold in real arithmetic" in capsys.readouterr().out
    assert main(["show", str(results), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert network["arithmetic"] == "real"
    assert [m["arithmetic"] for m in network["instances"]] == ["real", "real", None, None]


def test_mixed_proofs_have_a_column(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    make_first_real(results)
    assert main(["show", str(results), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert [m["lower"] > 0 for m in network["instances"]][:2] == [False, True], "asked for floats"
    ask_for_real(results)
    assert main(["show", str(results)]) == 0
    told = capsys.readouterr().out
    assert "1 float, 1 real" in told
    assert "proofs hold in real arithmetic, 1 of 2 also for floating point" in told
    assert main(["show", str(results), "--instances"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert "arithmetic" in rows[1]
    assert ["real" in row for row in rows[3:5]] == [True, False]
    assert ["float" in row for row in rows[3:5]] == [False, True]
    assert main(["show", str(results), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert [m["arithmetic"] for m in network["instances"]] == ["real", "float", None, None]


def make_first_real(directory: Path) -> None:
    with sqlite3.connect(directory / STORE_FILE) as db:
        db.execute(
            "UPDATE queries SET proof_arithmetic = 'real' WHERE proof_eps IS NOT NULL"
            " AND instance = (SELECT key FROM instances ORDER BY position LIMIT 1)"
        )
    db.close()


def ask_for_real(directory: Path) -> None:
    """As if the run had asked for proofs in real arithmetic, which those for floats are, too."""
    with sqlite3.connect(directory / STORE_FILE) as db:
        for table, column in (("meta", "value"), ("steps", "described")):
            told = f"json_extract({column}, '$.arithmetic') IS NOT NULL"
            real = f"json_set({column}, '$.arithmetic', 'real')"
            db.execute(f"UPDATE {table} SET {column} = {real} WHERE {told}")
    db.close()


def test_attack_has_no_arithmetic(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", *flags, "--arithmetic", "real", "--json"]) == 0
    told = capsys.readouterr()
    assert "--arithmetic changes nothing here" in told.err
    (network,) = json.loads(told.out)["networks"]
    assert network["arithmetic"] is None
    assert {m["arithmetic"] for m in network["instances"]} == {None}


def test_another_arithmetic_says_how_to_go_on(
    results: Path, flags: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    make_older(results, 3)
    command = ["run", *flags, "--out", str(results)]
    one_sentence(command, "hold in real arithmetic: go on with --arithmetic real", capfd)
    assert main([*command, "--arithmetic", "float"]) == 0
    assert "arithmetic float beside real" in capfd.readouterr().err
    one_sentence(["export", str(results)], "choose --arithmetic real or --arithmetic float", capfd)


def test_attack_proves_nothing(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", *flags, "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert all(instance["lower"] == 0 for instance in network["instances"])
    assert network["instances"][0]["upper"] == pytest.approx(0.1, abs=1e-3)


def test_no_witness_is_null(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", *flags, "--grid", "0.01:0.05:0.01", "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert network["instances"][0]["upper"] is None


def test_verona_export_has_the_published_columns(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "verona.csv"
    assert main(["export", str(results), "--format", "verona", "-o", str(file)]) == 0
    frame = pd.read_csv(file)
    assert list(frame.columns) == [
        *("image_id", "epsilon_value", "total_time", "smallest_sat_value", "network_path"),
        *("split", "training", "tmp_path", "original_label"),
    ]
    assert frame["epsilon_value"].tolist() == [0.09, 0.23]
    assert frame["smallest_sat_value"].tolist() == [0.11, 0.25]
    again = read(file).brackets
    assert again.lower.tolist() == [0.09, 0.23]
    assert again.upper.tolist() == [0.11, 0.25]
    assert main(["show", str(file)]) == 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_come_back_in_pandas(results: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"table.{kind}"
    assert main(["export", str(results), "--format", kind, "-o", str(file)]) == 0
    frame = pd.read_csv(file) if kind == "csv" else pd.read_parquet(file)
    assert frame["lower"].tolist() == [0.09, 0.23, 0, 0]
    assert frame["correct"].tolist() == [True, True, False, False]
    assert frame["arithmetic"].fillna("").tolist() == ["float", "float", "", ""]
    if kind == "csv":
        assert read(file).brackets.column("arithmetic").tolist() == [*("float", "float", "", "")]


def broken_inputs(tmp_path: Path) -> dict[str, Path]:
    """Files that cannot be used, each for its own reason."""
    good = onnx.load(tmp_path / "linear.onnx")
    files = {name: tmp_path / name for name in ("truncated.onnx", "text.onnx", "nan.onnx")}
    files["truncated.onnx"].write_bytes(good.SerializeToString()[:50])
    files["text.onnx"].write_text("this is not a network")
    weights = onnx.numpy_helper.from_array(np.full((2, 2), np.nan, np.float32), "w0")
    good.graph.initializer[0].CopyFrom(weights)
    onnx.save(good, files["nan.onnx"])
    return files


@pytest.mark.parametrize("name", ["truncated.onnx", "text.onnx", "nan.onnx", "missing.onnx"])
def test_a_bad_network_is_one_sentence(
    flags: list[str], tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = broken_inputs(tmp_path).get(name, tmp_path / name)
    one_sentence(["run", *flags, "--network", str(file), "--out", str(tmp_path / "o")], name, capfd)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["--data", "nothing.npz"], "nothing.npz"),
        (["--data", "mnist:tast"], "tast"),
        (["--domain", "0:0.4"], "domain"),
        (["--domain", "none"], "domain 'none'"),
        (["--grid", "1:0:1"], "grid 1:0:1 is not increasing"),
        (["--grid", "0:1:0"], "not increasing"),
        (["--search", "guess"], "search 'guess'"),
        (["--verifier", "guess"], "verifier 'guess'"),
        (["--timeout", "-1"], "timeout -1"),
        (["--jobs", "0"], "--jobs 0"),
        (["--memory", "2Q"], "memory '2Q' must be a size"),
        (["--memory", "20M"], "memory 20M is less than the"),
        (["--device", "abacus"], "device 'abacus' is not one of cpu"),
        (["--verifier", "milp", "--device", "cpu"], "'milp' has no option 'device'"),
        (["--search", "attack-only", "--device", "cpu"], "only attacks"),
        (["--property", "one-to-one:9"], "target 9"),
        (["--arithmetic", "octal"], "arithmetic 'octal' is not one of float, real"),
        (["--arithmetic", "float:0"], "roundings 0 times as large are not possible"),
        (["--arithmetic", "float", "--verifier", "marabou"], "'marabou' proves in real arithmetic"),
        (["--out", "/proc/nowhere"], "/proc/nowhere"),
    ],
)
def test_bad_flags_are_one_sentence(
    flags: list[str],
    tmp_path: Path,
    changes: list[str],
    sentence: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    one_sentence(["run", *flags, "--out", str(tmp_path / "out"), *changes], sentence, capfd)


def test_missing_out(flags: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    one_sentence(["run", *flags], "--out is missing", capfd)


def test_a_changed_experiment_says_what_differs(
    results: Path, flags: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["run", *flags, "--out", str(results)]
    assert main([*command, "--seed", "5"]) == 0
    assert "grows: seed was 0, is 5" in capfd.readouterr().err
    one_sentence([*command, "--domain", "0:2"], "was 0:1, is 0:2; choose another --out", capfd)


def test_a_store_of_another_version(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(results / STORE_FILE) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    one_sentence(["show", str(results)], "version 99", capfd)


def one_sentence(command: list[str], about: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("radii: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    assert about in captured.err


def test_an_internal_error_is_3(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("radii.statistics.read_parts", broken)
    monkeypatch.delitem(os.environ, "RADII_DEBUG", raising=False)
    assert main(["show", str(results)]) == 3
    assert "internal error: RuntimeError: boom" in capsys.readouterr().err


def test_what_is_no_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(tmp_path)]) == 2
    assert f"radii show {tmp_path}" in capsys.readouterr().err
    assert main(["run", "net.onnx"]) == 2
    assert "--network net.onnx" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "nope")]) == 2
    assert "no such directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["demo", "run", "show", "export", "attack", "verify", "data"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"radii {command}" in capsys.readouterr().out.split("example", 1)[1]


def test_a_reader_that_goes_away_is_no_failure() -> None:
    """As in `radii export results | head -1`."""
    with pytest.raises(BrokenPipeError), writing(None):
        raise BrokenPipeError(32, "Broken pipe")
    with pytest.raises(StoreError, match="standard output: cannot be written"), writing(None):
        raise OSError(28, "No space left on device")
    with pytest.raises(StoreError, match=r"few\.csv: cannot be written"), writing(Path("few.csv")):
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize(
    ("built_for", "is_there", "said"),
    [(None, False, "is built without CUDA"), ("12.8", False, "finds no NVIDIA GPU and driver")],
)
def test_a_device_that_is_not_here_says_what_is_missing(
    built_for: str | None, is_there: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from radii.verifiers import check_device

    monkeypatch.setattr(torch.version, "cuda", built_for)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: is_there)
    with pytest.raises(InputError, match=f"device 'cuda' is not one of cpu here: .*{said}"):
        check_device("cuda")


def test_a_parquet_file_without_its_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from radii.statistics import read

    monkeypatch.setattr("radii.statistics.reading._tables.find_spec", lambda name: None)
    (tmp_path / "some.parquet").touch()
    with pytest.raises(InputError, match=r"pip install 'radii\[parquet\]'"):
        read(tmp_path / "some.parquet")
