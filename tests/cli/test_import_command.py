"""`radii import`: what comes out is what every other command reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conftest import SHARED_DATA, needs_shared_data
from radii.cli import main
from radii.statistics import read

ROWS = """image_id, epsilon_value, runtime, smallest_sat_value, network_path, original_label
0, 0.015, 24.6, 0.017, nets/a.onnx, 5
image_1, 0.03, 3.0, 0.03, nets/a.onnx, 0
2, 0.02, 5.0, , nets/a.onnx, 4
0, 0.001, 1.0, 0.399, nets/b.onnx, 5
"""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    path = tmp_path / "result_df.csv"
    path.write_text(ROWS)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_imported_table_is_read_like_a_run(
    published: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"new/imported.{suffix}"
    assert main(["import", str(published), "-o", str(out), "--split", "test"]) == 0
    captured = capsys.readouterr()
    assert "1 of 4 rows claim a proof at or beyond their own counterexample" in captured.err
    assert "4 brackets" in captured.out
    again = read(out)
    assert again.notes == ()
    assert again.brackets.networks == ("a", "b")
    assert again.brackets.lower.tolist() == [0.015, 0.03, 0.02, 0.001]
    assert again.brackets.upper.tolist() == [0.017, 0.03, np.inf, 0.399]
    assert set(again.brackets.column("split")) == {"test"}
    assert again.brackets.column("seconds").tolist() == [24.6, 3.0, 5.0, 1.0]
    assert main(["show", str(out)]) == 0
    assert main(["gate", str(out), "--require", "accuracy >= 1"]) == 0
    assert main(["card", str(out)]) == 0
    assert main(["report", str(out), "-o", str(tmp_path / "r.html")]) == 0


def test_distrust_and_the_end_of_the_grid(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "imported.csv"
    flags = ["--distrust", "--largest-eps", "0.399", "--training", "standard"]
    assert main(["import", str(published), "-o", str(out), *flags]) == 0
    frame = pd.read_csv(out)
    assert frame["lower"].tolist() == [0.015, 0.0, 0.02, 0.001]
    assert frame["upper"].tolist() == [0.017, 0.03, np.inf, np.inf]
    assert set(frame["training"]) == {"standard"}


@pytest.mark.parametrize(
    ("source", "output", "sentence"),
    [
        ("nothing.csv", "out.csv", "nothing.csv: no such file"),
        ("result_df.csv", "out.txt", "out.txt: an imported table ends in .csv or .parquet"),
        ("result_df.csv", "result_df.csv/out.csv", "cannot be written"),
        (".", "out.csv", "no result_df.csv"),
    ],
)
def test_bad_input_is_one_sentence(
    published: Path,
    tmp_path: Path,
    source: str,
    output: str,
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = tmp_path / source
    if source == ".":
        published.unlink()
    assert main(["import", str(place), "-o", str(tmp_path / output)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


@needs_shared_data
def test_the_published_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = SHARED_DATA / "jair" / "published_results.csv"
    out = tmp_path / "published.csv"
    assert main(["import", str(source), "-o", str(out)]) == 0
    assert "6 of 279 rows claim a proof" in capsys.readouterr().err
    given, taken = pd.read_csv(source), pd.read_csv(out)
    grouped = given.groupby(given["network_path"].str.removesuffix(".onnx"))["epsilon_value"]
    ours = taken.groupby("network")["lower"]
    for statistic in ("min", "mean", "count"):
        theirs = getattr(grouped, statistic)()
        pd.testing.assert_series_equal(getattr(ours, statistic)(), theirs, check_names=False)


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    assert "radii import result_df.csv" in capsys.readouterr().out
